"""Errors of the API: a class per family.

Made by `npm run docs:generate` from packages/contract: edit there.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Type

from ._airlock_error import AirlockError as AirlockError


class InvalidRequestError(AirlockError):
    """The request is not valid."""


class AuthenticationError(AirlockError):
    """No key, or one that the server does not accept."""


class BudgetExhaustedError(AirlockError):
    """A quota of the agent or the tenant is used up."""


class ForbiddenError(AirlockError):
    """The key or the agent may not do this."""


class NotFoundError(AirlockError):
    """The thing that was named does not exist."""


class ConflictError(AirlockError):
    """The state of the thing does not allow this."""


class EndedError(AirlockError):
    """The sandbox or session has ended."""


class UnprocessableError(AirlockError):
    """The request is well formed, and cannot be carried out."""


class KilledError(AirlockError):
    """A killswitch is on."""


class ApprovalRequiredError(AirlockError):
    """A person must approve it; `approval` is the id of the request for that."""


class TooManyError(AirlockError):
    """A limit on rate or count is reached."""


class InternalError(AirlockError):
    """Something went wrong in the server or its configuration."""


class UpstreamError(AirlockError):
    """A provider behind the server failed."""


class UnavailableError(AirlockError):
    """The server or a part of it does not answer now."""


class TimedOutError(AirlockError):
    """It took too long."""


class DiskError(AirlockError):
    """The disk of the sandbox is full or broken."""


class PolicyDeniedError(ForbiddenError):
    """A policy denies it."""


class UnreachableError(UnavailableError):
    """No server answers, or the connection broke."""


class ErrorRow(NamedTuple):
    """A row of the registry of errors."""

    status: int
    retryable: bool
    message: str
    hint: str
    fixed_by: str
    error: Type[AirlockError]


ERRORS: Dict[str, ErrorRow] = {
    "invalid_request": ErrorRow(400, False, "The request is not valid.", "Read the message: it names the field.", "caller", InvalidRequestError),
    "agent_required": ErrorRow(400, False, "The key is bound to several agents, and none of them was named.", "Read the message: it lists them. Name one as \"agent\".", "caller", InvalidRequestError),
    "invalid_path": ErrorRow(400, False, "The path is not valid.", "Use a path without \"..\", NUL or empty names.", "caller", InvalidRequestError),
    "upstream_rejected": ErrorRow(400, False, "The model provider rejected the request.", "Read the message: it is what the provider said.", "caller", InvalidRequestError),
    "unauthenticated": ErrorRow(401, False, "No valid API key was given.", "Send \"Authorization: Bearer al_…\".", "caller", AuthenticationError),
    "token_refused": ErrorRow(401, False, "The door does not accept the token.", "Read the token file again; ask for \"airlock connect\" if that one is refused too.", "caller", AuthenticationError),
    "budget_exhausted": ErrorRow(402, False, "The budget does not allow it.", "Read the message: it names the limit. Ask for \"airlock budget set\".", "administrator", BudgetExhaustedError),
    "artifact_link_invalid": ErrorRow(403, False, "The link is not valid, or has expired.", "Ask for another: airlock artifact url.", "caller", ForbiddenError),
    "forbidden": ErrorRow(403, False, "This key may not do that.", "Use a key with a role that may.", "administrator", ForbiddenError),
    "agent_not_approved": ErrorRow(403, False, "The agent is not approved.", "Ask for \"airlock agent approve\".", "administrator", ForbiddenError),
    "agent_suspended": ErrorRow(403, False, "The agent is suspended.", "Ask for \"airlock agent resume\".", "administrator", ForbiddenError),
    "permission_denied": ErrorRow(403, False, "The sandbox refused access to the file.", "User code runs as uid 1000.", "caller", ForbiddenError),
    "policy_denied": ErrorRow(403, False, "A policy denies it.", "See the rule: airlock guardian rules. To change it: docs/guardian.md", "administrator", PolicyDeniedError),
    "address_refused": ErrorRow(403, False, "The host is not at a public address.", "The operator can list the address and port in egress_allow_private.", "operator", ForbiddenError),
    "route_not_found": ErrorRow(404, False, "There is no such route.", "See /docs for what there is.", "caller", NotFoundError),
    "sandbox_not_found": ErrorRow(404, False, "There is no such sandbox.", "List the sandboxes you have.", "caller", NotFoundError),
    "command_not_found": ErrorRow(404, False, "There is no such command.", "List the commands of the sandbox.", "caller", NotFoundError),
    "output_not_kept": ErrorRow(404, False, "The whole output of the command is not kept.", "Only what went over maxOutputBytes is kept whole, for a time: see truncated and fullOutput of the command.", "caller", NotFoundError),
    "agent_not_found": ErrorRow(404, False, "There is no such agent.", "List them: airlock agent ls. To add one: airlock agent register AGENT --approve (admin key)", "caller", NotFoundError),
    "key_not_found": ErrorRow(404, False, "There is no such key.", "List the keys of your tenant.", "caller", NotFoundError),
    "tenant_not_found": ErrorRow(404, False, "There is no such tenant.", "Use your own tenant.", "caller", NotFoundError),
    "template_not_found": ErrorRow(404, False, "There is no such template.", "List the templates you have.", "caller", NotFoundError),
    "session_not_found": ErrorRow(404, False, "There is no such session.", "List the sessions you have.", "caller", NotFoundError),
    "step_not_found": ErrorRow(404, False, "There is no such step.", "List the steps of the session.", "caller", NotFoundError),
    "artifact_not_found": ErrorRow(404, False, "There is no such artifact.", "List the artifacts you have.", "caller", NotFoundError),
    "job_not_found": ErrorRow(404, False, "There is no such job.", "List the jobs you have.", "caller", NotFoundError),
    "run_not_found": ErrorRow(404, False, "There is no such run.", "List the runs you have: airlock agent-run ls", "caller", NotFoundError),
    "graph_not_found": ErrorRow(404, False, "There is no such agent program.", "List them: airlock catalog", "caller", NotFoundError),
    "graph_fixed": ErrorRow(409, False, "The agent program comes with the server or its configuration.", "Choose another name; the operator changes the configuration.", "caller", ConflictError),
    "policy_not_found": ErrorRow(404, False, "There is no such policy.", "List the policies of your tenant.", "caller", NotFoundError),
    "worktree_not_found": ErrorRow(404, False, "The sandbox has no worktree.", "Create one with --worktree DIR.", "caller", NotFoundError),
    "grant_not_found": ErrorRow(404, False, "There is no such grant.", "List the grants of the agent.", "caller", NotFoundError),
    "approval_not_found": ErrorRow(404, False, "There is no such approval.", "List the approvals.", "caller", NotFoundError),
    "webhook_not_found": ErrorRow(404, False, "There is no such webhook.", "List the webhooks.", "caller", NotFoundError),
    "secret_not_found": ErrorRow(404, False, "There is no such secret.", "List the secrets: airlock secret ls", "caller", NotFoundError),
    "tool_not_found": ErrorRow(404, False, "There is no such tool.", "List the tools: airlock tool ls", "caller", NotFoundError),
    "model_not_found": ErrorRow(404, False, "There is no such model.", "List the models: airlock llm models", "caller", NotFoundError),
    "kill_not_found": ErrorRow(404, False, "No such killswitch is on.", "List those that are on.", "caller", NotFoundError),
    "file_not_found": ErrorRow(404, False, "There is no such file in the sandbox.", "List its directory.", "caller", NotFoundError),
    "executable_not_found": ErrorRow(422, False, "The program was not found in the sandbox.", "Check its name. More programs: airlock template build NAME --package PACKAGE, then --template NAME", "caller", UnprocessableError),
    "runtime_unavailable": ErrorRow(422, False, "The sandbox has no such interpreter.", "Choose a template that has it.", "caller", UnprocessableError),
    "template_invalid": ErrorRow(422, False, "The image or template cannot be accepted.", "Read the message: it names the entry.", "caller", UnprocessableError),
    "archive_invalid": ErrorRow(422, False, "The archive cannot be accepted.", "Read the message: it names the entry, and says whether anything was written.", "caller", UnprocessableError),
    "grant_refused": ErrorRow(422, False, "The host path is not granted.", "Read the message; grant another path.", "administrator", UnprocessableError),
    "worktree_refused": ErrorRow(422, False, "The worktree cannot be had.", "Read the message: it says what is wrong.", "caller", UnprocessableError),
    "policy_invalid": ErrorRow(422, False, "The policy cannot be accepted.", "Read the message: it names the rule.", "caller", UnprocessableError),
    "step_mismatch": ErrorRow(409, False, "A step with that id had other code.", "Choose a new step id.", "caller", ConflictError),
    "job_mismatch": ErrorRow(409, False, "A job with that idempotency key was another request.", "Choose a new idempotency key.", "caller", ConflictError),
    "template_in_use": ErrorRow(409, False, "Living sandboxes stand on the template.", "End them first.", "caller", ConflictError),
    "approval_ended": ErrorRow(409, False, "The approval is not open to that any more.", "Read the message: it says what it is.", "caller", ConflictError),
    "name_taken": ErrorRow(409, False, "A living sandbox of this agent has that name.", "Choose another name or end it.", "caller", ConflictError),
    "agent_exists": ErrorRow(409, False, "There is another agent with that id.", "Choose another id, or delete that one.", "caller", ConflictError),
    "grant_exists": ErrorRow(409, False, "Another grant of the agent is there already.", "Choose another target.", "caller", ConflictError),
    "tenant_exists": ErrorRow(409, False, "There is a tenant with that id.", "Choose another id.", "caller", ConflictError),
    "key_ended": ErrorRow(409, False, "The key is revoked or has expired.", "Make a new one.", "caller", ConflictError),
    "key_line_too_long": ErrorRow(409, False, "A key was rotated too often to tell in whose hands it is.", "Make a new key instead of rotating this one.", "caller", ConflictError),
    "stale_generation": ErrorRow(409, False, "The agent has another generation by now.", "Look at the agent again.", "caller", ConflictError),
    "stale_version": ErrorRow(409, False, "The policy has another version by now.", "Look at the policy again.", "caller", ConflictError),
    "invalid_transition": ErrorRow(409, False, "The agent cannot do that in its state.", "Look at its state.", "caller", ConflictError),
    "worktree_changed": ErrorRow(409, False, "What was to leave is not what was decided about.", "Look at the diff again, and export that.", "caller", ConflictError),
    "sandbox_not_active": ErrorRow(409, False, "The sandbox is not active.", "Look at its state.", "caller", ConflictError),
    "sandbox_paused": ErrorRow(409, False, "The sandbox is paused.", "Resume it with \"airlock resume\".", "caller", ConflictError),
    "wrong_node": ErrorRow(409, False, "The sandbox lives on another node.", "Ask the node that it lives on.", "caller", ConflictError),
    "limit_fixed": ErrorRow(409, False, "The limit cannot be changed while the sandbox lives.", "Read the message: it names the limit. Create another sandbox.", "caller", ConflictError),
    "limit_in_use": ErrorRow(409, False, "The sandbox uses more than that.", "Free what it uses first, or ask for a higher limit.", "caller", ConflictError),
    "command_ended": ErrorRow(409, False, "The command has ended.", "Start another.", "caller", ConflictError),
    "stdin_closed": ErrorRow(409, False, "The command has no open stdin.", "Start it with \"stdin\": \"open\".", "caller", ConflictError),
    "file_exists": ErrorRow(409, False, "Something with that name exists.", "Choose another path or remove it first.", "caller", ConflictError),
    "not_a_directory": ErrorRow(409, False, "A part of the path is not a directory.", "Check the path.", "caller", ConflictError),
    "is_a_directory": ErrorRow(409, False, "The path is a directory.", "Name a file, or use the directory routes.", "caller", ConflictError),
    "directory_not_empty": ErrorRow(409, False, "The directory is not empty.", "Remove it with recursive=true.", "caller", ConflictError),
    "file_changed": ErrorRow(409, False, "A file changed while it was read.", "Read it again when nothing writes to it.", "caller", ConflictError),
    "sandbox_ended": ErrorRow(410, False, "The sandbox has ended.", "Create another.", "caller", EndedError),
    "session_expired": ErrorRow(410, False, "The session has ended.", "Create another.", "caller", EndedError),
    "artifact_too_large": ErrorRow(413, False, "The artifact is larger than one may be.", "Split it, or raise artifact_max_mb.", "caller", InvalidRequestError),
    "body_too_large": ErrorRow(413, False, "The body is too large.", "Send less, or upload it as a file.", "caller", InvalidRequestError),
    "worktree_too_large": ErrorRow(413, False, "The worktree is too large.", "Read the message: it names the bound.", "caller", InvalidRequestError),
    "unsupported_media_type": ErrorRow(415, False, "The content type is not understood.", "Send application/json.", "caller", InvalidRequestError),
    "range_invalid": ErrorRow(416, False, "The range is outside of the artifact.", "Ask for bytes that are there.", "caller", InvalidRequestError),
    "killed": ErrorRow(423, False, "A killswitch is on.", "Ask an admin to look at \"airlock kill --ls\" and to type \"airlock kill --lift\" with its scope.", "administrator", KilledError),
    "approval_required": ErrorRow(428, False, "A person must approve it.", "Ask again once it is approved.", "administrator", ApprovalRequiredError),
    "too_many_commands": ErrorRow(429, True, "The sandbox runs too many commands.", "Wait until some end.", "caller", TooManyError),
    "too_many_sessions": ErrorRow(429, True, "The sandbox has too many sessions.", "End some of them.", "caller", TooManyError),
    "too_many_steps": ErrorRow(429, True, "Too many steps wait in the session.", "Wait until some end.", "caller", TooManyError),
    "too_many_requests": ErrorRow(429, True, "You ask too often.", "Wait a moment.", "caller", TooManyError),
    "artifact_quota": ErrorRow(429, False, "The artifacts of the tenant have reached their quota.", "Remove some: airlock artifact rm. Or raise artifact_quota_mb or artifact_quota_count.", "caller", TooManyError),
    "queue_full": ErrorRow(429, True, "Too many jobs of the tenant wait.", "Wait until some have ended.", "time", TooManyError),
    "too_many_agents": ErrorRow(429, False, "The tenant has too many agents.", "Delete some of them.", "caller", TooManyError),
    "too_many_grants": ErrorRow(429, False, "The agent has too many grants.", "Remove some of them.", "caller", TooManyError),
    "too_many_keys": ErrorRow(429, False, "The tenant has too many keys.", "Revoke some of them.", "caller", TooManyError),
    "too_many_calls": ErrorRow(429, False, "The sandbox has made as many calls of tools as it may.", "Create another sandbox.", "administrator", TooManyError),
    "too_many_secrets": ErrorRow(429, False, "The tenant has too many secrets.", "Remove some of them.", "caller", TooManyError),
    "too_many_tools": ErrorRow(429, False, "The tenant has too many tools.", "Remove some of them.", "caller", TooManyError),
    "too_many_webhooks": ErrorRow(429, False, "The tenant has too many webhooks.", "Remove some of them.", "caller", TooManyError),
    "too_many_policies": ErrorRow(429, False, "There are too many policies, or versions of one.", "Take some out of force.", "caller", TooManyError),
    "too_many_graphs": ErrorRow(429, False, "The catalog of the tenant is full.", "Remove some agent programs.", "caller", TooManyError),
    "too_many_templates": ErrorRow(429, False, "The tenant has too many templates.", "Remove some of them.", "caller", TooManyError),
    "too_many_streams": ErrorRow(429, True, "Too many event streams are open.", "Close some of them.", "caller", TooManyError),
    "evidence_full": ErrorRow(429, True, "There is no room for more evidence.", "Wait until older evidence may be dropped, or raise audit_max_mb.", "operator", TooManyError),
    "internal": ErrorRow(500, False, "Something went wrong on our side.", "Give the request id to the operator.", "operator", InternalError),
    "start_failed": ErrorRow(500, False, "The sandbox could not be started.", "Run \"airlock doctor\" on the host.", "operator", InternalError),
    "evidence_broken": ErrorRow(500, False, "The evidence of the tenant does not verify, so nothing is granted to it.", "Compare with an exported head; then \"airlock audit quarantine <tenant>\" sets aside what does not verify.", "operator", InternalError),
    "permit_rejected": ErrorRow(500, False, "The data plane refused the permit.", "Check both processes run one version.", "operator", InternalError),
    "reservation_rejected": ErrorRow(500, True, "The process that holds the keys refused the reservation of the call.", "Ask again. If that is refused too, check that all processes run one version.", "operator", InternalError),
    "upstream_refused": ErrorRow(502, False, "The model provider refuses the key or the account of this server.", "See to the key, the limits and the balance of that account.", "operator", UpstreamError),
    "isolation_unavailable": ErrorRow(503, False, "This host cannot isolate as asked.", "Run \"airlock doctor\".", "operator", UnavailableError),
    "capacity_exhausted": ErrorRow(503, True, "The node is full.", "Try again when sandboxes have ended.", "time", UnavailableError),
    "host_disk_full": ErrorRow(503, True, "The disk of the host is full but for its reserve.", "Free the disk of the host, or set disk_reserve_mb.", "operator", UnavailableError),
    "evidence_unavailable": ErrorRow(503, True, "Evidence cannot be written, so nothing is granted.", "Free the disk.", "operator", UnavailableError),
    "store_unavailable": ErrorRow(503, True, "The store of the server does not answer.", "See to its disk, or to PostgreSQL.", "operator", UnavailableError),
    "identity_unavailable": ErrorRow(503, True, "The keys that verify tokens cannot be had.", "See to jwks_url.", "operator", UnavailableError),
    "data_plane_unavailable": ErrorRow(503, True, "The data plane does not answer.", "It restarts by itself.", "time", UnavailableError),
    "host_unreachable": ErrorRow(502, True, "The host cannot be reached.", "Check its name and port.", "caller", UpstreamError),
    "upstream_unavailable": ErrorRow(503, True, "The provider of the model cannot be reached; it has not seen the call.", "Try again. The operator sees to \"llm.upstream\" in airlock.toml, and reads the log.", "operator", UnavailableError),
    "upstream_busy": ErrorRow(429, True, "The provider of the model takes no more calls now.", "Try again in a moment, or ask for a higher max_concurrent.", "time", TooManyError),
    "upstream_timeout": ErrorRow(504, True, "The provider of the model was silent for too long; it may have charged for the call.", "Try again, or ask for longer timeouts of the upstream.", "operator", TimedOutError),
    "upstream_broken": ErrorRow(502, True, "The answer of the provider broke off, or is not one; it may have charged for the call.", "Try again. The operator reads the log, which says what was wrong.", "operator", UpstreamError),
    "upstream_leaked_key": ErrorRow(502, False, "The answer of the provider held the key that it was asked with, and was cut.", "Ask the operator for another key: write it to key_file. See what base_url points to.", "operator", UpstreamError),
    "key_unavailable": ErrorRow(503, True, "The key of the upstream cannot be used.", "Write the key to key_file on one line, and run \"chmod 600\" on the file.", "operator", UnavailableError),
    "secret_unavailable": ErrorRow(503, False, "The secret cannot be opened by this node.", "Put it again on this server: airlock secret put NAME", "administrator", UnavailableError),
    "secret_in_call": ErrorRow(403, False, "The call held the value of a secret, and was not sent.", "Send it without.", "caller", ForbiddenError),
    "secret_in_answer": ErrorRow(502, False, "The answer of the service held the credential, and was withheld.", "Replace the secret, and see why the service repeats it.", "administrator", UpstreamError),
    "service_unavailable": ErrorRow(503, True, "The service of the tool cannot be reached; it has not seen the call.", "Try again. An administrator sees to the origin of the tool.", "administrator", UnavailableError),
    "service_timeout": ErrorRow(504, False, "The service of the tool did not answer in time; it may have done what was asked.", "Look before you ask again, or allow more timeoutMs.", "caller", TimedOutError),
    "service_broken": ErrorRow(502, False, "The answer of the service broke off or cannot be passed on; it may have done what was asked.", "Look before you ask again. Read the message: it says what was wrong.", "administrator", UpstreamError),
    "door_unavailable": ErrorRow(503, True, "The doors do not answer.", "They restart by themselves.", "time", UnavailableError),
    "guest_lost": ErrorRow(503, False, "The sandbox broke down.", "Create another.", "caller", UnavailableError),
    "runtime_unreachable": ErrorRow(503, True, "The interpreter does not answer now.", "Try again in a moment.", "time", UnavailableError),
    "runtime_crashed": ErrorRow(503, False, "The interpreter died and cannot be started again.", "Create another session.", "caller", UnavailableError),
    "template_failed": ErrorRow(503, True, "The template could not be built.", "Read the message; build it again.", "operator", UnavailableError),
    "not_ready": ErrorRow(503, True, "The server is starting or stopping.", "Try again in a moment.", "time", UnavailableError),
    "upstream_failed": ErrorRow(503, True, "The provider of the model failed.", "Try again in a moment.", "time", UnavailableError),
    "queue_timeout": ErrorRow(504, True, "The job waited too long to begin.", "Submit it again, or allow more queueMs.", "caller", TimedOutError),
    "outcome_unknown": ErrorRow(500, False, "A process of the server died, and nobody can say how far the command came.", "See what it did, then submit it again; retries do that without looking.", "caller", InternalError),
    "run_canceled": ErrorRow(409, False, "The run was canceled.", "Start another one.", "caller", ConflictError),
    "graph_failed": ErrorRow(502, False, "The agent program failed.", "Read what it printed: airlock agent-run logs", "caller", UpstreamError),
    "graph_no_answer": ErrorRow(502, False, "The agent program ended without a result.", "It writes a line of the type \"result\" before it ends: docs/runs.md", "caller", UpstreamError),
    "graph_output_invalid": ErrorRow(502, False, "The agent program wrote events that are not valid.", "Read the message: it names the line. The format: docs/runs.md", "caller", UpstreamError),
    "node_lost": ErrorRow(503, False, "The node that ran the job gives no sign of life.", "Submit it again, or give it retries.", "caller", UnavailableError),
    "timeout": ErrorRow(504, True, "It took too long.", "Try again, or allow more time.", "caller", TimedOutError),
    "disk_full": ErrorRow(507, False, "The disk of the sandbox is full.", "Remove files, or ask for more disk.", "caller", DiskError),
    "disk_failed": ErrorRow(507, False, "The disk of the sandbox could not be read or written.", "See to the disk of the host: it is full or broken.", "operator", DiskError),
    "config_invalid": ErrorRow(500, False, "The configuration is not valid.", "See docs/configuration.md.", "operator", InternalError),
    "state_damaged": ErrorRow(500, False, "A file of the state directory is damaged.", "Put it back from a backup: see docs/backup.md.", "operator", InternalError),
    "already_running": ErrorRow(409, False, "Another Airlock uses this state directory.", "Stop it, or set AIRLOCK_HOME.", "operator", ConflictError),
    "server_unreachable": ErrorRow(503, True, "No Airlock server answers.", "Start one with \"npm start\".", "caller", UnreachableError),
}
