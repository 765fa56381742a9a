import type { StopMode } from '@airlock/std'
import { watchParent } from './parent.ts'

/** What the terminal and the service manager ask of us by signals. */
export interface StopSignals {
  readonly asked: Promise<StopMode>
  /** Resolves when the user insists to leave at once. */
  readonly insisted: Promise<void>
  release(): void
}

/** Under npm one Ctrl-C arrives twice: from the terminal, and passed on by npm. */
const ONE_PRESS_MS = 250

export interface StopOptions {
  /** The process that runs us for a user: when it is gone, nobody is left to send us a signal. */
  readonly parent: number | undefined
  readonly hangup: 'leave' | 'ignore'
  readonly note: (text: string) => void
}

/**
 * SIGINT ends everything, sandboxes included; SIGTERM, SIGHUP and the end of the parent leave the sandboxes running to
 * be found again. The first of them decides. After it a SIGINT is answered with a note, for people press Ctrl-C twice;
 * the next one insists.
 */
export function listenForStop({ parent, hangup, note }: StopOptions): StopSignals {
  const asked = Promise.withResolvers<StopMode>()
  const insisted = Promise.withResolvers<void>()
  let signals = 0
  let lastMs = Number.NEGATIVE_INFINITY
  const interrupt = () => {
    const nowMs = performance.now()
    const again = nowMs - lastMs < ONE_PRESS_MS
    lastMs = nowMs
    if (again) return
    signals += 1
    if (signals === 1) asked.resolve('end')
    else if (signals === 2) note('Still stopping. Press Ctrl-C once more to leave at once.')
    else insisted.resolve()
  }
  const leave = () => {
    signals = Math.max(signals, 1)
    asked.resolve('leave')
  }
  const onHangup = hangup === 'leave' ? leave : () => {}
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', leave)
  process.on('SIGHUP', onHangup)
  const unwatch = parent === undefined ? () => {} : watchParent(parent, leave)
  const release = () => {
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', leave)
    process.off('SIGHUP', onHangup)
    unwatch()
  }
  return { asked: asked.promise, insisted: insisted.promise, release }
}
