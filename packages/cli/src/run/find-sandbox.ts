import { AirlockError, type Airlock, type Sandbox } from '@airlock/sdk'

/** By id, or by the name of a living one. */
export async function findSandbox(airlock: Airlock, idOrName: string): Promise<Sandbox> {
  if (/^sbx_[0-9a-z]{26}$/.test(idOrName)) return airlock.sandboxes.get(idOrName)
  const { items } = await airlock.sandboxes.list({ name: idOrName, limit: 1 })
  const [found] = items
  if (!found) throw new AirlockError('sandbox_not_found', `There is no living sandbox with the name ${idOrName}.`)
  return found
}
