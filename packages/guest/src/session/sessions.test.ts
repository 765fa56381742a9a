import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { BOUNDS } from '@airlock/contract'
import { RICH_BYTES, WINDOW_BYTES } from '@airlock/contract/guest'
import { waitFor } from '@airlock/std'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { testGroupName } from '../../../../test/support/test-group.ts'
import { WAITING_LIMIT } from './session.ts'
import { SESSION_LIMIT } from './sessions.ts'
import { TestGuest } from './testing/test-guest.ts'
import type { TestHost, TestSession } from './testing/test-host.ts'

const isRoot = process.getuid?.() === 0
const soon = () => ({ signal: AbortSignal.timeout(100_000), everyMs: 10 })
const MIB = 1024 * 1024
const plain = { stdout: '', stderr: '', rich: [], exitCode: 0, timedOut: false, restarted: false, truncated: false }
const refused = (code: string) => expect.objectContaining({ code }) as unknown

describe.skipIf(!isRoot)('sessions of a guest', () => {
  let guest: TestGuest
  let host: TestHost
  const opened: TestSession[] = []
  const open = async (env: Readonly<Record<string, string>> = {}) => {
    const session = await guest.open('python', env)
    opened.push(session)
    return session
  }

  beforeAll(async () => {
    guest = await TestGuest.start()
    host = guest.host
  })
  afterEach(async () => {
    host.take()
    await Promise.all(opened.splice(0).map((session) => session.close()))
  })
  afterAll(async () => {
    await guest.stop()
  })

  it('have the bounds of the contract', () => {
    expect([SESSION_LIMIT, WAITING_LIMIT]).toEqual([BOUNDS.sessions, BOUNDS.waitingSteps])
  })

  it('remember, each for itself', async () => {
    const [one, two] = await Promise.all([open(), open()])
    await Promise.all([one.run('x = 1'), two.run('x = 2')])
    const said = await Promise.all([one.run('print(x)'), two.run('print(x)')])
    expect(said).toEqual([
      { ...plain, stdout: '1\n' },
      { ...plain, stdout: '2\n' },
    ])
  })

  it('say what answers there, and are answered as they are when opened again', async () => {
    const session = await open()
    const { id } = session.info
    expect(session.info).toEqual({
      id,
      runtime: 'python',
      runtimeVersion: expect.stringMatching(/^Python 3\.\d+\.\d+/u),
      restarts: 0,
    })
    const spec = { id, runtime: 'python', cwd: guest.work, env: {} } as const
    await session.run('x = 1')
    expect(await host.request({ op: 'session.open', session: spec })).toEqual(session.info)
    expect(await session.run('print(x)')).toEqual({ ...plain, stdout: '1\n' })
    expect(await host.request({ op: 'session.list' })).toEqual({ sessions: [session.info] })
  })

  it('run a step once, however often it is asked for, and until it is forgotten', async () => {
    const session = await open()
    const spec = host.spec(session.info.id, 'n = globals().get("n", 0) + 1\nprint(n)')
    await Promise.all([host.start(spec), host.start(spec), host.start({ ...spec, channel: 999_999 })])
    expect(await host.finish(spec.channel)).toEqual({ ...plain, stdout: '1\n' })
    await host.start(spec)
    expect(await session.run('print(n)')).toEqual({ ...plain, stdout: '1\n' })
    await host.request({ op: 'forget', channel: spec.channel })
    const again = { ...spec, channel: host.spec(session.info.id, '').channel }
    await host.start(again)
    expect(await host.finish(again.channel)).toEqual({ ...plain, stdout: '2\n' })
  })

  it('let steps take turns in their order, and remember one that is not over', async () => {
    const session = await open()
    const first = await session.start('import time\ntime.sleep(0.2)\nprint("first")\nlast = 1')
    const more = await Promise.all([2, 3, 4].map((n) => session.start(`print(last)\nlast = ${n}`)))
    await expect(host.request({ op: 'forget', channel: first })).rejects.toEqual(refused('invalid_request'))
    const said = await Promise.all([first, ...more].map((channel) => host.finish(channel)))
    expect(said.map(({ stdout }) => stdout)).toEqual(['first\n', '1\n', '2\n', '3\n'])
  })

  it('refuse the step that would be too much, and take back one that waits', async () => {
    const session = await open()
    const running = await session.start('import time\ntime.sleep(30)')
    const waiting: number[] = []
    for (let n = 0; n < WAITING_LIMIT; n++) waiting.push(await session.start('print("ran")'))
    await expect(session.start('1')).rejects.toEqual(refused('too_many_steps'))
    const [last = 0] = waiting.splice(-1)
    await host.request({ op: 'signal', channel: last, signal: 'SIGINT' })
    const message = 'it was taken back before its turn'
    expect(await host.finish(last)).toEqual({
      ...plain,
      exitCode: 1,
      rich: [{ kind: 'error', error: { name: 'Interrupted', message, traceback: '' } }],
    })
    await session.interrupt()
    expect((await host.finish(running)).exitCode).toBe(1)
    for (const channel of waiting) expect(await host.finish(channel)).toEqual({ ...plain, stdout: 'ran\n' })
  })

  it('are refused when there are too many, when there is none like it, and when the program is missing', async () => {
    await expect(open({ PATH: '/nowhere' })).rejects.toEqual(refused('runtime_unavailable'))
    await expect(host.request({ op: 'session.interrupt', session: 'ses_none' })).rejects.toEqual(
      refused('session_not_found'),
    )
    await Promise.all(Array.from({ length: SESSION_LIMIT }, () => open()))
    await expect(guest.open('python')).rejects.toEqual(refused('too_many_sessions'))
  })

  it('say when the interpreter does not start, at first or again, and recover by a restart', async () => {
    const bin = join(guest.work, 'bin')
    const broken = join(guest.work, 'broken')
    mkdirSync(bin)
    writeFileSync(join(bin, 'python3'), `#!/bin/sh\n[ -e ${broken} ] && exit 3\nexec /usr/bin/python3 "$@"\n`)
    chmodSync(join(bin, 'python3'), 0o755)
    const env = { PATH: `${bin}:/usr/bin:/bin` }
    const session = await open(env)
    writeFileSync(broken, '')
    await expect(open(env)).rejects.toEqual(refused('runtime_crashed'))
    const crashed = await session.run('import os\nos._exit(5)')
    expect(crashed).toEqual({ ...plain, exitCode: 1, rich: [crash('it exited with code 5')] })
    await expect(session.start('1')).rejects.toEqual(refused('runtime_crashed'))
    chmodSync(join(bin, 'python3'), 0o755)
    writeFileSync(join(bin, 'python3'), '#!/bin/sh\nexec /usr/bin/python3 "$@"\n')
    expect(await session.restart()).toEqual({ ...session.info, restarts: 1 })
    expect(await session.run('print("back")')).toEqual({ ...plain, stdout: 'back\n' })
  })

  it('say at the next step that the interpreter died between two', async () => {
    const session = await open()
    const { stdout } = await session.run(
      'import os, threading\nthreading.Timer(0.1, os._exit, [0]).start()\nprint(os.getpid())',
    )
    await expect.poll(() => existsSync(`/proc/${stdout.trim()}`)).toBe(false)
    expect(await session.run('print("new")')).toEqual({ ...plain, stdout: 'new\n', restarted: true })
    expect(await session.run('print("same")')).toEqual({ ...plain, stdout: 'same\n' })
  })

  it('are interrupted in the step that runs, also when it has hardly begun, and never in the next', async () => {
    const session = await open()
    await session.interrupt()
    for (let n = 0; n < 25; n++) {
      const channel = await session.start('while True: pass')
      await session.interrupt()
      const { exitCode, rich, restarted } = await host.finish(channel)
      expect([exitCode, restarted, nameOf(rich)]).toEqual([1, false, 'Interrupted'])
      expect(await session.run('import time\ntime.sleep(0.01)\nprint(1)')).toEqual({ ...plain, stdout: '1\n' })
    }
  })

  it('restart on demand: the step that runs is cut off, the one that waits runs in the new interpreter', async () => {
    const session = await open()
    const running = await session.start('x = 1\nprint("begun")\nimport time\ntime.sleep(30)')
    const waiting = await session.start('print("x" in globals())')
    await waitFor(() => host.said(running, 'stdout') || undefined, soon())
    expect(await session.restart()).toEqual({ ...session.info, restarts: 1 })
    const error = { name: 'Interrupted', message: 'the session was restarted', traceback: '' }
    expect(await host.finish(running)).toEqual({
      ...plain,
      stdout: 'begun\n',
      exitCode: 1,
      rich: [{ kind: 'error', error }],
      restarted: true,
    })
    expect(await host.finish(waiting)).toEqual({ ...plain, stdout: 'False\n' })
  })

  it('end all their steps when they are closed', async () => {
    const session = await open()
    const running = await session.start('import time\nprint("begun")\ntime.sleep(30)')
    const waiting = await session.start('1')
    await waitFor(() => host.said(running, 'stdout') || undefined, soon())
    await session.close()
    const error = { name: 'Interrupted', message: 'the session was closed', traceback: '' }
    const closed = { ...plain, exitCode: 1, rich: [{ kind: 'error', error }] }
    expect(await host.finish(running)).toEqual({ ...closed, stdout: 'begun\n' })
    expect(await host.finish(waiting)).toEqual(closed)
    await expect(session.start('1')).rejects.toEqual(refused('session_not_found'))
    await session.close()
  })

  it('stop producing when the host takes nothing, and lose nothing', async () => {
    const session = await open()
    host.isTaking = false
    const text = 'x'.repeat(1023)
    const channel = await session.start(`for n in range(${8 * 1024}): print("x" * 1023)`, { maxOutputBytes: 16 * MIB })
    await waitFor(() => host.received(channel) > WINDOW_BYTES / 2 || undefined, soon())
    await delay(300)
    expect(host.received(channel)).toBeLessThanOrEqual(WINDOW_BYTES)
    host.take()
    expect(await host.finish(channel)).toEqual({ ...plain, stdout: `${text}\n`.repeat(8 * 1024) })
  })

  it('say again what a host missed that comes back', async () => {
    const session = await open()
    const channel = await session.start(
      'import time\nfor n in range(40):\n    print(n)\n    display(n)\n    time.sleep(0.02)',
    )
    await waitFor(() => host.received(channel) > 40 || undefined, soon())
    await host.reconnect()
    expect(host.hello.filter((state) => state.channel === channel)).toMatchObject([{ end: null, closed: false }])
    const finished = await host.finish(channel)
    const numbers = Array.from({ length: 40 }, (_, n) => n)
    expect(finished).toEqual({
      ...plain,
      stdout: numbers.map((n) => `${n}\n`).join(''),
      rich: numbers.map((n) => ({ kind: 'display', data: { 'text/plain': String(n) } })),
    })
  })

  it('cap text and rich output apart, and always say the error', async () => {
    const session = await open()
    const { stdout, truncated, rich } = await session.run(
      `print("x" * ${3 * MIB})\nfor n in range(5): display({"text/html": "y" * ${3 * MIB}}, raw=True)\nfor n in range(300): display("z" * 30000)\n"a" + "\\x01" * 50000\nraise ValueError("\\x01" * 99999)`,
    )
    expect([stdout, truncated]).toEqual(['x'.repeat(2 * MIB), true])
    expect(Buffer.byteLength(rich.map((line) => `${JSON.stringify(line)}\n`).join(''))).toBeLessThanOrEqual(RICH_BYTES)
    expect(rich.slice(2, 3)).toEqual([
      {
        kind: 'display',
        data: { 'text/plain': expect.stringMatching(/^\[dropped: text\/html, 3145\d+ bytes;/u) },
      },
    ])
    expect(nameOf(rich)).toBe('ValueError')
  })

  it('name an output that is too large for one line instead of showing it', async () => {
    const session = await open()
    const { rich, restarted } = await session.run(`display({"text/html": "\u{1F600}" * ${3 * MIB}}, raw=True)\n1`)
    expect([rich, restarted]).toEqual([
      [
        {
          kind: 'display',
          data: { 'text/plain': expect.stringMatching(/^\[dropped: text\/html, 125829\d\d bytes;/u) },
        },
        { kind: 'result', data: { 'text/plain': '1' } },
      ],
      false,
    ])
  })

  it('show no step what somebody wrote to its outputs before it began', async () => {
    const session = await open()
    const late = 'sleep 0.2; echo stray > $OUT; touch stray-written'
    await session.run(
      `import os, subprocess\nquiet = subprocess.DEVNULL\nenv = {**os.environ, "OUT": os.readlink("/proc/self/fd/1")}\nsubprocess.Popen(["sh", "-c", "${late}"], env=env, stdout=quiet, stderr=quiet)\nNone`,
    )
    await expect.poll(() => existsSync(join(guest.work, 'stray-written'))).toBe(true)
    expect(await session.run('print("own")')).toEqual({ ...plain, stdout: 'own\n' })
  })

  it('need no new FIFO where nothing is left behind, and few where something is', async () => {
    const session = await open()
    const fifos = () => new Set(readdirSync(guest.stepsDir))
    await session.run('1')
    const before = fifos()
    for (let n = 0; n < 40; n++) await session.run('print(input())', { stdin: 'a' })
    // An earlier test's refill of 16 may still be under way. A pair for each step would be 80.
    expect(fifos().difference(before).size).toBeLessThanOrEqual(16)
    const between = fifos()
    for (let n = 0; n < 20; n++) await session.run('import subprocess\nsubprocess.Popen(["sleep", "20"])\nNone')
    expect(fifos().difference(between).size).toBeLessThanOrEqual(48)
    expect(await session.run('print("on")')).toEqual({ ...plain, stdout: 'on\n' })
  })
})

const CGROUPS = [
  { root: '/sys/fs/cgroup/pids', joinFile: 'tasks', kill: 'pids.max' },
  { root: '/sys/fs/cgroup/unified', joinFile: 'cgroup.procs', kill: 'cgroup.kill' },
  { root: '/sys/fs/cgroup', joinFile: 'cgroup.procs', kill: 'cgroup.kill' },
] as const
const usable = CGROUPS.filter(
  ({ root, kill }) => isRoot && existsSync(join(root, 'cgroup.procs')) && hasKill(root, kill),
)

describe.skipIf(usable.length === 0).each(usable)('a session in a group of $root', ({ root, joinFile, kill }) => {
  const group = join(root, testGroupName())
  let guest: TestGuest
  beforeAll(async () => {
    mkdirSync(group)
    guest = await TestGuest.start({ join: [], commands: group, joinFile, kill })
  })
  afterAll(async () => {
    await guest.stop()
    for (const name of readdirSync(group, { withFileTypes: true }))
      if (name.isDirectory()) await waitFor(() => removed(join(group, name.name)), soon())
    rmdirSync(group)
  })

  const leave =
    'import subprocess\nfor _ in range(3): subprocess.Popen("setsid sh -c \'sleep 60 & sleep 60\'", shell=True, start_new_session=True)\nNone'

  it('leaves no process behind when it is closed', async () => {
    const session = await guest.open('python')
    await session.run(leave)
    const procs = join(group, session.info.id, 'cgroup.procs')
    await waitFor(() => readFileSync(procs, 'utf8').trim().split('\n').length > 6 || undefined, soon())
    await session.close()
    expect(existsSync(procs)).toBe(false)
  })

  it('starts clean after a kill, in the same group', async () => {
    const session = await guest.open('python')
    const { rich, restarted } = await session.run(
      `${leave}\nimport signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass`,
      { timeoutMs: 500 },
    )
    expect([nameOf(rich), restarted]).toEqual(['Timeout', true])
    const procs = readFileSync(join(group, session.info.id, 'cgroup.procs'), 'utf8')
    expect(procs.trim().split('\n')).toHaveLength(1)
    const { stdout } = await session.run('import os\nos.system("echo $PPID")\nprint(os.getpid())')
    expect(stdout).toBe(`${procs}${procs}`)
    await session.close()
  })
})

function nameOf(rich: readonly unknown[]): unknown {
  const line = rich.at(-1)
  return typeof line === 'object' && line !== null && 'error' in line ? Object(line.error)['name'] : undefined
}

function crash(how: string): unknown {
  return { kind: 'error', error: { name: 'RuntimeCrashed', message: `the interpreter is gone: ${how}`, traceback: '' } }
}

function hasKill(root: string, kill: string): boolean {
  const probe = join(root, testGroupName())
  try {
    mkdirSync(probe)
    const found = existsSync(join(probe, kill))
    rmdirSync(probe)
    return found
  } catch {
    // No such hierarchy, or not ours to write.
    return false
  }
}

function removed(path: string): true | undefined {
  try {
    rmdirSync(path)
    return true
  } catch {
    // Something in it is still ending.
    return existsSync(path) ? undefined : true
  }
}
