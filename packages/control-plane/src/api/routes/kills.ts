import type { Kills } from '../../kills/killswitch.ts'
import { json, type Handlers } from '../call.ts'

export function killHandlers(killswitch: Kills) {
  return {
    turnKillswitchOn: async ({ caller, body }) => json(await killswitch.on(caller, body)),
    listKillswitches: async ({ caller, query }) => json({ items: await killswitch.list(caller, query) }),
    liftKillswitch: async ({ caller, body }) => json(await killswitch.lift(caller, body)),
  } satisfies Partial<Handlers>
}
