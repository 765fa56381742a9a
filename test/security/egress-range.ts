import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { Airlock, type Sandbox } from '@airlock/sdk'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { record } from '../../packages/doors/src/egress/testing/hello.ts'
import { Breach } from '../support/breach.ts'
import { type DnsServer, startDns } from '../support/dns-server.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { AROUND, AROUND_CONTROL, type Attempt, encode, MARKER, PORTS, type Ports, SEND_ALL } from './egress-attempts.ts'

const ABSTRACT = `al-egress-${process.pid}`
const RETRY = Buffer.from('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c', 'hex')

/** Names of attempts that a rule allows: their DNS questions are right. */
const ALLOWED_QUESTIONS: ReadonlySet<string> = new Set(['A allowed.example', 'AAAA allowed.example'])

/** How each listener of the host answers the first bytes of a connection. */
const ANSWERS: Readonly<Record<(typeof PORTS)[number], string | Buffer>> = {
  http: 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
  tls: serverHello(Buffer.alloc(32, 5)),
  retry: serverHello(RETRY),
  mail: '500 what?\r\n',
}

/** Sends every attempt, and its control, from a sandbox of each tier of a server with counting DNS and upstreams. */
export function describeAttempts(attempts: readonly Attempt[]): void {
  let dns: DnsServer
  let upstreams: readonly Server[]
  let abstract: Server
  let server: TestServer
  let ports: Ports
  /** Bytes that upstreams received. */
  let received: string[] = []
  let box: Sandbox | undefined

  beforeAll(async () => {
    dns = await startDns()
    dns.names.set('allowed.example', ['127.0.0.1'])
    upstreams = PORTS.map((name) => createServer((socket) => serve(name, socket)))
    for (const upstream of upstreams) upstream.listen(0, '127.0.0.1')
    abstract = createServer((socket) => socket.destroy()).listen(`\0${ABSTRACT}`)
    await Promise.all([...upstreams, abstract].map(async (one) => one.listening || once(one, 'listening')))
    const [http, tls, retry, mail] = upstreams.map((one) => (one.address() as AddressInfo).port)
    ports = { http: http ?? 0, tls: tls ?? 0, retry: retry ?? 0, mail: mail ?? 0 }
    const listed = Object.values(ports).map((port) => `127.0.0.1:${port}`)
    server = await startServer({
      env: { AIRLOCK_EGRESS_RESOLVERS: dns.address, AIRLOCK_EGRESS_ALLOW_PRIVATE: listed.join(',') },
    })
    const rule = { id: 'allowed', kind: 'network', effect: 'allow', risk: 'low', reason: 'Tested.' } as const
    await new Airlock({ url: server.url, apiKey: server.adminKey }).policies.put({
      name: 'hosts',
      rules: [{ ...rule, match: { hosts: ['allowed.example'], ports: Object.values(ports) } }],
    })
  }, 240_000)
  afterEach(async () => box?.terminate())
  afterAll(async () => {
    await server?.stop()
    dns?.close()
    for (const one of [...(upstreams ?? []), abstract]) one?.close()
  })

  function serve(name: (typeof PORTS)[number], socket: Socket): void {
    const at = received.push('') - 1
    socket.on('error', () => {})
    if (name === 'mail') socket.write('220 mail ESMTP\r\n')
    socket.on('data', (chunk: Buffer) => {
      if (received[at] === '') socket.write(ANSWERS[name])
      received[at] += chunk.toString('latin1')
    })
  }

  async function send(exchanges: readonly (readonly string[])[]): Promise<readonly string[]> {
    await box?.files.write('exchanges.json', JSON.stringify(exchanges))
    return (await inside(SEND_ALL, 'exchanges.json')) as readonly string[]
  }

  async function inside(program: string, ...args: readonly string[]): Promise<unknown> {
    const ran = await box?.run(['python3', '-c', program, ...args])
    if (ran?.stderr !== '') throw new TypeError(ran?.stderr)
    return JSON.parse(ran.stdout)
  }

  for (const tier of ['standard', 'strict'] as const)
    describe(
      `a sandbox of the ${tier} tier`,
      requires('root', 'python3', ...(tier === 'strict' ? (['runsc'] as const) : [])),
      () => {
        it('reaches nothing that no rule allows, and no denied name is asked of DNS', async () => {
          box = await new Airlock({ url: server.url, apiKey: server.developerKey }).sandboxes.create({
            tier,
            doors: ['egress'],
          })
          received = []
          const asked = dns.questions.length
          const answers = await send(attempts.map((attempt) => encode(attempt, ports)))
          const through = answers.flatMap((answer, at) =>
            /^HTTP\/1.1 (?:4\d\d|502) |^tunnel: refused$/.test(answer) ? [] : [`${attempts[at]?.name}: ${answer}`],
          )
          const leaked = received.filter((bytes) => bytes.includes(MARKER))
          const denied = dns.questions.slice(asked).filter((question) => !ALLOWED_QUESTIONS.has(question))
          if (through.length + leaked.length + denied.length > 0)
            throw new Breach(JSON.stringify({ through, leaked, denied }))
          const controls = new Map(attempts.map(({ control }) => [JSON.stringify(control), encode(control, ports)]))
          const passed = await send([...controls.values()])
          expect(passed.filter((answer) => !/^HTTP\/1.1 200 |^tunnel: open$/.test(answer))).toEqual([])
        })

        it('reaches nothing past its door', async () => {
          box = await new Airlock({ url: server.url, apiKey: server.developerKey }).sandboxes.create({
            tier,
            doors: ['egress'],
          })
          received = []
          const asked = dns.questions.length
          const dnsPort = dns.address.split(':')[1] ?? ''
          const reached = await inside(AROUND, String(ports.http), dnsPort, ABSTRACT)
          expect([reached, dns.questions.length, received]).toEqual([[], asked, []])
          expect(await inside(AROUND_CONTROL)).toEqual(['tcp', 'tcp6', 'abstract', 'udp'])
        })
      },
    )
}

function serverHello(random: Buffer): Buffer {
  return record(22, Buffer.concat([Buffer.from([2, 0, 0, 38, 3, 3]), random, Buffer.from([0, 0x13, 1, 0])]))
}
