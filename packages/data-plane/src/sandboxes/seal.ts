import { AirlockError, type EndReason, type Failpoint } from '@airlock/contract'
import { type Log, untilAborted } from '@airlock/std'
import type { IsolationBackend } from '../isolation/backend.ts'
import type { Entry } from './entry.ts'
import { freezeAll } from './freeze-all.ts'

/** Of all hooks together: an end waits no longer for them. */
const LIMIT_MS = 3_000

/** A sandbox that is about to be destroyed. */
export interface SealedSandbox extends Pick<Entry, 'permit' | 'link'> {
  readonly id: string
  /** Why it ends; null where nobody said. */
  readonly reason: EndReason | null
}

/**
 * Takes something of a sandbox before it is gone. Its processes stand still, as far as the kernel could see to that, and its disk
 * is still there. `signal` aborts when the time is over; who goes on after that finds nothing any more.
 */
export interface SealHook {
  readonly name: string
  run(sandbox: SealedSandbox, signal: AbortSignal): Promise<void>
}

export interface SealOptions {
  readonly backend: Pick<IsolationBackend, 'freeze' | 'stats'>
  readonly hooks: readonly SealHook[]
  readonly log: Log
  readonly failpoint: Failpoint
  readonly limitMs?: number
}

/** Ends that are as they should be: nobody will ask what was going on. */
const QUIET: ReadonlySet<EndReason> = new Set([
  'terminated',
  'ttl',
  'idle',
  'max_lifetime',
  'shutdown',
  'create_failed',
  'create_interrupted',
  'agent_deleted',
  'paused_too_long',
])

/**
 * Between life and destruction: what somebody may want to know of a sandbox that did not end well is taken from it. Never throws,
 * and never takes longer than its bound: whatever a hook does, the end goes on.
 */
export class Seal {
  readonly #options: SealOptions

  constructor(options: SealOptions) {
    this.#options = options
  }

  /** Who does not say why it ends has it sealed: too much is known then, never too little. */
  async seal(id: string, entry: Entry | undefined, reason: EndReason | null): Promise<void> {
    if (entry && (reason === null || !QUIET.has(reason)))
      await this.#runHooks({ id, permit: entry.permit, link: entry.link, reason })
    await this.#options.failpoint('terminate.sealed')
  }

  async #runHooks(sandbox: SealedSandbox): Promise<void> {
    const { backend, hooks, log, limitMs = LIMIT_MS } = this.#options
    const over = new AbortController()
    const late = setTimeout(() => over.abort(new AirlockError('timeout', 'The seal had no time left.')), limitMs)
    try {
      await freezeAll(backend, [sandbox.id], log)
      for (const hook of hooks)
        await runUntilOver(hook, sandbox, over.signal).catch((error: unknown) =>
          log.error('a hook of the seal failed', {
            sandbox: sandbox.id,
            hook: hook.name,
            reason: sandbox.reason,
            error,
          }),
        )
    } finally {
      clearTimeout(late)
    }
  }
}

/** One whose turn comes too late does not begin; what one does after that neither holds anything up nor is heard of. */
async function runUntilOver(hook: SealHook, sandbox: SealedSandbox, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  await untilAborted(hook.run(sandbox, signal), signal)
}
