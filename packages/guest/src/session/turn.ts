import type { DriverError } from './driver.ts'
import type { Interpreter } from './interpreter.ts'
import type { Step } from './step.ts'

/** The step whose turn it is, from its first preparation to its end. */
export interface Turn {
  readonly step: Step
  readonly nonce: string
  readonly over: PromiseWithResolvers<Ending>
  /** Where its code runs, once it does. */
  interpreter: Interpreter | undefined
  /** What we did to it, the first of several. */
  cause: 'interrupt' | 'timeout' | 'restart' | 'close' | undefined
}

export type Ending =
  | { readonly kind: 'done'; readonly status: 'completed' | 'failed' }
  | { readonly kind: 'died'; readonly how: string; readonly signal: string | null }

/** Undefined when it completed. */
export function errorOf(turn: Turn, ending: Ending): DriverError | undefined {
  return ending.kind === 'done' ? errorOfCode(turn, ending.status) : errorOfDeath(turn, ending.how)
}

/** By which signal it ended: that of its interpreter, or the one that somebody asked for. */
export function signalOf({ cause }: Turn, ending: Ending): string | null {
  if (cause !== undefined && cause !== 'timeout') return 'SIGINT'
  return ending.kind === 'died' ? ending.signal : null
}

export function interrupted(message: string): DriverError {
  return { name: 'Interrupted', message, traceback: '' }
}

export function crashed(message: string): DriverError {
  return { name: 'RuntimeCrashed', message, traceback: '' }
}

function errorOfCode({ step, cause }: Turn, status: 'completed' | 'failed'): DriverError | undefined {
  if (cause === 'timeout') return timedOut(step)
  if (status === 'completed') return undefined
  const { error } = step
  // Nothing was said when it was stopped before it began.
  if (cause !== undefined) return error ? { ...error, name: 'Interrupted' } : interrupted(INTERRUPTED[cause])
  return error ?? { name: 'Error', message: 'the step failed', traceback: '' }
}

function errorOfDeath({ step, cause }: Turn, how: string): DriverError {
  if (cause === 'timeout') return timedOut(step)
  if (cause === 'restart' || cause === 'close') return interrupted(INTERRUPTED[cause])
  return crashed(`the interpreter is gone: ${how}`)
}

const INTERRUPTED = {
  interrupt: 'it was interrupted',
  restart: 'the session was restarted',
  close: 'the session was closed',
} as const

function timedOut({ spec, error }: Step): DriverError {
  const message = `the step ran longer than ${spec.timeoutMs} ms`
  return { name: 'Timeout', message, traceback: error?.traceback ?? '' }
}
