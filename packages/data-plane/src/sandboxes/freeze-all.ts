import type { FrozenSandboxes } from '@airlock/contract'
import type { Log } from '@airlock/std'
import { setTimeout as sleep } from 'node:timers/promises'
import type { IsolationBackend } from '../isolation/backend.ts'

const AT_ONCE = 64
/** What does not stand still by then is destroyed all the same. */
const LIMIT_MS = 1000

type Frozen = FrozenSandboxes['sandboxes'][number]

/** Stops all of them where they stand, at once as far as the kernel lets us, and says how long each took. Never throws. */
export async function freezeAll(
  backend: Pick<IsolationBackend, 'freeze' | 'stats'>,
  ids: readonly string[],
  log: Log,
): Promise<readonly Frozen[]> {
  const began = performance.now()
  const frozen: Frozen[] = []
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE).map(async (id): Promise<Frozen> => {
      // The sweep may destroy the sandbox before the second count.
      const before = await count(backend, id)
      const frozenMs = await freezeOne(backend, id, { began, log })
      return { id, frozenMs, processes: (await count(backend, id)) ?? before ?? null }
    })
    frozen.push(...(await Promise.all(some)))
  }
  return frozen
}

async function count(backend: Pick<IsolationBackend, 'stats'>, id: string): Promise<number | undefined> {
  return backend.stats(id).then(
    (stats) => stats?.processes,
    () => undefined,
  )
}

async function freezeOne(
  backend: Pick<IsolationBackend, 'freeze'>,
  id: string,
  { began, log }: { readonly began: number; readonly log: Log },
): Promise<number | null> {
  const given = new AbortController()
  const late = sleep(LIMIT_MS, null, { signal: given.signal, ref: false }).catch(() => null)
  const frozen = backend.freeze(id).then(
    () => Math.round(performance.now() - began),
    (error: unknown) => {
      log.warn('a sandbox does not stand still', { sandbox: id, error })
      return null
    },
  )
  try {
    return await Promise.race([frozen, late])
  } finally {
    given.abort()
  }
}
