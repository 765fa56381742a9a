import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { RecorderClient } from '@airlock/audit'
import type { Failpoint } from '@airlock/contract'
import { actAs, dropPrivileges, KeyedLock, type Log, systemClock } from '@airlock/std'
import { openPermitDesk } from './admission/permits.ts'
import { createApi } from './api/server.ts'
import type { ProcessConfig } from './config.ts'
import { ApiKeyAuthenticator } from './identity/authenticate.ts'
import { type KeyFiles, prepareFirstStart } from './identity/first-start.ts'
import { AuditHeads } from './orchestration/audit-heads.ts'
import type { Context } from './orchestration/context.ts'
import { DataPlaneClient } from './orchestration/data-plane-client.ts'
import { createLifecycle } from './orchestration/lifecycle-parts.ts'
import { LocalCore } from './orchestration/local-core.ts'
import { openNodeIdentity } from './orchestration/node-identity.ts'
import { NodeLease } from './orchestration/node-lease.ts'
import { Readiness } from './orchestration/readiness.ts'
import { ControlPlane } from './serve.ts'
import { describeNode } from './store/nodes.ts'
import { openStore, type Store } from './store/store.ts'

const STORE_FILE = 'airlock.db'

export interface Composed {
  readonly controlPlane: ControlPlane
  readonly facts: KeyFiles & { readonly url: string }
}

/**
 * The only file that names adapters. Root is needed for the key files, the public key, the TLS key and a low port; then
 * we become who we should be, before anything hostile is parsed.
 */
export async function compose(
  config: ProcessConfig,
  host: { readonly log: Log; readonly failpoint: Failpoint; readonly onDisplaced: () => void },
): Promise<Composed> {
  process.umask(0o077)
  const { store, permits, audit, node } = await actAs(config.drop ?? undefined, () => openOwnState(config, host.log))
  const lease = new NodeLease({ store, node, ...host })
  await lease.claim()
  const keys = await prepareFirstStart(store, { keysDir: config.keysDir, clock: systemClock, node: node.id })
  await permits.publish(config.publicDir)
  const context: Context = {
    log: host.log,
    failpoint: host.failpoint,
    store,
    node,
    audit,
    permits,
    clock: systemClock,
    capacity: config.capacity,
    dataPlane: new DataPlaneClient(config.dataPlaneSocket),
    readiness: new Readiness(lease),
    turns: new KeyedLock(),
  }
  const lifecycle = createLifecycle(context)
  const api = await createApi({
    core: new LocalCore({ ...context, ...lifecycle, evidence: audit }),
    authenticator: authenticatorOf(store, audit),
    audit,
    log: host.log,
    tls: readTls(config),
    trustedProxy: config.trustedProxy,
  })
  const url = await api.listen(config.host, config.port)
  await store.query((db) => describeNode(db, node.id, { url: config.advertiseUrl ?? url }))
  dropPrivileges(config.drop ?? undefined)
  const heads = new AuditHeads(context, audit)
  return { controlPlane: new ControlPlane({ context, lifecycle, heads, api, lease }), facts: { url, ...keys } }
}

/** What is in directories of our own, which root must not follow links in. */
async function openOwnState(config: ProcessConfig, log: Log) {
  return {
    node: await openNodeIdentity(config.stateDir),
    store: await openStore(
      config.databaseUrl === null ? { file: join(config.stateDir, STORE_FILE) } : { url: config.databaseUrl },
    ),
    permits: await openPermitDesk(config.stateDir),
    audit: new RecorderClient({ socket: config.recorderSocket, spillDir: config.spillDir, log }),
  }
}

function authenticatorOf(store: Store, audit: RecorderClient): ApiKeyAuthenticator {
  return new ApiKeyAuthenticator({ store, audit, clock: systemClock })
}

function readTls(config: ProcessConfig): { readonly cert: string; readonly key: string } | null {
  if (config.tlsCert === null || config.tlsKey === null) return null
  return { cert: readFileSync(config.tlsCert, 'utf8'), key: readFileSync(config.tlsKey, 'utf8') }
}
