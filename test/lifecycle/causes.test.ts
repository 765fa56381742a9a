import {
  Airlock,
  type Command,
  type CommandLine,
  type CommandOptions,
  type Sandbox,
  type Session,
  type Step,
} from '@airlock/sdk'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'

const MIB = 1024 * 1024
const LIMITS = { memoryBytes: 128 * MIB, diskBytes: 64 * MIB, pids: 64, cpus: 1 }

let server: BorrowedServer
let developer: Airlock
let admin: Airlock

beforeAll(async () => {
  server = await borrowServer('off')
  developer = new Airlock({ url: server.url, apiKey: server.developerKey })
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
})

afterAll(async () => server?.giveBack())

interface Case {
  readonly what: string
  readonly line: CommandLine
  readonly options?: CommandOptions
  readonly ends: Partial<Command>
}

const python = (code: string): CommandLine => ['python3', '-c', code]

const EAT = 'b = []\nwhile True: b.append(bytearray(10_000_000))'
/** Forks until it may not, and fails as most programs do. */
const FORK = `
import os, time
for _ in range(1000):
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
`
/** A system call of 32-bit programs: mov eax, 20; int 0x80; ret. */
const FORBIDDEN = `
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex('b814000000cd80c3'))
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
`

/** What is the same in both tiers. */
const EVERYWHERE: readonly Case[] = [
  { what: 'one that ends well', line: { shell: 'true' }, ends: { exitCode: 0, cause: 'exit' } },
  { what: 'one that fails by itself', line: { shell: 'exit 1' }, ends: { exitCode: 1, cause: 'exit' } },
  {
    what: 'one that kills itself with SIGKILL',
    line: { shell: 'kill -9 $$' },
    ends: { signal: 'SIGKILL', cause: 'signal' },
  },
  {
    what: 'a shell whose child did',
    line: { shell: 'sh -c "kill -9 \\$\\$"; exit $?' },
    ends: { exitCode: 137, cause: 'exit' },
  },
  {
    what: 'one that takes too long',
    line: ['sleep', '600'],
    options: { timeoutMs: 500 },
    ends: { timedOut: true, cause: 'timeout' },
  },
  {
    what: 'one that ends by SIGSYS',
    line: { shell: 'kill -SYS $$' },
    ends: { signal: 'SIGSYS', cause: 'forbidden_call' },
  },
  {
    what: 'a shell whose child ended by SIGSYS',
    line: { shell: 'sh -c "kill -SYS \\$\\$"; exit $?' },
    ends: { exitCode: 159, cause: 'forbidden_call' },
  },
  {
    what: 'one that uses up its time',
    line: { shell: 'while :; do :; done' },
    options: { cpuTimeMs: 1000, timeoutMs: 60_000 },
    ends: { signal: 'SIGXCPU', cause: 'cpu_time' },
  },
  {
    what: 'one that ignores being told so',
    line: { shell: 'trap "" XCPU; while :; do :; done' },
    // A shell in gVisor on a busy host needs more than a second until its trap is set.
    options: { cpuTimeMs: 4000, timeoutMs: 60_000 },
    ends: { signal: 'SIGKILL', cause: 'cpu_time' },
  },
  {
    what: 'one that fills the disk',
    line: { shell: 'head -c 300M /dev/zero > /workspace/x' },
    ends: { exitCode: 1, cause: 'disk_full' },
  },
  {
    what: 'one that fills the disk by large writes',
    line: { shell: 'dd if=/dev/zero of=/workspace/x bs=1M count=300' },
    ends: { exitCode: 1, cause: 'disk_full' },
  },
]

const STANDARD: readonly Case[] = [
  {
    what: 'one that makes a forbidden call',
    line: python(FORBIDDEN),
    ends: { signal: 'SIGSYS', cause: 'forbidden_call' },
  },
  {
    what: 'one that needs too much memory',
    line: python(EAT),
    ends: { signal: 'SIGKILL', cause: 'out_of_memory' },
  },
  {
    what: 'a shell whose child needs too much',
    line: { shell: `python3 -c '${EAT}'; exit 3` },
    ends: { exitCode: 3, cause: 'out_of_memory' },
  },
  {
    what: 'a shell that goes on after that',
    line: { shell: `python3 -c '${EAT}'; true` },
    ends: { exitCode: 0, cause: 'exit' },
  },
  { what: 'one that forks too often', line: python(FORK), ends: { exitCode: 1, cause: 'pids_exhausted' } },
  {
    what: 'one that fills /tmp',
    line: { shell: 'head -c 500M /dev/zero > /tmp/x' },
    ends: { exitCode: 1, cause: 'disk_full' },
  },
  {
    what: 'one that makes too many files',
    line: { shell: 'cd /workspace; seq 100000 | xargs touch' },
    ends: { exitCode: 123, cause: 'disk_full' },
  },
]

async function make(tier: 'standard' | 'strict'): Promise<Sandbox> {
  return developer.sandboxes.create({ tier, limits: LIMITS })
}

const shown = ({ exitCode, signal, timedOut, cause }: Command) => ({ exitCode, signal, timedOut, cause })

describe.each([
  ['standard', [...EVERYWHERE, ...STANDARD], requires()],
  ['strict', EVERYWHERE, requires('runsc')],
] as const)('in the %s tier the result says why it ended:', (tier, cases, needs) => {
  it.for(cases)('$what', needs, async ({ line, options, ends }) => {
    await using sandbox = await make(tier)
    const result = await sandbox.run(line, options)
    const wanted = { exitCode: null, signal: null, timedOut: false, ...ends }
    if (ends.timedOut === true) wanted.signal = 'SIGKILL'
    expect(shown(result)).toEqual(wanted)
  })
})

/** A machine may have much to do. */
const PATIENT = { timeout: 100_000 }

async function killed(sandbox: Sandbox): Promise<void> {
  await admin.killswitch.on({ scope: 'sandbox', target: sandbox.id })
}

/** What has touched its file. A row says that a command runs before it does, and what is ended in between was never started. */
async function begun(sandbox: Sandbox): Promise<readonly string[]> {
  return (await sandbox.files.list('/workspace')).entries.map(({ name }) => name)
}

/** What its sandbox ended. */
const CUT_OFF = { exitCode: null, signal: null, timedOut: false }

describe('a command whose sandbox ends under it', () => {
  const ENDS = [
    ['killed_by_policy', 'it was ended by order', killed],
    ['sandbox_ended', 'it was not', async (sandbox: Sandbox) => void (await sandbox.terminate())],
  ] as const

  it.each(ENDS)('says %s to whoever waits, and later, when %s', async (cause, _, end) => {
    const sandbox = await make('standard')
    const session = await developer.sessions.create({ sandbox: sandbox.id, runtime: 'bash' })
    const command = await sandbox.start({ shell: 'touch one; sleep 600' })
    const waiting = [command.wait(), sandbox.run({ shell: 'touch two; sleep 600' })]
    const step = session.run('touch three; sleep 600')
    await expect.poll(async () => begun(sandbox), PATIENT).toEqual(expect.arrayContaining(['one', 'two', 'three']))
    await end(sandbox)
    const ended = { ...CUT_OFF, cause }
    const results = [...(await Promise.all(waiting)), await command.get()]
    expect(results.map((result) => shown(result))).toEqual([ended, ended, ended])
    expect(await step).toMatchObject({ status: 'failed', cause, error: { name: 'RuntimeCrashed' } })
  })

  it.each([
    ['out_of_memory', EAT],
    ['pids_exhausted', FORK],
  ])('says %s when that ended the kernel it shared', requires('runsc'), async (cause, code) => {
    const sandbox = await make('strict')
    const session = await developer.sessions.create({ sandbox: sandbox.id, runtime: 'bash' })
    const [command, step] = await Promise.all([sandbox.run(python(code)), session.run('sleep 600')])
    expect(shown(command)).toEqual({ ...CUT_OFF, cause })
    expect(step).toMatchObject({ status: 'failed', cause, error: { name: 'RuntimeCrashed' } })
    const ended = { state: 'error', endReason: 'guest_lost', error: { code: cause } }
    expect((await sandbox.refresh()).data).toMatchObject(ended)
  })
})

describe('a command that ends while nobody looks', () => {
  it.each([
    ['out_of_memory', `sleep 1; exec python3 -c '${EAT}'`],
    ['pids_exhausted', `sleep 1; exec python3 -c '${FORK}'`],
    ['disk_full', 'sleep 1; head -c 300M /dev/zero > /workspace/x'],
    ['exit', 'sleep 1; exit 1'],
  ])('says %s when the data plane is back', async (cause, shell) => {
    await using sandbox = await make('standard')
    const command = await sandbox.start({ shell })
    process.kill(dataPlaneOf(server), 'SIGKILL')
    expect((await command.wait()).cause).toBe(cause)
  })
})

describe('two commands at once', () => {
  it('share what their sandbox ran out of, and only what failed says so', async () => {
    await using sandbox = await make('standard')
    const beside = await sandbox.start({ shell: 'sleep 3' })
    expect((await sandbox.run(python(EAT))).cause).toBe('out_of_memory')
    expect((await beside.wait()).cause).toBe('exit')
    expect((await sandbox.run({ shell: 'exit 1' })).cause).toBe('exit')
  })
})

describe('the step of a session', () => {
  const shownStep = ({ status, cause, restarted, error }: Step) => ({ status, cause, restarted, name: error?.name })
  const withSession = async (runtime: 'python' | 'bash', work: (session: Session) => Promise<void>) => {
    await using sandbox = await make('standard')
    await work(await developer.sessions.create({ sandbox: sandbox.id, runtime }))
  }

  it('that needs too much memory says so and how to get more, and the session goes on', async () => {
    await withSession('python', async (session) => {
      const step = await session.run(EAT)
      const ended = { status: 'failed', cause: 'out_of_memory', restarted: true, name: 'RuntimeCrashed' }
      expect(shownStep(step)).toEqual(ended)
      expect(step.error?.message).toMatch(/out of memory.*limits\.memoryBytes/u)
      expect(shownStep(await session.run('raise ValueError'))).toMatchObject({ cause: 'exit', name: 'ValueError' })
      expect(shownStep(await session.run('6 * 7'))).toMatchObject({ status: 'completed', cause: 'exit' })
    })
  })

  it('that forks too often says so, and the next one that fails does not', async () => {
    await withSession('python', async (session) => {
      const forked = await session.run(FORK)
      expect(shownStep(forked)).toMatchObject({ cause: 'pids_exhausted', name: 'BlockingIOError' })
      await session.restart()
      expect((await session.run('raise ValueError')).cause).toBe('exit')
    })
  })

  it('says when its time was over, its disk full, its interpreter ended or it interrupted', async () => {
    await withSession('bash', async (session) => {
      const causes = [
        await session.run('sleep 600', { timeoutMs: 500 }),
        await session.run('kill -9 $$'),
        await session.run('kill -SYS $$'),
        await session.run('exit 3'),
        await session.run('false'),
        await session.run('head -c 300M /dev/zero > /workspace/x'),
      ].map(({ cause }) => cause)
      expect(causes).toEqual(['timeout', 'signal', 'forbidden_call', 'exit', 'exit', 'disk_full'])
      const waiting = session.run('sleep 600')
      await expect.poll(async () => (await session.steps()).items[0]?.status, PATIENT).toBe('running')
      await session.interrupt()
      expect((await waiting).cause).toBe('signal')
    })
  })
})

describe('why it ended', () => {
  it('is in the stream, in the list, in the evidence and on the terminal', async () => {
    await using sandbox = await make('standard')
    const events = await Array.fromAsync(sandbox.stream(python(EAT)))
    expect(events.at(-1)).toMatchObject({ event: 'ended', command: { cause: 'out_of_memory' } })
    expect((await sandbox.commands()).items[0]).toMatchObject({ cause: 'out_of_memory' })
    const recorded = async () => {
      const { items } = await admin.audit.events({ sandbox: sandbox.id, point: 'command.run', status: 'done' })
      return items[0]?.payload
    }
    await expect.poll(recorded, PATIENT).toMatchObject({ cause: 'out_of_memory' })
    const said = await airlock('exec', sandbox.id, '--', 'python3', '-c', EAT)
    expect(said).toEqual({ code: 137, stderr: 'airlock: killed: out of memory (limit 128 MiB). Raise --memory.\n' })
    const sleep = airlock('exec', sandbox.id, '--', 'sh', '-c', 'touch up; sleep 600')
    await expect.poll(async () => begun(sandbox), PATIENT).toContain('up')
    await killed(sandbox)
    expect((await sleep).stderr).toBe('airlock: killed: its sandbox was ended (killed).\n')
  })
})

const AIRLOCK = fileURLToPath(new URL('../../packages/cli/bin/airlock.js', import.meta.url))

async function airlock(...args: readonly string[]): Promise<{ readonly code: unknown; readonly stderr: string }> {
  const env = { PATH: process.env['PATH'] ?? '', AIRLOCK_URL: server.url, AIRLOCK_API_KEY: server.developerKey }
  try {
    const { stderr } = await promisify(execFile)(process.execPath, [AIRLOCK, ...args], { env })
    return { code: 0, stderr }
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || !('stderr' in error)) throw error
    return { code: error.code, stderr: String(error.stderr) }
  }
}

function dataPlaneOf({ pid }: BorrowedServer): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
  const found = children.find((child) =>
    readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('dist/data-plane/main'),
  )
  if (found === undefined) throw new TypeError('the server has no data plane')
  return found
}
