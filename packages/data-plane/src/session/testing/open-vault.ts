import { createLog, systemClock } from '@airlock/std'
import { Vault } from '../../vault/vault.ts'

/** A vault with room for what a test says. */
export async function openVault(dir: string): Promise<Vault> {
  const log = createLog({ process: 'test', level: 'silent', write: () => {} })
  const bounds = { retentionMs: 3_600_000, maxBytes: 256 * 1024 * 1024, hasRoom: () => true }
  return await Vault.open({ dir, ...bounds, clock: systemClock, log })
}
