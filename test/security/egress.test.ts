import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo, Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Airlock, type Sandbox } from '@airlock/sdk'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type DnsServer, startDns } from '../support/dns-server.ts'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'

const NEEDS = requires('root', 'python3', 'openssl')

let dir: string
let dns: DnsServer
let https: Server
let http: Server
/** Connections that the servers saw, and which are open. */
let connections: number
let open: Set<Socket>
let server: TestServer
let admin: Airlock
let box: Sandbox

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'al-egress-'))
  dns = await startDns()
  dns.names.set('allowed.example', ['127.0.0.1'])
  dns.names.set('rebound.example', ['8.8.8.8', '127.0.0.2'])
  connections = 0
  open = new Set()
  makeCertificate()
  https = createHttps({ key: read('key.pem'), cert: read('cert.pem') }, answer)
  http = createHttp(answer)
  for (const one of [https, http]) {
    one.on('connection', (socket: Socket) => {
      connections += 1
      open.add(socket)
      socket.on('error', () => {}).once('close', () => open.delete(socket))
    })
    await new Promise<void>((resolve) => one.listen(0, '127.0.0.1', resolve))
  }
  const listed = [https, http].map((one) => `127.0.0.1:${portOf(one)}`)
  const env = { AIRLOCK_EGRESS_RESOLVERS: dns.address, AIRLOCK_EGRESS_ALLOW_PRIVATE: listed.join(',') }
  server = await startServer({ env })
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
}, 240_000)

afterAll(async () => {
  await server?.stop()
  dns?.close()
  for (const socket of open ?? []) socket.destroy()
  https?.close()
  http?.close()
  rmSync(dir, { recursive: true, force: true })
})

beforeEach(async () => {
  await allow('allowed.example', 'rebound.example')
  box = await new Airlock({ url: server.url, apiKey: server.developerKey }).sandboxes.create({ doors: ['egress'] })
  await box.files.write('cert.pem', read('cert.pem'))
})
afterEach(async () => box?.terminate())

describe('a sandbox with the egress door', NEEDS, () => {
  it('reaches an allowed host by curl, Python and Node as they are, and each connection is in the evidence', async () => {
    const [tls, plain] = [urlOf(https), urlOf(http)]
    const shell = `curl -sS --cacert cert.pem ${tls} && curl -sS ${plain} &&
      SSL_CERT_FILE=cert.pem python3 -c "import urllib.request as u; print(u.urlopen('${tls}').read().decode(), end='')" &&
      python3 -c "import urllib.request as u; print(u.urlopen('${plain}').read().decode(), end='')" &&
      NODE_EXTRA_CA_CERTS=cert.pem /opt/airlock/bin/node -e "fetch('${tls}').then((r) => r.text()).then((t) => process.stdout.write(t))"`
    const before = dns.questions.length
    const { stdout, stderr } = await box.run({ shell })
    expect([stdout, stderr]).toEqual(['hello '.repeat(5), ''])
    expect(new Set(dns.questions.slice(before))).toEqual(new Set(['A allowed.example', 'AAAA allowed.example']))
    await expect.poll(async () => (await records()).filter(({ status }) => status === 'done').length).toBe(5)
    expect((await records()).filter(({ status }) => status === 'requested').length).toBe(5)
    expect((await records())[0]).toMatchObject({
      status: 'done',
      actor: `sandbox:${box.id}`,
      payload: {
        host: 'allowed.example',
        traffic: 'tls',
        address: '127.0.0.1',
        received: expect.any(Number) as number,
      },
    })
  })

  it('reads over https with git as it is', requires('git'), async () => {
    const shell = `GIT_SSL_CAINFO=$PWD/cert.pem git ls-remote --heads ${urlOf(https)}repository`
    expect((await box.run({ shell })).stdout).toBe(`${'a'.repeat(40)}\trefs/heads/main\n`)
  })

  it('is refused everything else, with what to ask for, and no name is resolved', async () => {
    const before = [dns.questions.length, connections]
    const curl = await box.run({ shell: 'curl -sS https://denied.example/; curl -s http://denied.example/' })
    expect(curl.stderr).toContain('403')
    expect(JSON.parse(curl.stdout)).toMatchObject({
      error: { code: 'policy_denied', hint: 'Ask an admin to run: airlock egress allow denied.example:80' },
    })
    const python = await box.run(['python3', '-c', "import urllib.request as u; u.urlopen('https://denied.example')"])
    expect(python.stderr).toContain('No rule allows denied.example:443. Ask an admin to run: airlock egress allow')
    expect([dns.questions.length, connections]).toEqual(before)
    await expect.poll(async () => (await records()).map(({ status }) => status)).toContain('denied')
  })

  it('is not connected to an allowed name that leads to an address that is not public', async () => {
    const before = connections
    const to = `rebound.example:${portOf(https)}`
    const { stderr, stdout } = await box.run({ shell: `curl -sv https://${to}/ 2>&1 | grep '^< HTTP'` })
    expect([stderr, stdout]).toEqual([
      '',
      expect.stringContaining(`403 ${to} leads to 127.0.0.2, which is not a public`),
    ])
    expect(connections).toBe(before)
  })

  it.each<readonly [string, () => Promise<unknown>]>([
    ['its rule is taken away', async () => admin.policies.remove('hosts')],
    ['it is paused', async () => box.pause()],
    ['it is terminated', async () => box.terminate()],
    [
      'a killswitch is turned on',
      async () => admin.killswitch.on({ scope: 'sandbox', target: box.id, reason: 'Tested.' }),
    ],
  ])('has its connections cut, as the host sees it, when %s', async (_, end) => {
    await box.start({ shell: `curl -sN --cacert cert.pem ${urlOf(https)}slow` })
    await expect.poll(() => open.size).toBe(1)
    await end()
    await expect.poll(() => open.size).toBe(0)
  })
})

describe('a connection of a server that is hit by SIGKILL', NEEDS, () => {
  it.each(['doors', 'control-plane'] as const)('ends, as the host sees it, when %s dies', async (victim) => {
    await box.start({ shell: `curl -sN --cacert cert.pem ${urlOf(https)}slow` })
    await expect.poll(() => open.size).toBe(1)
    process.kill(pidOf(server.home, victim) ?? 0, 'SIGKILL')
    await expect.poll(() => open.size).toBe(0)
    // The server goes on, and so does the sandbox.
    const again = async () => (await box.run({ shell: `curl -sS --cacert cert.pem ${urlOf(https)}` })).stdout
    await expect.poll(async () => again().catch(() => 'away')).toBe('hello ')
  })
})

describe('a sandbox without it', NEEDS, () => {
  it('has no such port and no such variable', async () => {
    const plain = await new Airlock({ url: server.url, apiKey: server.developerKey }).sandboxes.create({})
    const shell = 'env | grep -i proxy; ls /run/airlock; curl -s http://127.0.0.1:47081/ || echo refused'
    const { stdout } = await plain.run({ shell })
    expect(stdout).not.toMatch(/proxy|egress/i)
    expect(stdout).toContain('refused')
    await plain.terminate()
  })
})

const answer = (request: IncomingMessage, response: ServerResponse) => {
  if (request.url === '/slow') return void response.write('begun')
  if (request.url?.startsWith('/repository/info/refs') === true)
    return void response.end(`${'a'.repeat(40)}\trefs/heads/main\n`)
  if (request.url?.startsWith('/repository/') === true) return void response.end('ref: refs/heads/main\n')
  response.end('hello ')
}

async function allow(...hosts: string[]): Promise<void> {
  const rule = { kind: 'network', effect: 'allow', risk: 'low', reason: 'Tested.' } as const
  await admin.policies.put({
    name: 'hosts',
    rules: [{ ...rule, id: 'all', match: { hosts, ports: [portOf(https), portOf(http)] } }],
  })
}

async function records() {
  return (await admin.audit.events({ sandbox: box.id, point: 'network.connect' })).items
}

function urlOf(of: Server): string {
  return `${of === https ? 'https' : 'http'}://allowed.example:${portOf(of)}/`
}

function portOf(of: Server): number {
  return (of.address() as AddressInfo).port
}

function makeCertificate(): void {
  const names = ['-subj', '/CN=allowed.example', '-addext', 'subjectAltName=DNS:allowed.example']
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', join(dir, 'key.pem')]
  const options = ['req', '-x509', ...key, '-out', join(dir, 'cert.pem'), '-days', '1', ...names]
  execFileSync('openssl', options, { stdio: 'ignore' })
}

function read(name: string): string {
  return readFileSync(join(dir, name), 'utf8')
}
