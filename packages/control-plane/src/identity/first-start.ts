import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DEFAULT_AGENT } from '@airlock/contract'
import { type Clock, randomText } from '@airlock/std'
import { insertAgentIfAbsent, type StoredAgent } from '../store/agents.ts'
import { findApiKey, insertApiKey, revokeApiKeysOf } from '../store/api-keys.ts'
import type { Store } from '../store/engine/store.ts'
import { insertTenantIfAbsent } from '../store/tenants.ts'
import { mintApiKey, parseApiKey, refuseApiKey } from './api-keys.ts'

const TENANT = 'default'
const ROLES = ['developer', 'admin'] as const

export interface KeyFiles {
  readonly developerKey: string
  readonly adminKey: string
}

/**
 * The tenant, the agent and the two keys that a fresh installation has. Idempotent: keys that are there and good stay.
 * A key file that is missing, or that the store does not accept, is replaced, and what it was before is revoked. Each
 * node has its own: one that starts for the first time leaves those of the others alone.
 */
export async function prepareFirstStart(
  store: Store,
  options: { readonly keysDir: string; readonly clock: Clock; readonly node: string },
): Promise<KeyFiles> {
  const now = options.clock.now()
  await store.transaction(async (db) => {
    await insertTenantIfAbsent(db, { id: TENANT, createdAt: now })
    await insertAgentIfAbsent(db, defaultAgent(TENANT, now))
  })
  const file = (role: string) => join(options.keysDir, `${role}.key`)
  for (const role of ROLES)
    if (!(await isGood(store, file(role), now)))
      await replaceKey(store, { role, purpose: `${role}@${options.node}`, path: file(role), now })
  return { developerKey: file('developer'), adminKey: file('admin') }
}

/** The approved agent that every tenant begins with, for whoever has no agents of their own. */
export function defaultAgent(tenant: string, now: number): StoredAgent {
  return {
    tenant,
    id: DEFAULT_AGENT,
    state: 'idle',
    generation: 0,
    approved: true,
    version: null,
    labels: {},
    metadata: {},
    owner: 'system',
    createdAt: now,
    updatedAt: now,
    lastSeenAt: null,
    deletedAt: null,
  }
}

async function isGood(store: Store, path: string, now: number): Promise<boolean> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  })
  const key = parseApiKey(text.trim())
  if (!key) return false
  const row = await store.query((db) => findApiKey(db, key.id))
  return refuseApiKey(key, row, now) === undefined
}

/** The row comes first: after a crash in between the file is missing and the next start replaces both. */
async function replaceKey(
  store: Store,
  key: {
    readonly role: (typeof ROLES)[number]
    readonly purpose: string
    readonly path: string
    readonly now: number
  },
): Promise<void> {
  const { text, row } = mintApiKey({
    tenant: TENANT,
    role: key.role,
    agents: null,
    platform: key.role === 'admin',
    name: `${key.role}.key`,
    purpose: key.purpose,
    createdAt: key.now,
    createdBy: 'system',
    expiresAt: null,
    replaces: null,
    person: null,
  })
  await store.transaction(async (db) => {
    await revokeApiKeysOf(db, { tenant: TENANT, purpose: key.purpose }, key.now)
    await insertApiKey(db, row)
  })
  const fresh = `${key.path}.${randomText(8)}`
  try {
    await writeFile(fresh, `${text}\n`, { mode: 0o600, flag: 'wx' })
    await rename(fresh, key.path)
  } finally {
    await rm(fresh, { force: true })
  }
}
