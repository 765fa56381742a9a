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
import { Readiness } from './orchestration/readiness.ts'
import { ControlPlane } from './serve.ts'
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
  host: { readonly log: Log; readonly failpoint: Failpoint },
): Promise<Composed> {
  process.umask(0o077)
  const { store, permits, audit } = await actAs(config.drop ?? undefined, () => openOwnState(config, host.log))
  const keys = await prepareFirstStart(store, { keysDir: config.keysDir, clock: systemClock })
  await permits.publish(config.publicDir)
  const context: Context = {
    ...host,
    store,
    audit,
    permits,
    clock: systemClock,
    capacity: config.capacity,
    dataPlane: new DataPlaneClient(config.dataPlaneSocket),
    readiness: new Readiness(),
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
  dropPrivileges(config.drop ?? undefined)
  const heads = new AuditHeads(context, audit)
  return { controlPlane: new ControlPlane({ context, lifecycle, heads, api }), facts: { url, ...keys } }
}

/** What is in directories of our own, which root must not follow links in. */
async function openOwnState(config: ProcessConfig, log: Log) {
  return {
    store: await openStore(join(config.stateDir, STORE_FILE)),
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
