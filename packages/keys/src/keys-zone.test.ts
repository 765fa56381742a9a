import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deadline, waitFor } from '@airlock/std'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { answerOf, chunkOf, ModelUpstream, STREAM_HEAD } from '../../../test/support/model-upstream.ts'
import { requires } from '../../../test/support/requires.ts'
import { encodingsOf } from './secret/encodings.ts'
import { KeysProcess, readCalled, UID } from './testing/keys-process.ts'

const KEY = 'sk-canary-0123456789abcdef'
const DOORS_UID = 1_879_048_192 + 4
const CHAT = { model: 'gpt-5', messages: [], max_tokens: 100 }

let upstream: ModelUpstream
let keys: KeysProcess

beforeEach(async () => {
  upstream = await ModelUpstream.start()
  keys = new KeysProcess({ main: { port: upstream.port } })
  keys.writeKey('main', KEY)
  await keys.start()
})
afterEach(async () => {
  await keys?.[Symbol.asyncDispose]()
  await upstream?.stop()
})

describe('the process that holds the keys', requires('root', 'python3'), () => {
  it('has no right and a uid of its own, and its socket is for one other alone', () => {
    const status = readFileSync(`/proc/${keys.pid}/status`, 'utf8')
    const line = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(status)?.[1]?.trim()
    expect([line('Uid'), line('Gid'), line('Groups'), line('CapEff'), line('CapPrm')]).toEqual([
      `${UID}\t${UID}\t${UID}\t${UID}`,
      `${UID}\t${UID}\t${UID}\t${UID}`,
      '',
      '0000000000000000',
      '0000000000000000',
    ])
    expect((statSync(keys.socket).mode & 0o777).toString(8)).toBe('600')
  })

  it('is read by nobody without rights of root, not even by its own uid', () => {
    const paths = ['environ', 'mem', 'maps', 'fd', 'auxv', 'cwd'].map((name) => `/proc/${keys.pid}/${name}`)
    const all = [...paths, keys.keyFile('main')]
    for (const uid of [DOORS_UID, UID - 4, 65_534]) expect(readableBy(uid, all)).toEqual([])
    // Its own uid may read the key, and that is all. Root may read everything: the paths are right.
    expect(readableBy(UID, all)).toEqual([keys.keyFile('main')])
    expect(readableBy(0, all)).toEqual(all)
  })

  it('shows a key in no environment, command line, log, answer or state, whatever fails', async () => {
    const answers = [
      await keys.call(CHAT),
      await keys.call(CHAT, 'alr_forged'),
      await keys.call({ ...CHAT, max_tokens: 1e9 }),
      await keys.call({ ...CHAT, user: 'x' }),
    ]
    for (const step of [
      answerOf('401 No', `bad key ${KEY}`),
      { send: `HTTP/1.1 200 ${KEY}\r\n${KEY}\r\n\r\n` },
      { send: KEY },
    ]) {
      await upstream.next(step, { end: 'close' })
      answers.push(await keys.call(CHAT))
    }
    await upstream.stop()
    answers.push(await keys.call(CHAT))
    keys.writeKey('main', `${KEY} ${KEY}`)
    answers.push(await keys.call(CHAT))
    expect(answers.map(({ status }) => status)).toEqual([200, 500, 500, 400, 200, 502, 502, 503, 503])
    const health = await keys.health()
    const said = [
      readFileSync(`/proc/${keys.pid}/environ`),
      readFileSync(`/proc/${keys.pid}/cmdline`),
      Buffer.from(keys.stderr),
      Buffer.from(JSON.stringify([answers, health])),
      ...readdirSync(join(keys.home, 'public')).map((name) => readFileSync(join(keys.home, 'public', name))),
    ]
    for (const one of encodingsOf(KEY)) expect(said.filter((bytes) => bytes.includes(one))).toEqual([])
    // There was something to be read: each failure is in the log.
    expect(keys.stderr).toContain('cut an answer that held our key')
    expect(keys.stderr).toContain('upstream_broken')
    expect(keys.stderr).toContain('ECONNREFUSED')
    expect(health.upstreams).toEqual([
      {
        name: 'main',
        kind: 'openai',
        key: 'malformed',
        lastStatus: 401,
        lastError: 'upstream_unavailable',
        breaker: 'closed',
        calls: 0,
      },
    ])
  })
})

describe('a process that the kernel lets others read', requires('root'), () => {
  it('does not start', async () => {
    // It never was root, so giving that up takes nothing from it.
    const capabilities = ['+setuid', '+setgid', '+chown'].join(',')
    const rights = ['--inh-caps', capabilities, '--ambient-caps', capabilities]
    const execArgv = ['--reuid', `${UID}`, '--regid', `${UID}`, '--clear-groups', ...rights, process.execPath]
    await using open = new KeysProcess({ main: { port: upstream.port } })
    chownSync(open.home, UID, UID)
    chownSync(join(open.home, 'public'), UID, UID)
    const started = open.start({}, { execPath: '/usr/bin/setpriv', execArgv })
    await expect(started).rejects.toThrow('lets processes that gave up root be dumped')
  })
})

describe('a restart', () => {
  it('makes reservations of the earlier life worthless, used or not', async () => {
    const [used, unused] = [keys.sign(), keys.sign()]
    expect((await keys.call(CHAT, used)).end).toBe('whole')
    await keys.kill()
    await keys.start()
    for (const earlier of [used, unused])
      expect(await keys.call(CHAT, earlier)).toMatchObject({
        status: 500,
        body: expect.stringContaining('earlier life'),
      })
    expect((await upstream.seen()).requests).toHaveLength(1)
    expect((await keys.call(CHAT)).end).toBe('whole')
  })

  it('in the middle of an answer breaks it off on both sides', async () => {
    await upstream.next(STREAM_HEAD, chunkOf('data: 1\n\n'), { wait: 'never' })
    const response = await keys.open(CHAT)
    await once(response, 'data')
    const rest = readCalled(response)
    await keys.kill()
    expect(await rest).toMatchObject({ end: undefined })
    const isCut = async () => ((await upstream.seen()).connections[0]?.isOpen === false ? true : undefined)
    await waitFor(isCut, { signal: deadline(100_000), everyMs: 20 })
  })
})

describe('an upstream that cannot be reached', () => {
  it('is not tried for a while after five calls in a row', async () => {
    await upstream.stop()
    for (let n = 0; n < 5; n += 1) expect(codeOf(await keys.call(CHAT))).toBe('503 upstream_unavailable')
    expect((await keys.health()).upstreams).toMatchObject([{ breaker: 'open', lastError: 'upstream_unavailable' }])
    const refused = await keys.call(CHAT)
    expect(codeOf(refused)).toBe('503 upstream_unavailable')
    expect(refused.body).toContain('could not be reached 5 times in a row')
    expect(keys.stderr.match(/a call upstream failed.*ECONNREFUSED/g)).toHaveLength(5)
    expect(keys.stderr).toContain('upstream main cannot be reached: ECONNREFUSED')
  })

  it('is not held for one that cannot be reached when a tenant makes it fail', async () => {
    for (let n = 0; n < 6; n += 1) {
      await upstream.next({ end: 'reset' })
      expect(codeOf(await keys.call(CHAT, { tenant: 'loud' }))).toBe('502 upstream_broken')
    }
    expect((await keys.call(CHAT, { tenant: 'quiet' })).end).toBe('whole')
  })
})

describe('an upstream by https', requires('root', 'openssl'), () => {
  it('gets the key when its certificate is good, and nothing otherwise', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'al-tls-'))
    const [cert, key] = [join(dir, 'cert.pem'), join(dir, 'key.pem')]
    const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:P-256',
        '-nodes',
        '-keyout',
        key,
        '-out',
        cert,
        ...names,
      ],
      { stdio: 'ignore' },
    )
    // The process has given up root when it dials.
    chmodSync(cert, 0o600)
    await using server = await ModelUpstream.start({ cert, key })
    const { port } = server
    await using client = new KeysProcess({
      main: { port, origin: `https://localhost:${port}` },
      other: { port, origin: `https://127.0.0.1:${port}` },
    })
    for (const name of ['main', 'other']) client.writeKey(name, KEY)
    await client.start()
    expect(codeOf(await client.call(CHAT))).toBe('503 upstream_unavailable')
    await client.kill()
    await client.start({ NODE_EXTRA_CA_CERTS: cert })
    expect((await client.call(CHAT)).end).toBe('whole')
    expect(codeOf(await client.call(CHAT, { upstream: 'other' }))).toBe('503 upstream_unavailable')
    const { requests } = await server.seen()
    expect(requests.map(({ head }) => head.includes(KEY))).toEqual([true])
    expect(client.stderr).toContain('ERR_TLS_CERT_ALTNAME_INVALID')
    rmSync(dir, { recursive: true })
  })
})

/** The paths that a user can open. */
function readableBy(uid: number, paths: readonly string[]): readonly string[] {
  const as = ['--reuid', `${uid}`, '--regid', `${uid}`, '--clear-groups', '/usr/bin/python3', '-c', OPEN, ...paths]
  return execFileSync('setpriv', as, { encoding: 'utf8' }).split('\n').filter(Boolean)
}

const OPEN = `
import os, sys
for path in sys.argv[1:]:
    try:
        os.listdir(path) if os.path.isdir(path) else open(path, 'rb')
        print(path)
    except OSError:
        pass
`

function codeOf({ status, body }: { readonly status: number; readonly body: string }): string {
  const { error } = JSON.parse(body) as { error: { code: string } }
  return `${status} ${error.code}`
}
