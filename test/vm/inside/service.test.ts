import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Airlock, type RunningCommand, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { beforeAll, describe, expect, it } from 'vitest'

const run = promisify(execFile)
const CLI = fileURLToPath(new URL('../../../packages/cli/bin/airlock.js', import.meta.url))
const GROUP = '/sys/fs/cgroup/system.slice/airlock-sandboxes.service'
/** Emulated, a server takes its time to start. */
const SLOW_MS = 300_000

/** It changes the services of the machine that it runs on: only the one of `npm run test:long -- vm` is for that. */
const isOurMachine = readFileSync('/proc/cmdline', 'utf8').includes('airlock.accelerator=')

/** In this order: what is installed first is used by the rest. */
describe.skipIf(!isOurMachine)('airlock service', () => {
  let sandbox: Sandbox
  let command: RunningCommand

  beforeAll(async () => {
    await airlock('service', 'install')
    sandbox = await new Airlock().sandboxes.create({ maxLifetimeMs: 3_600_000, ttlMs: 3_600_000 })
  })

  it('runs a server that is ready, and will after a boot', async () => {
    const { stdout } = await airlock('service', 'status', '--json')
    expect(JSON.parse(stdout)).toEqual({
      installed: true,
      active: true,
      state: 'active (running)',
      atBoot: true,
      pid: expect.any(Number),
    })
  })

  it('has its sandboxes in a delegated group of their own', async () => {
    const { stdout } = await run('systemctl', ['show', '--property=Delegate', '--value', 'airlock-sandboxes'])
    expect(stdout).toBe('yes\n')
    const parent = readdirSync(GROUP).find((name) => /^airlock-[0-9a-f]{8}$/u.test(name)) ?? ''
    expect(readdirSync(join(GROUP, parent))).toContain(sandbox.id)
    expect(readFileSync(join(GROUP, parent, sandbox.id, 'user/memory.max'), 'utf8')).toMatch(/^\d+\n$/u)
  })

  it('holds them to their limits there, and what crosses one ends alone', async () => {
    const small = await new Airlock().sandboxes.create({ limits: { memoryBytes: 128 << 20, pids: 32 } })
    const greedy = await small.run(['python3', '-c', 'b = []\nwhile True: b.append(bytearray(10_000_000))'])
    expect(greedy).toMatchObject({ exitCode: null, signal: 'SIGKILL', stdout: '' })
    const forks = await small.run({ shell: 'i=0; while [ $i -lt 64 ]; do sleep 600 & i=$((i+1)); done' })
    expect(forks.exitCode).not.toBe(0)
    expect(forks.stderr).toMatch(/fork/u)
    await small.terminate()
    expect((await sandbox.run(['echo', 'untouched'])).stdout).toBe('untouched\n')
  })

  it('restarts while a command runs, which goes on and ends with its own result', async () => {
    const shell = 'i=0; until [ -e /workspace/go ]; do echo $i; i=$((i+1)); sleep 0.5; done; echo $i >&2; exit 42'
    command = await sandbox.start({ shell }, { timeoutMs: 3_000_000 })
    await printed(command, '3\n')
    const before = await mainPid()
    await run('systemctl', ['restart', 'airlock'])
    expect(await mainPid()).not.toBe(before)
    await printed(command, '10\n')
  })

  it('comes back when it is killed, and the command still runs', async () => {
    const before = await mainPid()
    process.kill(before, 'SIGKILL')
    await waitFor(async () => ((await mainPid()) === before || !(await answers()) ? undefined : true), slow())
    await sandbox.files.write('/workspace/go', '')
    const { exitCode, stdout, stderr } = await command.wait()
    expect({ exitCode, stdout }).toEqual({ exitCode: 42, stdout: counted(Number(stderr)) })
  })

  it('leaves sandboxes alone when the server is stopped', async () => {
    await run('systemctl', ['stop', 'airlock'])
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(sandbox.id)
    expect(await airlockCode('service', 'status')).toBe(3)
    await run('systemctl', ['start', 'airlock'])
    expect((await sandbox.run(['echo', 'alive'])).stdout).toBe('alive\n')
  })

  it('is gone when it is uninstalled, with every sandbox, and leaves its state', async () => {
    await airlock('service', 'uninstall')
    expect(readdirSync('/etc/systemd/system').filter((name) => name.startsWith('airlock'))).toEqual([
      'airlock-vm.service',
    ])
    expect(existsSync(GROUP)).toBe(false)
    expect(readdirSync('/run/airlock/sandboxes')).toEqual([])
    expect(existsSync('/var/lib/airlock/recorder')).toBe(true)
    expect(await airlockCode('service', 'status')).toBe(3)
    expect((await airlock('service', 'uninstall')).stdout).toBe('Airlock is not installed as a service.\n')
  })
})

async function airlock(...argv: readonly string[]): Promise<{ readonly stdout: string }> {
  return run(process.execPath, [CLI, ...argv])
}

async function airlockCode(...argv: readonly string[]): Promise<unknown> {
  return airlock(...argv).then(
    () => 0,
    (error: { readonly code?: unknown }) => error.code,
  )
}

async function mainPid(): Promise<number> {
  return Number((await run('systemctl', ['show', '--property=MainPID', '--value', 'airlock'])).stdout)
}

async function answers(): Promise<boolean> {
  return new Airlock().sandboxes.list({}).then(
    () => true,
    () => false,
  )
}

async function printed(command: RunningCommand, text: string): Promise<void> {
  // While the server is away there is no answer.
  const output = async () => command.output().catch(() => undefined)
  await waitFor(async () => ((await output())?.stdout.includes(text) ? true : undefined), slow())
}

function slow(): { readonly signal: AbortSignal; readonly everyMs: number } {
  return { signal: deadline(SLOW_MS), everyMs: 500 }
}

/** The lines 0 to `count` - 1. */
function counted(count: number): string {
  return Array.from({ length: count }, (_, line) => `${line}\n`).join('')
}
