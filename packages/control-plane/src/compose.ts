import { createHash } from 'node:crypto'
import { CountedDenials } from './egress/counted-denials.ts'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { OpenDeeds, RecorderClient } from '@airlock/audit'
import type { Failpoint, NewRecord, Point } from '@airlock/contract'
import {
  actAs,
  type Clock,
  dropPrivileges,
  KeyedLock,
  type Log,
  NodeClock,
  type Notice,
  systemClock,
} from '@airlock/std'
import { CountedRefusals } from './evidence/counted-refusals.ts'
import { EvidenceGate } from './evidence/evidence-gate.ts'
import { ApprovalDesk } from './approvals/desk.ts'
import { ApprovalNews } from './approvals/news.ts'
import { Guardian } from './policies/guardian.ts'
import { KillList } from './kills/kill-list.ts'
import { Opa } from './policies/opa.ts'
import { EphemeralSandboxes } from './sandboxes/ephemeral-sandboxes.ts'
import { openPermitDesk } from './sandboxes/permits.ts'
import { PolicyBook } from './policies/policy-book.ts'
import { openSandboxTokenDesk } from './doors/sandbox-tokens.ts'
import { listenToDoors } from './api/doors-server.ts'
import type { PageOptions } from './api/page/page-door.ts'
import { readPageFiles } from './api/page/page-files.ts'
import { type ApiOptions, createApi } from './api/server.ts'
import type { ProcessConfig } from './config.ts'
import { BearerAuthenticator } from './identity/authenticate.ts'
import { parseApiKey } from './identity/api-keys.ts'
import { GuardKeys } from './identity/guard-keys.ts'
import { PageSessions } from './identity/page-sessions.ts'
import { type KeyFiles, prepareFirstStart } from './identity/first-start.ts'
import { FetchedKeys, fixedKeys } from './identity/jwks.ts'
import { SignedTokens, type Tokens } from './identity/jwt.ts'
import { Alerts } from './monitor/alerts.ts'
import { HostDiskAlert } from './monitor/host-disk-alert.ts'
import { Metrics } from './monitor/metrics.ts'
import { Monitor } from './monitor/monitor.ts'
import { noticeApprovals } from './approvals/notices.ts'
import { AuditHeads } from './evidence/audit-heads.ts'
import type { Context } from './app/context.ts'
import { DataPlaneClient } from './nodes/data-plane-client.ts'
import { DoorNews } from './doors/door-news.ts'
import { DoorsClient } from './doors/doors-client.ts'
import { Heartbeats } from './agents/heartbeats.ts'
import { webhookHook } from './kills/kill-hooks.ts'
import { openKillSpill } from './kills/kill-spill.ts'
import { createLifecycle, type Lifecycle } from './app/lifecycle-parts.ts'
import { ModelCatalog } from './models/catalog.ts'
import { builtinGraphs, configuredGraphs } from './runs/builtin-graphs.ts'
import { openReservationDesk } from './models/reservation-desk.ts'
import { openArtifactLinkDesk } from './artifacts/artifact-links.ts'
import { openNodeIdentity } from './nodes/node-identity.ts'
import { NodeLease } from './nodes/node-lease.ts'
import { Readiness } from './nodes/readiness.ts'
import { SealKeyFile } from './tools/seal-key-file.ts'
import { WebhookQueue } from './webhooks/queue.ts'
import { createApp } from './app/app.ts'
import { ControlPlane } from './serve.ts'
import { setKeyUsed } from './store/api-keys.ts'
import { LatestTimes } from './store/engine/latest-times.ts'
import { describeNode } from './store/nodes.ts'
import { findSandbox } from './store/sandboxes.ts'
import { openStore, type Store } from './store/engine/store.ts'

const STORE_FILE = 'airlock.db'
/** After a crash the rows know how these went, and their ends are recorded from there. */
const TOLD_FROM_ROWS: ReadonlySet<Point> = new Set(['sandbox.terminate', 'command.run', 'step.run', 'model.call'])

export interface Composed {
  readonly controlPlane: ControlPlane
  readonly facts: KeyFiles & { readonly url: string; readonly signInLink: string | null }
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
  const clock = new NodeClock(config.publicDir)
  const own = await actAs(config.drop ?? undefined, () => openOwnState(config, host.log))
  const { store, permits, sandboxTokens, reservations, audit, deeds, node, killSpill, artifactLinks } = own
  const lease = new NodeLease({ store, node, clock, ...host })
  await lease.claim()
  const keys = await prepareFirstStart(store, { keysDir: config.keysDir, clock, node: node.id })
  await permits.publish(config.publicDir, node.id)
  await reservations.publish()
  const gate = new EvidenceGate(new CountedRefusals(new CountedDenials(deeds)))
  const told = { store, audit: gate, ...host, clock, ...memory() }
  const guard = guardianOf(config, told)
  const context: Context = {
    ...told,
    node,
    permits,
    ...guard,
    sandboxTokens,
    models: new ModelCatalog(config.models),
    graphs: [...builtinGraphs(), ...configuredGraphs(config.graphs)],
    reservations,
    sealKey: new SealKeyFile(config.publicDir),
    doors: new DoorsClient({ unix: config.doorsSocket }),
    killSpill,
    artifactLinks,
    killHooks: [webhookHook(guard.webhooks, store)],
    aliveBefore: lease.aliveBefore,
    dataPlane: new DataPlaneClient({ unix: config.dataPlaneSocket }),
    readiness: new Readiness(lease),
    turns: new KeyedLock(),
    ...callersOf(told),
    ...rulesOf(config),
  }
  const lifecycle = createLifecycle(context)
  const watching = monitorOf(config, context, lifecycle)
  const app = { ...createApp(context, lifecycle, audit), metrics: new Metrics(context, watching) }
  const edge = edgeOf(config, context)
  const api = await createApi({ ...edge, app, authenticator: authenticatorOf(context, config) })
  const doors = { calls: lifecycle.doorCalls, news: context.doorNews, log: host.log }
  const fromDoors = await listenToDoors({ ...doors, ...config.fromDoors })
  const url = await api.listen(config.host, config.port)
  await store.query((db) => describeNode(db, node.id, { url: config.advertiseUrl ?? url }))
  const signInLink = linkFor(config, edge.page.sessions, { url, ...keys })
  dropPrivileges(config.drop ?? undefined)
  const heads = new AuditHeads(context, audit)
  return {
    controlPlane: new ControlPlane({
      context,
      lifecycle,
      ...watching,
      heads,
      api,
      closeDoors: () => fromDoors.close(),
      lease,
    }),
    facts: { url, ...keys, signInLink },
  }
}

/** State that a restart empties. */
function memory(): Pick<Context, 'kills' | 'doorNews' | 'ephemeral'> {
  return { kills: new KillList(), doorNews: new DoorNews(), ephemeral: new EphemeralSandboxes() }
}

/** What is in directories of our own, which root must not follow links in. */
async function openOwnState(config: ProcessConfig, log: Log) {
  const audit = new RecorderClient({ socket: config.recorderSocket, spillDir: config.spillDir, log })
  const file = { file: join(config.stateDir, STORE_FILE), hasRun: existsSync(join(config.stateDir, 'node-id')) }
  const store = await openStore(config.databaseUrl === null ? file : { url: config.databaseUrl })
  return {
    node: await openNodeIdentity(config),
    store,
    permits: await openPermitDesk(config.stateDir),
    sandboxTokens: await openSandboxTokenDesk(config.stateDir),
    reservations: await openReservationDesk(config.stateDir, config.publicDir),
    artifactLinks: await openArtifactLinkDesk(config.stateDir),
    killSpill: openKillSpill(config.stateDir, log),
    audit,
    deeds: await openDeeds(config, { audit, store, log }),
  }
}

/** Tells of what an earlier life left open. */
async function openDeeds(
  { spillDir }: ProcessConfig,
  { audit, store, log }: { readonly audit: RecorderClient; readonly store: Store; readonly log: Log },
): Promise<OpenDeeds> {
  const dir = join(spillDir, 'open')
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const deeds = new OpenDeeds(audit, { dir, log, toldFromRows: TOLD_FROM_ROWS })
  await deeds.tellLeft((record) => isInterrupted(store, record))
  return deeds
}

/** A sandbox that was being created when we died is ended by the sweep, which records that. So are calls of models. */
async function isInterrupted(store: Store, { point, sandbox }: NewRecord): Promise<boolean> {
  if (point === 'model.call') return true
  if (point !== 'sandbox.create' || typeof sandbox !== 'string') return false
  return (await store.query((db) => findSandbox(db, sandbox)))?.state === 'creating'
}

/** Settings that decide who gets what. */
function rulesOf(
  config: ProcessConfig,
): Pick<
  Context,
  'capacity' | 'oversubscription' | 'budgetDefaults' | 'artifactBounds' | 'agentStaleMs' | 'approvesVersions'
> {
  const { capacity, oversubscription, budgetDefaults, artifacts: artifactBounds } = config
  const { agentStaleMs, approvesVersions } = config
  return { capacity, oversubscription, budgetDefaults, artifactBounds, agentStaleMs, approvesVersions }
}

/** What is remembered of who calls. */
function callersOf(of: Pick<Context, 'store' | 'clock'>): Pick<Context, 'heartbeats' | 'keyUses' | 'guardKeys'> {
  const keyUses = new LatestTimes(of.store, setKeyUsed)
  return { heartbeats: new Heartbeats(of), keyUses, guardKeys: new GuardKeys(of) }
}

function guardianOf(
  config: ProcessConfig,
  world: Host & Pick<Context, 'store' | 'audit' | 'clock' | 'kills' | 'doorNews' | 'ephemeral'>,
): Pick<Context, 'guardian' | 'policies' | 'approvalNews' | 'webhooks' | 'webhookPrivate'> {
  const onChange = () => world.doorNews.publish({ what: 'policy', sandboxes: null })
  const policies = new PolicyBook({ ...world, default: config.policyDefault, onChange })
  const sources = config.opa ? [new Opa(config.opa)] : []
  const { webhookPrivate } = config
  const approvalNews = new ApprovalNews()
  const webhooks = new WebhookQueue({ ...world, allowsPrivate: webhookPrivate })
  noticeApprovals({ ...world, news: approvalNews, webhooks })
  const approvals = new ApprovalDesk({ ...world, news: approvalNews })
  const guardian = new Guardian({ ...world, book: policies, sources, approvals })
  return { policies, guardian, approvalNews, webhooks, webhookPrivate }
}

function monitorOf(config: ProcessConfig, context: Context, { termination }: Lifecycle) {
  const judge = new Alerts(context, { rules: config.alerts, termination })
  const hostDisk = new HostDiskAlert(context, { sustained: config.alerts.sustained })
  return { judge, monitor: new Monitor(context, { judge, hostDisk, everyMs: config.monitorEveryMs }) }
}

function authenticatorOf(context: Context, config: ProcessConfig): BearerAuthenticator {
  const { heartbeats } = context
  const tokens = tokensOf(config)
  return new BearerAuthenticator({ ...context, tokens, onSeen: (principal) => heartbeats.beatAll(principal) })
}

/** Others sign these, by the clock on the wall. */
function tokensOf({ jwt }: ProcessConfig): Tokens | null {
  if (jwt === null) return null
  const { jwksUrl, jwksFile, secret, ...rules } = jwt
  const fetched = jwksUrl === null ? null : new FetchedKeys({ url: jwksUrl, clock: systemClock })
  const keys = jwksFile === null ? fetched : fixedKeys(readFileSync(jwksFile, 'utf8'))
  return new SignedTokens({ rules, clock: systemClock, keys, secret })
}

/** Read while we may: later the files are out of reach. */
function pageOf({ pageDir }: ProcessConfig, clock: Clock, node: string): PageOptions {
  const cookie = `airlock-${createHash('sha256').update(node).digest('hex').slice(0, 12)}`
  return { files: readPageFiles(pageDir), sessions: new PageSessions(clock), cookie }
}

/** For who can read the admin key anyway. The secret is behind `#`, which browsers do not send. */
function linkFor(
  { makesSignInLink }: ProcessConfig,
  sessions: PageSessions,
  { url, adminKey }: KeyFiles & { readonly url: string },
): string | null {
  if (!makesSignInLink) return null
  const key = parseApiKey(readFileSync(adminKey, 'utf8').trim())
  return key ? `${url}/#/sign-in/${sessions.openLink(key.id)}` : null
}

function edgeOf(config: ProcessConfig, context: Context): Omit<ApiOptions, 'app' | 'authenticator'> {
  const { audit, clock, log, node } = context
  const { trustedProxy, requestRates } = config
  return { audit, clock, log, tls: readTls(config), trustedProxy, requestRates, page: pageOf(config, clock, node.id) }
}

function readTls(config: ProcessConfig): { readonly cert: string; readonly key: string } | null {
  if (config.tlsCert === null || config.tlsKey === null) return null
  return { cert: readFileSync(config.tlsCert, 'utf8'), key: readFileSync(config.tlsKey, 'utf8') }
}
