import type { StopMode } from '@airlock/std'
import { Group, type GroupOptions } from './group.ts'
import type { Stages } from './processes.ts'
import type { Facts } from './run.ts'
import { listenForStop, type StopOptions } from './stop-signals.ts'

export interface SuperviseOptions extends GroupOptions, StopOptions {
  readonly onReady: (facts: ReadonlyMap<string, Facts>) => void
  readonly onStop: (mode: StopMode) => void
  readonly onFailure: (reason: string) => void
}

/** Starts the processes, keeps them alive until it is asked to stop, and stops them. Answers the exit code. */
export async function supervise(stages: Stages, options: SuperviseOptions): Promise<number> {
  const group = new Group(stages, options)
  const signals = listenForStop(options)
  try {
    const started = await Promise.race([group.start(), signals.asked])
    if (typeof started === 'object' && started.status === 'failed') {
      await group.stop('leave')
      options.onFailure(started.reason)
      return 1
    }
    if (typeof started === 'object' && started.status === 'ready') options.onReady(started.facts)
    const mode = await signals.asked
    options.onStop(mode)
    const stopped = await Promise.race([group.stop(mode), signals.insisted])
    if (stopped === undefined) group.end()
    return stopped === undefined ? 130 : stopped === 'clean' ? 0 : 1
  } finally {
    signals.release()
  }
}
