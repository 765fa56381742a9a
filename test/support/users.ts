import { verifyExport } from '@airlock/audit'
import { Airlock } from '@airlock/sdk'
import { expect } from 'vitest'
import { linesOf } from './lines.ts'
import type { Reachable } from './server.ts'

/** Clients of a server with its two keys. */
export function usersOf(server: Pick<Reachable, 'url' | 'developerKey' | 'adminKey'>) {
  return {
    airlock: new Airlock({ url: server.url, apiKey: server.developerKey }),
    admin: new Airlock({ url: server.url, apiKey: server.adminKey }),
  }
}

/** Verifies the whole chain of the default tenant, and says how many records it has. */
export async function verifyChain(admin: Airlock): Promise<number> {
  const { head, publicKey } = await admin.audit.head()
  const result = await verifyExport(linesOf(admin.audit.export()), { publicKey, head })
  expect(result).toMatchObject({ ok: true, tenant: 'default' })
  return result.ok ? result.records : 0
}
