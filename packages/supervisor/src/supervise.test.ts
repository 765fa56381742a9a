import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { deadline, sleep, waitFor } from '@airlock/std'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const CHILD = fileURLToPath(new URL('fixtures/child.ts', import.meta.url))
const SUPERVISOR = fileURLToPath(new URL('fixtures/supervise.ts', import.meta.url))

let directory: string
let supervisor: Supervisor | undefined

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'al-supervise-'))
})

afterEach(async () => {
  supervisor?.process.kill('SIGKILL')
  await supervisor?.exited
  rmSync(directory, { recursive: true })
})

describe('starting and stopping', () => {
  it('starts stage after stage and stops in the opposite order, ending what runs on SIGINT', async () => {
    start([[spec('recorder')], [spec('data-plane')], [spec('control-plane')]])
    await printed('ready')
    supervisor?.process.kill('SIGINT')
    expect(await supervisor?.exited).toBe(0)
    expect(events()).toEqual([
      'recorder start',
      'data-plane start',
      'control-plane start',
      'control-plane stop end',
      'data-plane stop end',
      'recorder stop end',
    ])
    expect(supervisor?.output()).toEqual(['ready', 'stopping end'])
  })

  it.each(['SIGTERM', 'SIGHUP'] as const)('leaves what runs on %s', async (signal) => {
    start([[spec('recorder')]])
    await printed('ready')
    supervisor?.process.kill(signal)
    expect(await supervisor?.exited).toBe(0)
    expect(events()).toEqual(['recorder start', 'recorder stop leave'])
  })

  it('leaves what runs when the process that it was started for is killed', async () => {
    const parent = spawn('sleep', ['infinity'])
    start([[spec('recorder')]], undefined, parent.pid)
    await printed('ready')
    parent.kill('SIGKILL')
    expect(await supervisor?.exited).toBe(0)
    expect(events()).toEqual(['recorder start', 'recorder stop leave'])
  })

  it('leaves at once when the process that it was started for was gone before', async () => {
    const parent = spawn('true')
    await once(parent, 'exit')
    start([[spec('recorder', 'stubborn', 100)]], undefined, parent.pid)
    expect(await supervisor?.exited).toBe(1)
    expect(supervisor?.output()).toEqual(['stopping leave'])
  })

  it('ends with the reason when a child fails to start, and stops the others', async () => {
    start([[spec('recorder')], [spec('data-plane', 'fails'), spec('control-plane', 'stubborn', 100)]])
    expect(await supervisor?.exited).toBe(1)
    expect(supervisor?.output()).toEqual(['data-plane: cannot isolate (no  [31mcgroups)'])
    expect(events()).toContain('recorder stop leave')
  })

  it('tells the error of a child that crashes before it can log', async () => {
    start([[spec('recorder', 'crashes')]])
    expect(await supervisor?.exited).toBe(1)
    expect(supervisor?.output()).toEqual([expect.stringMatching(/^recorder: SyntaxError: .*JSON/)])
  })

  it('can be stopped while it starts', async () => {
    start([[spec('recorder')], [spec('data-plane', 'stubborn', 3_000)]])
    await happened('data-plane start')
    supervisor?.process.kill('SIGINT')
    expect(await supervisor?.exited).toBe(1)
    expect(events()).toEqual(['recorder start', 'data-plane start', 'data-plane stop end', 'recorder stop end'])
  })

  it('takes SIGINTs of one key press for one, answers a second press with a note and leaves at once on the third', async () => {
    start([[spec('recorder', 'stubborn', 60_000)]])
    await happened('recorder start')
    supervisor?.process.kill('SIGINT')
    supervisor?.process.kill('SIGINT')
    await happened('recorder stop end')
    await sleep(500)
    expect(supervisor?.output()).toEqual(['stopping end'])
    supervisor?.process.kill('SIGINT')
    await printed('Still stopping. Press Ctrl-C once more to leave at once.')
    await sleep(500)
    supervisor?.process.kill('SIGINT')
    expect(await supervisor?.exited).toBe(130)
    await gone(pidOf('recorder'))
  })
})

describe('when a process dies', () => {
  it('restarts a child, without the failpoint that killed it', async () => {
    start([[spec('recorder')]], 'record.written:recorder')
    await printed('ready')
    process.kill(pidOf('recorder'), 'SIGKILL')
    await printed('recorder is back')
    expect(started('recorder')).toEqual(['armed', 'unarmed'])
    expect(supervisor?.output()).toContain('recorder died (SIGKILL) and is restarted')
  })

  it('kills a child for another and answers once it is dead, when a failpoint is armed', async () => {
    start([[spec('recorder')], [spec('control-plane', { kills: 'recorder' })]], 'record.written:recorder')
    await printed('ready')
    process.kill(pidOf('control-plane'), 'SIGUSR2')
    await happened('control-plane killed recorder')
    await printed('recorder is back')
    expect(started('control-plane')).toEqual(['armed'])
  })

  it('kills nobody for a child when no failpoint is armed', async () => {
    start([[spec('recorder')], [spec('control-plane', { kills: 'recorder' })]])
    await printed('ready')
    process.kill(pidOf('control-plane'), 'SIGUSR2')
    supervisor?.process.kill('SIGTERM')
    expect(await supervisor?.exited).toBe(0)
    expect(events()).toEqual([
      'recorder start',
      'control-plane start',
      'control-plane stop leave',
      'recorder stop leave',
    ])
  })

  it('kills itself for a child, and the children of a killed supervisor leave by themselves', async () => {
    start([[spec('recorder')], [spec('control-plane', { kills: 'supervisor' })]], 'create.admitted:supervisor')
    await printed('ready')
    process.kill(pidOf('control-plane'), 'SIGUSR2')
    expect(await supervisor?.exited).toBe('SIGKILL')
    await gone(pidOf('control-plane'))
    await gone(pidOf('recorder'))
    expect(events().toSorted()).toEqual([
      'control-plane start',
      'control-plane stop leave',
      'recorder start',
      'recorder stop leave',
    ])
  })
})

interface Supervisor {
  readonly process: ChildProcess
  readonly exited: Promise<number | string | null>
  output(): readonly string[]
}

interface FixtureSpec {
  readonly name: string
  readonly main: string
  readonly stopMs: number
  readonly settings: Readonly<Record<string, unknown>>
}

function spec(name: string, behaviour: unknown = 'good', stopMs = 10_000): FixtureSpec {
  return { name, main: CHILD, stopMs, settings: { name, behaviour, trace: trace() } }
}

function start(stages: readonly (readonly FixtureSpec[])[], failpoint?: string, parent?: number): void {
  const table = stages.map((stage) =>
    stage.map((one) => ({ ...one, settings: { ...one.settings, failpoint: failpoint ?? null } })),
  )
  const args = [
    SUPERVISOR,
    JSON.stringify(table),
    String(parent ?? ''),
    ...(failpoint === undefined ? [] : [failpoint]),
  ]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const exited = new Promise<number | string | null>((resolve) =>
    child.once('close', (code, signal) => resolve(signal ?? code)),
  )
  supervisor = { process: child, exited, output: () => text.split('\n').filter((line) => line !== '') }
}

const trace = () => join(directory, 'trace')
const lines = () => (existsSync(trace()) ? readFileSync(trace(), 'utf8').trim().split('\n') : [])

/** What happened to the children, without pids. */
const events = () => lines().map((line) => line.replace(/ start .*/, ' start'))

function started(name: string): readonly string[] {
  const starts = lines().filter((line) => line.startsWith(`${name} start `))
  return starts.map((line) => (line.endsWith(' unarmed') ? 'unarmed' : 'armed'))
}

function pidOf(name: string): number {
  return Number(
    lines()
      .find((line) => line.startsWith(`${name} start `))
      ?.split(' ')[2],
  )
}

async function printed(line: string): Promise<void> {
  await waitFor(() => supervisor?.output().includes(line) || undefined, { signal: deadline(100_000), everyMs: 10 })
}

async function happened(event: string): Promise<void> {
  await waitFor(() => events().includes(event) || undefined, { signal: deadline(100_000), everyMs: 10 })
}

/** Gone, or dead and waiting for an init that does not reap. */
async function gone(pid: number): Promise<void> {
  await waitFor(() => stateOf(pid) === 'Z' || undefined, { signal: deadline(100_000), everyMs: 10 })
}

function stateOf(pid: number): string {
  if (!existsSync(`/proc/${pid}/stat`)) return 'Z'
  return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.charAt(0) ?? 'Z'
}
