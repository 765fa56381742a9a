import { isatty } from 'node:tty'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { toAirlockError } from '@airlock/contract'
import { ClockKeeper, createLog } from '@airlock/std'
import { commandOf, noticeText, readyJson, readyText } from './announce.ts'
import { typedCommand } from './command/typed.ts'
import { childEnvironment, environment, loadSettings, type Environment, type Settings } from './config.ts'
import { compiledDirectory, prepareDirectories, prepareStateDirectory } from './directories.ts'
import { KeyCopies } from './key-copies.ts'
import { takeInstanceLock } from './lock.ts'
import { LogFile } from './log-file.ts'
import { parseLogLine, printable, type LogLine } from './log-line.ts'
import { findParent, hangupOf } from './parent.ts'
import { assertFreePort, pinPort } from './port.ts'
import { processTable } from './processes.ts'
import { supervise, type SuperviseOptions } from './supervise.ts'
import { endSurvivors, ProcessList } from './survivors.ts'
import { notifyReady } from './systemd/notify.ts'

const STDOUT = 1

/** Where `serve` reads and prints. */
export interface ServeIo {
  readonly env: Environment
  readonly cwd: string
  readonly platform: string
  readonly uid: number
  /** What is printed is read by a person, and kept nowhere. */
  readonly isTerminal: boolean
  readonly out: (line: string) => void
  readonly err: (line: string) => void
}

/** `airlock serve [--json] [--parent <pid>]`: runs until it is told to stop. Answers the exit code. */
export async function serve(argv: readonly string[], io: ServeIo = processIo()): Promise<number> {
  const asked = findObstacle(io) ?? parseArguments(argv)
  if (typeof asked === 'string') {
    io.err(asked)
    return 1
  }
  const parent = asked.parent ?? findParent(io.env)
  try {
    return await serveSettings(await pinPort(loadSettings(io.env, io.cwd)), { io, json: asked.json, parent })
  } catch (cause) {
    const error = toAirlockError(cause)
    const detail = error.cause instanceof Error && error.code === 'internal' ? ` ${printable(error.cause.message)}` : ''
    io.err(`${error.message}${detail} ${error.hint}`)
    return 1
  }
}

interface Output {
  readonly io: ServeIo
  readonly json: boolean
  /** The process without which nobody wants this server any more. */
  readonly parent: number | undefined
}

async function serveSettings(settings: Settings, output: Output): Promise<number> {
  prepareStateDirectory(settings)
  const lock = takeInstanceLock(settings.stateDir)
  try {
    prepareDirectories(settings)
    const list = join(settings.runtimeDir, 'processes.json')
    await endSurvivors(list)
    await assertFreePort(settings)
    const log = new LogFile(join(settings.stateDir, 'logs', 'airlock.log'))
    const supervision = options(settings, output, { log, list: new ProcessList(list) })
    const warn = (text: string) => supervision.onEvent('warn', text)
    const keys = new KeyCopies(settings, warn)
    keys.start()
    const clock = keepClock(settings, warn)
    try {
      return await supervise(processTable(settings, { isTerminal: output.io.isTerminal && !output.json }), supervision)
    } finally {
      keys.stop()
      clock.stop()
      log.close()
    }
  } finally {
    lock.release()
  }
}

/** Sandboxes that were left running have deadlines by the clock that they know. */
function keepClock({ stateDir }: Settings, warn: (text: string) => void): ClockKeeper {
  const sandboxes = join(stateDir, 'data-plane', 'sandboxes')
  const isIdle = !existsSync(sandboxes) || readdirSync(sandboxes).length === 0
  const clock = new ClockKeeper({
    dir: join(stateDir, 'public'),
    isIdle,
    onJump: (ms) =>
      warn(`the clock of the machine differs by ${Math.round(ms / 1000)} s; deadlines stay, and it is met slowly`),
    onFailure: (error) => warn(`the clock of the node cannot be written: ${String(error)}`),
    onDamage: (error) =>
      warn(`public/clock.json cannot be read (${describe(error)}); deadlines go by the clock of the machine now`),
  })
  clock.start()
  return clock
}

function describe(error: unknown): string {
  return printable(error instanceof Error ? error.message : String(error))
}

function options(
  settings: Settings,
  { io, json, parent }: Output,
  { log, list }: { log: LogFile; list: ProcessList },
): SuperviseOptions {
  const say = json ? io.err : io.out
  const typed = typedCommand(io.env)
  let command = typed.word
  const show = (line: LogLine) => {
    if (line.level === 'warn' || line.level === 'error') io.err(`${line.process}: ${line.text}`)
  }
  const onLine = (line: string, parsed: LogLine) => {
    log.write(line)
    show(parsed)
  }
  const own = createLog({
    process: 'supervisor',
    level: settings.config.log_level,
    write: (line) => onLine(line.trimEnd(), parseLogLine('supervisor', line)),
  })
  return {
    parent,
    hangup: hangupOf(io.env),
    failpoint: settings.config.failpoint,
    environment: (child) => childEnvironment({ NODE_COMPILE_CACHE: compiledDirectory(settings), ...io.env }, child),
    onLine,
    onEvent: (level, text) => own[level](text),
    onPid: (name, pid) => list.set(name, pid),
    onNotice: (notice) => say(noticeText(notice, command)),
    onReady: (facts) => {
      own.info('ready', { pid: process.pid })
      command = commandOf(facts, settings, typed)
      io.out(json ? readyJson(facts, process.pid) : readyText(facts, settings, typed))
      void notifyReady(io.env, (text) => own.warn(text))
    },
    onStop: (mode) => say(mode === 'end' ? ending(settings) : 'Stopping; sandboxes keep running.'),
    onFailure: (reason) => io.err(`Airlock did not start.\n${reason}\nTo see what is missing: ${typed.word} doctor`),
    note: say,
  }
}

function ending({ runtimeDir }: Settings): string {
  const count = readdirSync(join(runtimeDir, 'sandboxes')).length
  return count === 0 ? 'Stopping.' : `Ending ${count} ${count === 1 ? 'sandbox' : 'sandboxes'}…`
}

interface Arguments {
  readonly json: boolean
  readonly parent: number | undefined
}

/** A sentence when they are wrong. */
function parseArguments(argv: readonly string[]): Arguments | string {
  let json = false
  let parent: number | undefined
  const words = argv.values()
  for (const word of words) {
    if (word === '--json') json = true
    else if (word === '--parent') {
      const pid = words.next().value ?? ''
      if (!/^[1-9]\d{0,9}$/u.test(pid)) return `airlock serve --parent needs a process id, not "${printable(pid)}".`
      parent = Number(pid)
    } else return `airlock serve [--json] [--parent <pid>] does not know ${printable(word)}.`
  }
  return { json, parent }
}

function findObstacle(io: ServeIo): string | undefined {
  if (io.platform !== 'linux')
    return 'Airlock isolates with the Linux kernel: start it on a Linux machine or VM, and set AIRLOCK_URL here to its address.'
  if (io.uid !== 0)
    return 'Airlock needs root, to give every sandbox users of its own and every process of ours just what it needs: sudo npm start'
  return undefined
}

function processIo(): ServeIo {
  // A terminal that was closed must not end us in the middle of stopping: the signal that came with it decides.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  return {
    env: environment(),
    cwd: process.cwd(),
    platform: process.platform,
    uid: process.getuid?.() ?? -1,
    isTerminal: isatty(STDOUT),
    out: (line) => void process.stdout.write(`${line}\n`),
    err: (line) => void process.stderr.write(`${line}\n`),
  }
}
