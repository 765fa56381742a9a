import { spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { AirlockError, type NodeCommand } from '@airlock/contract'
import { newId, randomText, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testGroupName } from '../../../../test/support/test-group.ts'
import { collect, RealGuest } from './testing/real-guest.ts'

const isRoot = process.getuid?.() === 0
const soon = () => ({ signal: AbortSignal.timeout(100_000), everyMs: 10 })

describe.skipIf(!isRoot)('a link to a real guest', () => {
  let guest: RealGuest
  beforeAll(async () => {
    guest = await RealGuest.start()
  })
  afterAll(async () => {
    await guest.stop()
  })

  it('keeps stdout and stderr apart and passes the exit code on', async () => {
    const { stdout, stderr, command } = await guest.sh('echo out; echo err >&2; exit 3')
    expect([String(stdout), String(stderr)]).toEqual(['out\n', 'err\n'])
    expect(command).toEqual({
      id: command.id,
      state: 'exited',
      exitCode: 3,
      signal: null,
      timedOut: false,
      cause: 'exit',
      truncated: false,
      outputBytes: 8,
      startedAt: expect.any(Number),
      endedAt: expect.any(Number),
    } satisfies Record<Exclude<keyof NodeCommand, 'restarted' | 'usage' | 'full'>, unknown>)
  })

  it('gives user code exactly the environment that it was given', async () => {
    const { stdout } = await guest.run(['/usr/bin/env'], { env: { A: 'b=c d', LD_PRELOAD: '' } })
    const lines = String(stdout).trim().split('\n')
    expect(lines.toSorted()).toEqual(
      ['A=b=c d', 'HOME=/home/user', 'LANG=C.UTF-8', 'LD_PRELOAD=', 'PATH=/usr/local/bin:/usr/bin:/bin'].toSorted(),
    )
  })

  it('runs no library of the caller before the rights are gone', async () => {
    const { stderr } = await guest.run(['/bin/true'], { env: { LD_PRELOAD: '/no/such/library.so' } })
    expect(String(stderr).match(/cannot be preloaded/g)).toHaveLength(1)
  })

  it('runs user code as uid 1000 without any capability, in the directory that was asked for', async () => {
    const { stdout } = await guest.sh('id -u; id -G; pwd; grep -E "^(Cap|NoNewPrivs)" /proc/self/status')
    const none = '0000000000000000'
    expect(String(stdout).trim().split('\n')).toEqual([
      '1000',
      '1000',
      guest.work,
      ...['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'].map((set) => `Cap${set}:\t${none}`),
      'NoNewPrivs:\t1',
    ])
  })

  it('finds programs whose name contains "=" or begins with "-"', async () => {
    for (const name of ['a=b', '-x']) {
      await guest.sh(`printf '#!/bin/sh\\necho "$1"' > ./${name}; chmod 755 ./${name}`)
      const { stdout } = await guest.run([`./${name}`, name])
      expect(String(stdout)).toBe(`${name}\n`)
    }
    const env = { PATH: `${guest.work}:/bin` }
    expect(String((await guest.run(['a=b', 'found'], { env })).stdout)).toBe('found\n')
    expect(String((await guest.run(['-x', 'found'], { env })).stdout)).toBe('found\n')
  })

  it('lets user code open its own outputs and input again, in their direction only', async () => {
    const { stdout, stderr } = await guest.sh('echo a > /dev/stdout; echo b > /dev/stderr; sleep 0.2; cat /dev/stdin', {
      stdin: { text: 'fed' },
    })
    expect([String(stdout), String(stderr)]).toEqual(['a\nfed', 'b\n'])
    const { command } = await guest.sh('cat < /dev/stdout')
    expect(command.exitCode).not.toBe(0)
    const writing = await guest.sh('echo x > /dev/stdin', { stdin: 'open', timeoutMs: 2000 })
    expect(writing.command).toMatchObject({ timedOut: false, exitCode: 2 })
  })

  it('answers a command that cannot start with an error, and forgets it', async () => {
    const before = guest.link.commands.list().length
    const refused: readonly (readonly [readonly string[], string, string])[] = [
      [['no-such-program'], guest.work, 'executable_not_found'],
      [['./no-such-program'], guest.work, 'executable_not_found'],
      [['/etc/passwd'], guest.work, 'permission_denied'],
      [['true'], join(guest.work, 'absent'), 'file_not_found'],
      [['true'], '/etc/passwd', 'not_a_directory'],
      [['true'], '/root', 'permission_denied'],
      [['true', 'x'.repeat(128 * 1024)], guest.work, 'invalid_request'],
    ]
    for (const [argv, cwd, code] of refused)
      await expect(guest.start(argv, { cwd }), `${argv[0]} in ${cwd}`).rejects.toMatchObject({ code })
    expect(guest.link.commands.list()).toHaveLength(before)
  })

  it('answers the same id once', async () => {
    const spec = guest.spec(['/bin/sh', '-c', 'echo once >> once; cat once'])
    const [first, second] = await Promise.all([guest.link.commands.run(spec), guest.link.commands.run(spec)])
    expect(first.id).toBe(second.id)
    expect(String((await guest.finish(spec.id)).stdout)).toBe('once\n')
    expect(await guest.link.commands.run(spec)).toEqual(await guest.link.commands.wait(spec.id))
  })

  it('sends signals to the process group, by name', async () => {
    const id = await guest.start(['/bin/sh', '-c', 'trap "echo caught; exit 7" USR1; echo ready; sleep 20 & wait'])
    await waitFor(() => (guest.link.commands.get(id).outputBytes > 0 ? true : undefined), soon())
    await guest.link.commands.signal(id, 'SIGUSR1')
    const { stdout, command } = await guest.finish(id)
    expect([String(stdout), command.exitCode]).toEqual(['ready\ncaught\n', 7])
    await expect(guest.link.commands.signal(id, 'SIGTERM')).rejects.toMatchObject({ code: 'command_ended' })
    const killed = await guest.start(['sleep', '20'])
    await guest.link.commands.signal(killed, 'SIGKILL')
    expect(await guest.link.commands.wait(killed)).toMatchObject({ exitCode: null, signal: 'SIGKILL', timedOut: false })
  })

  it('ends a command at its timeout even if it ignores SIGTERM', async () => {
    const { command } = await guest.sh('trap "" TERM; while :; do sleep 1; done', { timeoutMs: 200 })
    expect(command).toMatchObject({ signal: 'SIGKILL', timedOut: true })
    expect(guest.overdue).toEqual([])
  })

  it('carries binary output byte for byte past a slow reader', async () => {
    const bytes = randomBytes(8 * 1024 * 1024)
    await writeFile(join(guest.work, 'blob'), bytes)
    const id = await guest.start(['cat', 'blob'], { maxOutputBytes: 16 * 1024 * 1024 })
    const { stdout, command } = await collect(slowly(guest.link.commands.output(id, { from: 0 })))
    expect([command.truncated, stdout.length, sha256(stdout)]).toEqual([false, bytes.length, sha256(bytes)])
    const tail = await collect(guest.link.commands.output(id, { from: bytes.length - 1000 }))
    expect([tail.firstOffset, tail.stdout.equals(bytes.subarray(-1000))]).toEqual([bytes.length - 1000, true])
  })

  it('cuts output at its cap and lets the command go on', async () => {
    const { stdout, command } = await guest.sh('yes | head -c 300000; echo done > finished', { maxOutputBytes: 1000 })
    expect(stdout).toHaveLength(1000)
    expect(command).toMatchObject({ truncated: true, exitCode: 0, outputBytes: 1000 })
    expect(await readFile(join(guest.work, 'finished'), 'utf8')).toBe('done\n')
  })

  it('does not wait for a background process that holds the output, nor kill it', async () => {
    const { stdout, command } = await guest.sh(
      '(sleep 0.6; echo late; echo alive > survived) & echo $! > child; echo early',
    )
    expect([String(stdout), command.exitCode]).toEqual(['early\n', 0])
    const survived = () => readFile(join(guest.work, 'survived'), 'utf8').catch(() => undefined)
    expect(await waitFor(survived, soon())).toBe('alive\n')
  })

  it('streams stdin larger than any buffer, in turns', async () => {
    const bytes = randomBytes(3 * 1024 * 1024)
    const id = await guest.start(['sha256sum'], { stdin: 'open' })
    await guest.link.commands.writeStdin(id, pieces(bytes.subarray(0, 1_000_000), 100_000), false)
    await guest.link.commands.writeStdin(id, pieces(bytes.subarray(1_000_000), 700_000), true)
    expect(String((await guest.finish(id)).stdout)).toBe(`${sha256(bytes)}  -\n`)
  })

  it('refuses stdin that is not open, was closed, or whose command has ended', async () => {
    const closed = await guest.start(['sleep', '20'])
    await expect(guest.link.commands.writeStdin(closed, pieces(Buffer.from('x'), 1), false)).rejects.toMatchObject({
      code: 'stdin_closed',
    })
    await guest.link.commands.signal(closed, 'SIGKILL')
    const blocked = await guest.start(['sleep', '20'], { stdin: 'open' })
    const write = guest.link.commands.writeStdin(blocked, pieces(Buffer.alloc(4_000_000), 64_000), true)
    const refused = expect(write).rejects.toMatchObject({
      code: expect.stringMatching(/^(command_ended|stdin_closed)$/),
    })
    await guest.link.commands.signal(blocked, 'SIGKILL')
    await refused
    await guest.link.commands.wait(blocked)
    await expect(guest.link.commands.writeStdin(blocked, pieces(Buffer.from('x'), 1), true)).rejects.toMatchObject({
      code: 'command_ended',
    })
  })

  it('does not fail a command that reads nothing of its text', async () => {
    const { command } = await guest.run(['true'], { stdin: { text: 'x'.repeat(1_000_000) } })
    expect(command.exitCode).toBe(0)
  })

  it('ends a wait and a stream when the caller gives up', async () => {
    const id = await guest.start(['sleep', '20'])
    const reason = new AirlockError('timeout')
    const abort = new AbortController()
    const given = [
      guest.link.commands.wait(id, abort.signal),
      collect(guest.link.commands.output(id, { from: 0, signal: abort.signal })),
    ]
    setImmediate(() => abort.abort(reason))
    for (const result of await Promise.allSettled(given)) expect(result).toEqual({ status: 'rejected', reason })
    await guest.link.commands.signal(id, 'SIGKILL')
  })

  it('knows no command that it was not given', async () => {
    const id = newId('cmd')
    expect(() => guest.link.commands.get(id)).toThrow(expect.objectContaining({ code: 'command_not_found' }))
    await expect(guest.link.commands.wait(id)).rejects.toMatchObject({ code: 'command_not_found' })
  })

  it('runs at most 64 commands at once', async () => {
    await waitFor(() => (guest.link.commands.runningCount === 0 ? true : undefined), soon())
    const started = await Promise.allSettled(Array.from({ length: 66 }, () => guest.start(['sleep', '30'])))
    const refused = started.filter((item) => item.status === 'rejected')
    expect(refused.map((item) => item.reason)).toMatchObject([
      { code: 'too_many_commands' },
      { code: 'too_many_commands' },
    ])
    const ids = started.flatMap((item) => (item.status === 'fulfilled' ? [item.value] : []))
    expect(guest.link.commands.runningCount).toBe(64)
    for (const id of ids) await guest.link.commands.signal(id, 'SIGKILL')
    for (const id of ids) await guest.link.commands.wait(id)
    expect(guest.link.commands.runningCount).toBe(0)
  }, 30_000)
})

describe.skipIf(!isRoot)('a link that is restarted', () => {
  let guest: RealGuest
  beforeAll(async () => {
    guest = await RealGuest.start()
  })
  afterAll(async () => {
    await guest.stop()
  })

  it('has every byte of a command whose output was under way', async () => {
    const bytes = randomBytes(6 * 1024 * 1024)
    await writeFile(join(guest.work, 'blob'), bytes)
    const line = 'for i in 0 1 2 3 4 5; do dd if=blob bs=1M skip=$i count=1 status=none; sleep 0.1; done'
    const id = await guest.start(['/bin/sh', '-c', line], { maxOutputBytes: 16 * 1024 * 1024 })
    for (let restart = 1; restart <= 3; restart++) {
      await waitFor(() => (guest.link.commands.get(id).outputBytes >= restart * 1_500_000 ? true : undefined), soon())
      await guest.restartLink()
    }
    const { stdout, command } = await guest.finish(id)
    expect([sha256(stdout), command.exitCode, command.truncated]).toEqual([sha256(bytes), 0, false])
  })

  it('has the end of a command that ended meanwhile, and cuts a torn entry off its spool', async () => {
    const more = 'x'.repeat(5000)
    const held = guest.hold(`echo ${more}`, 'echo two; touch said; exit 5')
    const id = await guest.start(held.argv)
    await waitFor(() => (guest.link.commands.get(id).outputBytes === 5001 ? true : undefined), soon())
    await guest.link.close()
    const spooled = join(guest.spoolDir, `${id}.out`)
    await writeFile(spooled, Buffer.concat([await readFile(spooled), Buffer.from([1, 0, 0, 0, 9, 65])]))
    await held.release()
    await waitFor(() => (existsSync(join(guest.work, 'said')) ? true : undefined), soon())
    guest.link = guest.newLink()
    await guest.link.listen()
    const { stdout, command } = await guest.finish(id)
    expect([String(stdout), command.exitCode]).toEqual([`${more}\ntwo\n`, 5])
  })

  it.each([
    ['emptied', () => Buffer.alloc(0)],
    ['cut in half', (bytes: Buffer) => bytes.subarray(0, bytes.length / 2)],
    ['filled with NULs', (bytes: Buffer) => Buffer.alloc(bytes.length)],
  ])('goes on with a command whose output was %s meanwhile, and says that it is cut', async (_how, damage) => {
    const held = guest.hold(`echo ${'x'.repeat(9000)}`, 'echo two; exit 5')
    const id = await guest.start(held.argv)
    await waitFor(() => (guest.link.commands.get(id).outputBytes === 9001 ? true : undefined), soon())
    // The guest has read the acknowledgement before this: it keeps nothing that the spool loses.
    await guest.sh('true')
    await guest.link.close()
    const spooled = join(guest.spoolDir, `${id}.out`)
    await writeFile(spooled, damage(await readFile(spooled)))
    await held.release()
    guest.link = guest.newLink()
    await guest.link.listen()
    const { stdout, command } = await guest.finish(id)
    expect([String(stdout), command]).toMatchObject([
      expect.stringMatching(/^x*two\n$/),
      { exitCode: 5, truncated: true },
    ])
    expect(String((await guest.sh('echo next')).stdout)).toBe('next\n')
  })

  it('has what a command said before, when that was little and is nowhere but in the guest', async () => {
    const held = guest.hold('echo one', 'echo two; exit 5')
    const id = await guest.start(held.argv)
    await waitFor(() => (guest.link.commands.get(id).outputBytes === 4 ? true : undefined), soon())
    await guest.restartLink()
    await held.release()
    const { stdout, command } = await guest.finish(id)
    expect([String(stdout), command.exitCode]).toEqual(['one\ntwo\n', 5])
  })

  it('feeds the rest of the text that a command was started with', async () => {
    const text = randomText(800_000)
    const held = guest.hold(':', 'sha256sum')
    const id = await guest.start(held.argv, { stdin: { text } })
    await guest.restartLink()
    await held.release()
    expect(String((await guest.finish(id)).stdout)).toBe(`${sha256(Buffer.from(text))}  -\n`)
  })

  it('gives its text to a command that was asked for before the guest was back', async () => {
    for (let round = 0; round < 5; round++) {
      await guest.restartLink()
      // The guest dials again a moment later.
      const { stdout, command } = await guest.run(['cat'], { stdin: { text: 'given' } })
      expect([String(stdout), command.timedOut]).toEqual(['given', false])
    }
  })

  it('goes on with new commands, and the guest has forgotten the ended ones', async () => {
    await guest.restartLink()
    const known = guest.link.commands.list().length
    const { stdout } = await guest.sh('echo again')
    expect([String(stdout), guest.link.commands.list().length]).toEqual(['again\n', known + 1])
  })

  it('calls a command lost that no guest knows', async () => {
    const id = await guest.start(['sleep', '30'])
    const other = await guest.start(['true'])
    await guest.link.commands.wait(other)
    const running = guest.link.commands.get(id)
    await guest.killGuest()
    const again = await RealGuest.start()
    try {
      await guest.link.close()
      const spool = await readdir(guest.spoolDir)
      await again.link.close()
      await mkdir(again.spoolDir, { recursive: true })
      for (const name of spool) await writeFile(join(again.spoolDir, name), await readFile(join(guest.spoolDir, name)))
      again.link = again.newLink()
      await again.link.listen()
      expect(await again.link.commands.wait(id)).toEqual({ ...running, state: 'lost', endedAt: expect.any(Number) })
      expect(again.link.commands.get(other).state).toBe('exited')
    } finally {
      await again.stop()
    }
  })

  it('says guest_lost for requests when the guest does not come back', async () => {
    guest.link = guest.newLink()
    await guest.link.listen()
    await expect(guest.link.files.operate({ op: 'file.stat', path: '/' })).rejects.toMatchObject({ code: 'guest_lost' })
  })
})

describe.skipIf(!isRoot)('deadlines from outside', () => {
  it('hears first what ended in time while nobody listened, however long that was', async () => {
    const guest = await RealGuest.start()
    try {
      // It leaves a file while it lives, and holds it: whoever can lock it knows that it has ended.
      const spec = guest.spec(['/bin/sh', '-c', 'exec flock alive sleep 60'], { timeoutMs: 300 })
      await guest.link.commands.run(spec)
      await guest.link.close()
      const hasEnded = () => spawnSync('flock', ['--nonblock', join(guest.work, 'alive'), 'true']).status === 0
      await waitFor(() => (existsSync(join(guest.work, 'alive')) && hasEnded() ? true : undefined), soon())
      guest.link = guest.newLink({ clock: { now: () => Date.now() + 120_000 } })
      await guest.link.listen()
      expect(await guest.link.commands.wait(spec.id)).toMatchObject({
        state: 'exited',
        signal: 'SIGKILL',
        timedOut: true,
      })
      expect(guest.overdue).toEqual([])
    } finally {
      await guest.stop()
    }
  })

  it('keeps a bounded part of what a sandbox said on the host, and lets no more be said at once', async () => {
    const again = await RealGuest.start()
    try {
      await again.link.close()
      again.link = again.newLink({ outputBounds: { endedOutputBytes: 25_000, runningOutputBytes: 100_000 } })
      await again.link.listen()
      await again.link.waitForGuest(AbortSignal.timeout(10_000))
      const said: string[] = []
      for (let i = 0; i < 4; i++)
        said.push((await again.sh('head -c 10000 /dev/zero', { maxOutputBytes: 20_000 })).command.id)
      expect(again.link.commands.list().map(({ id }) => id)).toEqual(said.slice(2))
      const long = await again.start(['/bin/sleep', '60'], { maxOutputBytes: 60_000 })
      await expect(again.start(['/bin/true'], { maxOutputBytes: 60_000 })).rejects.toMatchObject({
        code: 'too_many_commands',
        message: 'What runs in the sandbox may say more than 100000 bytes together.',
      })
      await again.link.commands.signal(long, 'SIGKILL')
      await again.link.commands.wait(long)
      await again.run(['/bin/true'], { maxOutputBytes: 60_000 })
    } finally {
      await again.stop()
    }
  })

  it('kills a command that outlives its timeout by far, through the guest, and that is its timeout', async () => {
    const guest = await RealGuest.start()
    try {
      // It ends with its guest.
      const spec = guest.spec(['cat'], { timeoutMs: 60_000, stdin: 'open' })
      await guest.link.commands.run(spec)
      await guest.link.close()
      const late = { now: () => Date.now() + 120_000 }
      guest.link = guest.newLink({ clock: late })
      await guest.link.listen()
      const killed = { state: 'exited', exitCode: null, signal: 'SIGKILL', timedOut: true, cause: 'timeout' }
      expect(await guest.link.commands.wait(spec.id)).toMatchObject(killed)
      expect(guest.overdue).toEqual([])
    } finally {
      await guest.stop()
    }
  })
})

const KINDS = [
  { root: '/sys/fs/cgroup/pids', joinFile: 'tasks', kill: 'pids.max' },
  { root: '/sys/fs/cgroup/unified', joinFile: 'cgroup.procs', kill: 'cgroup.kill' },
  { root: '/sys/fs/cgroup', joinFile: 'cgroup.procs', kill: 'cgroup.kill' },
] as const
const HERE = isRoot ? KINDS.filter(({ root, joinFile }) => existsSync(join(root, joinFile))) : []

describe.skipIf(HERE.length === 0).each(HERE)('a command in a real group of $root', ({ root, joinFile, kill }) => {
  it('is ended at its timeout with all that left its session, and its group is removed', async () => {
    const group = join(root, testGroupName())
    await mkdir(group)
    const guest = await RealGuest.start({ join: [], commands: group, joinFile, kill })
    try {
      const tree = 'for i in 1 2 3; do setsid sh -c "setsid sleep 60 & setsid sleep 60" & done; wait'
      const { command } = await guest.sh(tree, { timeoutMs: 300 })
      expect(command).toMatchObject({ signal: 'SIGKILL', timedOut: true })
      const children = async () => (await readdir(group, { withFileTypes: true })).filter((item) => item.isDirectory())
      await waitFor(async () => ((await children()).length === 0 ? true : undefined), soon())
    } finally {
      await guest.stop()
      await rmdir(group)
    }
  })

  it('leaves what it started in the background alone when it ends by itself, and SIGKILL takes it along', async () => {
    const group = join(root, testGroupName())
    await mkdir(group)
    const guest = await RealGuest.start({ join: [], commands: group, joinFile, kill })
    try {
      const ended = await guest.sh('setsid sh -c "until [ -e go ]; do sleep 0.05; done" & echo started')
      const procs = () => readFile(join(group, ended.command.id, 'cgroup.procs'), 'utf8').catch(() => 'removed')
      expect(await procs()).toMatch(/\d/)
      await writeFile(join(guest.work, 'go'), '')
      expect(await waitFor(async () => ((await procs()) === 'removed' ? true : undefined), soon())).toBe(true)
      const killed = await guest.start(['/bin/sh', '-c', 'setsid sleep 60 & setsid sleep 60 & echo x; wait'])
      await waitFor(() => (guest.link.commands.get(killed).outputBytes > 0 ? true : undefined), soon())
      await guest.link.commands.signal(killed, 'SIGKILL')
      const gone = () => (existsSync(join(group, killed)) ? undefined : true)
      expect(await waitFor(gone, soon())).toBe(true)
    } finally {
      await guest.stop()
      await rmdir(group)
    }
  })
})

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function* slowly(frames: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const frame of frames) {
    await delay(1)
    yield frame
  }
}
