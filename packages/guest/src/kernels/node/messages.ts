import type { DriverError, StepRequest } from '../../session/driver.ts'

/** What the thread of the channel tells the thread of user code. */
export type ToSteps =
  | (Omit<StepRequest, 'code'> & { readonly prepared: Prepared; readonly name: string })
  | { readonly type: 'interrupt'; readonly nonce: string }

/** Code as V8 can run it, or why it cannot. */
export type Prepared =
  | { readonly kind: 'script'; readonly script: string }
  | { readonly kind: 'error'; readonly error: DriverError }

export type FromSteps =
  | { readonly type: 'ready' }
  /** The rich line as JSON already: the other thread need not understand it. */
  | { readonly type: 'rich'; readonly nonce: string; readonly json: string }
  | { readonly type: 'done'; readonly nonce: string; readonly status: 'completed' | 'failed' }
