import { AirlockError, type ErrorCode } from '@airlock/contract'
import { spawn } from 'node:child_process'
import { HOST_ENV } from '../run-tool.ts'

/** Namespaces of their own, without a network, which end with their first process, and that process with us. */
const ALONE = ['--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child=KILL', '--mount-proc', '--ipc']
const MAX_ANSWER = 64 * 1024 * 1024
const MAX_SAID = 4096

/** How our programs end when they refuse; the reason is then what they said. */
const REFUSALS: Readonly<Record<number, ErrorCode>> = {
  78: 'worktree_refused',
  79: 'worktree_too_large',
  80: 'worktree_changed',
}

export interface ProgramRun {
  readonly program: string
  readonly verb?: string
  readonly request: unknown
  /** A file that takes what it writes; its answer otherwise. */
  readonly into?: number
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** Runs one of the programs of worktrees, and answers what it said. Throws what it refused with. */
export async function runProgram(run: ProgramRun): Promise<string> {
  const python = ['python3', '-I', '-S', '-B', run.program, ...(run.verb === undefined ? [] : [run.verb])]
  const child = spawn('setpriv', ['--pdeathsig=KILL', 'nice', '-n', '5', 'unshare', ...ALONE, '--net', ...python], {
    stdio: ['pipe', run.into ?? 'pipe', 'pipe'],
    env: HOST_ENV,
    cwd: '/',
    timeout: run.timeoutMs,
    signal: run.signal,
    killSignal: 'SIGKILL',
  })
  const said: Buffer[] = []
  let size = 0
  child.stdout?.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > MAX_ANSWER) child.kill('SIGKILL')
    else said.push(chunk)
  })
  let errors = ''
  child.stderr?.on('data', (chunk: Buffer) => (errors = `${errors}${chunk.toString()}`.slice(-MAX_SAID)))
  // A program that refuses early does not read all of its request.
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(JSON.stringify(run.request))
  const { code, failure } = await ended(child)
  const answer = Buffer.concat(said).toString()
  if (code === 0) return answer
  run.signal.throwIfAborted()
  throw refusal(code, { answer, errors: failure ?? errors, isOver: size > MAX_ANSWER || child.killed })
}

async function ended(child: ReturnType<typeof spawn>): Promise<{ code: number | null; failure?: string }> {
  return new Promise((resolve) => {
    let failure: string | undefined
    child.once('error', (error) => (failure = error.message))
    child.once('close', (code) => resolve(failure === undefined ? { code } : { code, failure }))
  })
}

function refusal(
  code: number | null,
  said: { readonly answer: string; readonly errors: string; readonly isOver: boolean },
): AirlockError {
  const known = REFUSALS[code ?? -1]
  if (known) return new AirlockError(known, said.answer.trim() || undefined)
  if (said.isOver) return new AirlockError('worktree_too_large', 'The worktree took too long to read.')
  return new AirlockError('isolation_unavailable', 'The worktree could not be read on this host.', {
    cause: said.errors,
    hint: 'It takes git 2.39 or later, python3 and ext4. Run "airlock doctor".',
  })
}
