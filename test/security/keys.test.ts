import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keysHealth } from '@airlock/contract'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'

const KEY = 'sk-canary-0123456789abcdef'
const KEYS_UID = 1_879_048_197
const DOORS_UID = 1_879_048_196

let dir: string
let server: TestServer

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'al-upstream-'))
  writeFileSync(join(dir, 'main.key'), `${KEY}\n`, { mode: 0o600 })
  writeFileSync(
    join(dir, 'airlock.toml'),
    `[llm.upstream.main]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
key_file = "${dir}/main.key"
models = { "gpt-5" = { context_window = 1000, max_output = 100, price = "free" } }
`,
  )
  server = await startServer({ env: { AIRLOCK_CONFIG: join(dir, 'airlock.toml') } })
}, 240_000)
afterAll(async () => {
  await server?.stop()
  rmSync(dir, { recursive: true, force: true })
})

describe('the process that holds the keys of upstreams', requires('root', 'python3'), () => {
  it('has a uid of its own without rights, and leaves no core', () => {
    const pid = pidOf(server.home, 'keys')
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const line = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(status)?.[1]?.trim()
    expect([line('Uid'), line('Groups'), line('CapEff')]).toEqual([
      `${KEYS_UID}\t${KEYS_UID}\t${KEYS_UID}\t${KEYS_UID}`,
      '',
      '0000000000000000',
    ])
    expect(readFileSync(`/proc/${pid}/limits`, 'utf8')).toMatch(/^Max core file size +0 +0 /m)
    // The kernel gives these files to root when a process may not be dumped.
    expect(statSync(`/proc/${pid}/environ`).uid).toBe(0)
  })

  it('is asked by the doors alone, and has its copy of the key to itself', () => {
    const places = ['run/keys', 'run/keys/main.key', 'run/keys.sock', 'public/keys.life']
    expect(
      places.map((place) => {
        const { uid, gid, mode } = statSync(join(server.home, place))
        return `${place} ${(mode & 0o777).toString(8)} ${uid} ${gid}`
      }),
    ).toEqual([
      `run/keys 710 0 ${KEYS_UID}`,
      `run/keys/main.key 400 ${KEYS_UID} ${KEYS_UID}`,
      `run/keys.sock 600 ${DOORS_UID} ${DOORS_UID}`,
      'public/keys.life 644 0 0',
    ])
    expect(healthAs(DOORS_UID)).toEqual({
      upstreams: [
        {
          name: 'main',
          kind: 'openai',
          key: 'present',
          lastStatus: null,
          lastError: null,
          breaker: 'closed',
          calls: 0,
        },
      ],
    })
    for (const uid of [KEYS_UID - 4, 65_534]) expect(() => healthAs(uid)).toThrow('PermissionError')
  })

  it('has a key that no other process, file of the state or line of the log shows', () => {
    const listed = JSON.parse(readFileSync(`${server.home}/run/processes.json`, 'utf8')) as readonly { pid: number }[]
    const pids = [server.pid, ...listed.map(({ pid }) => pid)]
    expect(pids).toHaveLength(6)
    const said = pids.flatMap((pid) =>
      ['environ', 'cmdline'].map((name) => readFileSync(`/proc/${pid}/${name}`, 'utf8')),
    )
    expect([...said, server.logs()].filter((text) => text.includes('sk-canary'))).toEqual([])
    const files = execFileSync('grep', ['-rl', 'sk-canary', server.home], { encoding: 'utf8' })
    expect(files.trim().split('\n')).toEqual([`${server.home}/run/keys/main.key`])
  })

  it('gets a key that changed without a restart', async () => {
    const pid = pidOf(server.home, 'keys')
    writeFileSync(join(dir, 'main.key'), 'sk-rotated-0123456789abcdef\n')
    const copied = () =>
      readFileSync(join(server.home, 'run/keys/main.key'), 'utf8').includes('rotated') ? true : undefined
    await waitFor(copied, { signal: deadline(100_000), everyMs: 20 })
    expect(healthAs(DOORS_UID).upstreams[0]?.key).toBe('present')
    expect(pidOf(server.home, 'keys')).toBe(pid)
    chmodSync(join(dir, 'main.key'), 0o644)
    await expect.poll(() => server.logs()).toContain('keeps its earlier key')
    chmodSync(join(dir, 'main.key'), 0o600)
  })

  it('comes back after kill -9 with another life, and no other process notices', async () => {
    const others = ['recorder', 'data-plane', 'doors', 'control-plane'] as const
    const before = others.map((name) => pidOf(server.home, name))
    const life = () => readFileSync(join(server.home, 'public/keys.life'), 'utf8')
    const [pid, earlier] = [pidOf(server.home, 'keys') ?? 0, life()]
    expect(pid).toBeGreaterThan(1)
    process.kill(pid, 'SIGKILL')
    await waitFor(() => (life() === earlier ? undefined : true), { signal: deadline(100_000), everyMs: 20 })
    await expect.poll(() => server.logs()).toContain('keys is back')
    expect(healthAs(DOORS_UID).upstreams[0]?.key).toBe('present')
    expect(others.map((name) => pidOf(server.home, name))).toEqual(before)
  })

  it('leaves no copy of a key behind', async () => {
    await server.stop('SIGTERM')
    expect(readdirSync(join(server.home, 'run/keys'))).toEqual([])
  })
})

/** Asks the process for its health as that user. */
function healthAs(uid: number) {
  const as = ['--reuid', `${uid}`, '--regid', `${uid}`, '--clear-groups', '/usr/bin/python3', '-c', HEALTH]
  const said = execFileSync('setpriv', [...as, join(server.home, 'run/keys.sock')], { encoding: 'utf8', stdio: 'pipe' })
  return keysHealth.parse(JSON.parse(said))
}

const HEALTH = `
import http.client, socket, sys
keys = http.client.HTTPConnection('keys', timeout=60)
keys.sock = socket.socket(socket.AF_UNIX)
keys.sock.connect(sys.argv[1])
keys.request('GET', '/health')
print(keys.getresponse().read().decode())
`
