import { Airlock, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { execFileSync } from 'node:child_process'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CLI, CliProcess, type Ended } from '../../packages/cli/src/testing/cli-process.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { switchShippedRulesOff } from '../support/shipped-rules.ts'

const MIB = 1024 ** 2
const ENTER = '\u001B[?1049h'
const LEAVE = '\u001B[?1049l'
const HOME = '\u001B[H'

let server: TestServer
let airlock: Airlock
beforeAll(async () => {
  server = await startServer({ env: { AIRLOCK_MONITOR_EVERY_S: '1' } })
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  await switchShippedRulesOff(server)
})
afterAll(async () => {
  await server?.stop()
})

const environment = (): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'] ?? '',
  AIRLOCK_URL: server.url,
  AIRLOCK_API_KEY: server.developerKey,
})

function start(...argv: string[]): CliProcess {
  return new CliProcess(argv, { env: environment() })
}

async function cli(...argv: string[]): Promise<Ended> {
  const running = start(...argv)
  running.child.stdin.end()
  return running.ended
}

/** On a terminal; what is written to stdin is typed there. Afterwards it says how the CLI ended and left the terminal. */
function onTerminal(line: string, key = server.developerKey): CliProcess {
  const program = `sh -c 'echo "pid $$ $(tty) "; exec "${process.execPath}" "${CLI}" ${line}'`
  const shell = `stty cols 100 rows 12; ${program}; echo "code $?"; stty -a | grep -o -- '-\\?icanon'`
  const env = { ...environment(), AIRLOCK_API_KEY: key, TERM: 'xterm', NO_COLOR: '1', SHELL: '/bin/sh' }
  return new CliProcess([], { command: ['script', '-qec', shell, '/dev/null'], env })
}

/** The screen as it was last drawn. */
function drawn(running: CliProcess): readonly string[] {
  const frame = running.stdout.toString().split(HOME).at(-1) ?? ''
  return stripVTControlCharacters(frame)
    .split('\r\n')
    .map((line) => line.trimEnd())
}

async function until<T>(found: () => T | undefined | Promise<T | undefined>): Promise<T> {
  return waitFor(found, { signal: deadline(100_000), everyMs: 50 })
}

async function untilSampled(sandbox: Sandbox, isSo: (memoryBytes: number) => boolean): Promise<void> {
  await until(async () => (isSo((await sandbox.metrics()).now?.memoryBytes ?? 0) ? true : undefined))
}

/** Holds this much memory for as long as it lives. */
async function hold(sandbox: Sandbox, bytes: number): Promise<void> {
  const code = `import time; held = bytearray(${bytes}); time.sleep(600)`
  await sandbox.start(['python3', '-c', code])
  await untilSampled(sandbox, (used) => used > bytes)
}

describe('airlock top', requires('root', 'crun', 'python3'), () => {
  it('says when there is no living sandbox', async () => {
    const none = 'There are no living sandboxes. Make one with "airlock create".'
    expect(await cli('top', '--once')).toEqual({ code: 0, stdout: '', stderr: `${none}\n` })
    const running = onTerminal('top')
    await until(() => (drawn(running).includes(none) ? true : undefined))
    running.child.stdin.write('q')
    expect((await running.ended).stdout).toContain('code 0')
  })

  it('prints the sandboxes of an agent in the order that is asked for, as a table and as JSON', async () => {
    await using small = await airlock.sandboxes.create({ name: 'small', limits: { memoryBytes: 256 * MIB } })
    await using large = await airlock.sandboxes.create({ name: 'large', limits: { memoryBytes: 256 * MIB } })
    await hold(large, 220 * MIB)
    await untilSampled(small, () => true)
    await until(async () => ((await large.metrics()).alerts.length > 0 ? true : undefined))
    const { stdout } = await cli('top', '--once', '--sort', 'memory')
    const [totals, head, ...rows] = stdout.trimEnd().split('\n')
    expect(totals).toMatch(/^\d\d:\d\d:\d\d {3}2 sandboxes {2}1 warning {2}cpus [\d.]+ {2}memory 2\d\dM {2}pids \d+/)
    expect(head).toMatch(/^SANDBOX +ID +AGENT +STATE +CPU +MEMORY +PIDS +DISK +READ +WRITTEN +ALERTS$/)
    expect(rows).toEqual([
      expect.stringMatching(new RegExp(`^large +${large.id} +default +active +[\\d.]+% .*2\\d\\dM/256M .* memory$`)),
      expect.stringMatching(new RegExp(`^small +${small.id} +default +active +[\\d.]+% .*/256M +\\d+/256 `)),
    ])
    const asked = await cli('top', '--once', '--json', '--sort', 'name', '--agent', 'default')
    const { sandboxes, total } = JSON.parse(asked.stdout)
    expect([total.sandboxes, sandboxes.map((one: { name: string }) => one.name)]).toEqual([2, ['large', 'small']])
    expect(JSON.parse((await cli('top', '--once', '--json', '--agent', 'nobody')).stdout).sandboxes).toEqual([])
  })

  it('goes on, a line of JSON or a table at a time, until Ctrl-C', async () => {
    await using sandbox = await airlock.sandboxes.create({ name: 'one' })
    const json = start('top', '--json', '--every', '500ms')
    const table = start('top', '--every', '0.5s')
    const lines = (): readonly string[] => json.stdout.toString().split('\n').slice(0, -1)
    await until(() => (lines().length >= 3 ? true : undefined))
    await until(() =>
      /READ\/S +WRITE\/S\none [^]*\n\n[^]*\none [^\n]* 0B +0B\n/.test(String(table.stdout)) ? true : undefined,
    )
    for (const { child } of [json, table]) child.kill('SIGINT')
    expect(await Promise.all([json.ended, table.ended])).toMatchObject([
      { code: 0, stderr: '' },
      { code: 0, stderr: '' },
    ])
    expect(lines().map((line) => JSON.parse(line).sandboxes[0].sandbox)).toEqual(lines().map(() => sandbox.id))
  })

  it('redraws the terminal in place, by keys and by its size, and gives it back as it was', async () => {
    await using small = await airlock.sandboxes.create({ name: 'small' })
    await using large = await airlock.sandboxes.create({ name: 'large' })
    await hold(large, 100 * MIB)
    await untilSampled(small, () => true)
    const running = onTerminal('top --every 500ms --sort name')
    await until(() => (drawn(running).at(-1)?.startsWith('q quits   s sorts by cpu') ? true : undefined))
    expect(drawn(running)).toHaveLength(12)
    expect(drawn(running)[3]).toMatch(/^SANDBOX +AGENT +STATE +CPU +MEMORY +PIDS +DISK +READ\/S +WRITE\/S$/)
    expect(drawn(running).slice(4, 6)).toEqual([expect.stringMatching(/^large /), expect.stringMatching(/^small /)])
    running.child.stdin.write('ssx')
    await until(() => (drawn(running)[0]?.includes('by memory') ? true : undefined))
    const before = drawn(running)[0]
    await until(() => (drawn(running)[0] === before ? undefined : true))
    const [, tty = ''] = /pid \d+ (\S+)/.exec(String(running.stdout)) ?? []
    execFileSync('stty', ['-F', tty, 'cols', '60', 'rows', '8'])
    await until(() => (drawn(running).length === 8 ? true : undefined))
    expect(drawn(running)[3]).toMatch(/^SANDBOX +STATE +CPU +MEMORY +PIDS +DISK$/)
    expect(drawn(running).every((line) => line.length <= 60)).toBe(true)
    await small.terminate()
    await until(() => (drawn(running)[1]?.startsWith('1 sandbox  ') ? true : undefined))
    running.child.stdin.write('q')
    const { stdout } = await running.ended
    expect([stdout.split(ENTER).length, stdout.split(LEAVE).length]).toEqual([2, 2])
    expect(stdout.split(LEAVE)[1]).toBe('code 0\r\nicanon\r\n')
    expect(stdout.split(ENTER)[1]?.split(LEAVE)[0]).not.toContain('\u001B[2J')
  })

  it.each([
    ['a signal', 143, (pid: number) => process.kill(pid, 'SIGTERM')],
    ['Ctrl-C', 0, undefined],
  ])('gives the terminal back after %s', async (_, code, stop) => {
    const running = onTerminal('top --every 500ms')
    await until(() => (drawn(running).at(-1)?.startsWith('q quits') ? true : undefined))
    if (stop) stop(Number(/pid (\d+)/.exec(String(running.stdout))?.[1]))
    else running.child.stdin.write('\u0003')
    expect((await running.ended).stdout.split(LEAVE)[1]).toBe(`code ${code}\r\nicanon\r\n`)
  })

  it('gives the terminal back before it says why it cannot go on', async () => {
    const { keys } = new Airlock({ url: server.url, apiKey: server.adminKey })
    const { key, secret } = await keys.create({ name: 'watcher', role: 'developer' })
    const running = onTerminal('top --every 500ms', secret)
    await until(() => (drawn(running).at(-1)?.startsWith('q quits') ? true : undefined))
    await keys.revoke(key.id)
    const { stdout } = await running.ended
    expect(stdout.split(LEAVE)[1]).toMatch(/^error: .* \(unauthenticated\)\r\n[^]*code 4\r\nicanon\r\n$/)
  })

  it('says what is wrong with what it is told', async () => {
    expect(await cli('top', '--every', '1ms')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('500ms to 1h'),
    })
    expect(await cli('top', '--sort', 'age')).toMatchObject({ code: 2 })
    const env = { ...environment(), AIRLOCK_API_KEY: 'al_wrong_key' }
    const refused = await new CliProcess(['top'], { env }).ended
    expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining('(unauthenticated)') })
  })
})

describe('airlock metrics', requires('root', 'crun', 'python3'), () => {
  it('shows a sandbox by name and by id: now, limits, history, alerts', async () => {
    await using sandbox = await airlock.sandboxes.create({ name: 'held', limits: { memoryBytes: 256 * MIB } })
    await hold(sandbox, 220 * MIB)
    await until(async () => ((await sandbox.metrics()).alerts.length > 0 ? true : undefined))
    const { code, stdout } = await cli('metrics', 'held')
    expect([code, stdout]).toEqual([0, expect.stringContaining(`sandbox    held (${sandbox.id})\n`)])
    expect(stdout).toMatch(/^raised +1 warning since its start$/m)
    expect(stdout).toMatch(/^memory +2\d\d[.\d]* MiB +256 MiB +(?:8|9)\d% +█{8,9}.* +2\d\d[.\d]* MiB +[▁▂▃▄▅▆▇█]+$/m)
    expect(stdout).toMatch(/^memory is a warning since \d\d:\d\d:\d\d: (?:8|9)\d% now, from 80% on$/m)
    const told = JSON.parse((await cli('metrics', sandbox.id, '--resolution', '1m', '--json')).stdout)
    expect(told).toMatchObject({
      sandbox: sandbox.id,
      name: 'held',
      alerts: [{ resource: 'memory', level: 'warning' }],
    })
    const later = new Date(Date.now() + 60_000).toISOString()
    expect(JSON.parse((await cli('metrics', 'held', '--since', later, '--json')).stdout).history).toEqual([])
  })

  it('follows a sandbox until it ends, or Ctrl-C', async () => {
    const sandbox = await airlock.sandboxes.create({ name: 'followed' })
    const [lines, json, left] = [['-f'], ['-f', '--json'], ['--follow']].map((options) =>
      start('metrics', 'followed', ...options),
    )
    const said = (running: CliProcess | undefined): readonly string[] =>
      String(running?.stdout).split('\n').slice(0, -1)
    await until(() => ([lines, json, left].every((one) => said(one).length >= 2) ? true : undefined))
    left?.child.kill('SIGINT')
    expect(await left?.ended).toMatchObject({ code: 0, stderr: '' })
    await sandbox.terminate()
    expect(await Promise.all([lines?.ended, json?.ended])).toMatchObject([{ code: 0 }, { code: 0 }])
    // The first sample of a sandbox has nothing to be compared with.
    expect(said(lines)[1]).toMatch(
      /^\d\d:\d\d:\d\d {2}cpu [\d.]+ [ \d.]+% {2}memory .*% {2}pids .*% {2}disk .*% {2}read .*\/s {2}written .*\/s$/,
    )
    expect(said(lines).at(-1)).toBe('The sandbox has ended.')
    const events = said(json).map((line) => JSON.parse(line).event)
    expect([new Set(events), events.at(-1)]).toEqual([new Set(['sample', 'ended']), 'ended'])
    expect((await cli('metrics', sandbox.id)).stdout).toMatch(/^state +stopped$/m)
  })

  it('shows an agent: all together, then each', async () => {
    await using sandbox = await airlock.sandboxes.create({ name: 'its' })
    await untilSampled(sandbox, () => true)
    const { stdout } = await cli('metrics', '--agent', 'default')
    expect(stdout).toMatch(/^agent +default\nraised .* in the last 24 hours\n\n1 sandbox {2}no alerts {2}cpus /)
    expect(stdout).toMatch(/^its +sbx_\w+ +default +active /m)
    expect(JSON.parse((await cli('metrics', '--agent', 'default', '--json')).stdout)).toMatchObject({
      agent: 'default',
      total: { sandboxes: 1 },
    })
    const followed = start('metrics', '--agent', 'default', '-f')
    await until(() => (String(followed.stdout).split('\n').length > 2 ? true : undefined))
    followed.child.kill('SIGINT')
    const { code, stdout: sums } = await followed.ended
    expect([code, sums]).toEqual([
      0,
      expect.stringMatching(/^(?:\d\d:\d\d:\d\d {2}1 sandbox {2}no alerts {2}cpus .*\n){2,}$/),
    ])
  })

  it('says what is not there, and what it is not for', async () => {
    const gone = await cli('metrics', `sbx_${'0'.repeat(26)}`)
    expect(gone).toEqual({
      code: 5,
      stdout: '',
      stderr: 'error: There is no such sandbox. (sandbox_not_found)\nList the sandboxes you have.\n',
    })
    const lines = [['nothing'], ['--agent', 'nobody'], [], ['a', '--agent', 'b'], ['a', '--resolution', '2s']]
    const codes = await Promise.all(lines.map(async (argv) => (await cli('metrics', ...argv)).code))
    expect(codes).toEqual([5, 5, 2, 2, 2])
  })
})
