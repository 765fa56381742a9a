/** Who can make the error go away: it is the last word of every hint. */
export type FixedBy = 'caller' | 'administrator' | 'operator' | 'time'

interface ErrorRow {
  readonly status: number
  readonly retryable: boolean
  readonly message: string
  readonly hint: string
  readonly fixedBy: FixedBy
}

/** Every error that crosses an interface of ours. `docs/errors.md` is this table; a test compares them. */
export const ERRORS = {
  invalid_request: row(400, 'The request is not valid.', 'Read the message: it names the field.', 'caller'),
  agent_required: row(
    400,
    'The key is bound to several agents, and none of them was named.',
    'Read the message: it lists them. Name one as "agent".',
    'caller',
  ),
  invalid_path: row(400, 'The path is not valid.', 'Use a path without "..", NUL or empty names.', 'caller'),
  upstream_rejected: row(
    400,
    'The model provider rejected the request.',
    'Read the message: it is what the provider said.',
    'caller',
  ),
  unauthenticated: row(401, 'No valid API key was given.', 'Send "Authorization: Bearer al_…".', 'caller'),
  token_refused: row(
    401,
    'The door does not accept the token.',
    'Read the token file again; ask for "airlock connect" if that one is refused too.',
    'caller',
  ),
  budget_exhausted: row(
    402,
    'The budget does not allow it.',
    'Read the message: it names the limit. Ask for "airlock budget set".',
    'administrator',
  ),
  artifact_link_invalid: row(
    403,
    'The link is not valid, or has expired.',
    'Ask for another: airlock artifact url.',
    'caller',
  ),
  forbidden: row(403, 'This key may not do that.', 'Use a key with a role that may.', 'administrator'),
  agent_not_approved: row(403, 'The agent is not approved.', 'Ask for "airlock agent approve".', 'administrator'),
  agent_suspended: row(403, 'The agent is suspended.', 'Ask for "airlock agent resume".', 'administrator'),
  permission_denied: row(403, 'The sandbox refused access to the file.', 'User code runs as uid 1000.', 'caller'),
  policy_denied: row(
    403,
    'A policy denies it.',
    'See the rule: airlock guardian rules. To change it: docs/guardian.md',
    'administrator',
  ),
  address_refused: row(
    403,
    'The host is not at a public address.',
    'The operator can list the address and port in egress_allow_private.',
    'operator',
  ),
  route_not_found: row(404, 'There is no such route.', 'See /docs for what there is.', 'caller'),
  sandbox_not_found: row(404, 'There is no such sandbox.', 'List the sandboxes you have.', 'caller'),
  command_not_found: row(404, 'There is no such command.', 'List the commands of the sandbox.', 'caller'),
  output_not_kept: row(
    404,
    'The whole output of the command is not kept.',
    'Only what went over maxOutputBytes is kept whole, for a time: see truncated and fullOutput of the command.',
    'caller',
  ),
  agent_not_found: row(
    404,
    'There is no such agent.',
    'List them: airlock agent ls. To add one: airlock agent register AGENT --approve (admin key)',
    'caller',
  ),
  key_not_found: row(404, 'There is no such key.', 'List the keys of your tenant.', 'caller'),
  tenant_not_found: row(404, 'There is no such tenant.', 'Use your own tenant.', 'caller'),
  template_not_found: row(404, 'There is no such template.', 'List the templates you have.', 'caller'),
  session_not_found: row(404, 'There is no such session.', 'List the sessions you have.', 'caller'),
  step_not_found: row(404, 'There is no such step.', 'List the steps of the session.', 'caller'),
  artifact_not_found: row(404, 'There is no such artifact.', 'List the artifacts you have.', 'caller'),
  job_not_found: row(404, 'There is no such job.', 'List the jobs you have.', 'caller'),
  run_not_found: row(404, 'There is no such run.', 'List the runs you have: airlock agent-run ls', 'caller'),
  graph_not_found: row(404, 'There is no such agent program.', 'List them: airlock catalog', 'caller'),
  graph_fixed: row(
    409,
    'The agent program comes with the server or its configuration.',
    'Choose another name; the operator changes the configuration.',
    'caller',
  ),
  policy_not_found: row(404, 'There is no such policy.', 'List the policies of your tenant.', 'caller'),
  worktree_not_found: row(404, 'The sandbox has no worktree.', 'Create one with --worktree DIR.', 'caller'),
  grant_not_found: row(404, 'There is no such grant.', 'List the grants of the agent.', 'caller'),
  approval_not_found: row(404, 'There is no such approval.', 'List the approvals.', 'caller'),
  webhook_not_found: row(404, 'There is no such webhook.', 'List the webhooks.', 'caller'),
  secret_not_found: row(404, 'There is no such secret.', 'List the secrets: airlock secret ls', 'caller'),
  tool_not_found: row(404, 'There is no such tool.', 'List the tools: airlock tool ls', 'caller'),
  model_not_found: row(404, 'There is no such model.', 'List the models: airlock llm models', 'caller'),
  kill_not_found: row(404, 'No such killswitch is on.', 'List those that are on.', 'caller'),
  file_not_found: row(404, 'There is no such file in the sandbox.', 'List its directory.', 'caller'),
  executable_not_found: row(
    422,
    'The program was not found in the sandbox.',
    'Check its name. More programs: airlock template build NAME --package PACKAGE, then --template NAME',
    'caller',
  ),
  runtime_unavailable: row(422, 'The sandbox has no such interpreter.', 'Choose a template that has it.', 'caller'),
  template_invalid: row(
    422,
    'The image or template cannot be accepted.',
    'Read the message: it names the entry.',
    'caller',
  ),
  archive_invalid: row(
    422,
    'The archive cannot be accepted.',
    'Read the message: it names the entry, and says whether anything was written.',
    'caller',
  ),
  grant_refused: row(422, 'The host path is not granted.', 'Read the message; grant another path.', 'administrator'),
  worktree_refused: row(422, 'The worktree cannot be had.', 'Read the message: it says what is wrong.', 'caller'),
  policy_invalid: row(422, 'The policy cannot be accepted.', 'Read the message: it names the rule.', 'caller'),
  step_mismatch: row(409, 'A step with that id had other code.', 'Choose a new step id.', 'caller'),
  job_mismatch: row(
    409,
    'A job with that idempotency key was another request.',
    'Choose a new idempotency key.',
    'caller',
  ),
  template_in_use: row(409, 'Living sandboxes stand on the template.', 'End them first.', 'caller'),
  approval_ended: row(
    409,
    'The approval is not open to that any more.',
    'Read the message: it says what it is.',
    'caller',
  ),
  name_taken: row(409, 'A living sandbox of this agent has that name.', 'Choose another name or end it.', 'caller'),
  agent_exists: row(409, 'There is another agent with that id.', 'Choose another id, or delete that one.', 'caller'),
  grant_exists: row(409, 'Another grant of the agent is there already.', 'Choose another target.', 'caller'),
  tenant_exists: row(409, 'There is a tenant with that id.', 'Choose another id.', 'caller'),
  key_ended: row(409, 'The key is revoked or has expired.', 'Make a new one.', 'caller'),
  key_line_too_long: row(
    409,
    'A key was rotated too often to tell in whose hands it is.',
    'Make a new key instead of rotating this one.',
    'caller',
  ),
  stale_generation: row(409, 'The agent has another generation by now.', 'Look at the agent again.', 'caller'),
  stale_version: row(409, 'The policy has another version by now.', 'Look at the policy again.', 'caller'),
  invalid_transition: row(409, 'The agent cannot do that in its state.', 'Look at its state.', 'caller'),
  worktree_changed: row(
    409,
    'What was to leave is not what was decided about.',
    'Look at the diff again, and export that.',
    'caller',
  ),
  sandbox_not_active: row(409, 'The sandbox is not active.', 'Look at its state.', 'caller'),
  sandbox_paused: row(409, 'The sandbox is paused.', 'Resume it with "airlock resume".', 'caller'),
  wrong_node: row(409, 'The sandbox lives on another node.', 'Ask the node that it lives on.', 'caller'),
  limit_fixed: row(
    409,
    'The limit cannot be changed while the sandbox lives.',
    'Read the message: it names the limit. Create another sandbox.',
    'caller',
  ),
  limit_in_use: row(
    409,
    'The sandbox uses more than that.',
    'Free what it uses first, or ask for a higher limit.',
    'caller',
  ),
  command_ended: row(409, 'The command has ended.', 'Start another.', 'caller'),
  stdin_closed: row(409, 'The command has no open stdin.', 'Start it with "stdin": "open".', 'caller'),
  file_exists: row(409, 'Something with that name exists.', 'Choose another path or remove it first.', 'caller'),
  not_a_directory: row(409, 'A part of the path is not a directory.', 'Check the path.', 'caller'),
  is_a_directory: row(409, 'The path is a directory.', 'Name a file, or use the directory routes.', 'caller'),
  directory_not_empty: row(409, 'The directory is not empty.', 'Remove it with recursive=true.', 'caller'),
  file_changed: row(409, 'A file changed while it was read.', 'Read it again when nothing writes to it.', 'caller'),
  sandbox_ended: row(410, 'The sandbox has ended.', 'Create another.', 'caller'),
  session_expired: row(410, 'The session has ended.', 'Create another.', 'caller'),
  artifact_too_large: row(
    413,
    'The artifact is larger than one may be.',
    'Split it, or raise artifact_max_mb.',
    'caller',
  ),
  body_too_large: row(413, 'The body is too large.', 'Send less, or upload it as a file.', 'caller'),
  worktree_too_large: row(413, 'The worktree is too large.', 'Read the message: it names the bound.', 'caller'),
  unsupported_media_type: row(415, 'The content type is not understood.', 'Send application/json.', 'caller'),
  range_invalid: row(416, 'The range is outside of the artifact.', 'Ask for bytes that are there.', 'caller'),
  killed: row(
    423,
    'A killswitch is on.',
    'Ask an admin to look at "airlock kill --ls" and to type "airlock kill --lift" with its scope.',
    'administrator',
  ),
  approval_required: row(428, 'A person must approve it.', 'Ask again once it is approved.', 'administrator'),
  too_many_commands: row(429, 'The sandbox runs too many commands.', 'Wait until some end.', 'caller', true),
  too_many_sessions: row(429, 'The sandbox has too many sessions.', 'End some of them.', 'caller', true),
  too_many_steps: row(429, 'Too many steps wait in the session.', 'Wait until some end.', 'caller', true),
  too_many_requests: row(429, 'You ask too often.', 'Wait a moment.', 'caller', true),
  artifact_quota: row(
    429,
    'The artifacts of the tenant have reached their quota.',
    'Remove some: airlock artifact rm. Or raise artifact_quota_mb or artifact_quota_count.',
    'caller',
  ),
  queue_full: row(429, 'Too many jobs of the tenant wait.', 'Wait until some have ended.', 'time', true),
  too_many_agents: row(429, 'The tenant has too many agents.', 'Delete some of them.', 'caller'),
  too_many_grants: row(429, 'The agent has too many grants.', 'Remove some of them.', 'caller'),
  too_many_keys: row(429, 'The tenant has too many keys.', 'Revoke some of them.', 'caller'),
  too_many_calls: row(
    429,
    'The sandbox has made as many calls of tools as it may.',
    'Create another sandbox.',
    'administrator',
  ),
  too_many_secrets: row(429, 'The tenant has too many secrets.', 'Remove some of them.', 'caller'),
  too_many_tools: row(429, 'The tenant has too many tools.', 'Remove some of them.', 'caller'),
  too_many_webhooks: row(429, 'The tenant has too many webhooks.', 'Remove some of them.', 'caller'),
  too_many_policies: row(429, 'There are too many policies, or versions of one.', 'Take some out of force.', 'caller'),
  too_many_graphs: row(429, 'The catalog of the tenant is full.', 'Remove some agent programs.', 'caller'),
  too_many_templates: row(429, 'The tenant has too many templates.', 'Remove some of them.', 'caller'),
  too_many_streams: row(429, 'Too many event streams are open.', 'Close some of them.', 'caller', true),
  evidence_full: row(
    429,
    'There is no room for more evidence.',
    'Wait until older evidence may be dropped, or raise audit_max_mb.',
    'operator',
    true,
  ),
  internal: row(500, 'Something went wrong on our side.', 'Give the request id to the operator.', 'operator'),
  start_failed: row(500, 'The sandbox could not be started.', 'Run "airlock doctor" on the host.', 'operator'),
  evidence_broken: row(
    500,
    'The evidence of the tenant does not verify, so nothing is granted to it.',
    'Compare with an exported head; then "airlock audit quarantine <tenant>" sets aside what does not verify.',
    'operator',
  ),
  permit_rejected: row(500, 'The data plane refused the permit.', 'Check both processes run one version.', 'operator'),
  reservation_rejected: row(
    500,
    'The process that holds the keys refused the reservation of the call.',
    'Ask again. If that is refused too, check that all processes run one version.',
    'operator',
    true,
  ),
  upstream_refused: row(
    502,
    'The model provider refuses the key or the account of this server.',
    'See to the key, the limits and the balance of that account.',
    'operator',
  ),
  isolation_unavailable: row(503, 'This host cannot isolate as asked.', 'Run "airlock doctor".', 'operator'),
  capacity_exhausted: row(503, 'The node is full.', 'Try again when sandboxes have ended.', 'time', true),
  host_disk_full: row(
    503,
    'The disk of the host is full but for its reserve.',
    'Free the disk of the host, or set disk_reserve_mb.',
    'operator',
    true,
  ),
  evidence_unavailable: row(
    503,
    'Evidence cannot be written, so nothing is granted.',
    'Free the disk.',
    'operator',
    true,
  ),
  store_unavailable: row(
    503,
    'The store of the server does not answer.',
    'See to its disk, or to PostgreSQL.',
    'operator',
    true,
  ),
  identity_unavailable: row(503, 'The keys that verify tokens cannot be had.', 'See to jwks_url.', 'operator', true),
  data_plane_unavailable: row(503, 'The data plane does not answer.', 'It restarts by itself.', 'time', true),
  host_unreachable: row(502, 'The host cannot be reached.', 'Check its name and port.', 'caller', true),
  upstream_unavailable: row(
    503,
    'The provider of the model cannot be reached; it has not seen the call.',
    'Try again. The operator sees to "llm.upstream" in airlock.toml, and reads the log.',
    'operator',
    true,
  ),
  upstream_busy: row(
    429,
    'The provider of the model takes no more calls now.',
    'Try again in a moment, or ask for a higher max_concurrent.',
    'time',
    true,
  ),
  upstream_timeout: row(
    504,
    'The provider of the model was silent for too long; it may have charged for the call.',
    'Try again, or ask for longer timeouts of the upstream.',
    'operator',
    true,
  ),
  upstream_broken: row(
    502,
    'The answer of the provider broke off, or is not one; it may have charged for the call.',
    'Try again. The operator reads the log, which says what was wrong.',
    'operator',
    true,
  ),
  upstream_leaked_key: row(
    502,
    'The answer of the provider held the key that it was asked with, and was cut.',
    'Ask the operator for another key: write it to key_file. See what base_url points to.',
    'operator',
  ),
  key_unavailable: row(
    503,
    'The key of the upstream cannot be used.',
    'Write the key to key_file on one line, and run "chmod 600" on the file.',
    'operator',
    true,
  ),
  secret_unavailable: row(
    503,
    'The secret cannot be opened by this node.',
    'Put it again on this server: airlock secret put NAME',
    'administrator',
  ),
  secret_in_call: row(403, 'The call held the value of a secret, and was not sent.', 'Send it without.', 'caller'),
  secret_in_answer: row(
    502,
    'The answer of the service held the credential, and was withheld.',
    'Replace the secret, and see why the service repeats it.',
    'administrator',
  ),
  service_unavailable: row(
    503,
    'The service of the tool cannot be reached; it has not seen the call.',
    'Try again. An administrator sees to the origin of the tool.',
    'administrator',
    true,
  ),
  service_timeout: row(
    504,
    'The service of the tool did not answer in time; it may have done what was asked.',
    'Look before you ask again, or allow more timeoutMs.',
    'caller',
  ),
  service_broken: row(
    502,
    'The answer of the service broke off or cannot be passed on; it may have done what was asked.',
    'Look before you ask again. Read the message: it says what was wrong.',
    'administrator',
  ),
  door_unavailable: row(503, 'The doors do not answer.', 'They restart by themselves.', 'time', true),
  guest_lost: row(503, 'The sandbox broke down.', 'Create another.', 'caller'),
  runtime_unreachable: row(503, 'The interpreter does not answer now.', 'Try again in a moment.', 'time', true),
  runtime_crashed: row(503, 'The interpreter died and cannot be started again.', 'Create another session.', 'caller'),
  template_failed: row(503, 'The template could not be built.', 'Read the message; build it again.', 'operator', true),
  not_ready: row(503, 'The server is starting or stopping.', 'Try again in a moment.', 'time', true),
  upstream_failed: row(503, 'The provider of the model failed.', 'Try again in a moment.', 'time', true),
  queue_timeout: row(
    504,
    'The job waited too long to begin.',
    'Submit it again, or allow more queueMs.',
    'caller',
    true,
  ),
  outcome_unknown: row(
    500,
    'A process of the server died, and nobody can say how far the command came.',
    'See what it did, then submit it again; retries do that without looking.',
    'caller',
  ),
  run_canceled: row(409, 'The run was canceled.', 'Start another one.', 'caller'),
  graph_failed: row(502, 'The agent program failed.', 'Read what it printed: airlock agent-run logs', 'caller'),
  graph_no_answer: row(
    502,
    'The agent program ended without a result.',
    'It writes a line of the type "result" before it ends: docs/runs.md',
    'caller',
  ),
  graph_output_invalid: row(
    502,
    'The agent program wrote events that are not valid.',
    'Read the message: it names the line. The format: docs/runs.md',
    'caller',
  ),
  node_lost: row(
    503,
    'The node that ran the job gives no sign of life.',
    'Submit it again, or give it retries.',
    'caller',
  ),
  timeout: row(504, 'It took too long.', 'Try again, or allow more time.', 'caller', true),
  disk_full: row(507, 'The disk of the sandbox is full.', 'Remove files, or ask for more disk.', 'caller'),
  disk_failed: row(
    507,
    'The disk of the sandbox could not be read or written.',
    'See to the disk of the host: it is full or broken.',
    'operator',
  ),
  config_invalid: row(500, 'The configuration is not valid.', 'See docs/configuration.md.', 'operator'),
  state_damaged: row(
    500,
    'A file of the state directory is damaged.',
    'Put it back from a backup: see docs/backup.md.',
    'operator',
  ),
  already_running: row(409, 'Another Airlock uses this state directory.', 'Stop it, or set AIRLOCK_HOME.', 'operator'),
  server_unreachable: row(503, 'No Airlock server answers.', 'Start one with "npm start".', 'caller', true),
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof ERRORS
export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[]

const BRAND = Symbol.for('airlock.error')

/**
 * A fault with a code from the registry. `message` says what happened in one sentence; `detail` is never shown to a
 * caller, only logged. Policy denials are results, not errors.
 */
export class AirlockError extends Error {
  readonly code: ErrorCode
  readonly hint: string
  /** Seconds after which trying again makes sense. */
  readonly retryAfterS: number | undefined
  /** The approval that it waits for. */
  readonly approval: string | undefined
  readonly [BRAND] = true

  constructor(
    code: ErrorCode,
    message?: string,
    options: { cause?: unknown; hint?: string; retryAfterS?: number; approval?: string } = {},
  ) {
    super(message ?? ERRORS[code].message, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'AirlockError'
    this.code = code
    this.hint = options.hint ?? ERRORS[code].hint
    this.retryAfterS = options.retryAfterS
    this.approval = options.approval
  }

  get status(): number {
    return ERRORS[this.code].status
  }

  get retryable(): boolean {
    return ERRORS[this.code].retryable
  }
}

/** Unlike `instanceof`, holds across copies of this module. */
export function isAirlockError(value: unknown): value is AirlockError {
  return typeof value === 'object' && value !== null && BRAND in value
}

/** What a caller may see of any thrown value: our own errors as they are, everything else as `internal`. */
export function toAirlockError(value: unknown): AirlockError {
  return isAirlockError(value) ? value : new AirlockError('internal', undefined, { cause: value })
}

/** Why a process could not start, for the terminal: what happened, and what to do. Undefined for a fault of our own. */
export function sayObstacle(error: unknown): string | undefined {
  return isAirlockError(error) && error.code !== 'internal' ? `${error.message} ${error.hint}` : undefined
}

export function isErrorCode(value: string): value is ErrorCode {
  return Object.hasOwn(ERRORS, value)
}

// oxlint-disable-next-line max-params -- a table reads best as columns
function row(status: number, message: string, hint: string, fixedBy: FixedBy, retryable = false): ErrorRow {
  return { status, message, hint, fixedBy, retryable }
}
