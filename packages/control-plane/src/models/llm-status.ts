import type { LlmStatus } from '@airlock/contract'
import type { Caller } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import { sumHeldByCalls } from '../store/model-calls.ts'
import { dayOf } from '../spend/reserve.ts'

type World = Pick<Context, 'models' | 'doors' | 'store' | 'clock'>

/** Upstreams and calls under way. Other tenants' calls show only to keys of the platform. */
export async function readLlmStatus(world: World, { principal }: Caller): Promise<LlmStatus> {
  const { models, doors, store, clock } = world
  const served = models.all.flatMap(({ upstream }) => upstream?.name ?? [])
  // Without an upstream there is no process `keys` to ask.
  const upstreams = served.length === 0 ? [] : await doors.upstreams()
  const of = { tenant: principal.tenant, agent: null, day: dayOf(clock.now()) }
  const { calls, microDollars } = await store.query((db) => sumHeldByCalls(db, of))
  const hidden = principal.platform ? {} : { lastStatus: null, lastError: null, calls: null }
  return {
    upstreams: upstreams.map((one) => ({
      ...one,
      ...hidden,
      models: served.filter((name) => name === one.name).length,
    })),
    underWay: { calls, microDollars },
  }
}
