import { AirlockError, type Airlock, type Sandbox } from '@airlock/sdk'

/** By id, or by the name of a living one. */
export async function findSandbox(airlock: Airlock, idOrName: string): Promise<Sandbox> {
  if (isSandboxId(idOrName)) return airlock.sandboxes.get(idOrName)
  const { items } = await airlock.sandboxes.list({ name: idOrName, limit: 2 })
  const [found, other] = items
  if (!found)
    throw new AirlockError('sandbox_not_found', `There is no living sandbox with the name ${idOrName}.`, {
      hint: 'See those that live: airlock ls',
    })
  if (other)
    throw new AirlockError('invalid_request', `Sandboxes of several agents have the name ${idOrName}.`, {
      hint: 'Give the id of one: airlock ls',
    })
  return found
}

export function isSandboxId(text: string): boolean {
  return /^sbx_[0-9a-z]{26}$/.test(text)
}
