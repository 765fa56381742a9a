import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { RecorderClient } from '@airlock/audit'
import type { Failpoint } from '@airlock/contract'
import { actAs, dropPrivileges, KeyedLock, type Log, type Notice, systemClock } from '@airlock/std'
import { EvidenceGate } from './admission/evidence-gate.ts'
import { ApprovalDesk } from './admission/approval-desk.ts'
import { ApprovalNews } from './admission/approval-news.ts'
import { Guardian } from './admission/guardian.ts'
import { KillList } from './admission/kill-list.ts'
import { Opa } from './admission/opa.ts'
import { openPermitDesk } from './admission/permits.ts'
import { PolicyBook } from './admission/policy-book.ts'
import { openSandboxTokenDesk } from './admission/sandbox-tokens.ts'
import { listenToDoors } from './api/doors-server.ts'
import { createApi } from './api/server.ts'
import type { ProcessConfig } from './config.ts'
import { BearerAuthenticator } from './identity/authenticate.ts'
import { type KeyFiles, prepareFirstStart } from './identity/first-start.ts'
import { FetchedKeys, fixedKeys } from './identity/jwks.ts'
import { SignedTokens, type Tokens } from './identity/jwt.ts'
import { Alerts } from './monitor/alerts.ts'
import { Metrics } from './monitor/metrics.ts'
import { Monitor } from './monitor/monitor.ts'
import { noticeApprovals } from './orchestration/approval-notices.ts'
import { AuditHeads } from './orchestration/audit-heads.ts'
import type { Context } from './orchestration/context.ts'
import { DataPlaneClient } from './orchestration/data-plane-client.ts'
import { DoorsClient } from './orchestration/doors-client.ts'
import { Events } from './orchestration/events.ts'
import { Heartbeats } from './orchestration/heartbeats.ts'
import { webhookHook } from './orchestration/kill-hooks.ts'
import { createLifecycle, type Lifecycle } from './orchestration/lifecycle-parts.ts'
import { LocalCore } from './orchestration/local-core.ts'
import { openNodeIdentity } from './orchestration/node-identity.ts'
import { NodeLease } from './orchestration/node-lease.ts'
import { Readiness } from './orchestration/readiness.ts'
import { WebhookQueue } from './orchestration/webhook-queue.ts'
import { createWho } from './orchestration/who.ts'
import { ControlPlane } from './serve.ts'
import { setKeyUsed } from './store/api-keys.ts'
import { LatestTimes } from './store/latest-times.ts'
import { describeNode } from './store/nodes.ts'
import { openStore } from './store/store.ts'

const STORE_FILE = 'airlock.db'

export interface Composed {
  readonly controlPlane: ControlPlane
  readonly facts: KeyFiles & { readonly url: string }
}

interface Host {
  readonly log: Log
  readonly failpoint: Failpoint
  readonly onDisplaced: () => void
  readonly onNotice: (notice: Notice) => void
}

/**
 * The only file that names adapters. Root is needed for the key files, the public key, the TLS key and a low port; then
 * we become who we should be, before anything hostile is parsed.
 */
export async function compose(config: ProcessConfig, host: Host): Promise<Composed> {
  process.umask(0o077)
  const { store, permits, sandboxTokens, audit, node } = await actAs(config.drop ?? undefined, () =>
    openOwnState(config, host.log),
  )
  const lease = new NodeLease({ store, node, ...host })
  await lease.claim()
  const keys = await prepareFirstStart(store, { keysDir: config.keysDir, clock: systemClock, node: node.id })
  await permits.publish(config.publicDir, node.id)
  const gate = new EvidenceGate(audit)
  const told = { store, audit: gate, ...host, clock: systemClock, kills: new KillList() }
  const guard = guardianOf(config, told)
  const context: Context = {
    log: host.log,
    failpoint: host.failpoint,
    store,
    node,
    audit: gate,
    permits,
    ...guard,
    sandboxTokens,
    doors: new DoorsClient(config.doorsSocket),
    kills: told.kills,
    killHooks: [webhookHook(guard.webhooks)],
    clock: systemClock,
    capacity: config.capacity,
    oversubscription: config.oversubscription,
    budgetDefaults: config.budgetDefaults,
    dataPlane: new DataPlaneClient(config.dataPlaneSocket),
    readiness: new Readiness(lease),
    turns: new KeyedLock(),
    heartbeats: new Heartbeats({ store, clock: systemClock }),
    keyUses: new LatestTimes(store, setKeyUsed),
    agentStaleMs: config.agentStaleMs,
    approvesVersions: config.approvesVersions,
  }
  const lifecycle = createLifecycle(context)
  const watching = monitorOf(config, context, lifecycle)
  const api = await createApi({
    core: new LocalCore({ ...context, ...lifecycle, evidence: audit }),
    who: createWho(context, lifecycle),
    events: new Events({ ...context, reader: audit }),
    metrics: new Metrics(context, watching),
    authenticator: authenticatorOf(context, config),
    audit,
    log: host.log,
    tls: readTls(config),
    trustedProxy: config.trustedProxy,
  })
  const closeDoors = await listenToDoors({ control: lifecycle.doorControl, ...config.fromDoors, log: host.log })
  const url = await api.listen(config.host, config.port)
  await store.query((db) => describeNode(db, node.id, { url: config.advertiseUrl ?? url }))
  dropPrivileges(config.drop ?? undefined)
  const heads = new AuditHeads(context, audit)
  return {
    controlPlane: new ControlPlane({ context, lifecycle, ...watching, heads, api, closeDoors, lease }),
    facts: { url, ...keys },
  }
}

/** What is in directories of our own, which root must not follow links in. */
async function openOwnState(config: ProcessConfig, log: Log) {
  return {
    node: await openNodeIdentity(config.stateDir),
    store: await openStore(
      config.databaseUrl === null ? { file: join(config.stateDir, STORE_FILE) } : { url: config.databaseUrl },
    ),
    permits: await openPermitDesk(config.stateDir),
    sandboxTokens: await openSandboxTokenDesk(config.stateDir),
    audit: new RecorderClient({ socket: config.recorderSocket, spillDir: config.spillDir, log }),
  }
}

function guardianOf(
  config: ProcessConfig,
  world: Host & Pick<Context, 'store' | 'audit' | 'clock' | 'kills'>,
): Pick<Context, 'guardian' | 'policies' | 'approvalNews' | 'webhooks' | 'webhookPrivate'> {
  const policies = new PolicyBook({ ...world, default: config.policyDefault })
  const sources = config.opa ? [new Opa(config.opa)] : []
  const { webhookPrivate } = config
  const approvalNews = new ApprovalNews()
  const webhooks = new WebhookQueue({ ...world, allowsPrivate: webhookPrivate })
  noticeApprovals({ ...world, news: approvalNews, webhooks })
  const approvals = new ApprovalDesk({ ...world, news: approvalNews })
  const guardian = new Guardian({ book: policies, sources, approvals, audit: world.audit, kills: world.kills })
  return { policies, guardian, approvalNews, webhooks, webhookPrivate }
}

function monitorOf(config: ProcessConfig, context: Context, { termination }: Lifecycle) {
  const judge = new Alerts(context, { rules: config.alerts, termination })
  return { judge, monitor: new Monitor(context, { judge, everyMs: config.monitorEveryMs }) }
}

function authenticatorOf(context: Context, config: ProcessConfig): BearerAuthenticator {
  const { heartbeats } = context
  const tokens = tokensOf(config)
  return new BearerAuthenticator({ ...context, tokens, onSeen: (principal) => heartbeats.beatAll(principal) })
}

function tokensOf({ jwt }: ProcessConfig): Tokens | null {
  if (jwt === null) return null
  const { jwksUrl, jwksFile, secret, ...rules } = jwt
  const fetched = jwksUrl === null ? null : new FetchedKeys({ url: jwksUrl, clock: systemClock })
  const keys = jwksFile === null ? fetched : fixedKeys(readFileSync(jwksFile, 'utf8'))
  return new SignedTokens({ rules, clock: systemClock, keys, secret })
}

function readTls(config: ProcessConfig): { readonly cert: string; readonly key: string } | null {
  if (config.tlsCert === null || config.tlsKey === null) return null
  return { cert: readFileSync(config.tlsCert, 'utf8'), key: readFileSync(config.tlsKey, 'utf8') }
}
