import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, fchmodSync, fstatSync, openSync } from 'node:fs'
import { GuestFailure } from '../failure.ts'

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants

/** `ours` is for the guest and never blocks; `theirs` is for the command, and must be closed once it has it. */
export interface PipeEnds {
  readonly ours: number
  readonly theirs: number
}

/** A here-document is a pipe of the shell, which waits until we have opened it by its name in /proc. */
const SCRIPT = 'exec 3<<END\nEND\necho\nread line'

/**
 * A true pipe, which Node cannot make. A FIFO would not do for stdin: opening `/dev/stdin` after the last byte was
 * written and the writer closed would block for ever.
 */
export async function makeStdinPipe(sh: readonly string[]): Promise<PipeEnds> {
  const [program = '', ...before] = sh
  const shell = spawn(program, [...before, '-c', SCRIPT], { stdio: ['pipe', 'pipe', 'ignore'], env: {} })
  try {
    await Promise.race([once(shell.stdout, 'data'), throwAtEnd(shell)])
    return openPipe(`/proc/${shell.pid}/fd/3`)
  } finally {
    shell.stdin.destroy()
  }
}

async function throwAtEnd(shell: ChildProcess): Promise<never> {
  await once(shell, 'exit')
  throw new GuestFailure('internal', 'no pipe could be made')
}

function openPipe(path: string): PipeEnds {
  const theirs = openSync(path, O_RDONLY)
  try {
    if (!fstatSync(theirs).isFIFO()) throw new GuestFailure('internal', 'the shell made no pipe')
    // User code may open it again to read, not to write.
    fchmodSync(theirs, 0o644)
    return { theirs, ours: openSync(path, O_WRONLY | O_NONBLOCK) }
  } catch (error) {
    closeSync(theirs)
    throw error
  }
}
