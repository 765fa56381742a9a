import * as contract from '@airlock/contract'
import { ROUTES, type Route } from '@airlock/contract'
import { z } from 'zod'

type Json = Readonly<Record<string, unknown>>

/** Words that callers send and answers hold alike. */
const WORDS = {
  AgentState: contract.agentState,
  ApprovalScope: contract.approvalScope,
  ApprovalState: contract.approvalState,
  DoorName: contract.doorName,
  Effect: contract.effect,
  EndCause: contract.endCause,
  EndReason: contract.endReason,
  KillScope: contract.killScope,
  Point: contract.point,
  RecordStatus: contract.recordStatus,
  Risk: contract.risk,
  Role: contract.role,
  RuleKind: contract.ruleKind,
  Runtime: contract.runtime,
  SandboxState: contract.sandboxState,
  SessionState: contract.sessionState,
  SignalName: contract.signalName,
  StepStatus: contract.stepStatus,
  Tier: contract.tier,
  WebhookEventName: contract.webhookEvent,
} satisfies Readonly<Record<string, z.ZodType>>

/** Nouns that answers hold, by the name that generated clients give to them. */
const NOUNS = {
  Agent: contract.agent,
  AgentMetrics: contract.agentMetrics,
  AgentSummary: contract.agentSummary,
  Alert: contract.alert,
  ApiKey: contract.apiKey,
  Approval: contract.approval,
  ApprovalDetail: contract.approvalDetail,
  ApprovalEvent: contract.approvalEvent,
  AuditChain: contract.auditChain,
  AuditEvent: contract.auditEvent,
  AuditRecord: contract.auditRecord,
  AuditStats: contract.auditStats,
  Backtest: contract.backtest,
  Budget: contract.budget,
  BudgetLimits: contract.budgetLimits,
  Command: contract.command,
  CommandEvent: contract.commandEvent,
  CommandResult: contract.commandResult,
  Conditions: contract.conditions,
  Connection: contract.connection,
  CreatedSandbox: contract.createdSandbox,
  Decision: contract.decision,
  DroppedHead: contract.droppedHead,
  EffectiveIsolation: contract.effectiveIsolation,
  Evaluation: contract.evaluation,
  EventPage: contract.eventPage,
  FileEntry: contract.fileEntry,
  Grant: contract.grant,
  Graph: contract.graph,
  GuardianStatus: contract.guardianStatus,
  KeptOutput: contract.keptOutput,
  KilledSandbox: contract.killedSandbox,
  KillReport: contract.killReport,
  Limits: contract.limits,
  MatchedRule: contract.matchedRule,
  MetricEvent: contract.metricEvent,
  MetricSample: contract.metricSample,
  Model: contract.model,
  Mount: contract.mount,
  NewApiKey: contract.newApiKey,
  NewWebhook: contract.newWebhook,
  Operation: contract.operation,
  Policy: contract.policy,
  PolicyCheck: contract.policyCheck,
  PolicyDocument: contract.policyDocument,
  PolicyRule: contract.policyRule,
  PolicyVersion: contract.policyVersion,
  QuarantinedHead: contract.quarantinedHead,
  Question: contract.question,
  ResourceUsage: contract.resourceUsage,
  RuleInForce: contract.ruleInForce,
  Run: contract.run,
  RunEvent: contract.runEvent,
  RunLog: contract.runLog,
  RunResult: contract.runResult,
  RunSummary: contract.runSummary,
  RunUsage: contract.runUsage,
  Sandbox: contract.sandbox,
  SandboxMetrics: contract.sandboxMetrics,
  Session: contract.session,
  SignedHead: contract.signedHead,
  Step: contract.step,
  StepError: contract.stepError,
  StepEvent: contract.stepEvent,
  StepOutput: contract.stepOutput,
  StepResult: contract.stepResult,
  StreamedEvent: contract.streamedEvent,
  Template: contract.template,
  TemplateEvent: contract.templateEvent,
  TemplateSpec: contract.templateSpec,
  Tenant: contract.tenant,
  TenantMetrics: contract.tenantMetrics,
  UsageReport: contract.usageReport,
  UsageRow: contract.usageRow,
  Webhook: contract.webhook,
} satisfies Readonly<Record<string, z.ZodType>>

/** What callers send. A field with a default is optional here and always there in a noun, so no name is in NOUNS too. */
const INPUTS = {
  ChangeAgentBody: contract.changeAgentBody,
  ConditionsInput: contract.conditions,
  OperationInput: contract.operation,
  PolicyDocumentInput: contract.policyDocument,
  PolicyRuleInput: contract.policyRule,
  PutTemplateBody: contract.templateSpec,
  SetBudgetBody: contract.setBudgetBody,
} satisfies Readonly<Record<string, z.ZodType>>

/** The schemas of the document, each under its name, and where a schema of the table of routes is among them. */
export interface DocumentSchemas {
  readonly components: Readonly<Record<string, Json>>
  /** A reference to a schema of a route. */
  refer(schema: z.ZodType, io: 'input' | 'output'): Json
}

/** Names every body, answer and event of the table, so that a generator makes one class of each and not one per use. */
export function documentSchemas(error: z.ZodType): DocumentSchemas {
  const output = registryOf({ Error: error, ...WORDS, ...NOUNS })
  const input = registryOf({ ...WORDS, ...INPUTS })
  for (const [route, { body, response, events }] of Object.entries<Route>(ROUTES)) {
    const name = `${route.charAt(0).toUpperCase()}${route.slice(1)}`
    if (body) addOnce(input, body, `${name}Body`)
    if (response) addOnce(output, response, `${name}Answer`)
    if (events) addOnce(output, events, `${name}Event`)
  }
  return {
    components: { ...schemasOf(output, 'output'), ...schemasOf(input, 'input'), Json: ANY_JSON },
    refer: (schema, io) => {
      const id = (io === 'input' ? input : output).get(schema)?.id
      return id === undefined ? {} : { $ref: `${COMPONENTS}${id}` }
    },
  }
}

const COMPONENTS = '#/components/schemas/'
const ANY_JSON = { description: 'Any JSON value.' }

type Registry = ReturnType<typeof z.registry<{ id: string }>>

function registryOf(named: Readonly<Record<string, z.ZodType>>): Registry {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(named)) addOnce(registry, schema, id)
  return registry
}

function addOnce(registry: Registry, schema: z.ZodType, id: string): void {
  if (!registry.has(schema)) registry.add(schema, { id })
}

/** Recursive JSON values become a reference to one schema: the `$defs` of a part would not resolve in the whole. */
function schemasOf(registry: Registry, io: 'input' | 'output'): Readonly<Record<string, Json>> {
  const { schemas } = z.toJSONSchema(registry, { io, uri: (id) => `${COMPONENTS}${id}` })
  const { __shared: _shared, ...rest } = schemas
  const text = JSON.stringify(rest).replaceAll(/"#\/components\/schemas\/__shared#[^"]*"/g, `"${COMPONENTS}Json"`)
  return Object.fromEntries(Object.entries(parseSchemas(text)).map(([name, schema]) => [name, withoutIds(schema)]))
}

function withoutIds({ $schema: _dialect, $id: _id, id: _name, ...rest }: Json): Json {
  return rest
}

function parseSchemas(text: string): Readonly<Record<string, Json>> {
  return JSON.parse(text) as Record<string, Json>
}
