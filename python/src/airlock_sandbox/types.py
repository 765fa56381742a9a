"""Types of the API, as they are on the wire.

Made by `npm run docs:generate` from packages/contract: edit there.
"""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union


class _ErrorErrorRequired(TypedDict):
    code: str
    message: str
    hint: str
    retryable: bool
    requestId: str


class ErrorError(_ErrorErrorRequired, total=False):
    # What a person must approve, or has rejected.
    approval: str


class Error(TypedDict):
    error: "ErrorError"


class Agent(TypedDict):
    id: str
    tenant: str
    state: "AgentState"
    generation: int
    approved: bool
    version: Optional[str]
    labels: Dict[str, str]
    metadata: Dict[str, "Json"]
    owner: str
    createdAt: str
    updatedAt: str
    # The last use by the agent or for it.
    lastSeenAt: Optional[str]


class AgentMetricsTotalAlerts(TypedDict):
    """Sandboxes that are beyond a threshold now count each resource once."""

    warning: int
    critical: int


class AgentMetricsTotal(TypedDict):
    sandboxes: int
    cpuPercent: float
    memoryBytes: float
    pids: float
    diskBytes: float
    # Sandboxes that are beyond a threshold now count each resource once.
    alerts: "AgentMetricsTotalAlerts"


class AgentMetricsRaised(TypedDict):
    """Alerts of the last 24 hours."""

    warning: int
    critical: int


class AgentMetricsSandboxesItemRaised(TypedDict):
    """Alerts since its start."""

    warning: int
    critical: int


class AgentMetricsSandboxesItem(TypedDict):
    sandbox: str
    name: Optional[str]
    agent: str
    state: "SandboxState"
    limits: "Limits"
    # Null before the first sample, and when it has ended.
    now: Optional["MetricSample"]
    # What it is beyond now.
    alerts: List["Alert"]
    # Alerts since its start.
    raised: "AgentMetricsSandboxesItemRaised"


class AgentMetricsHistoryItem(TypedDict):
    # Its beginning.
    at: str
    spanMs: int
    samples: int
    cpuPercent: Optional[float]
    cpuPercentMax: Optional[float]
    memoryBytes: Optional[float]
    memoryBytesMax: Optional[float]
    pids: Optional[float]
    pidsMax: Optional[float]
    diskBytes: Optional[float]
    throttledMs: Optional[float]
    readBytes: Optional[float]
    writtenBytes: Optional[float]
    oomKills: Optional[float]


class AgentMetrics(TypedDict):
    agent: str
    total: "AgentMetricsTotal"
    # Alerts of the last 24 hours.
    raised: "AgentMetricsRaised"
    sandboxes: List["AgentMetricsSandboxesItem"]
    # Of all its sandboxes on this node together, as they were at each moment.
    history: List["AgentMetricsHistoryItem"]


class AgentSummaryTotal(TypedDict):
    requested: int
    done: int
    failed: int
    denied: int
    unknown: int
    # Of what ended, how much failed or is unknown.
    failureRate: Optional[float]
    # Of what ended or was denied, how much was denied.
    denialRate: Optional[float]


class AgentSummaryKindsItemDurationMs(TypedDict):
    count: int
    p50: float
    p95: float
    max: float


class AgentSummaryKindsItemUsage(TypedDict):
    count: int
    cpuMs: Optional[float]
    memoryPeakBytes: Optional[float]


class AgentSummaryKindsItem(TypedDict):
    point: "Point"
    requested: int
    done: int
    failed: int
    denied: int
    unknown: int
    # Of what ended, how much failed or is unknown.
    failureRate: Optional[float]
    # Of what ended or was denied, how much was denied.
    denialRate: Optional[float]
    # Of the records that say one; p50 and p95 within 2.2 %, max exact.
    durationMs: Optional["AgentSummaryKindsItemDurationMs"]
    # Averages of what the kernel counted, where records say it.
    usage: Optional["AgentSummaryKindsItemUsage"]


class AgentSummaryTrendItem(TypedDict):
    day: str
    requested: int
    done: int
    failed: int
    denied: int
    unknown: int
    sandboxes: int


class Alert(TypedDict):
    sandbox: str
    agent: str
    resource: Literal["cpu", "memory", "disk", "inodes", "pids"]
    level: Literal["warning", "critical"]
    percent: float
    threshold: float
    since: str


class ApiKey(TypedDict):
    id: str
    tenant: str
    name: str
    role: "Role"
    agents: Optional[List[str]]
    platform: bool
    createdAt: str
    createdBy: str
    expiresAt: Optional[str]
    revokedAt: Optional[str]
    lastUsedAt: Optional[str]
    replaces: Optional[str]
    person: Optional[str]


class Approval(TypedDict):
    id: str
    tenant: str
    requester: str
    agent: Optional[str]
    sandbox: Optional[str]
    point: "Point"
    summary: str
    hash: str
    decision: "Decision"
    state: "ApprovalState"
    scope: Optional["ApprovalScope"]
    createdAt: str
    expiresAt: str
    answeredBy: Optional[str]
    answeredAt: Optional[str]
    note: Optional[str]
    usedAt: Optional[str]


class ApprovalDetail(TypedDict):
    id: str
    tenant: str
    requester: str
    agent: Optional[str]
    sandbox: Optional[str]
    point: "Point"
    summary: str
    hash: str
    decision: "Decision"
    state: "ApprovalState"
    scope: Optional["ApprovalScope"]
    createdAt: str
    expiresAt: str
    answeredBy: Optional[str]
    answeredAt: Optional[str]
    note: Optional[str]
    usedAt: Optional[str]
    question: "Question"


class ApprovalEventPending(TypedDict):
    event: Literal["pending"]
    approval: "Approval"


class ApprovalEventAnswered(TypedDict):
    event: Literal["answered"]
    approval: "Approval"


class ApprovalEventErrorError(TypedDict):
    code: str
    message: str
    hint: str


class ApprovalEventError(TypedDict):
    event: Literal["error"]
    error: "ApprovalEventErrorError"


class AuditChain(TypedDict):
    node: str
    # Where the node answers; its evidence is exported there.
    url: str
    head: "SignedHead"
    publicKey: str
    # The last sign of life of the node; its start, if it has a store of its own.
    seenAt: str


class AuditEventError(TypedDict):
    code: str
    message: str


class _AuditEventRequired(TypedDict):
    agent: Optional[str]
    sandbox: Optional[str]
    actor: str
    point: "Point"
    status: "RecordStatus"
    # null: it is not for this caller to see.
    payload: Optional[Dict[str, "Json"]]
    seq: int
    ts: str
    late: bool


class AuditEvent(_AuditEventRequired, total=False):
    decision: "Decision"
    role: Literal["admin", "operator", "developer", "auditor", "sandbox"]
    durationMs: float
    error: "AuditEventError"
    happenedAt: str


class AuditRecordError(TypedDict):
    code: str
    message: str


class _AuditRecordRequired(TypedDict):
    tenant: str
    agent: Optional[str]
    sandbox: Optional[str]
    actor: str
    point: "Point"
    status: "RecordStatus"
    payload: Dict[str, "Json"]
    seq: int
    ts: str
    process: str
    late: bool
    prev: str
    hash: str


class AuditRecord(_AuditRecordRequired, total=False):
    decision: "Decision"
    role: Literal["admin", "operator", "developer", "auditor", "sandbox"]
    durationMs: float
    error: "AuditRecordError"
    happenedAt: str


class AuditStatsPerDayItem(TypedDict):
    day: str
    records: int


class AuditStatsPointsItem(TypedDict):
    point: "Point"
    requested: int
    done: int
    failed: int
    denied: int
    unknown: int


class AuditStatsVerification(TypedDict):
    # Of the segments that are not written to any more.
    state: Literal["pending", "good", "broken"]
    # The last record of the segments found good since the recorder started.
    verifiedTo: int
    at: Optional[str]
    brokenAt: Optional[int]
    reason: Optional[str]


class AuditStatsRetention(TypedDict):
    days: float
    minAgeHours: float
    # Of all tenants of the node together.
    maxBytes: int
    # What vouches for all that is gone.
    dropped: Optional["DroppedHead"]


class AuditStats(TypedDict):
    records: int
    bytes: int
    segments: int
    # The oldest record that is kept; 0 when there is none.
    firstSeq: int
    lastSeq: int
    oldest: Optional[str]
    newest: Optional[str]
    # Records of the last minute.
    perMinute: int
    perDay: List["AuditStatsPerDayItem"]
    points: List["AuditStatsPointsItem"]
    verification: "AuditStatsVerification"
    retention: "AuditStatsRetention"


class BacktestExamplesItem(TypedDict):
    seq: int
    ts: str
    actor: str
    point: "Point"
    agent: Optional[str]
    sandbox: Optional[str]
    operation: "Operation"
    before: "Decision"
    after: "Decision"


class Backtest(TypedDict):
    replayed: int
    changed: int
    partial: int
    changes: List["BacktestChangesItem"]
    examples: List["BacktestExamplesItem"]
    truncated: bool


class BudgetReserved(TypedDict):
    sandboxes: int
    memoryBytes: int
    diskBytes: int
    cpus: float


class BudgetSpent(TypedDict):
    day: str
    computeSeconds: float
    dollars: float
    modelCalls: int
    modelTokens: int


class Budget(TypedDict):
    tenant: str
    agent: Optional[str]
    limits: "BudgetLimits"
    set: List[
        Literal[
            "sandboxes",
            "memoryBytes",
            "diskBytes",
            "cpus",
            "computeSecondsPerDay",
            "dollarsPerDay",
            "modelCallsPerDay",
            "modelTokensPerDay",
        ],
    ]
    reserved: "BudgetReserved"
    spent: "BudgetSpent"


class BudgetLimits(TypedDict):
    sandboxes: int
    memoryBytes: int
    diskBytes: int
    cpus: float
    computeSecondsPerDay: int
    dollarsPerDay: float
    modelCallsPerDay: int
    modelTokensPerDay: int


class Command(TypedDict):
    id: str
    sandbox: str
    argv: List[str]
    cwd: str
    state: Literal["running", "exited", "lost"]
    exitCode: Optional[int]
    signal: Optional[str]
    timedOut: bool
    cause: Optional["EndCause"]
    truncated: bool
    outputBytes: int
    fullOutput: Optional["KeptOutput"]
    startedAt: str
    endedAt: Optional[str]
    durationMs: Optional[float]


class CommandEventStarted(TypedDict):
    event: Literal["started"]
    command: "Command"


class _CommandEventOutputRequired(TypedDict):
    event: Literal["output"]
    stream: Literal["stdout", "stderr"]
    offset: int


class CommandEventOutput(_CommandEventOutputRequired, total=False):
    text: str
    base64: str


class CommandEventTruncated(TypedDict):
    event: Literal["truncated"]
    limitBytes: int


class CommandEventEnded(TypedDict):
    event: Literal["ended"]
    command: "Command"


class CommandEventErrorError(TypedDict):
    code: str
    message: str
    hint: str


class CommandEventError(TypedDict):
    event: Literal["error"]
    error: "CommandEventErrorError"


class CommandResult(TypedDict):
    id: str
    sandbox: str
    argv: List[str]
    cwd: str
    state: Literal["running", "exited", "lost"]
    exitCode: Optional[int]
    signal: Optional[str]
    timedOut: bool
    cause: Optional["EndCause"]
    truncated: bool
    outputBytes: int
    fullOutput: Optional["KeptOutput"]
    startedAt: str
    endedAt: Optional[str]
    durationMs: Optional[float]
    stdout: str
    stderr: str


class Conditions(TypedDict, total=False):
    maxTimeoutMs: int
    readOnly: Literal[True]
    tier: Literal["strict"]


class Connection(TypedDict):
    sandbox: str
    agent: str
    generation: int
    # Inside: a unix socket that speaks HTTP.
    socket: str
    # Inside: the token that is good now; read it at each use.
    tokenFile: str
    # What programs inside are started with.
    env: Dict[str, str]
    scopes: List[Literal["self", "heartbeat", "renew", "ask", "tool"]]
    # When the token that was just given ends, unless it is renewed before.
    expiresAt: str


class CreatedSandboxModelLimits(TypedDict):
    # Calls in its whole life. Null is no cap.
    calls: Optional[int]
    # Input, output and cached tokens in its whole life. Null is no cap.
    tokens: Optional[int]
    # In its whole life. Null is no cap.
    dollars: Optional[float]
    # Calls under way at once.
    concurrentCalls: int


class CreatedSandboxError(TypedDict):
    code: str
    message: str


class CreatedSandboxAgentSnapshot(TypedDict):
    state: "AgentState"
    generation: int
    approved: bool
    version: Optional[str]
    labels: Dict[str, str]


class CreatedSandboxReserved(TypedDict):
    reservation: str
    limits: "Limits"
    budget: "Budget"


class CreatedSandbox(TypedDict):
    id: str
    tenant: str
    agent: str
    generation: int
    name: Optional[str]
    node: str
    template: str
    image: Optional[str]
    state: "SandboxState"
    labels: Dict[str, str]
    limits: "Limits"
    # What it sees of the host: the grants of its agent when it was created.
    mounts: List["Mount"]
    # The ways out that it has.
    doors: List["DoorName"]
    # Models that it may name. A rule must allow each call.
    models: List[str]
    modelLimits: "CreatedSandboxModelLimits"
    ttlMs: int
    idleMs: int
    onIdle: Literal["terminate", "pause"]
    # It ends when it was paused for so long.
    maxPausedMs: int
    createdAt: str
    lastActiveAt: str
    expiresAt: str
    # The end of the maximum lifetime: nothing extends past it.
    endsAt: str
    # While it is paused, the time until expiresAt does not run.
    pausedAt: Optional[str]
    pausedBy: Optional[Literal["request", "idle"]]
    endedAt: Optional[str]
    endReason: Optional["EndReason"]
    error: Optional["CreatedSandboxError"]
    isolation: Optional["EffectiveIsolation"]
    agentSnapshot: "CreatedSandboxAgentSnapshot"
    reserved: "CreatedSandboxReserved"


class Decision(TypedDict):
    effect: "Effect"
    risk: "Risk"
    rules: List["MatchedRule"]
    conditions: "Conditions"
    policyVersion: str


class DroppedHeadDropped(TypedDict):
    newest: str
    segments: int
    bytes: int


class _DroppedHeadRequired(TypedDict):
    tenant: str
    seq: int
    hash: str
    ts: str
    keyId: str
    signature: str
    dropped: "DroppedHeadDropped"


class DroppedHead(_DroppedHeadRequired, total=False):
    end: Literal[True]


class EffectiveIsolationUidRange(TypedDict):
    first: int
    count: int


class EffectiveIsolationProbe(TypedDict):
    tried: int
    passed: List[str]


class EffectiveIsolation(TypedDict):
    backend: str
    runtime: str
    tier: "Tier"
    namespaces: List[str]
    network: Literal["none", "policy-only", "host"]
    seccomp: Literal["allowlist", "none"]
    noNewPrivileges: bool
    capabilities: List[str]
    uidRange: "EffectiveIsolationUidRange"
    cgroup: Literal["v1", "v2", "hybrid"]
    limits: List[Literal["memory", "swap", "pids", "cpu", "disk", "inodes", "open-files"]]
    root: Optional[Literal["read-only", "writable"]]
    unmasked: Optional[List[str]]
    mountFaults: Optional[List[str]]
    probe: Optional["EffectiveIsolationProbe"]


class EvaluationSourcesItem(TypedDict):
    name: str
    decision: "Decision"


class Evaluation(TypedDict):
    question: "Question"
    decision: "Decision"
    sources: List["EvaluationSourcesItem"]


class EventPage(TypedDict):
    items: List["AuditEvent"]
    # Give it as `after` for what comes next.
    after: int
    # Records up to here were asked for, but dropped by retention.
    gap: Optional[int]


class _FileEntryRequired(TypedDict):
    name: str
    # Names it in every route; a `file://` URL where the bytes are not UTF-8.
    path: str
    kind: Literal["file", "directory", "symlink", "other"]
    size: int
    mode: int
    modifiedAt: str


class FileEntry(_FileEntryRequired, total=False):
    # Where a symbolic link points.
    target: str


class Grant(TypedDict):
    id: str
    tenant: str
    agent: str
    node: str
    path: str
    mode: Literal["ro", "rw", "worktree"]
    kind: Literal["file", "dir"]
    target: str
    allowed: List[str]
    blocked: List[str]
    createdAt: str
    createdBy: str


class GraphModelLimits(TypedDict, total=False):
    # Calls in its whole life. Null is no cap.
    calls: Optional[int]
    # Input, output and cached tokens in its whole life. Null is no cap.
    tokens: Optional[int]
    # In its whole life. Null is no cap.
    dollars: Optional[float]
    # Calls under way at once.
    concurrentCalls: int


class GraphLimits(TypedDict, total=False):
    # Of user code, memory file systems included. Never swapped.
    memoryBytes: int
    cpus: float
    # Processes and threads.
    pids: int
    # Of /workspace and /home/user together.
    diskBytes: int
    # Files and directories on its disk, and at most so many in /tmp.
    inodes: int
    # Of each process.
    openFiles: int
    # Processor time of the sandbox since its start: it ends when that is used up. Null is no cap.
    cpuSeconds: Optional[int]


class Graph(TypedDict):
    name: str
    source: Literal["builtin", "configuration", "tenant"]
    description: str
    version: str
    template: str
    argv: List[str]
    language: Optional[Literal["python", "node", "bash"]]
    sha256: str
    models: List[str]
    modelLimits: "GraphModelLimits"
    limits: "GraphLimits"
    tier: "Tier"
    doors: List[str]
    timeoutMs: int
    createdAt: Optional[str]


class GuardianStatusPoliciesItem(TypedDict):
    name: str
    scope: Literal["shipped", "platform", "tenant"]
    version: int
    rules: int
    off: List[str]
    problem: Optional[str]


class GuardianStatusRulesItem(TypedDict):
    kind: "RuleKind"
    effect: "Effect"
    count: int


class GuardianStatusSourcesItem(TypedDict):
    name: str
    # Null before it was asked.
    isHealthy: Optional[bool]
    problem: Optional[str]


class GuardianStatus(TypedDict):
    default: "Effect"
    policies: List["GuardianStatusPoliciesItem"]
    rules: List["GuardianStatusRulesItem"]
    sources: List["GuardianStatusSourcesItem"]


class KeptOutput(TypedDict):
    bytes: int
    truncated: bool


class KilledSandbox(TypedDict):
    id: str
    node: str
    # Until it stood still; null when it was not seen to.
    frozenMs: Optional[float]
    # Until the kernel showed none of its processes; null while it may have some.
    goneMs: Optional[float]
    # How many it had; null when nobody counted.
    processes: Optional[int]
    verified: bool


class KillReport(TypedDict):
    id: str
    scope: "KillScope"
    # Null for everything.
    tenant: Optional[str]
    target: Optional[str]
    reason: str
    actor: str
    at: str
    liftedAt: Optional[str]
    liftedBy: Optional[str]
    # False while the store cannot take it: then it is in a file of its server alone.
    persisted: bool
    sandboxes: List["KilledSandbox"]
    slowestMs: Optional[float]
    # What may still live: it is tried again every second.
    unverified: List[str]
    # Other nodes that have not ended theirs yet.
    nodesDue: List[str]


class Limits(TypedDict):
    # Of user code, memory file systems included. Never swapped.
    memoryBytes: int
    cpus: float
    # Processes and threads.
    pids: int
    # Of /workspace and /home/user together.
    diskBytes: int
    # Files and directories on its disk, and at most so many in /tmp.
    inodes: int
    # Of each process.
    openFiles: int
    # Processor time of the sandbox since its start: it ends when that is used up. Null is no cap.
    cpuSeconds: Optional[int]


class MatchedRule(TypedDict):
    policy: str
    rule: str
    effect: "Effect"
    risk: "Risk"
    reason: str


class MetricEventSample(TypedDict):
    event: Literal["sample"]
    sandbox: str
    sample: "MetricSample"


class MetricEventAlert(TypedDict):
    event: Literal["alert"]
    alert: "Alert"


class MetricEventCleared(TypedDict):
    event: Literal["cleared"]
    sandbox: str
    resource: Literal["cpu", "memory", "disk", "inodes", "pids"]
    at: str


class MetricEventEnded(TypedDict):
    event: Literal["ended"]
    sandbox: str


class MetricSampleOfLimit(TypedDict):
    memory: Optional[float]
    pids: Optional[float]
    disk: Optional[float]
    inodes: Optional[float]


class MetricSamplePressure(TypedDict):
    cpu: Optional[float]
    memory: Optional[float]
    io: Optional[float]


class MetricSample(TypedDict):
    at: str
    cpuPercent: Optional[float]
    # Processor time since its start.
    cpuMs: Optional[float]
    # How long user code was held back by its limit of processors, since its start.
    throttledMs: Optional[float]
    # Of user code, as its limit counts it; in the strict tier of all of the sandbox.
    memoryBytes: Optional[float]
    swapBytes: Optional[float]
    # Processes and threads of user code, as its limit counts them; in the strict tier those of its kernel.
    pids: Optional[float]
    # In all of its writable places.
    diskBytes: Optional[float]
    inodes: Optional[float]
    # From its disk, since its start; what the host had in memory counts too.
    readBytes: Optional[float]
    writtenBytes: Optional[float]
    # Processes that the kernel ended for want of memory, since its start.
    oomKills: Optional[float]
    # Processes that the limit refused, since its start, at least.
    pidsRefused: Optional[float]
    ofLimit: "MetricSampleOfLimit"
    # Where the kernel has it (PSI).
    pressure: Optional["MetricSamplePressure"]


class ModelPrice(TypedDict):
    # Dollars for a million tokens.
    input: float
    # Dollars for a million tokens.
    output: float
    # Dollars for a million tokens.
    cacheRead: float
    # Dollars for a million tokens.
    cacheWrite: float


class Model(TypedDict):
    name: str
    aliases: List[str]
    # Null: the server answers itself.
    upstream: Optional[str]
    kind: Optional[Literal["openai", "anthropic", "litellm", "compatible"]]
    # Tokens that it reads at most.
    contextWindow: int
    # Tokens that it writes at most.
    maxOutput: int
    price: "ModelPrice"


class _MountRequired(TypedDict):
    grant: str
    path: str
    target: str
    mode: Literal["ro", "rw", "worktree"]
    kind: Literal["file", "dir"]


class Mount(_MountRequired, total=False):
    # Of a worktree: what it was made from.
    commit: str


class NewApiKey(TypedDict):
    key: "ApiKey"
    secret: str


class NewWebhook(TypedDict):
    webhook: "Webhook"
    secret: str


class _OperationCommandRequired(TypedDict):
    kind: Literal["command"]
    argv: List[str]
    cwd: str
    env: List[str]
    timeoutMs: float


class OperationCommand(_OperationCommandRequired, total=False):
    cpuTimeMs: float


class _OperationCodeRequired(TypedDict):
    kind: Literal["code"]
    runtime: str
    code: str
    timeoutMs: float


class OperationCode(_OperationCodeRequired, total=False):
    env: List[str]


class _OperationFileRequired(TypedDict):
    kind: Literal["file"]
    action: Literal["read", "write", "list", "mkdir", "move", "remove"]
    path: str


class OperationFile(_OperationFileRequired, total=False):
    to: str


class OperationMount(TypedDict):
    kind: Literal["mount"]
    path: str
    mode: Literal["ro", "rw", "worktree"]


class OperationSandboxMountsItem(TypedDict):
    path: str
    mode: Literal["ro", "rw", "worktree"]


class _OperationSandboxRequired(TypedDict):
    kind: Literal["sandbox"]
    template: str
    tier: "Tier"
    limits: "Limits"
    labels: Dict[str, str]
    lifetimeMs: float
    mounts: List["OperationSandboxMountsItem"]


class OperationSandbox(_OperationSandboxRequired, total=False):
    env: List[str]


class _OperationNetworkRequired(TypedDict):
    kind: Literal["network"]
    host: str
    port: int


class OperationNetwork(_OperationNetworkRequired, total=False):
    traffic: Literal["tls", "http", "raw"]


class OperationArtifact(TypedDict):
    kind: Literal["artifact"]
    action: Literal["collect", "upload", "download", "link"]
    name: str
    bytes: Optional[float]
    count: float


class OperationModel(TypedDict):
    kind: Literal["model"]
    model: str


class _OperationToolRequired(TypedDict):
    kind: Literal["tool"]
    tool: str


class OperationTool(_OperationToolRequired, total=False):
    params: Dict[str, "Json"]
    request: str


class OperationWorktreeFindingsItem(TypedDict):
    kind: Literal[
        "agent",
        "binary",
        "build",
        "ci",
        "container",
        "git",
        "hook",
        "infra",
        "large",
        "left-out",
        "link-out",
        "long-line",
        "many",
        "name",
        "secret",
        "submodule",
    ]
    path: str
    detail: str


class OperationWorktree(TypedDict):
    kind: Literal["worktree"]
    source: str
    format: Literal["branch", "patch"]
    branch: Optional[str]
    seal: str
    changes: int
    findings: List["OperationWorktreeFindingsItem"]


class OperationOther(TypedDict):
    kind: Literal["other"]
    payload: Dict[str, "Json"]


class Policy(TypedDict):
    scope: Literal["tenant", "platform"]
    name: str
    version: int
    inForce: bool
    createdAt: str
    createdBy: str
    document: Optional["PolicyDocument"]


class PolicyCheck(TypedDict):
    isValid: bool
    problems: List[str]
    rules: int
    examples: int


class _PolicyDocumentRequired(TypedDict):
    name: str
    off: List[str]
    rules: List["PolicyRule"]


class PolicyDocument(_PolicyDocumentRequired, total=False):
    description: str
    default: "Effect"


class PolicyRuleCommandMatch(TypedDict, total=False):
    # Its name, without directories.
    programs: List[str]
    # The first word that is no flag, or the first that cannot be the value of one.
    subcommands: List[str]
    # One of them is given; clusters are taken apart: -rf is -r and -f.
    flags: List[str]
    # None of them is given.
    withoutFlags: List[str]
    # One of the words after the program, as it stands.
    arguments: List[str]
    # None of the words is such.
    withoutArguments: List[str]
    # One of the words as an exact path, or what is redirected into it.
    paths: List[str]
    # Where its output goes: redirects, and what tee, dd, cp and their like write.
    writes: List[str]
    # A variable that is set for it, or exported before.
    assigns: List[str]
    # It interprets what one of these programs writes.
    runsOutputOf: List[str]
    # One of these programs writes into it.
    inputFrom: List[str]
    traits: List[Literal["unreadable", "fork-bomb", "endless-loop", "endless-spawn"]]
    # In the words, joined by one blank.
    pattern: str


class PolicyRuleCommandWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleCommandExamples(TypedDict):
    match: List[Union[str, List[str], "Operation"]]
    notMatch: List[Union[str, List[str], "Operation"]]


class _PolicyRuleCommandRequired(TypedDict):
    kind: Literal["command"]
    match: "PolicyRuleCommandMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str
    enabled: bool
    note: bool
    examples: "PolicyRuleCommandExamples"


class PolicyRuleCommand(_PolicyRuleCommandRequired, total=False):
    when: "PolicyRuleCommandWhen"
    conditions: "Conditions"


class PolicyRuleCodeMatch(TypedDict, total=False):
    runtimes: List[str]
    # A function by its dotted name, or by the last part of it.
    calls: List[str]
    # One of the literal strings that the call is given.
    arguments: List[str]
    # The same as exact paths.
    paths: List[str]
    # A function that is called among its arguments.
    within: List[str]
    # In the code.
    pattern: str


class PolicyRuleCodeWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleCodeExamples(TypedDict):
    match: List[Union[str, List[str], "Operation"]]
    notMatch: List[Union[str, List[str], "Operation"]]


class _PolicyRuleCodeRequired(TypedDict):
    kind: Literal["code"]
    match: "PolicyRuleCodeMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str
    enabled: bool
    note: bool
    examples: "PolicyRuleCodeExamples"


class PolicyRuleCode(_PolicyRuleCodeRequired, total=False):
    when: "PolicyRuleCodeWhen"
    conditions: "Conditions"


class PolicyRuleFileMatch(TypedDict, total=False):
    actions: List[Literal["read", "write", "list", "mkdir", "move", "remove"]]
    paths: List[str]


class PolicyRuleFileWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleFileExamples(TypedDict):
    match: List[Union[str, List[str], "Operation"]]
    notMatch: List[Union[str, List[str], "Operation"]]


class _PolicyRuleFileRequired(TypedDict):
    kind: Literal["file"]
    match: "PolicyRuleFileMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str
    enabled: bool
    note: bool
    examples: "PolicyRuleFileExamples"


class PolicyRuleFile(_PolicyRuleFileRequired, total=False):
    when: "PolicyRuleFileWhen"
    conditions: "Conditions"


class PolicyRuleMountMatch(TypedDict, total=False):
    paths: List[str]
    modes: List[Literal["ro", "rw", "worktree"]]


class PolicyRuleMountWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleMountExamples(TypedDict):
    match: List[Union[str, List[str], "Operation"]]
    notMatch: List[Union[str, List[str], "Operation"]]


class _PolicyRuleMountRequired(TypedDict):
    kind: Literal["mount"]
    match: "PolicyRuleMountMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str
    enabled: bool
    note: bool
    examples: "PolicyRuleMountExamples"


class PolicyRuleMount(_PolicyRuleMountRequired, total=False):
    when: "PolicyRuleMountWhen"
    conditions: "Conditions"


class PolicyRuleNetworkMatch(TypedDict, total=False):
    # Without it a rule can deny and not allow. To allow an address, the address itself is named.
    hosts: List[str]
    ports: List[int]
    # By CONNECT with TLS, in plain HTTP, by CONNECT with other bytes. raw is allowed only where it is named.
    traffic: List[Literal["tls", "http", "raw"]]


class PolicyRuleNetworkWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleNetworkExamples(TypedDict):
    match: List[Union[str, List[str], "Operation"]]
    notMatch: List[Union[str, List[str], "Operation"]]


class _PolicyRuleNetworkRequired(TypedDict):
    kind: Literal["network"]
    match: "PolicyRuleNetworkMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str
    enabled: bool
    note: bool
    examples: "PolicyRuleNetworkExamples"


class PolicyRuleNetwork(_PolicyRuleNetworkRequired, total=False):
    when: "PolicyRuleNetworkWhen"
    conditions: "Conditions"


class PolicyRuleModelMatch(TypedDict):
    models: List[str]


class PolicyRuleModelWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleModelExamples(TypedDict):
    match: List[Union[str, List[str], "Operation"]]
    notMatch: List[Union[str, List[str], "Operation"]]


class _PolicyRuleModelRequired(TypedDict):
    kind: Literal["model"]
    match: "PolicyRuleModelMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str
    enabled: bool
    note: bool
    examples: "PolicyRuleModelExamples"


class PolicyRuleModel(_PolicyRuleModelRequired, total=False):
    when: "PolicyRuleModelWhen"
    conditions: "Conditions"


class PolicyRuleArtifactMatchOver(TypedDict, total=False):
    """One of them is more than that."""

    # One whose size is not known before is over.
    bytes: float
    # Files of one collection.
    count: float


class PolicyRuleArtifactMatch(TypedDict, total=False):
    actions: List[Literal["collect", "upload", "download", "link"]]
    names: List[str]
    # One of them is more than that.
    over: "PolicyRuleArtifactMatchOver"


class PolicyRuleArtifactWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleArtifactExamples(TypedDict):
    match: List[Union[str, List[str], "Operation"]]
    notMatch: List[Union[str, List[str], "Operation"]]


class _PolicyRuleArtifactRequired(TypedDict):
    kind: Literal["artifact"]
    match: "PolicyRuleArtifactMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str
    enabled: bool
    note: bool
    examples: "PolicyRuleArtifactExamples"


class PolicyRuleArtifact(_PolicyRuleArtifactRequired, total=False):
    when: "PolicyRuleArtifactWhen"
    conditions: "Conditions"


class PolicyRuleToolMatch(TypedDict):
    tools: List[str]


class PolicyRuleToolWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleToolExamples(TypedDict):
    match: List[Union[str, List[str], "Operation"]]
    notMatch: List[Union[str, List[str], "Operation"]]


class _PolicyRuleToolRequired(TypedDict):
    kind: Literal["tool"]
    match: "PolicyRuleToolMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str
    enabled: bool
    note: bool
    examples: "PolicyRuleToolExamples"


class PolicyRuleTool(_PolicyRuleToolRequired, total=False):
    when: "PolicyRuleToolWhen"
    conditions: "Conditions"


class PolicyRuleWorktreeMatch(TypedDict, total=False):
    # Kinds of findings. A rule that allows must name all that there are, one that does not any of them.
    findings: List[str]
    # The same of their paths, below the worktree.
    paths: List[str]
    # The repository on the host.
    sources: List[str]
    formats: List[Literal["branch", "patch"]]


class PolicyRuleWorktreeWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleWorktreeExamples(TypedDict):
    match: List[Union[str, List[str], "Operation"]]
    notMatch: List[Union[str, List[str], "Operation"]]


class _PolicyRuleWorktreeRequired(TypedDict):
    kind: Literal["worktree"]
    match: "PolicyRuleWorktreeMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str
    enabled: bool
    note: bool
    examples: "PolicyRuleWorktreeExamples"


class PolicyRuleWorktree(_PolicyRuleWorktreeRequired, total=False):
    when: "PolicyRuleWorktreeWhen"
    conditions: "Conditions"


class PolicyRuleQuotaMatchOver(TypedDict, total=False):
    """One of them is more than that."""

    cpus: float
    memoryBytes: float
    pids: float
    diskBytes: float
    inodes: float
    openFiles: float
    # Of a sandbox; one without a cap is over.
    cpuSeconds: float
    lifetimeMs: float
    # Of a command or a step.
    timeoutMs: float
    # Of a command; one without a cap is over.
    cpuTimeMs: float


class PolicyRuleQuotaMatch(TypedDict):
    # One of them is more than that.
    over: "PolicyRuleQuotaMatchOver"


class PolicyRuleQuotaWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleQuotaExamples(TypedDict):
    match: List[Union[str, List[str], "Operation"]]
    notMatch: List[Union[str, List[str], "Operation"]]


class _PolicyRuleQuotaRequired(TypedDict):
    kind: Literal["quota"]
    match: "PolicyRuleQuotaMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str
    enabled: bool
    note: bool
    examples: "PolicyRuleQuotaExamples"


class PolicyRuleQuota(_PolicyRuleQuotaRequired, total=False):
    when: "PolicyRuleQuotaWhen"
    conditions: "Conditions"


class PolicyRuleTierMatch(TypedDict, total=False):
    templates: List[str]
    tiers: List["Tier"]
    # Each of these labels has such a value.
    labels: Dict[str, List[str]]


class PolicyRuleTierWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleTierExamples(TypedDict):
    match: List[Union[str, List[str], "Operation"]]
    notMatch: List[Union[str, List[str], "Operation"]]


class _PolicyRuleTierRequired(TypedDict):
    kind: Literal["tier"]
    match: "PolicyRuleTierMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str
    enabled: bool
    note: bool
    examples: "PolicyRuleTierExamples"


class PolicyRuleTier(_PolicyRuleTierRequired, total=False):
    when: "PolicyRuleTierWhen"
    conditions: "Conditions"


class PolicyRuleOperationMatch(TypedDict, total=False):
    points: List[str]
    # What a program in a sandbox asks for by its door, or the agent program of a run, such as sandbox:agent.
    actions: List[str]


class PolicyRuleOperationWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleOperationExamples(TypedDict):
    match: List[Union[str, List[str], "Operation"]]
    notMatch: List[Union[str, List[str], "Operation"]]


class _PolicyRuleOperationRequired(TypedDict):
    kind: Literal["operation"]
    match: "PolicyRuleOperationMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str
    enabled: bool
    note: bool
    examples: "PolicyRuleOperationExamples"


class PolicyRuleOperation(_PolicyRuleOperationRequired, total=False):
    when: "PolicyRuleOperationWhen"
    conditions: "Conditions"


class PolicyVersion(TypedDict):
    scope: Literal["tenant", "platform"]
    name: str
    version: int
    inForce: bool
    createdAt: str
    createdBy: str


class QuarantinedHeadQuarantined(TypedDict):
    to: int
    bytes: int
    sha256: str
    reason: str
    by: str


class _QuarantinedHeadRequired(TypedDict):
    tenant: str
    seq: int
    hash: str
    ts: str
    keyId: str
    signature: str
    quarantined: "QuarantinedHeadQuarantined"


class QuarantinedHead(_QuarantinedHeadRequired, total=False):
    end: Literal[True]


class _QuestionRequired(TypedDict):
    point: "Point"
    tenant: str
    actor: str
    role: Literal["admin", "operator", "developer", "auditor", "sandbox"]
    agent: Optional[str]
    sandbox: Optional[str]
    operation: "Operation"


class Question(_QuestionRequired, total=False):
    ephemeral: bool


class ResourceUsage(TypedDict):
    cpuMs: Optional[float]
    memoryPeakBytes: Optional[float]


class RuleInForce(TypedDict):
    policy: str
    rule: str
    kind: "RuleKind"
    effect: "Effect"
    risk: "Risk"
    reason: str
    isOn: bool


class RunBudget(TypedDict):
    # Calls in its whole life. Null is no cap.
    calls: Optional[int]
    # Input, output and cached tokens in its whole life. Null is no cap.
    tokens: Optional[int]
    # In its whole life. Null is no cap.
    dollars: Optional[float]
    # Calls under way at once.
    concurrentCalls: int


class RunError(TypedDict):
    code: str
    message: str


class Run(TypedDict):
    id: str
    tenant: str
    agent: str
    graph: str
    version: str
    model: str
    budget: "RunBudget"
    state: Literal["queued", "running", "succeeded", "failed", "canceled"]
    error: Optional["RunError"]
    labels: Dict[str, str]
    idempotencyKey: Optional[str]
    timeoutMs: int
    cancelRequested: bool
    node: Optional[str]
    sandbox: Optional[str]
    command: Optional[str]
    createdAt: str
    startedAt: Optional[str]
    endedAt: Optional[str]
    result: Optional["RunResult"]
    usage: "RunUsage"


class RunEventStarted(TypedDict):
    event: Literal["started"]
    run: "RunSummary"


class _RunEventStatusRequired(TypedDict):
    event: Literal["status"]
    phase: Literal["queued", "running", "thinking", "tool_use", "compacting"]


class RunEventStatus(_RunEventStatusRequired, total=False):
    label: str
    offset: int


class RunEventTextDelta(TypedDict):
    event: Literal["text_delta"]
    offset: int
    delta: str


class RunEventToolCallStart(TypedDict):
    event: Literal["tool_call_start"]
    offset: int
    toolCallId: str
    toolName: str
    args: "Json"


class RunEventToolCallResult(TypedDict):
    event: Literal["tool_call_result"]
    offset: int
    toolCallId: str
    result: "Json"
    isError: bool


class RunEventAssistantFinal(TypedDict):
    event: Literal["assistant_final"]
    offset: int
    content: str


class RunEventErrorError(TypedDict):
    code: str
    message: str
    hint: str


class _RunEventErrorRequired(TypedDict):
    event: Literal["error"]


class RunEventError(_RunEventErrorRequired, total=False):
    offset: int
    code: str
    message: str
    error: "RunEventErrorError"


class RunEventDone(TypedDict):
    event: Literal["done"]
    offset: int
    run: "Run"


class RunLog(TypedDict):
    stdout: str
    stderr: str
    truncated: bool


class RunResultPayloadsItem(TypedDict):
    text: str


class RunResultMetaError(TypedDict):
    code: str
    message: str


class RunResultMeta(TypedDict):
    durationMs: float
    error: Optional["RunResultMetaError"]


class RunResult(TypedDict):
    payloads: List["RunResultPayloadsItem"]
    meta: "RunResultMeta"


class RunSummaryBudget(TypedDict):
    # Calls in its whole life. Null is no cap.
    calls: Optional[int]
    # Input, output and cached tokens in its whole life. Null is no cap.
    tokens: Optional[int]
    # In its whole life. Null is no cap.
    dollars: Optional[float]
    # Calls under way at once.
    concurrentCalls: int


class RunSummaryError(TypedDict):
    code: str
    message: str


class RunSummary(TypedDict):
    id: str
    tenant: str
    agent: str
    graph: str
    version: str
    model: str
    budget: "RunSummaryBudget"
    state: Literal["queued", "running", "succeeded", "failed", "canceled"]
    error: Optional["RunSummaryError"]
    labels: Dict[str, str]
    idempotencyKey: Optional[str]
    timeoutMs: int
    cancelRequested: bool
    node: Optional[str]
    sandbox: Optional[str]
    command: Optional[str]
    createdAt: str
    startedAt: Optional[str]
    endedAt: Optional[str]


class RunUsage(TypedDict):
    calls: int
    estimatedCalls: int
    inputTokens: int
    outputTokens: int
    cacheReadTokens: int
    cacheWriteTokens: int
    microDollars: int
    dollars: float
    computeSeconds: float


class SandboxModelLimits(TypedDict):
    # Calls in its whole life. Null is no cap.
    calls: Optional[int]
    # Input, output and cached tokens in its whole life. Null is no cap.
    tokens: Optional[int]
    # In its whole life. Null is no cap.
    dollars: Optional[float]
    # Calls under way at once.
    concurrentCalls: int


class SandboxError(TypedDict):
    code: str
    message: str


class Sandbox(TypedDict):
    id: str
    tenant: str
    agent: str
    generation: int
    name: Optional[str]
    node: str
    template: str
    image: Optional[str]
    state: "SandboxState"
    labels: Dict[str, str]
    limits: "Limits"
    # What it sees of the host: the grants of its agent when it was created.
    mounts: List["Mount"]
    # The ways out that it has.
    doors: List["DoorName"]
    # Models that it may name. A rule must allow each call.
    models: List[str]
    modelLimits: "SandboxModelLimits"
    ttlMs: int
    idleMs: int
    onIdle: Literal["terminate", "pause"]
    # It ends when it was paused for so long.
    maxPausedMs: int
    createdAt: str
    lastActiveAt: str
    expiresAt: str
    # The end of the maximum lifetime: nothing extends past it.
    endsAt: str
    # While it is paused, the time until expiresAt does not run.
    pausedAt: Optional[str]
    pausedBy: Optional[Literal["request", "idle"]]
    endedAt: Optional[str]
    endReason: Optional["EndReason"]
    error: Optional["SandboxError"]
    isolation: Optional["EffectiveIsolation"]


class SandboxMetricsRaised(TypedDict):
    """Alerts since its start."""

    warning: int
    critical: int


class SandboxMetricsHistoryItem(TypedDict):
    # Its beginning.
    at: str
    spanMs: int
    samples: int
    cpuPercent: Optional[float]
    cpuPercentMax: Optional[float]
    memoryBytes: Optional[float]
    memoryBytesMax: Optional[float]
    pids: Optional[float]
    pidsMax: Optional[float]
    diskBytes: Optional[float]
    throttledMs: Optional[float]
    readBytes: Optional[float]
    writtenBytes: Optional[float]
    oomKills: Optional[float]


class SandboxMetrics(TypedDict):
    sandbox: str
    name: Optional[str]
    agent: str
    state: "SandboxState"
    limits: "Limits"
    # Null before the first sample, and when it has ended.
    now: Optional["MetricSample"]
    # What it is beyond now.
    alerts: List["Alert"]
    # Alerts since its start.
    raised: "SandboxMetricsRaised"
    history: List["SandboxMetricsHistoryItem"]


class Session(TypedDict):
    id: str
    tenant: str
    agent: str
    sandbox: str
    ownsSandbox: bool
    runtime: "Runtime"
    runtimeVersion: str
    state: "SessionState"
    labels: Dict[str, str]
    ttlMs: int
    restarts: int
    createdAt: str
    lastActiveAt: str
    expiresAt: str
    endedAt: Optional[str]
    endReason: Optional[Literal["ttl", "terminated", "sandbox_ended", "create_failed"]]


class _SignedHeadRequired(TypedDict):
    tenant: str
    seq: int
    hash: str
    ts: str
    keyId: str
    signature: str


class SignedHead(_SignedHeadRequired, total=False):
    end: Literal[True]


class StepProvenance(TypedDict):
    image: str
    runtime: str
    policyVersion: Optional[str]


class Step(TypedDict):
    id: str
    stepId: str
    session: str
    sandbox: str
    status: "StepStatus"
    error: Optional["StepError"]
    cause: Optional["EndCause"]
    restarted: bool
    truncated: bool
    outputBytes: int
    startedAt: str
    endedAt: Optional[str]
    durationMs: Optional[float]
    resourceUsage: Optional["ResourceUsage"]
    provenance: "StepProvenance"


class StepError(TypedDict):
    name: str
    message: str
    traceback: str


class StepEventStarted(TypedDict):
    event: Literal["started"]
    step: "Step"


class _StepEventOutputRequired(TypedDict):
    event: Literal["output"]
    stream: Literal["stdout", "stderr"]
    offset: int


class StepEventOutput(_StepEventOutputRequired, total=False):
    text: str
    base64: str


class StepEventRich(TypedDict):
    event: Literal["rich"]
    offset: int
    output: "StepOutput"


class StepEventTruncated(TypedDict):
    event: Literal["truncated"]
    limitBytes: int


class StepEventEnded(TypedDict):
    event: Literal["ended"]
    step: "Step"


class StepEventErrorError(TypedDict):
    code: str
    message: str
    hint: str


class StepEventError(TypedDict):
    event: Literal["error"]
    error: "StepEventErrorError"


class StepOutput(TypedDict):
    kind: Literal["display", "result"]
    data: Dict[str, "Json"]


class StepResultProvenance(TypedDict):
    image: str
    runtime: str
    policyVersion: Optional[str]


class StepResult(TypedDict):
    id: str
    stepId: str
    session: str
    sandbox: str
    status: "StepStatus"
    error: Optional["StepError"]
    cause: Optional["EndCause"]
    restarted: bool
    truncated: bool
    outputBytes: int
    startedAt: str
    endedAt: Optional[str]
    durationMs: Optional[float]
    resourceUsage: Optional["ResourceUsage"]
    provenance: "StepResultProvenance"
    stdout: str
    stderr: str
    outputs: List["StepOutput"]


class StreamedEventRecord(TypedDict):
    event: Literal["record"]
    seq: int
    record: "AuditEvent"


class StreamedEventAt(TypedDict):
    event: Literal["at"]
    seq: int


class StreamedEventGap(TypedDict):
    event: Literal["gap"]
    seq: int


class StreamedEventCut(TypedDict):
    event: Literal["cut"]
    seq: int


class TemplateLimits(TypedDict, total=False):
    # Of user code, memory file systems included. Never swapped.
    memoryBytes: int
    cpus: float
    # Processes and threads.
    pids: int
    # Of /workspace and /home/user together.
    diskBytes: int
    # Files and directories on its disk, and at most so many in /tmp.
    inodes: int
    # Of each process.
    openFiles: int
    # Processor time of the sandbox since its start: it ends when that is used up. Null is no cap.
    cpuSeconds: Optional[int]


class TemplateModelLimits(TypedDict, total=False):
    """Caps on the calls of models by each of its sandboxes."""

    # Calls in its whole life. Null is no cap.
    calls: Optional[int]
    # Input, output and cached tokens in its whole life. Null is no cap.
    tokens: Optional[int]
    # In its whole life. Null is no cap.
    dollars: Optional[float]
    # Calls under way at once.
    concurrentCalls: int


class TemplateError(TypedDict):
    code: str
    message: str


class Template(TypedDict):
    name: str
    shipped: bool
    state: Literal["absent", "building", "ready", "failed"]
    source: Literal["host", "packages", "imported"]
    image: Optional[str]
    bytes: Optional[int]
    # Debian packages over the host image, kept in a place of their own.
    packages: List[str]
    env: Dict[str, str]
    limits: "TemplateLimits"
    tier: Literal["standard", "strict"]
    # Doors of its sandboxes, beside `control`, which every sandbox has.
    doors: List["DoorName"]
    # Models that its sandboxes may name; naming one gives them the door `llm`.
    models: List[str]
    # Caps on the calls of models by each of its sandboxes.
    modelLimits: "TemplateModelLimits"
    error: Optional["TemplateError"]
    createdAt: str
    builtAt: Optional[str]


class TemplateEventProgress(TypedDict):
    event: Literal["progress"]
    step: Literal["resolve", "download", "unpack", "prepare"]
    done: float
    total: Optional[float]
    detail: str


class TemplateEventEnded(TypedDict):
    event: Literal["ended"]
    template: "Template"


class TemplateEventErrorError(TypedDict):
    code: str
    message: str
    hint: str


class TemplateEventError(TypedDict):
    event: Literal["error"]
    error: "TemplateEventErrorError"


class TemplateSpecLimits(TypedDict, total=False):
    # Of user code, memory file systems included. Never swapped.
    memoryBytes: int
    cpus: float
    # Processes and threads.
    pids: int
    # Of /workspace and /home/user together.
    diskBytes: int
    # Files and directories on its disk, and at most so many in /tmp.
    inodes: int
    # Of each process.
    openFiles: int
    # Processor time of the sandbox since its start: it ends when that is used up. Null is no cap.
    cpuSeconds: Optional[int]


class TemplateSpecModelLimits(TypedDict, total=False):
    """Caps on the calls of models by each of its sandboxes."""

    # Calls in its whole life. Null is no cap.
    calls: Optional[int]
    # Input, output and cached tokens in its whole life. Null is no cap.
    tokens: Optional[int]
    # In its whole life. Null is no cap.
    dollars: Optional[float]
    # Calls under way at once.
    concurrentCalls: int


class TemplateSpec(TypedDict):
    # Debian packages over the host image, kept in a place of their own.
    packages: List[str]
    env: Dict[str, str]
    limits: "TemplateSpecLimits"
    tier: Literal["standard", "strict"]
    # Doors of its sandboxes, beside `control`, which every sandbox has.
    doors: List["DoorName"]
    # Models that its sandboxes may name; naming one gives them the door `llm`.
    models: List[str]
    # Caps on the calls of models by each of its sandboxes.
    modelLimits: "TemplateSpecModelLimits"


class Tenant(TypedDict):
    id: str
    createdAt: str


class TenantMetricsTotalAlerts(TypedDict):
    """Sandboxes that are beyond a threshold now count each resource once."""

    warning: int
    critical: int


class TenantMetricsTotal(TypedDict):
    sandboxes: int
    cpuPercent: float
    memoryBytes: float
    pids: float
    diskBytes: float
    # Sandboxes that are beyond a threshold now count each resource once.
    alerts: "TenantMetricsTotalAlerts"


class TenantMetricsSandboxesItemRaised(TypedDict):
    """Alerts since its start."""

    warning: int
    critical: int


class TenantMetricsSandboxesItem(TypedDict):
    sandbox: str
    name: Optional[str]
    agent: str
    state: "SandboxState"
    limits: "Limits"
    # Null before the first sample, and when it has ended.
    now: Optional["MetricSample"]
    # What it is beyond now.
    alerts: List["Alert"]
    # Alerts since its start.
    raised: "TenantMetricsSandboxesItemRaised"


class TenantMetrics(TypedDict):
    tenant: str
    total: "TenantMetricsTotal"
    sandboxes: List["TenantMetricsSandboxesItem"]
    truncated: bool


class UsageReport(TypedDict):
    items: List["UsageRow"]
    truncated: bool


class UsageRow(TypedDict):
    tenant: str
    # In UTC.
    day: Optional[str]
    agent: Optional[str]
    sandbox: Optional[str]
    model: Optional[str]
    sandboxes: int
    wallSeconds: float
    cpuSeconds: float
    computeSeconds: float
    calls: int
    estimatedCalls: int
    # Without those read from a cache or written to one.
    inputTokens: int
    outputTokens: int
    cacheReadTokens: int
    cacheWriteTokens: int
    microDollars: int
    dollars: float


class Webhook(TypedDict):
    id: str
    tenant: str
    url: str
    events: List["WebhookEventName"]
    createdAt: str
    createdBy: str
    lastAt: Optional[str]
    lastError: Optional[str]


class ListSandboxesAnswer(TypedDict):
    items: List["Sandbox"]
    nextCursor: Optional[str]


class ListCommandsAnswer(TypedDict):
    items: List["Command"]
    nextCursor: Optional[str]


class WriteFileAnswer(TypedDict):
    path: str
    bytes: int


class WriteArchiveAnswer(TypedDict):
    path: str
    files: int
    directories: int
    links: int
    # Content of the files.
    bytes: int
    # SHA-256 over one line per file, `<sha256> <path>`, and per link, `-> <target> <path>`, sorted by path.
    manifest: str


class ListFilesAnswer(TypedDict):
    entries: List["FileEntry"]
    truncated: bool


class DiffWorktreeAnswerLeftOutItem(TypedDict):
    path: str
    why: Literal["git-name", "special", "submodule"]


class DiffWorktreeAnswerCommitsItem(TypedDict):
    id: str
    subject: str


class DiffWorktreeAnswerFindingsItem(TypedDict):
    kind: Literal[
        "agent",
        "binary",
        "build",
        "ci",
        "container",
        "git",
        "hook",
        "infra",
        "large",
        "left-out",
        "link-out",
        "long-line",
        "many",
        "name",
        "secret",
        "submodule",
    ]
    # Below the worktree; empty for a finding about all of it.
    path: str
    line: Optional[int]
    detail: str


class DiffWorktreeAnswer(TypedDict):
    # SHA-256 over the base and every change. An export names it.
    seal: str
    source: str
    # The commit that it was made from.
    base: str
    changes: List["DiffWorktreeAnswerChangesItem"]
    # Files that the base does not have and a .gitignore names; they do not leave.
    ignored: int
    # What git cannot hold; it does not leave.
    leftOut: List["DiffWorktreeAnswerLeftOutItem"]
    # Commits that were made inside, newest first.
    commits: List["DiffWorktreeAnswerCommitsItem"]
    # False where some could not be read as data.
    commitsComplete: bool
    # What the gate found. An export with findings asks unless a rule allows it.
    findings: List["DiffWorktreeAnswerFindingsItem"]
    # Null where a patch would be too large.
    patchBytes: Optional[int]


class ExportWorktreeAnswer1(TypedDict):
    exported: Literal[False]
    seal: str


class ExportWorktreeAnswer2(TypedDict):
    exported: Literal[True]
    seal: str
    branch: str
    commit: str
    base: str


class ListSessionsAnswer(TypedDict):
    items: List["Session"]
    nextCursor: Optional[str]


class ListStepsAnswer(TypedDict):
    items: List["Step"]
    nextCursor: Optional[str]


class ListTemplatesAnswer(TypedDict):
    items: List["Template"]


class SubmitJobAnswerError(TypedDict):
    code: str
    message: str


class SubmitJobAnswerArtifactsItemsItem(TypedDict):
    id: str
    name: str
    size: int
    sha256: str
    mediaType: str


class SubmitJobAnswerArtifactsSkippedItem(TypedDict):
    name: str
    why: str


class SubmitJobAnswerArtifactsError(TypedDict):
    code: str
    message: str


class SubmitJobAnswerArtifacts(TypedDict):
    count: int
    bytes: int
    # The first 100; all of them are in the list of artifacts.
    items: List["SubmitJobAnswerArtifactsItemsItem"]
    skipped: List["SubmitJobAnswerArtifactsSkippedItem"]
    skippedCount: int
    error: Optional["SubmitJobAnswerArtifactsError"]


class SubmitJobAnswerProvenance(TypedDict):
    image: Optional[str]
    template: str
    runtime: Optional[str]
    tier: Optional["Tier"]
    policyVersion: Optional[str]


class SubmitJobAnswer(TypedDict):
    id: str
    tenant: str
    agent: str
    state: Literal["queued", "running", "succeeded", "failed", "canceled"]
    argv: List[str]
    language: Optional[Literal["python", "node", "bash"]]
    sha256: str
    template: str
    labels: Dict[str, str]
    idempotencyKey: Optional[str]
    timeoutMs: int
    retries: int
    tries: int
    cancelRequested: bool
    node: Optional[str]
    sandbox: Optional[str]
    command: Optional[str]
    exitCode: Optional[int]
    signal: Optional[str]
    cause: Optional["EndCause"]
    error: Optional["SubmitJobAnswerError"]
    outputBytes: int
    truncated: bool
    artifacts: Optional["SubmitJobAnswerArtifacts"]
    resourceUsage: Optional["ResourceUsage"]
    provenance: Optional["SubmitJobAnswerProvenance"]
    createdAt: str
    queueEndsAt: str
    notBefore: str
    startedAt: Optional[str]
    endedAt: Optional[str]


class ListJobsAnswer(TypedDict):
    items: List["SubmitJobAnswer"]
    nextCursor: Optional[str]


class JobLogsAnswer(TypedDict):
    job: "SubmitJobAnswer"
    stdout: str
    stderr: str
    offset: int


class JobLogsEventStarted(TypedDict):
    event: Literal["started"]
    job: "SubmitJobAnswer"


class _JobLogsEventOutputRequired(TypedDict):
    event: Literal["output"]
    stream: Literal["stdout", "stderr"]
    offset: int
    attempt: int


class JobLogsEventOutput(_JobLogsEventOutputRequired, total=False):
    text: str
    base64: str


class JobLogsEventEnded(TypedDict):
    event: Literal["ended"]
    job: "SubmitJobAnswer"


class JobLogsEventErrorError(TypedDict):
    code: str
    message: str
    hint: str


class JobLogsEventError(TypedDict):
    event: Literal["error"]
    error: "JobLogsEventErrorError"


class CollectArtifactsAnswerSkippedItem(TypedDict):
    name: str
    why: str


class CollectArtifactsAnswer(TypedDict):
    items: List["UploadArtifactAnswer"]
    # The first of those that matched and were left out.
    skipped: List["CollectArtifactsAnswerSkippedItem"]
    skippedCount: int


class UploadArtifactAnswerProvenance(TypedDict):
    image: Optional[str]
    template: str
    runtime: Optional[str]
    tier: Optional["Tier"]
    codeSha256: Optional[str]


class UploadArtifactAnswer(TypedDict):
    id: str
    tenant: str
    agent: str
    name: str
    size: int
    sha256: str
    mediaType: str
    node: str
    sandbox: Optional[str]
    command: Optional[str]
    step: Optional[str]
    job: Optional[str]
    provenance: Optional["UploadArtifactAnswerProvenance"]
    createdBy: str
    createdAt: str
    expiresAt: str


class ListArtifactsAnswer(TypedDict):
    items: List["UploadArtifactAnswer"]
    nextCursor: Optional[str]


class LinkArtifactAnswer(TypedDict):
    url: str
    expiresAt: str


class ListCatalogAnswer(TypedDict):
    items: List["Graph"]


class ListRunsAnswer(TypedDict):
    items: List["RunSummary"]
    nextCursor: Optional[str]


class RunEventsAnswer(TypedDict):
    items: List["RunEvent"]


class OpenaiChatAnswerChoicesItemMessage(TypedDict):
    role: Literal["assistant"]
    content: str
    refusal: None


class OpenaiChatAnswerChoicesItem(TypedDict):
    index: int
    message: "OpenaiChatAnswerChoicesItemMessage"
    finish_reason: Literal["stop"]
    logprobs: None


class OpenaiChatAnswerUsage(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class OpenaiChatAnswer(TypedDict):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: List["OpenaiChatAnswerChoicesItem"]
    usage: "OpenaiChatAnswerUsage"


class OpenaiModelsAnswerDataItem(TypedDict):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class OpenaiModelsAnswer(TypedDict):
    object: Literal["list"]
    data: List["OpenaiModelsAnswerDataItem"]


class ListAgentsAnswer(TypedDict):
    items: List["Agent"]
    nextCursor: Optional[str]


class ListGrantsAnswer(TypedDict):
    items: List["Grant"]


class ListKeysAnswer(TypedDict):
    items: List["ApiKey"]
    nextCursor: Optional[str]


class ListTenantsAnswer(TypedDict):
    items: List["Tenant"]
    nextCursor: Optional[str]


class ListPoliciesAnswer(TypedDict):
    items: List["PolicyVersion"]


class ListPolicyVersionsAnswer(TypedDict):
    items: List["PolicyVersion"]
    nextCursor: Optional[str]


class ListRulesAnswer(TypedDict):
    items: List["RuleInForce"]


class ListKillswitchesAnswer(TypedDict):
    items: List["KillReport"]


class ListApprovalsAnswer(TypedDict):
    items: List["Approval"]
    nextCursor: Optional[str]


class ApprovalEventsAnswer(TypedDict):
    items: List["Approval"]


class ListWebhooksAnswer(TypedDict):
    items: List["Webhook"]


class ListModelsAnswer(TypedDict):
    items: List["Model"]


class GetLlmStatusAnswerUpstreamsItem(TypedDict):
    name: str
    kind: Literal["openai", "anthropic", "litellm", "compatible"]
    key: Literal["present", "absent", "malformed", "none"]
    # Of any tenant: null unless the key is of the platform.
    lastStatus: Optional[int]
    # Of any tenant: null unless the key is of the platform.
    lastError: Optional[str]
    breaker: Literal["closed", "open", "half-open"]
    # Since its start. Null unless the key is of the platform.
    calls: Optional[int]
    # Models that it serves.
    models: int


class GetLlmStatusAnswerUnderWay(TypedDict):
    calls: int
    # Reserved for them.
    microDollars: int


class GetLlmStatusAnswer(TypedDict):
    upstreams: List["GetLlmStatusAnswerUpstreamsItem"]
    underWay: "GetLlmStatusAnswerUnderWay"


class GetSealKeyAnswer(TypedDict):
    keyId: str
    publicKey: str
    # Your tenant: a secret is sealed for it.
    tenant: str


class ListSecretsAnswer(TypedDict):
    items: List["PutSecretAnswer"]


class PutSecretAnswer(TypedDict):
    name: str
    tenant: str
    origin: str
    version: int
    # Whether this node can open it.
    usable: bool
    createdAt: str
    updatedAt: str
    updatedBy: str


class ListToolsAnswer(TypedDict):
    items: List["GetToolAnswer"]


class _GetToolAnswerParametersPropertiesValue1Required(TypedDict):
    type: Literal["string"]


class GetToolAnswerParametersPropertiesValue1(_GetToolAnswerParametersPropertiesValue1Required, total=False):
    description: str
    enum: List[str]
    minLength: int
    maxLength: int


class _GetToolAnswerParametersPropertiesValue2Required(TypedDict):
    type: Literal["integer"]


class GetToolAnswerParametersPropertiesValue2(_GetToolAnswerParametersPropertiesValue2Required, total=False):
    description: str
    minimum: int
    maximum: int


class _GetToolAnswerParametersPropertiesValue3Required(TypedDict):
    type: Literal["number"]


class GetToolAnswerParametersPropertiesValue3(_GetToolAnswerParametersPropertiesValue3Required, total=False):
    description: str
    minimum: float
    maximum: float


class _GetToolAnswerParametersPropertiesValue4Required(TypedDict):
    type: Literal["boolean"]


class GetToolAnswerParametersPropertiesValue4(_GetToolAnswerParametersPropertiesValue4Required, total=False):
    description: str


class _GetToolAnswerParametersPropertiesValue5Items1Required(TypedDict):
    type: Literal["string"]


class GetToolAnswerParametersPropertiesValue5Items1(_GetToolAnswerParametersPropertiesValue5Items1Required, total=False):
    description: str
    enum: List[str]
    minLength: int
    maxLength: int


class _GetToolAnswerParametersPropertiesValue5Items2Required(TypedDict):
    type: Literal["integer"]


class GetToolAnswerParametersPropertiesValue5Items2(_GetToolAnswerParametersPropertiesValue5Items2Required, total=False):
    description: str
    minimum: int
    maximum: int


class _GetToolAnswerParametersPropertiesValue5Items3Required(TypedDict):
    type: Literal["number"]


class GetToolAnswerParametersPropertiesValue5Items3(_GetToolAnswerParametersPropertiesValue5Items3Required, total=False):
    description: str
    minimum: float
    maximum: float


class _GetToolAnswerParametersPropertiesValue5Items4Required(TypedDict):
    type: Literal["boolean"]


class GetToolAnswerParametersPropertiesValue5Items4(_GetToolAnswerParametersPropertiesValue5Items4Required, total=False):
    description: str


class _GetToolAnswerParametersPropertiesValue5Required(TypedDict):
    type: Literal["array"]
    items: Union[
        "GetToolAnswerParametersPropertiesValue5Items1",
        "GetToolAnswerParametersPropertiesValue5Items2",
        "GetToolAnswerParametersPropertiesValue5Items3",
        "GetToolAnswerParametersPropertiesValue5Items4",
    ]


class GetToolAnswerParametersPropertiesValue5(_GetToolAnswerParametersPropertiesValue5Required, total=False):
    description: str
    maxItems: int


class GetToolAnswerParameters(TypedDict):
    type: Literal["object"]
    properties: Dict[
        str,
        Union[
            "GetToolAnswerParametersPropertiesValue1",
            "GetToolAnswerParametersPropertiesValue2",
            "GetToolAnswerParametersPropertiesValue3",
            "GetToolAnswerParametersPropertiesValue4",
            "GetToolAnswerParametersPropertiesValue5",
        ],
    ]
    required: List[str]


class _GetToolAnswerCredentialRequired(TypedDict):
    secret: str
    header: str


class GetToolAnswerCredential(_GetToolAnswerCredentialRequired, total=False):
    prefix: str
    basicUser: str


class GetToolAnswer(TypedDict):
    name: str
    tenant: str
    # What a program inside reads about it.
    description: str
    # The service. Every call goes there, and no redirect is followed.
    origin: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    # With {parameters}, such as /repos/{owner}/{repo}/issues.
    path: str
    # Parameters in the query.
    query: List[str]
    # Parameters in a JSON object.
    body: List[str]
    headers: Dict[str, str]
    parameters: "GetToolAnswerParameters"
    # Paths that a call may have after encoding. Any other is denied.
    scope: List[str]
    credential: Optional["GetToolAnswerCredential"]
    timeoutMs: int
    maxAnswerBytes: int
    version: int
    createdAt: str
    updatedAt: str
    updatedBy: str


class AuditEventsAnswer(TypedDict):
    items: List["AuditRecord"]
    nextCursor: Optional[str]


class AuditHeadAnswer(TypedDict):
    head: "SignedHead"
    publicKey: str


class AuditChainsAnswer(TypedDict):
    items: List["AuditChain"]


class WhoamiAnswer(TypedDict):
    actor: str
    tenant: str
    role: "Role"
    agents: Optional[List[str]]
    platform: bool


class HealthAnswer(TypedDict):
    status: Literal["ok"]


class _ReadyAnswerRequired(TypedDict):
    status: Literal["ready"]


class ReadyAnswer(_ReadyAnswerRequired, total=False):
    warnings: List[Literal["host_disk_low", "evidence_broken", "evidence_unavailable"]]


class ChangeAgentBody(TypedDict, total=False):
    expectedGeneration: int


class ConditionsInput(TypedDict, total=False):
    maxTimeoutMs: int
    readOnly: Literal[True]
    tier: Literal["strict"]


class _OperationInputCommandRequired(TypedDict):
    kind: Literal["command"]
    argv: List[str]
    cwd: str
    env: List[str]
    timeoutMs: float


class OperationInputCommand(_OperationInputCommandRequired, total=False):
    cpuTimeMs: float


class _OperationInputCodeRequired(TypedDict):
    kind: Literal["code"]
    runtime: str
    code: str
    timeoutMs: float


class OperationInputCode(_OperationInputCodeRequired, total=False):
    env: List[str]


class _OperationInputFileRequired(TypedDict):
    kind: Literal["file"]
    action: Literal["read", "write", "list", "mkdir", "move", "remove"]
    path: str


class OperationInputFile(_OperationInputFileRequired, total=False):
    to: str


class OperationInputMount(TypedDict):
    kind: Literal["mount"]
    path: str
    mode: Literal["ro", "rw", "worktree"]


class _OperationInputSandboxLimitsRequired(TypedDict):
    # Of user code, memory file systems included. Never swapped.
    memoryBytes: int
    cpus: float
    # Processes and threads.
    pids: int
    # Of /workspace and /home/user together.
    diskBytes: int


class OperationInputSandboxLimits(_OperationInputSandboxLimitsRequired, total=False):
    # Files and directories on its disk, and at most so many in /tmp.
    inodes: int
    # Of each process.
    openFiles: int
    # Processor time of the sandbox since its start: it ends when that is used up. Null is no cap.
    cpuSeconds: Optional[int]


class OperationInputSandboxMountsItem(TypedDict):
    path: str
    mode: Literal["ro", "rw", "worktree"]


class _OperationInputSandboxRequired(TypedDict):
    kind: Literal["sandbox"]
    template: str
    tier: "Tier"
    limits: "OperationInputSandboxLimits"
    labels: Dict[str, str]
    lifetimeMs: float
    mounts: List["OperationInputSandboxMountsItem"]


class OperationInputSandbox(_OperationInputSandboxRequired, total=False):
    env: List[str]


class _OperationInputNetworkRequired(TypedDict):
    kind: Literal["network"]
    host: str
    port: int


class OperationInputNetwork(_OperationInputNetworkRequired, total=False):
    traffic: Literal["tls", "http", "raw"]


class OperationInputArtifact(TypedDict):
    kind: Literal["artifact"]
    action: Literal["collect", "upload", "download", "link"]
    name: str
    bytes: Optional[float]
    count: float


class OperationInputModel(TypedDict):
    kind: Literal["model"]
    model: str


class _OperationInputToolRequired(TypedDict):
    kind: Literal["tool"]
    tool: str


class OperationInputTool(_OperationInputToolRequired, total=False):
    params: Dict[str, "Json"]
    request: str


class OperationInputWorktreeFindingsItem(TypedDict):
    kind: Literal[
        "agent",
        "binary",
        "build",
        "ci",
        "container",
        "git",
        "hook",
        "infra",
        "large",
        "left-out",
        "link-out",
        "long-line",
        "many",
        "name",
        "secret",
        "submodule",
    ]
    path: str
    detail: str


class OperationInputWorktree(TypedDict):
    kind: Literal["worktree"]
    source: str
    format: Literal["branch", "patch"]
    branch: Optional[str]
    seal: str
    changes: int
    findings: List["OperationInputWorktreeFindingsItem"]


class OperationInputOther(TypedDict):
    kind: Literal["other"]
    payload: Dict[str, "Json"]


class _PolicyDocumentInputRequired(TypedDict):
    name: str
    rules: List["PolicyRuleInput"]


class PolicyDocumentInput(_PolicyDocumentInputRequired, total=False):
    description: str
    default: "Effect"
    off: List[str]


class PolicyRuleInputCommandMatch(TypedDict, total=False):
    # Its name, without directories.
    programs: List[str]
    # The first word that is no flag, or the first that cannot be the value of one.
    subcommands: List[str]
    # One of them is given; clusters are taken apart: -rf is -r and -f.
    flags: List[str]
    # None of them is given.
    withoutFlags: List[str]
    # One of the words after the program, as it stands.
    arguments: List[str]
    # None of the words is such.
    withoutArguments: List[str]
    # One of the words as an exact path, or what is redirected into it.
    paths: List[str]
    # Where its output goes: redirects, and what tee, dd, cp and their like write.
    writes: List[str]
    # A variable that is set for it, or exported before.
    assigns: List[str]
    # It interprets what one of these programs writes.
    runsOutputOf: List[str]
    # One of these programs writes into it.
    inputFrom: List[str]
    traits: List[Literal["unreadable", "fork-bomb", "endless-loop", "endless-spawn"]]
    # In the words, joined by one blank.
    pattern: str


class PolicyRuleInputCommandWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleInputCommandExamples(TypedDict, total=False):
    match: List[Union[str, List[str], "OperationInput"]]
    notMatch: List[Union[str, List[str], "OperationInput"]]


class _PolicyRuleInputCommandRequired(TypedDict):
    kind: Literal["command"]
    match: "PolicyRuleInputCommandMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str


class PolicyRuleInputCommand(_PolicyRuleInputCommandRequired, total=False):
    enabled: bool
    note: bool
    when: "PolicyRuleInputCommandWhen"
    conditions: "ConditionsInput"
    examples: "PolicyRuleInputCommandExamples"


class PolicyRuleInputCodeMatch(TypedDict, total=False):
    runtimes: List[str]
    # A function by its dotted name, or by the last part of it.
    calls: List[str]
    # One of the literal strings that the call is given.
    arguments: List[str]
    # The same as exact paths.
    paths: List[str]
    # A function that is called among its arguments.
    within: List[str]
    # In the code.
    pattern: str


class PolicyRuleInputCodeWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleInputCodeExamples(TypedDict, total=False):
    match: List[Union[str, List[str], "OperationInput"]]
    notMatch: List[Union[str, List[str], "OperationInput"]]


class _PolicyRuleInputCodeRequired(TypedDict):
    kind: Literal["code"]
    match: "PolicyRuleInputCodeMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str


class PolicyRuleInputCode(_PolicyRuleInputCodeRequired, total=False):
    enabled: bool
    note: bool
    when: "PolicyRuleInputCodeWhen"
    conditions: "ConditionsInput"
    examples: "PolicyRuleInputCodeExamples"


class PolicyRuleInputFileMatch(TypedDict, total=False):
    actions: List[Literal["read", "write", "list", "mkdir", "move", "remove"]]
    paths: List[str]


class PolicyRuleInputFileWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleInputFileExamples(TypedDict, total=False):
    match: List[Union[str, List[str], "OperationInput"]]
    notMatch: List[Union[str, List[str], "OperationInput"]]


class _PolicyRuleInputFileRequired(TypedDict):
    kind: Literal["file"]
    match: "PolicyRuleInputFileMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str


class PolicyRuleInputFile(_PolicyRuleInputFileRequired, total=False):
    enabled: bool
    note: bool
    when: "PolicyRuleInputFileWhen"
    conditions: "ConditionsInput"
    examples: "PolicyRuleInputFileExamples"


class PolicyRuleInputMountMatch(TypedDict, total=False):
    paths: List[str]
    modes: List[Literal["ro", "rw", "worktree"]]


class PolicyRuleInputMountWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleInputMountExamples(TypedDict, total=False):
    match: List[Union[str, List[str], "OperationInput"]]
    notMatch: List[Union[str, List[str], "OperationInput"]]


class _PolicyRuleInputMountRequired(TypedDict):
    kind: Literal["mount"]
    match: "PolicyRuleInputMountMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str


class PolicyRuleInputMount(_PolicyRuleInputMountRequired, total=False):
    enabled: bool
    note: bool
    when: "PolicyRuleInputMountWhen"
    conditions: "ConditionsInput"
    examples: "PolicyRuleInputMountExamples"


class PolicyRuleInputNetworkMatch(TypedDict, total=False):
    # Without it a rule can deny and not allow. To allow an address, the address itself is named.
    hosts: List[str]
    ports: List[int]
    # By CONNECT with TLS, in plain HTTP, by CONNECT with other bytes. raw is allowed only where it is named.
    traffic: List[Literal["tls", "http", "raw"]]


class PolicyRuleInputNetworkWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleInputNetworkExamples(TypedDict, total=False):
    match: List[Union[str, List[str], "OperationInput"]]
    notMatch: List[Union[str, List[str], "OperationInput"]]


class _PolicyRuleInputNetworkRequired(TypedDict):
    kind: Literal["network"]
    match: "PolicyRuleInputNetworkMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str


class PolicyRuleInputNetwork(_PolicyRuleInputNetworkRequired, total=False):
    enabled: bool
    note: bool
    when: "PolicyRuleInputNetworkWhen"
    conditions: "ConditionsInput"
    examples: "PolicyRuleInputNetworkExamples"


class PolicyRuleInputModelMatch(TypedDict):
    models: List[str]


class PolicyRuleInputModelWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleInputModelExamples(TypedDict, total=False):
    match: List[Union[str, List[str], "OperationInput"]]
    notMatch: List[Union[str, List[str], "OperationInput"]]


class _PolicyRuleInputModelRequired(TypedDict):
    kind: Literal["model"]
    match: "PolicyRuleInputModelMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str


class PolicyRuleInputModel(_PolicyRuleInputModelRequired, total=False):
    enabled: bool
    note: bool
    when: "PolicyRuleInputModelWhen"
    conditions: "ConditionsInput"
    examples: "PolicyRuleInputModelExamples"


class PolicyRuleInputArtifactMatchOver(TypedDict, total=False):
    """One of them is more than that."""

    # One whose size is not known before is over.
    bytes: float
    # Files of one collection.
    count: float


class PolicyRuleInputArtifactMatch(TypedDict, total=False):
    actions: List[Literal["collect", "upload", "download", "link"]]
    names: List[str]
    # One of them is more than that.
    over: "PolicyRuleInputArtifactMatchOver"


class PolicyRuleInputArtifactWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleInputArtifactExamples(TypedDict, total=False):
    match: List[Union[str, List[str], "OperationInput"]]
    notMatch: List[Union[str, List[str], "OperationInput"]]


class _PolicyRuleInputArtifactRequired(TypedDict):
    kind: Literal["artifact"]
    match: "PolicyRuleInputArtifactMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str


class PolicyRuleInputArtifact(_PolicyRuleInputArtifactRequired, total=False):
    enabled: bool
    note: bool
    when: "PolicyRuleInputArtifactWhen"
    conditions: "ConditionsInput"
    examples: "PolicyRuleInputArtifactExamples"


class PolicyRuleInputToolMatch(TypedDict):
    tools: List[str]


class PolicyRuleInputToolWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleInputToolExamples(TypedDict, total=False):
    match: List[Union[str, List[str], "OperationInput"]]
    notMatch: List[Union[str, List[str], "OperationInput"]]


class _PolicyRuleInputToolRequired(TypedDict):
    kind: Literal["tool"]
    match: "PolicyRuleInputToolMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str


class PolicyRuleInputTool(_PolicyRuleInputToolRequired, total=False):
    enabled: bool
    note: bool
    when: "PolicyRuleInputToolWhen"
    conditions: "ConditionsInput"
    examples: "PolicyRuleInputToolExamples"


class PolicyRuleInputWorktreeMatch(TypedDict, total=False):
    # Kinds of findings. A rule that allows must name all that there are, one that does not any of them.
    findings: List[str]
    # The same of their paths, below the worktree.
    paths: List[str]
    # The repository on the host.
    sources: List[str]
    formats: List[Literal["branch", "patch"]]


class PolicyRuleInputWorktreeWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleInputWorktreeExamples(TypedDict, total=False):
    match: List[Union[str, List[str], "OperationInput"]]
    notMatch: List[Union[str, List[str], "OperationInput"]]


class _PolicyRuleInputWorktreeRequired(TypedDict):
    kind: Literal["worktree"]
    match: "PolicyRuleInputWorktreeMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str


class PolicyRuleInputWorktree(_PolicyRuleInputWorktreeRequired, total=False):
    enabled: bool
    note: bool
    when: "PolicyRuleInputWorktreeWhen"
    conditions: "ConditionsInput"
    examples: "PolicyRuleInputWorktreeExamples"


class PolicyRuleInputQuotaMatchOver(TypedDict, total=False):
    """One of them is more than that."""

    cpus: float
    memoryBytes: float
    pids: float
    diskBytes: float
    inodes: float
    openFiles: float
    # Of a sandbox; one without a cap is over.
    cpuSeconds: float
    lifetimeMs: float
    # Of a command or a step.
    timeoutMs: float
    # Of a command; one without a cap is over.
    cpuTimeMs: float


class PolicyRuleInputQuotaMatch(TypedDict):
    # One of them is more than that.
    over: "PolicyRuleInputQuotaMatchOver"


class PolicyRuleInputQuotaWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleInputQuotaExamples(TypedDict, total=False):
    match: List[Union[str, List[str], "OperationInput"]]
    notMatch: List[Union[str, List[str], "OperationInput"]]


class _PolicyRuleInputQuotaRequired(TypedDict):
    kind: Literal["quota"]
    match: "PolicyRuleInputQuotaMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str


class PolicyRuleInputQuota(_PolicyRuleInputQuotaRequired, total=False):
    enabled: bool
    note: bool
    when: "PolicyRuleInputQuotaWhen"
    conditions: "ConditionsInput"
    examples: "PolicyRuleInputQuotaExamples"


class PolicyRuleInputTierMatch(TypedDict, total=False):
    templates: List[str]
    tiers: List["Tier"]
    # Each of these labels has such a value.
    labels: Dict[str, List[str]]


class PolicyRuleInputTierWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleInputTierExamples(TypedDict, total=False):
    match: List[Union[str, List[str], "OperationInput"]]
    notMatch: List[Union[str, List[str], "OperationInput"]]


class _PolicyRuleInputTierRequired(TypedDict):
    kind: Literal["tier"]
    match: "PolicyRuleInputTierMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str


class PolicyRuleInputTier(_PolicyRuleInputTierRequired, total=False):
    enabled: bool
    note: bool
    when: "PolicyRuleInputTierWhen"
    conditions: "ConditionsInput"
    examples: "PolicyRuleInputTierExamples"


class PolicyRuleInputOperationMatch(TypedDict, total=False):
    points: List[str]
    # What a program in a sandbox asks for by its door, or the agent program of a run, such as sandbox:agent.
    actions: List[str]


class PolicyRuleInputOperationWhen(TypedDict, total=False):
    points: List[str]
    tenants: List[str]
    actors: List[str]
    roles: List[Literal["admin", "operator", "developer", "auditor", "sandbox"]]
    agents: List[str]
    sandboxes: List[str]
    # Whether the sandbox was created for one run.
    ephemeral: bool


class PolicyRuleInputOperationExamples(TypedDict, total=False):
    match: List[Union[str, List[str], "OperationInput"]]
    notMatch: List[Union[str, List[str], "OperationInput"]]


class _PolicyRuleInputOperationRequired(TypedDict):
    kind: Literal["operation"]
    match: "PolicyRuleInputOperationMatch"
    id: str
    effect: "Effect"
    risk: "Risk"
    reason: str


class PolicyRuleInputOperation(_PolicyRuleInputOperationRequired, total=False):
    enabled: bool
    note: bool
    when: "PolicyRuleInputOperationWhen"
    conditions: "ConditionsInput"
    examples: "PolicyRuleInputOperationExamples"


class PutTemplateBodyLimits(TypedDict, total=False):
    # Of user code, memory file systems included. Never swapped.
    memoryBytes: int
    cpus: float
    # Processes and threads.
    pids: int
    # Of /workspace and /home/user together.
    diskBytes: int
    # Files and directories on its disk, and at most so many in /tmp.
    inodes: int
    # Of each process.
    openFiles: int
    # Processor time of the sandbox since its start: it ends when that is used up. Null is no cap.
    cpuSeconds: Optional[int]


class PutTemplateBodyModelLimits(TypedDict, total=False):
    """Caps on the calls of models by each of its sandboxes."""

    # Calls in its whole life. Null is no cap.
    calls: Optional[int]
    # Input, output and cached tokens in its whole life. Null is no cap.
    tokens: Optional[int]
    # In its whole life. Null is no cap.
    dollars: Optional[float]
    # Calls under way at once.
    concurrentCalls: int


class PutTemplateBody(TypedDict, total=False):
    # Debian packages over the host image, kept in a place of their own.
    packages: List[str]
    env: Dict[str, str]
    limits: "PutTemplateBodyLimits"
    tier: Literal["standard", "strict"]
    # Doors of its sandboxes, beside `control`, which every sandbox has.
    doors: List["DoorName"]
    # Models that its sandboxes may name; naming one gives them the door `llm`.
    models: List[str]
    # Caps on the calls of models by each of its sandboxes.
    modelLimits: "PutTemplateBodyModelLimits"


class SetBudgetBody(TypedDict, total=False):
    sandboxes: Optional[int]
    memoryBytes: Optional[int]
    diskBytes: Optional[int]
    cpus: Optional[float]
    computeSecondsPerDay: Optional[int]
    dollarsPerDay: Optional[float]
    modelCallsPerDay: Optional[int]
    modelTokensPerDay: Optional[int]


class CreateSandboxBodyLimits(TypedDict, total=False):
    # Of user code, memory file systems included. Never swapped.
    memoryBytes: int
    cpus: float
    # Processes and threads.
    pids: int
    # Of /workspace and /home/user together.
    diskBytes: int
    # Files and directories on its disk, and at most so many in /tmp.
    inodes: int
    # Of each process.
    openFiles: int
    # Processor time of the sandbox since its start: it ends when that is used up. Null is no cap.
    cpuSeconds: Optional[int]


class CreateSandboxBodyModelLimits(TypedDict, total=False):
    """Caps on its calls of models; those of the template hold where absent."""

    # Calls in its whole life. Null is no cap.
    calls: Optional[int]
    # Input, output and cached tokens in its whole life. Null is no cap.
    tokens: Optional[int]
    # In its whole life. Null is no cap.
    dollars: Optional[float]
    # Calls under way at once.
    concurrentCalls: int


class _CreateSandboxBodyWorktreeRequired(TypedDict):
    # The top of a git repository of the host.
    source: str


class CreateSandboxBodyWorktree(_CreateSandboxBodyWorktreeRequired, total=False):
    """A git repository of the host, at /workspace/repo; it needs a grant."""

    # A commit, branch or tag; what HEAD is when absent.
    at: str


class CreateSandboxBody(TypedDict, total=False):
    name: str
    # Who it runs for. When absent: the agent that the key is bound to; "default" if it is bound to none.
    agent: str
    template: str
    labels: Dict[str, str]
    env: Dict[str, str]
    # It is for one run and ends with it. Rules may ask less about it, and an approval holds for the same run in another
    # sandbox.
    ephemeral: bool
    ttlMs: int
    idleMs: int
    onIdle: Literal["terminate", "pause"]
    maxPausedMs: int
    maxLifetimeMs: int
    limits: "CreateSandboxBodyLimits"
    # At least that; a template or a policy may ask for more.
    tier: "Tier"
    # Doors beside `control` and those of the template.
    doors: List["DoorName"]
    # Models that it may name beside those of the template; naming one gives it the door `llm`.
    models: List[str]
    # Caps on its calls of models; those of the template hold where absent.
    modelLimits: "CreateSandboxBodyModelLimits"
    # A git repository of the host, at /workspace/repo; it needs a grant.
    worktree: "CreateSandboxBodyWorktree"


class GetOrCreateSandboxBodyLimits(TypedDict, total=False):
    # Of user code, memory file systems included. Never swapped.
    memoryBytes: int
    cpus: float
    # Processes and threads.
    pids: int
    # Of /workspace and /home/user together.
    diskBytes: int
    # Files and directories on its disk, and at most so many in /tmp.
    inodes: int
    # Of each process.
    openFiles: int
    # Processor time of the sandbox since its start: it ends when that is used up. Null is no cap.
    cpuSeconds: Optional[int]


class GetOrCreateSandboxBodyModelLimits(TypedDict, total=False):
    """Caps on its calls of models; those of the template hold where absent."""

    # Calls in its whole life. Null is no cap.
    calls: Optional[int]
    # Input, output and cached tokens in its whole life. Null is no cap.
    tokens: Optional[int]
    # In its whole life. Null is no cap.
    dollars: Optional[float]
    # Calls under way at once.
    concurrentCalls: int


class _GetOrCreateSandboxBodyWorktreeRequired(TypedDict):
    # The top of a git repository of the host.
    source: str


class GetOrCreateSandboxBodyWorktree(_GetOrCreateSandboxBodyWorktreeRequired, total=False):
    """A git repository of the host, at /workspace/repo; it needs a grant."""

    # A commit, branch or tag; what HEAD is when absent.
    at: str


class GetOrCreateSandboxBody(TypedDict, total=False):
    # Who it runs for. When absent: the agent that the key is bound to; "default" if it is bound to none.
    agent: str
    template: str
    labels: Dict[str, str]
    env: Dict[str, str]
    # It is for one run and ends with it. Rules may ask less about it, and an approval holds for the same run in another
    # sandbox.
    ephemeral: bool
    ttlMs: int
    idleMs: int
    onIdle: Literal["terminate", "pause"]
    maxPausedMs: int
    maxLifetimeMs: int
    limits: "GetOrCreateSandboxBodyLimits"
    # At least that; a template or a policy may ask for more.
    tier: "Tier"
    # Doors beside `control` and those of the template.
    doors: List["DoorName"]
    # Models that it may name beside those of the template; naming one gives it the door `llm`.
    models: List[str]
    # Caps on its calls of models; those of the template hold where absent.
    modelLimits: "GetOrCreateSandboxBodyModelLimits"
    # A git repository of the host, at /workspace/repo; it needs a grant.
    worktree: "GetOrCreateSandboxBodyWorktree"


class ConnectSandboxBody(TypedDict, total=False):
    # Every token that was given out before opens nothing from now on.
    revoke: bool


class ExtendSandboxBody(TypedDict, total=False):
    # From now; the sandbox own TTL when absent.
    ttlMs: int


class ChangeLimitsBody(TypedDict, total=False):
    # Of user code, memory file systems included. Never swapped.
    memoryBytes: int
    cpus: float
    # Processes and threads.
    pids: int
    # Of /workspace and /home/user together.
    diskBytes: int
    # Files and directories on its disk, and at most so many in /tmp.
    inodes: int
    # Of each process.
    openFiles: int
    # Processor time of the sandbox since its start: it ends when that is used up. Null is no cap.
    cpuSeconds: Optional[int]


class TerminateSandboxBody(TypedDict, total=False):
    # Do not let running commands finish their last second: kill at once.
    force: bool


class RunCommandBodyStdin(TypedDict):
    text: str


class RunCommandBody(TypedDict, total=False):
    # The program and its arguments; no shell.
    argv: List[str]
    # A line for /bin/sh, when a shell is wanted.
    shell: str
    cwd: str
    env: Dict[str, str]
    # What to feed, or "open" to write with the stdin route; nothing when absent.
    stdin: Union["RunCommandBodyStdin", Literal["open"]]
    timeoutMs: int
    # Processor time of each of its processes, in whole seconds rounded up: SIGXCPU, and SIGKILL a second later.
    cpuTimeMs: int
    maxOutputBytes: int
    # Answer at once, with the command still running.
    background: bool


class SignalCommandBody(TypedDict):
    signal: "SignalName"


class _MakeDirectoryBodyRequired(TypedDict):
    path: str


class MakeDirectoryBody(_MakeDirectoryBodyRequired, total=False):
    parents: bool


class ExportWorktreeBody(TypedDict, total=False):
    # Of the diff that was looked at; what the worktree holds now when absent.
    seal: str
    # Becomes sandbox/<name>; the name of the sandbox when absent.
    branch: str
    # Of the one commit that is made.
    message: str


class _CreateSessionBodyRequired(TypedDict):
    runtime: "Runtime"


class CreateSessionBody(_CreateSessionBodyRequired, total=False):
    # A living sandbox to open it in.
    sandbox: str
    # The sandbox to make for it, which ends with it. Template "data" for python when neither is given.
    create: "CreateSandboxBody"
    labels: Dict[str, str]
    env: Dict[str, str]
    cwd: str
    # Extended by use.
    ttlMs: int


class _RunStepBodyRequired(TypedDict):
    code: str


class RunStepBody(_RunStepBodyRequired, total=False):
    # Yours: the same id again answers the first result and runs nothing.
    stepId: str
    timeoutMs: int
    # For this step only.
    env: Dict[str, str]
    # What input() and reads of stdin get.
    stdin: str
    maxOutputBytes: int


class SubmitJobBodyLimits(TypedDict, total=False):
    # Of user code, memory file systems included. Never swapped.
    memoryBytes: int
    cpus: float
    # Processes and threads.
    pids: int
    # Of /workspace and /home/user together.
    diskBytes: int
    # Files and directories on its disk, and at most so many in /tmp.
    inodes: int
    # Of each process.
    openFiles: int
    # Processor time of the sandbox since its start: it ends when that is used up. Null is no cap.
    cpuSeconds: Optional[int]


class SubmitJobBodyFilesItem(TypedDict):
    path: str
    # Its content.
    base64: str


class SubmitJobBodyInputsItem(TypedDict):
    artifact: str
    # Where its content is when the job begins.
    path: str


class SubmitJobBody(TypedDict, total=False):
    # The program and its arguments; no shell.
    argv: List[str]
    # A line for /bin/sh, when a shell is wanted.
    shell: str
    # A program, run from a file in /workspace.
    code: str
    # What runs the code.
    language: Literal["python", "node", "bash"]
    template: str
    agent: str
    env: Dict[str, str]
    limits: "SubmitJobBodyLimits"
    tier: "Tier"
    # Files that are there when it begins.
    files: List["SubmitJobBodyFilesItem"]
    # Artifacts that it is given as files.
    inputs: List["SubmitJobBodyInputsItem"]
    # Files to keep as artifacts when it ends, by patterns: absolute, or relative to /workspace.
    artifacts: List[str]
    # Removed after that.
    artifactTtlMs: int
    # Of one try.
    timeoutMs: int
    # How long it may wait to begin; then it fails with queue_timeout.
    queueMs: int
    # How often a try that failed is followed by another. Without retries it begins at most once.
    retries: int
    # Before the second try; doubled before each further one.
    retryDelayMs: int
    maxOutputBytes: int
    labels: Dict[str, str]
    # The same key again, with the same request and agent, answers the first job and submits nothing.
    idempotencyKey: str


class _CollectArtifactsBodyRequired(TypedDict):
    patterns: List[str]


class CollectArtifactsBody(_CollectArtifactsBodyRequired, total=False):
    # A command of the sandbox that made them.
    command: str
    # A step in the sandbox that made them.
    step: str
    # Removed after that.
    ttlMs: int


class LinkArtifactBody(TypedDict, total=False):
    expiresInMs: int


class PutGraphBodyModelLimits(TypedDict, total=False):
    """Caps on the model calls of each run."""

    # Calls in its whole life. Null is no cap.
    calls: Optional[int]
    # Input, output and cached tokens in its whole life. Null is no cap.
    tokens: Optional[int]
    # In its whole life. Null is no cap.
    dollars: Optional[float]
    # Calls under way at once.
    concurrentCalls: int


class PutGraphBodyLimits(TypedDict, total=False):
    # Of user code, memory file systems included. Never swapped.
    memoryBytes: int
    cpus: float
    # Processes and threads.
    pids: int
    # Of /workspace and /home/user together.
    diskBytes: int
    # Files and directories on its disk, and at most so many in /tmp.
    inodes: int
    # Of each process.
    openFiles: int
    # Processor time of the sandbox since its start: it ends when that is used up. Null is no cap.
    cpuSeconds: Optional[int]


class PutGraphBody(TypedDict, total=False):
    description: str
    # Yours; runs keep the one that they began with.
    version: str
    template: str
    # The program and its arguments; no shell.
    argv: List[str]
    # A program, run from a file in /workspace.
    code: str
    # What runs the code.
    language: Literal["python", "node", "bash"]
    # Models that its runs may name, the default first. Empty: the caller names one, airlock/demo otherwise.
    models: List[str]
    # Caps on the model calls of each run.
    modelLimits: "PutGraphBodyModelLimits"
    limits: "PutGraphBodyLimits"
    tier: "Tier"
    # Doors beside `control`, `llm` and those of the template.
    doors: List["DoorName"]
    # Of one run.
    timeoutMs: int


class SubmitRunBodyMessagesItem(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str


class SubmitRunBodyBudget(TypedDict, total=False):
    """Caps on the model calls of this run; those of the graph hold beside them."""

    # Calls in its whole life. Null is no cap.
    calls: Optional[int]
    # Input, output and cached tokens in its whole life. Null is no cap.
    tokens: Optional[int]
    # In its whole life. Null is no cap.
    dollars: Optional[float]
    # Calls under way at once.
    concurrentCalls: int


class _SubmitRunBodyRequired(TypedDict):
    graph: str
    # The conversation so far, oldest first.
    messages: List["SubmitRunBodyMessagesItem"]


class SubmitRunBody(_SubmitRunBodyRequired, total=False):
    # The default of the graph when absent.
    model: str
    # Caps on the model calls of this run; those of the graph hold beside them.
    budget: "SubmitRunBodyBudget"
    agent: str
    # Less than the timeout of the graph.
    timeoutMs: int
    labels: Dict[str, str]
    # The same key again, with the same request and agent, answers the first run and starts nothing.
    idempotencyKey: str
    # Answer with events, as the header Accept: text/event-stream does.
    stream: bool


class OpenaiChatBodyMessagesItemContentItem(TypedDict):
    type: Literal["text"]
    text: str


class OpenaiChatBodyMessagesItem(TypedDict):
    role: Literal["system", "developer", "user", "assistant"]
    content: Union[str, List["OpenaiChatBodyMessagesItemContentItem"]]


class OpenaiChatBodyStreamOptions(TypedDict, total=False):
    include_usage: Optional[bool]


class OpenaiChatBodyResponseFormat(TypedDict):
    type: Literal["text"]


class _OpenaiChatBodyRequired(TypedDict):
    model: str
    messages: List["OpenaiChatBodyMessagesItem"]


class OpenaiChatBody(_OpenaiChatBodyRequired, total=False):
    stream: Optional[bool]
    stream_options: Optional["OpenaiChatBodyStreamOptions"]
    n: Optional[Literal[1]]
    tools: Optional[List["Json"]]
    functions: Optional[List["Json"]]
    response_format: Optional["OpenaiChatBodyResponseFormat"]


class _RegisterAgentBodyRequired(TypedDict):
    id: str


class RegisterAgentBody(_RegisterAgentBodyRequired, total=False):
    version: str
    labels: Dict[str, str]
    metadata: Dict[str, "Json"]
    # Approve it at once; for admins.
    approve: bool


class UpdateAgentBody(TypedDict, total=False):
    # May need approval again, where the server is set up so.
    version: Optional[str]
    labels: Dict[str, str]
    metadata: Dict[str, "Json"]
    expectedGeneration: int


class _AddGrantBodyRequired(TypedDict):
    # Of the host; exact, without any link in it.
    path: str


class AddGrantBody(_AddGrantBodyRequired, total=False):
    mode: Literal["ro", "rw", "worktree"]
    # What it has to be; whatever is there when absent.
    kind: Literal["file", "dir"]
    # Where it appears inside: /grants/<its name> when absent.
    target: str
    # Read-only directories: only what matches is there.
    allowed: List[str]
    # Read-only directories: what matches is not there.
    blocked: List[str]
    # The tenant of the agent; yours when absent.
    tenant: str


class _CreateKeyBodyRequired(TypedDict):
    name: str
    role: "Role"


class CreateKeyBody(_CreateKeyBodyRequired, total=False):
    # Yours when absent; another one needs a key of the platform.
    tenant: str
    # The only agents that the key may act for; never with the role admin.
    agents: List[str]
    # It may do what is of the whole server; only such a key makes another.
    platform: bool
    # Who holds the key. No key answers an ask of the same person. The person of your own key when absent.
    person: str
    # It does not expire when absent.
    expiresInMs: int


class RotateKeyBody(TypedDict, total=False):
    # How long the old secret stays good beside the new one.
    overlapMs: int
    # The end of the old key when absent.
    expiresInMs: int


class CreateTenantBody(TypedDict):
    id: str


class _PutPolicyBodyRequired(TypedDict):
    document: "PolicyDocumentInput"


class PutPolicyBody(_PutPolicyBodyRequired, total=False):
    # The latest version as you know it, 0 for none; another one is stale_version.
    expectedVersion: int


class CheckPolicyBody(TypedDict):
    document: "PolicyDocumentInput"


class _EvaluatePoliciesBodyRequired(TypedDict):
    point: "Point"
    operation: "OperationInput"


class EvaluatePoliciesBody(_EvaluatePoliciesBodyRequired, total=False):
    agent: str
    sandbox: str
    # A draft, in the place of the policy that has its name; for admins.
    document: "PolicyDocumentInput"


class _BacktestPolicyBodyRequired(TypedDict):
    # A draft, in the place of the policy that has its name.
    document: "PolicyDocumentInput"


class BacktestPolicyBody(_BacktestPolicyBodyRequired, total=False):
    since: str
    until: str
    # How many decisions to replay, newest first.
    limit: int
    examples: int


class _TurnKillswitchOnBodyRequired(TypedDict):
    scope: "KillScope"


class TurnKillswitchOnBody(_TurnKillswitchOnBodyRequired, total=False):
    # Which one: needed for a sandbox and an agent; your own tenant when absent.
    target: str
    # Whose agent it is: yours when absent; another one needs a key of the platform.
    tenant: str
    reason: str


class _LiftKillswitchBodyRequired(TypedDict):
    scope: "KillScope"


class LiftKillswitchBody(_LiftKillswitchBodyRequired, total=False):
    # Which one: needed for a sandbox and an agent; your own tenant when absent.
    target: str
    # Whose agent it is: yours when absent; another one needs a key of the platform.
    tenant: str


class ApproveApprovalBody(TypedDict, total=False):
    # once; or again and again: in this sandbox, by this agent, or until.
    scope: "ApprovalScope"
    # When it ends: needed by the scope until, and allowed with sandbox and agent.
    until: str
    note: str


class RejectApprovalBody(TypedDict, total=False):
    # The requester is told.
    note: str


class CreateWebhookBody(TypedDict):
    url: str
    events: List["WebhookEventName"]


class PutSecretBody(TypedDict):
    # The only origin that the secret is ever sent to. It is sealed with the value.
    origin: str
    # To which key it is sealed: that of GET /v1/secrets/key.
    keyId: str
    sealed: str


class _PutToolBodyParametersPropertiesValue1Required(TypedDict):
    type: Literal["string"]


class PutToolBodyParametersPropertiesValue1(_PutToolBodyParametersPropertiesValue1Required, total=False):
    description: str
    enum: List[str]
    minLength: int
    maxLength: int


class _PutToolBodyParametersPropertiesValue2Required(TypedDict):
    type: Literal["integer"]


class PutToolBodyParametersPropertiesValue2(_PutToolBodyParametersPropertiesValue2Required, total=False):
    description: str
    minimum: int
    maximum: int


class _PutToolBodyParametersPropertiesValue3Required(TypedDict):
    type: Literal["number"]


class PutToolBodyParametersPropertiesValue3(_PutToolBodyParametersPropertiesValue3Required, total=False):
    description: str
    minimum: float
    maximum: float


class _PutToolBodyParametersPropertiesValue4Required(TypedDict):
    type: Literal["boolean"]


class PutToolBodyParametersPropertiesValue4(_PutToolBodyParametersPropertiesValue4Required, total=False):
    description: str


class _PutToolBodyParametersPropertiesValue5Items1Required(TypedDict):
    type: Literal["string"]


class PutToolBodyParametersPropertiesValue5Items1(_PutToolBodyParametersPropertiesValue5Items1Required, total=False):
    description: str
    enum: List[str]
    minLength: int
    maxLength: int


class _PutToolBodyParametersPropertiesValue5Items2Required(TypedDict):
    type: Literal["integer"]


class PutToolBodyParametersPropertiesValue5Items2(_PutToolBodyParametersPropertiesValue5Items2Required, total=False):
    description: str
    minimum: int
    maximum: int


class _PutToolBodyParametersPropertiesValue5Items3Required(TypedDict):
    type: Literal["number"]


class PutToolBodyParametersPropertiesValue5Items3(_PutToolBodyParametersPropertiesValue5Items3Required, total=False):
    description: str
    minimum: float
    maximum: float


class _PutToolBodyParametersPropertiesValue5Items4Required(TypedDict):
    type: Literal["boolean"]


class PutToolBodyParametersPropertiesValue5Items4(_PutToolBodyParametersPropertiesValue5Items4Required, total=False):
    description: str


class _PutToolBodyParametersPropertiesValue5Required(TypedDict):
    type: Literal["array"]
    items: Union[
        "PutToolBodyParametersPropertiesValue5Items1",
        "PutToolBodyParametersPropertiesValue5Items2",
        "PutToolBodyParametersPropertiesValue5Items3",
        "PutToolBodyParametersPropertiesValue5Items4",
    ]


class PutToolBodyParametersPropertiesValue5(_PutToolBodyParametersPropertiesValue5Required, total=False):
    description: str
    maxItems: int


class _PutToolBodyParametersRequired(TypedDict):
    properties: Dict[
        str,
        Union[
            "PutToolBodyParametersPropertiesValue1",
            "PutToolBodyParametersPropertiesValue2",
            "PutToolBodyParametersPropertiesValue3",
            "PutToolBodyParametersPropertiesValue4",
            "PutToolBodyParametersPropertiesValue5",
        ],
    ]


class PutToolBodyParameters(_PutToolBodyParametersRequired, total=False):
    type: Literal["object"]
    required: List[str]


class _PutToolBodyCredentialRequired(TypedDict):
    secret: str


class PutToolBodyCredential(_PutToolBodyCredentialRequired, total=False):
    header: str
    prefix: str
    basicUser: str


class _PutToolBodyRequired(TypedDict):
    # What a program inside reads about it.
    description: str
    # The service. Every call goes there, and no redirect is followed.
    origin: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    # With {parameters}, such as /repos/{owner}/{repo}/issues.
    path: str
    parameters: "PutToolBodyParameters"
    # Paths that a call may have after encoding. Any other is denied.
    scope: List[str]


class PutToolBody(_PutToolBodyRequired, total=False):
    # Parameters in the query.
    query: List[str]
    # Parameters in a JSON object.
    body: List[str]
    headers: Dict[str, str]
    credential: Optional["PutToolBodyCredential"]
    timeoutMs: int
    maxAnswerBytes: int


class AuditQuarantineBody(TypedDict):
    # `system` is the chain of what belongs to no tenant.
    tenant: str


AgentState = Literal["unknown", "connected", "idle", "suspended"]


ApprovalScope = Literal["once", "sandbox", "agent", "until"]


ApprovalState = Literal["pending", "approved", "rejected", "expired", "revoked", "used"]


DoorName = Literal["control", "llm", "egress", "broker"]


Effect = Literal["allow", "ask", "deny"]


EndCause = Literal[
    "exit",
    "signal",
    "forbidden_call",
    "timeout",
    "cpu_time",
    "out_of_memory",
    "pids_exhausted",
    "disk_full",
    "killed_by_policy",
    "sandbox_ended",
]


EndReason = Literal[
    "terminated",
    "ttl",
    "idle",
    "max_lifetime",
    "shutdown",
    "guest_lost",
    "host_restarted",
    "create_failed",
    "create_interrupted",
    "agent_revoked",
    "agent_suspended",
    "agent_deleted",
    "agent_stale",
    "grant_revoked",
    "budget_exhausted",
    "paused_too_long",
    "killed",
    "pids_exhausted",
    "out_of_memory",
    "disk_exhausted",
    "cpu_exhausted",
]


KillScope = Literal["sandbox", "agent", "tenant", "all"]


Point = Literal[
    "recorder.start",
    "recorder.recover",
    "recorder.clock",
    "server.start",
    "server.stop",
    "auth.refuse",
    "auth.sign_in",
    "auth.sign_out",
    "sandbox.create",
    "sandbox.connect",
    "sandbox.ask",
    "sandbox.extend",
    "sandbox.limit",
    "sandbox.pause",
    "sandbox.resume",
    "sandbox.terminate",
    "sandbox.adopt",
    "isolation.start",
    "isolation.stop",
    "isolation.reap",
    "permit.refuse",
    "command.run",
    "command.signal",
    "command.stdin",
    "session.create",
    "session.interrupt",
    "session.restart",
    "session.end",
    "step.run",
    "job.submit",
    "job.start",
    "job.cancel",
    "job.end",
    "artifact.collect",
    "artifact.upload",
    "artifact.download",
    "artifact.link",
    "artifact.remove",
    "run.submit",
    "run.cancel",
    "catalog.put",
    "catalog.remove",
    "model.call",
    "network.connect",
    "tool.call",
    "tool.put",
    "tool.remove",
    "secret.put",
    "secret.remove",
    "template.build",
    "template.remove",
    "agent.register",
    "agent.update",
    "agent.approve",
    "agent.revoke",
    "agent.suspend",
    "agent.resume",
    "agent.delete",
    "agent.stale",
    "agent.heartbeat",
    "grant.add",
    "grant.remove",
    "key.create",
    "key.rotate",
    "key.revoke",
    "budget.set",
    "tenant.create",
    "file.read",
    "file.write",
    "file.list",
    "file.mkdir",
    "file.move",
    "file.remove",
    "worktree.diff",
    "worktree.export",
    "approval.ask",
    "approval.approve",
    "approval.reject",
    "approval.revoke",
    "approval.expire",
    "approval.use",
    "webhook.create",
    "webhook.remove",
    "webhook.deliver",
    "monitor.alert",
    "kill.on",
    "kill.lift",
    "audit.lost",
    "audit.drop",
    "audit.broken",
    "audit.quarantine",
    "audit.read",
    "policy.put",
    "policy.remove",
]


RecordStatus = Literal["requested", "done", "failed", "denied", "unknown"]


Risk = Literal["low", "medium", "high", "critical"]


Role = Literal["admin", "operator", "developer", "auditor"]


RuleKind = Literal[
    "command",
    "code",
    "file",
    "mount",
    "network",
    "model",
    "artifact",
    "tool",
    "worktree",
    "quota",
    "tier",
    "operation",
]


Runtime = Literal["python", "node", "bash"]


SandboxState = Literal["creating", "active", "paused", "stopping", "stopped", "error"]


SessionState = Literal["active", "expired", "terminated"]


SignalName = Literal[
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGTERM",
    "SIGKILL",
    "SIGUSR1",
    "SIGUSR2",
    "SIGSTOP",
    "SIGCONT",
    "SIGWINCH",
]


StepStatus = Literal["accepted", "running", "completed", "failed"]


Tier = Literal["standard", "strict"]


WebhookEventName = Literal["approval.pending", "approval.answered", "kill", "alert"]


AgentSummary = TypedDict(
    "AgentSummary",
    {
        "agent": str,
        "from": str,
        "to": str,
    # false: retention dropped records of these days.
        "complete": bool,
    # Different ones that records of the agent name.
        "sandboxes": int,
        "total": "AgentSummaryTotal",
        "kinds": List["AgentSummaryKindsItem"],
        "trend": List["AgentSummaryTrendItem"],
    },
)


ApprovalEvent = Union["ApprovalEventPending", "ApprovalEventAnswered", "ApprovalEventError"]


BacktestChangesItem = TypedDict(
    "BacktestChangesItem",
    {
        "from": "Effect",
        "to": "Effect",
        "count": int,
    },
)


CommandEvent = Union[
    "CommandEventStarted",
    "CommandEventOutput",
    "CommandEventTruncated",
    "CommandEventEnded",
    "CommandEventError",
]


MetricEvent = Union["MetricEventSample", "MetricEventAlert", "MetricEventCleared", "MetricEventEnded"]


Operation = Union[
    "OperationCommand",
    "OperationCode",
    "OperationFile",
    "OperationMount",
    "OperationSandbox",
    "OperationNetwork",
    "OperationArtifact",
    "OperationModel",
    "OperationTool",
    "OperationWorktree",
    "OperationOther",
]


PolicyRule = Union[
    "PolicyRuleCommand",
    "PolicyRuleCode",
    "PolicyRuleFile",
    "PolicyRuleMount",
    "PolicyRuleNetwork",
    "PolicyRuleModel",
    "PolicyRuleArtifact",
    "PolicyRuleTool",
    "PolicyRuleWorktree",
    "PolicyRuleQuota",
    "PolicyRuleTier",
    "PolicyRuleOperation",
]


RunEvent = Union[
    "RunEventStarted",
    "RunEventStatus",
    "RunEventTextDelta",
    "RunEventToolCallStart",
    "RunEventToolCallResult",
    "RunEventAssistantFinal",
    "RunEventError",
    "RunEventDone",
]


StepEvent = Union[
    "StepEventStarted",
    "StepEventOutput",
    "StepEventRich",
    "StepEventTruncated",
    "StepEventEnded",
    "StepEventError",
]


StreamedEvent = Union["StreamedEventRecord", "StreamedEventAt", "StreamedEventGap", "StreamedEventCut"]


TemplateEvent = Union["TemplateEventProgress", "TemplateEventEnded", "TemplateEventError"]


DiffWorktreeAnswerChangesItem = TypedDict(
    "DiffWorktreeAnswerChangesItem",
    {
    # Below the worktree; a `file://` URL from its root where the bytes are not UTF-8.
        "path": str,
        "status": Literal["added", "changed", "deleted", "renamed", "mode", "type"],
    # Where a renamed file was.
        "from": Optional[str],
        "oldMode": Optional[str],
        "newMode": Optional[str],
        "bytes": Optional[int],
        "binary": bool,
    },
)


ExportWorktreeAnswer = Union["ExportWorktreeAnswer1", "ExportWorktreeAnswer2"]


JobLogsEvent = Union["JobLogsEventStarted", "JobLogsEventOutput", "JobLogsEventEnded", "JobLogsEventError"]


OperationInput = Union[
    "OperationInputCommand",
    "OperationInputCode",
    "OperationInputFile",
    "OperationInputMount",
    "OperationInputSandbox",
    "OperationInputNetwork",
    "OperationInputArtifact",
    "OperationInputModel",
    "OperationInputTool",
    "OperationInputWorktree",
    "OperationInputOther",
]


PolicyRuleInput = Union[
    "PolicyRuleInputCommand",
    "PolicyRuleInputCode",
    "PolicyRuleInputFile",
    "PolicyRuleInputMount",
    "PolicyRuleInputNetwork",
    "PolicyRuleInputModel",
    "PolicyRuleInputArtifact",
    "PolicyRuleInputTool",
    "PolicyRuleInputWorktree",
    "PolicyRuleInputQuota",
    "PolicyRuleInputTier",
    "PolicyRuleInputOperation",
]


MoveFileBody = TypedDict(
    "MoveFileBody",
    {
        "from": str,
        "to": str,
    },
)


# Any JSON value.
Json = Any
