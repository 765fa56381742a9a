import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { STAGE } from '../paths.ts'
import { HOST_ENV } from '../run-tool.ts'

/** Who builds and unpacks images: nobody else, with no right and no group. The first range of uids is our own processes'. */
export const BUILDER_UID = 0x70_00_00_03

/** Where a confined program finds its directories. */
export const CONFINED = { build: `${STAGE}/build`, apt: `${STAGE}/apt` } as const

export interface ConfinedRun {
  /** What confines it. */
  readonly script: string
  /** Host paths; both belong to the builder. */
  readonly build: string
  readonly apt: string
  readonly argv: readonly string[]
  readonly network?: boolean
  /** Whether /usr is that of the build over that of the host. */
  readonly merged?: boolean
  readonly timeoutMs: number
  /** Each line that it prints. */
  readonly onLine?: (line: string) => void
  /** Each line that it writes to fd 3. */
  readonly onStatus?: (line: string) => void
}

export interface ConfinedResult {
  readonly exitCode: number | null
  /** The last lines that it said on stderr. */
  readonly said: readonly string[]
}

const SAID_LINES = 20
const LINE_LENGTH = 500

/** Namespaces that end with their first process, and that process with the one that we start, and that one with us. */
const ALONE = ['--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child=KILL', '--mount-proc', '--ipc']

/** Runs a program of the host as the builder. Never throws for what the program does. */
export async function runConfined(run: ConfinedRun): Promise<ConfinedResult> {
  const alone = [...ALONE, ...(run.network === true ? [] : ['--net'])]
  const script = ['/bin/sh', run.script, STAGE, run.build, run.apt, String(BUILDER_UID), ...run.argv]
  const child = spawn('setpriv', ['--pdeathsig=KILL', 'nice', '-n', '5', 'unshare', ...alone, ...script], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    env: { ...HOST_ENV, HOME: '/nonexistent', ...(run.merged === true ? { AIRLOCK_MERGED: '1' } : {}) },
    cwd: '/',
    timeout: run.timeoutMs,
    killSignal: 'SIGKILL',
  })
  const said: string[] = []
  const [, out, errors, status] = child.stdio
  read(out, run.onLine)
  read(status, run.onStatus)
  read(errors, (line) => {
    said.push(line.slice(0, LINE_LENGTH))
    if (said.length > SAID_LINES) said.shift()
  })
  const exitCode = await new Promise<number | null>((resolve) => {
    child.once('error', (error) => {
      said.push(error.message)
      resolve(127)
    })
    child.once('close', (code) => resolve(code))
  })
  return { exitCode, said }
}

function read(stream: unknown, onLine: ((line: string) => void) | undefined): void {
  if (!isReadable(stream)) return
  if (onLine) createInterface({ input: stream, crlfDelay: Infinity }).on('line', onLine)
  else stream.resume()
}

function isReadable(stream: unknown): stream is Readable {
  return typeof stream === 'object' && stream !== null && 'resume' in stream
}
