import { Airlock, type Sandbox } from '@airlock/sdk'
import { randomUUID } from 'node:crypto'
import { chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { requires } from '../support/requires.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { startServer } from '../support/server.ts'

let server: BorrowedServer
let developer: Airlock
let admin: Airlock

beforeAll(async () => {
  server = await borrowServer()
  developer = new Airlock({ url: server.url, apiKey: server.developerKey })
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
})

afterAll(async () => server?.giveBack())

describe('the strict tier', requires('runsc'), () => {
  it('is what the caller asked for: another kernel, shown as it is found', async () => {
    await using sandbox = await developer.sandboxes.create({ tier: 'strict' })
    expect(sandbox.data.isolation).toMatchObject({
      tier: 'strict',
      runtime: expect.stringMatching(/^runsc /u),
      network: 'none',
      seccomp: 'allowlist',
      noNewPrivileges: true,
    })
    const own = (await sandbox.run(['uname', '-r'])).stdout
    await using other = await developer.sandboxes.create({})
    expect(own).not.toBe((await other.run(['uname', '-r'])).stdout)
  })

  it('is what a policy raises a sandbox to, whatever the caller asked for', async () => {
    const match = { labels: { risk: ['high'] } }
    const rule = { kind: 'tier', id: 'raise', effect: 'allow', risk: 'high', reason: 'Risky.', match } as const
    await admin.policies.put({ name: 'tiers', rules: [{ ...rule, conditions: { tier: 'strict' } }] })
    try {
      await using raised = await developer.sandboxes.create({ labels: { risk: 'high' }, tier: 'standard' })
      expect(raised.data.isolation?.tier).toBe('strict')
      await using plain = await developer.sandboxes.create({ labels: { risk: 'low' } })
      expect(plain.data.isolation?.tier).toBe('standard')
    } finally {
      await admin.policies.remove('tiers')
    }
  })

  it('is what a template says, and no caller lowers it', async () => {
    const name = `strict-${randomUUID().slice(0, 8)}`
    await developer.templates.put(name, { tier: 'strict' })
    await using sandbox = await developer.sandboxes.create({ template: name, tier: 'standard' })
    expect(sandbox.data.isolation?.tier).toBe('strict')
  })

  it('has sessions, files, limits on time, and what a command leaves in the background', async () => {
    await using sandbox = await developer.sandboxes.create({ tier: 'strict' })
    await sandbox.files.write('note.txt', 'written')
    const read = await sandbox.run({ shell: 'cat note.txt; (setsid sleep 600 &)' })
    expect({ stdout: read.stdout, exitCode: read.exitCode }).toEqual({ stdout: 'written', exitCode: 0 })
    const late = await sandbox.run({ shell: 'sleep 600 & sleep 600' }, { timeoutMs: 1000 })
    expect({ timedOut: late.timedOut, signal: late.signal }).toEqual({ timedOut: true, signal: 'SIGKILL' })
    expect(await sleepers(sandbox)).toBe('1')
    const session = await developer.sessions.create({ sandbox: sandbox.id, runtime: 'python' })
    await session.run('x = 41')
    expect((await session.run('print(x + 1)')).stdout).toBe('42\n')
  })

  it('shows what was granted read-only, and refuses what was granted for writing', async () => {
    const tree = mkdtempSync('/srv/al-tiers-')
    onTestFinished(() => rmSync(tree, { recursive: true }))
    for (const name of ['shown', 'written']) {
      mkdirSync(`${tree}/${name}`)
      writeFileSync(`${tree}/${name}/note`, name)
      for (const path of [`${tree}/${name}`, `${tree}/${name}/note`]) chownSync(path, 1234, 1234)
    }
    const agent = `tiers-${randomUUID().slice(0, 8)}`
    await admin.agents.register(agent)
    await admin.agents.approve(agent)
    await admin.grants.add(agent, `${tree}/shown`, { mode: 'ro' })
    await admin.grants.add(agent, `${tree}/shown/note`, { mode: 'ro', target: '/workspace/note' })
    const sandbox = await admin.sandboxes.create({ agent, tier: 'strict' })
    const script = 'cat /grants/shown/note /workspace/note; echo x >>/grants/shown/note || echo refused'
    expect((await sandbox.run({ shell: script })).stdout).toBe('shownshownrefused\n')
    await sandbox.terminate()
    await admin.grants.add(agent, `${tree}/written`, { mode: 'rw' })
    const refused = { code: 'isolation_unavailable', message: expect.stringContaining('for writing') }
    await expect(admin.sandboxes.create({ agent, tier: 'strict' })).rejects.toMatchObject(refused)
    await using standard = await admin.sandboxes.create({ agent })
    expect(standard.data.mounts).toHaveLength(3)
  })

  it('has the door of its sandbox', async () => {
    await using sandbox = await developer.sandboxes.create({ tier: 'strict' })
    await sandbox.files.write('door.py', DOOR)
    const { stdout, stderr } = await sandbox.run(['python3', 'door.py'])
    expect([stderr, JSON.parse(stdout)]).toEqual(['', expect.objectContaining({ sandbox: sandbox.id })])
  })

  it('pauses and goes on', async () => {
    await using sandbox = await developer.sandboxes.create({ tier: 'strict' })
    await sandbox.pause()
    await expect(sandbox.run(['true'])).rejects.toMatchObject({ code: 'sandbox_paused' })
    await sandbox.resume()
    expect((await sandbox.run(['echo', 'on'])).stdout).toBe('on\n')
  })
})

describe('without gVisor', () => {
  it('the strict tier is refused, never done differently, and the standard one works', async () => {
    const without = await startServer({ env: { AIRLOCK_RUNSC: 'none' } })
    try {
      const airlock = new Airlock({ url: without.url, apiKey: without.developerKey })
      await expect(airlock.sandboxes.create({ tier: 'strict' })).rejects.toMatchObject({
        code: 'isolation_unavailable',
      })
      await using sandbox = await airlock.sandboxes.create({})
      expect(sandbox.data.isolation?.tier).toBe('standard')
    } finally {
      await without.stop()
    }
  })
})

describe('a command that the filter kills', requires('gcc'), () => {
  it('ends by SIGSYS, which its result and the evidence tell apart from every other end', async () => {
    await using sandbox = await developer.sandboxes.create({})
    // int 0x80 is a call of 32-bit programs.
    await sandbox.files.write(
      'other-abi.c',
      'int main(void) { int r; __asm__("int $0x80" : "=a"(r) : "a"(20)); return 0; }',
    )
    const built = await sandbox.run(['gcc', '-o', 'other-abi', 'other-abi.c'])
    expect(built.stderr).toBe('')
    const ran = await sandbox.run(['./other-abi'])
    expect({ signal: ran.signal, exitCode: ran.exitCode, timedOut: ran.timedOut }).toEqual({
      signal: 'SIGSYS',
      exitCode: null,
      timedOut: false,
    })
    const { items } = await admin.audit.events({ sandbox: sandbox.id, point: 'command.run' })
    const ends = items.filter(({ status }) => status === 'done').map(({ payload }) => payload)
    expect(ends).toContainEqual(expect.objectContaining({ command: ran.id, signal: 'SIGSYS' }))
  })
})

/** Asks at the door who it is. */
const DOOR = `
import http.client, os, socket
door = http.client.HTTPConnection('localhost')
door.sock = socket.socket(socket.AF_UNIX); door.sock.connect(os.environ['AIRLOCK_SOCKET'])
door.request('GET', '/v1/self', headers={'Authorization': 'Bearer ' + open(os.environ['AIRLOCK_TOKEN_FILE']).read().strip()})
print(door.getresponse().read().decode())
`

async function sleepers(sandbox: Sandbox): Promise<string> {
  const count = 'n=0; for f in /proc/[0-9]*/comm; do read -r c <$f && [ "$c" = sleep ] && n=$((n+1)); done; echo $n'
  return (await sandbox.run({ shell: count })).stdout.trim()
}
