import { createHash } from 'node:crypto'
import { Airlock, AirlockError, type AuditRecord, type PolicyDocumentInput } from '@airlock/sdk'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { renderTable, type Row } from '../text/table.ts'
import { formatBytes, parseNumber } from '../text/units.ts'
import { UsageError } from '../usage.ts'
import { withJson, type JsonOption } from '../verb.ts'

/** The policy that these verbs write. Others may have rules about hosts too: of all of them the strictest holds. */
const POLICY = 'egress'
const DEFAULT_PORT = 443

export function defineEgress(egress: Command, context: Context): void {
  addLs(egress, context)
  addRule(egress, context, { verb: 'allow', about: 'Let sandboxes with the egress door connect to a host.' })
  addRule(egress, context, { verb: 'deny', about: 'Take a host away, and cut its connections.' })
}

interface LsOptions extends JsonOption {
  readonly limit: number
}

function addLs(egress: Command, context: Context): void {
  withJson(egress.command('ls').description('List connections to hosts, newest first, from the evidence.'))
    .argument('[sandbox]', 'only of the sandbox with this id')
    .option('--limit <number>', 'records that are read at most', parseNumber, 200)
    .action(async (sandbox: string | undefined, { json, limit }: LsOptions) => {
      const { terminal } = context
      const query = { point: 'network.connect', limit, ...(sandbox === undefined ? {} : { sandbox }) } as const
      const { items } = await new Airlock({ role: 'admin' }).audit.events(query)
      const latest = latestOfEach(items)
      if (json === true) return terminal.printJson(latest)
      const head = ['TIME', 'SANDBOX', 'HOST', 'STATE', 'SENT', 'RECEIVED', 'WHY']
      await terminal.print(renderTable(terminal, head, latest.map(recordRow)))
    })
}

/** Of a connection that has ended only the end. */
function latestOfEach(records: readonly AuditRecord[]): readonly AuditRecord[] {
  const seen = new Set<unknown>()
  return records.filter(({ payload: { connection } }) => {
    if (connection === undefined) return true
    const isNew = !seen.has(connection)
    seen.add(connection)
    return isNew
  })
}

function recordRow(record: AuditRecord): Row {
  const { ts, sandbox, status, payload } = record
  const state = status === 'requested' ? 'open' : status
  const isBad = status === 'denied' || status === 'failed' || status === 'unknown'
  const cell = isBad ? ({ text: state, style: 'yellow' } as const) : state
  return [
    ts,
    sandbox ?? '-',
    placeOf(payload),
    cell,
    bytesOf(payload['sent']),
    bytesOf(payload['received']),
    whyOf(record),
  ]
}

/** Denials beyond the hosts that are told apart name none. */
function placeOf({ host, port }: AuditRecord['payload']): string {
  return typeof host === 'string' && typeof port === 'number' ? `${host}:${port}` : 'other hosts'
}

function whyOf({ payload: { reason, refusals }, error }: AuditRecord): string {
  const times = typeof refusals === 'number' && refusals > 1 ? [`${refusals} times`] : []
  const why = error?.code ?? (typeof reason === 'string' ? reason : undefined)
  return [...times, ...(why === undefined ? [] : [why])].join(' ') || '-'
}

function bytesOf(value: unknown): string {
  return typeof value === 'number' ? formatBytes(value) : '-'
}

interface Verb {
  readonly verb: 'allow' | 'deny'
  readonly about: string
}

interface RuleOptions extends JsonOption {
  readonly agent?: string
}

function addRule(egress: Command, context: Context, { verb, about }: Verb): void {
  withJson(egress.command(verb).description(about))
    .argument('<host>', `a host, *.DOMAIN or an address, with a port: HOST[:PORT] (default: ${DEFAULT_PORT})`)
    .option('--agent <agent>', 'only for sandboxes of this agent')
    .action(async (text: string, { json, agent }: RuleOptions) => {
      const { terminal } = context
      const place = parsePlace(text)
      const { policies } = new Airlock({ role: 'admin' })
      const found = await policies.get(POLICY).catch((error: unknown) => {
        if (error instanceof AirlockError && error.code === 'policy_not_found') return undefined
        throw error
      })
      const before = found?.document ?? { name: POLICY, rules: [] }
      const document = withRule(before, { effect: verb, ...place, agent })
      const policy = await policies.put(document, { expectedVersion: found?.version ?? 0 })
      if (json === true) return terminal.printJson(policy)
      await terminal.print(`${POLICY}@${policy.version}`)
      const whom = agent === undefined ? 'sandboxes' : `sandboxes of ${agent}`
      terminal.note(
        `${whom} with the egress door may ${verb === 'allow' ? '' : 'not '}connect to ${place.host}:${place.port}`,
      )
    })
}

interface Place {
  readonly host: string
  readonly port: number
}

function parsePlace(text: string): Place {
  const [, bracketed, plain, digits = String(DEFAULT_PORT)] =
    /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d+))?$/.exec(text) ?? []
  const host = (bracketed ?? plain)?.toLowerCase().replace(/\.$/, '')
  const port = Number(digits)
  if (host === undefined || host === '' || /[/@\s]/.test(host) || port < 1 || port > 65_535)
    throw new UsageError(`${text} is not a host.`, 'Use: airlock egress allow HOST[:PORT]')
  return { host, port }
}

/** Takes the place of the rule for the same host, port and agent. */
function withRule(
  document: PolicyDocumentInput,
  { effect, host, port, agent }: Place & { readonly effect: 'allow' | 'deny'; readonly agent: string | undefined },
): PolicyDocumentInput {
  const slug = host
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 30)
  const digest = createHash('sha256')
    .update(JSON.stringify([host, port, agent]))
    .digest('hex')
    .slice(0, 8)
  const id = `${slug || 'host'}-${digest}`
  const rule = {
    id,
    kind: 'network' as const,
    effect,
    risk: 'low' as const,
    reason: `airlock egress ${effect}`,
    match: { hosts: [host], ports: [port] },
    ...(agent === undefined ? {} : { when: { agents: [agent] } }),
  }
  return { ...document, rules: [...document.rules.filter((other) => other.id !== id), rule] }
}
