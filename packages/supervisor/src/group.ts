import type { StopMode } from '@airlock/std'
import { Child, type ChildHost, type Started } from './child.ts'
import type { Stages } from './processes.ts'
import type { Facts } from './run.ts'

export interface GroupOptions extends Omit<ChildHost, 'onKill'> {
  /** Whether children may have each other killed: only tests of crashes need it. */
  readonly failpoint: string | undefined
}

export type GroupStarted =
  | { readonly status: 'ready'; readonly facts: ReadonlyMap<string, Facts> }
  | Exclude<Started, { readonly status: 'ready' }>

/** All processes, in the order of their stages. */
export class Group {
  readonly #stages: readonly (readonly Child[])[]
  readonly #failpoint: string | undefined
  #stopped = false

  constructor(stages: Stages, options: GroupOptions) {
    this.#failpoint = options.failpoint
    const onKill = (from: Child, victim: string) => void this.#kill(from, victim)
    this.#stages = stages.map((stage) => stage.map((spec) => new Child(spec, { ...options, onKill })))
  }

  /** Resolves with the first failure as soon as there is one. */
  async start(): Promise<GroupStarted> {
    const facts = new Map<string, Facts>()
    for (const stage of this.#stages) {
      if (this.#stopped) return { status: 'stopped' }
      const failure = await firstFailure(stage, facts)
      if (failure) return failure
    }
    return { status: 'ready', facts }
  }

  /** Last started, first stopped: whoever asks others for work goes before them. */
  async stop(mode: StopMode): Promise<'clean' | 'forced'> {
    this.#stopped = true
    let result: 'clean' | 'forced' = 'clean'
    for (const child of this.#stages.flat().toReversed()) if ((await child.stop(mode)) === 'forced') result = 'forced'
    return result
  }

  /** Kills everything for good. */
  end(): void {
    this.#stopped = true
    for (const child of this.#stages.flat()) child.end()
  }

  async #kill(from: Child, victim: string): Promise<void> {
    if (this.#failpoint === undefined) return
    if (victim === 'supervisor') process.kill(process.pid, 'SIGKILL')
    const child = this.#stages.flat().find(({ name }) => name === victim)
    await child?.kill()
    from.send({ type: 'killed', process: victim })
  }
}

async function firstFailure(
  stage: readonly Child[],
  facts: Map<string, Facts>,
): Promise<Exclude<GroupStarted, { readonly status: 'ready' }> | undefined> {
  return new Promise((resolve, reject) => {
    const starts = stage.map(async (child) => {
      const started = await child.start()
      if (started.status === 'ready') facts.set(child.name, started.facts)
      else resolve(started)
    })
    Promise.all(starts).then(() => resolve(undefined), reject)
  })
}
