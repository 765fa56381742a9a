"""Operations of the API.

Made by `npm run docs:generate` from packages/contract: edit there.
"""

from __future__ import annotations

from typing import Any, Dict, Literal, Mapping, NamedTuple, Optional, Protocol, Union, cast

from . import types

VERSION = "0.1.0"

QueryValue = Union[str, int, float, bool, None]


class Route(NamedTuple):
    """How an operation is called. `repeats`: sending it twice has the effect of sending it once."""

    method: str
    path: str
    repeats: bool


ROUTES: Dict[str, Route] = {
    "createSandbox": Route("POST", "/v1/sandboxes", False),
    "listSandboxes": Route("GET", "/v1/sandboxes", True),
    "getSandbox": Route("GET", "/v1/sandboxes/{id}", True),
    "getOrCreateSandbox": Route("PUT", "/v1/sandboxes/by-name/{name}", True),
    "connectSandbox": Route("POST", "/v1/sandboxes/{id}/connect", False),
    "extendSandbox": Route("POST", "/v1/sandboxes/{id}/extend", True),
    "changeLimits": Route("POST", "/v1/sandboxes/{id}/limits", True),
    "pauseSandbox": Route("POST", "/v1/sandboxes/{id}/pause", True),
    "resumeSandbox": Route("POST", "/v1/sandboxes/{id}/resume", True),
    "terminateSandbox": Route("POST", "/v1/sandboxes/{id}/terminate", True),
    "runCommand": Route("POST", "/v1/sandboxes/{id}/commands", False),
    "listCommands": Route("GET", "/v1/sandboxes/{id}/commands", True),
    "getCommand": Route("GET", "/v1/sandboxes/{id}/commands/{command}", True),
    "commandOutput": Route("GET", "/v1/sandboxes/{id}/commands/{command}/output", True),
    "fullCommandOutput": Route("GET", "/v1/sandboxes/{id}/commands/{command}/output/full", True),
    "signalCommand": Route("POST", "/v1/sandboxes/{id}/commands/{command}/signal", False),
    "writeStdin": Route("POST", "/v1/sandboxes/{id}/commands/{command}/stdin", False),
    "readFile": Route("GET", "/v1/sandboxes/{id}/files", True),
    "writeFile": Route("PUT", "/v1/sandboxes/{id}/files", False),
    "removeFile": Route("DELETE", "/v1/sandboxes/{id}/files", True),
    "readArchive": Route("GET", "/v1/sandboxes/{id}/files/archive", True),
    "writeArchive": Route("PUT", "/v1/sandboxes/{id}/files/archive", False),
    "statFile": Route("GET", "/v1/sandboxes/{id}/files/stat", True),
    "listFiles": Route("GET", "/v1/sandboxes/{id}/files/list", True),
    "makeDirectory": Route("POST", "/v1/sandboxes/{id}/files/mkdir", True),
    "moveFile": Route("POST", "/v1/sandboxes/{id}/files/move", False),
    "diffWorktree": Route("POST", "/v1/sandboxes/{id}/worktree/diff", True),
    "readWorktreePatch": Route("GET", "/v1/sandboxes/{id}/worktree/patch", True),
    "exportWorktree": Route("POST", "/v1/sandboxes/{id}/worktree/export", True),
    "createSession": Route("POST", "/v1/sessions", False),
    "listSessions": Route("GET", "/v1/sessions", True),
    "getSession": Route("GET", "/v1/sessions/{id}", True),
    "interruptSession": Route("POST", "/v1/sessions/{id}/interrupt", False),
    "restartSession": Route("POST", "/v1/sessions/{id}/restart", False),
    "terminateSession": Route("POST", "/v1/sessions/{id}/terminate", True),
    "runStep": Route("POST", "/v1/sessions/{id}/steps", False),
    "listSteps": Route("GET", "/v1/sessions/{id}/steps", True),
    "getStep": Route("GET", "/v1/sessions/{id}/steps/{step}", True),
    "stepOutput": Route("GET", "/v1/sessions/{id}/steps/{step}/output", True),
    "listTemplates": Route("GET", "/v1/templates", True),
    "getTemplate": Route("GET", "/v1/templates/{name}", True),
    "putTemplate": Route("PUT", "/v1/templates/{name}", True),
    "removeTemplate": Route("DELETE", "/v1/templates/{name}", True),
    "buildTemplate": Route("POST", "/v1/templates/{name}/build", False),
    "importTemplate": Route("PUT", "/v1/templates/{name}/image", True),
    "submitJob": Route("POST", "/v1/jobs", False),
    "listJobs": Route("GET", "/v1/jobs", True),
    "getJob": Route("GET", "/v1/jobs/{id}", True),
    "cancelJob": Route("POST", "/v1/jobs/{id}/cancel", True),
    "jobLogs": Route("GET", "/v1/jobs/{id}/logs", True),
    "collectArtifacts": Route("POST", "/v1/sandboxes/{id}/artifacts", False),
    "uploadArtifact": Route("POST", "/v1/artifacts", False),
    "listArtifacts": Route("GET", "/v1/artifacts", True),
    "getArtifact": Route("GET", "/v1/artifacts/{id}", True),
    "removeArtifact": Route("DELETE", "/v1/artifacts/{id}", True),
    "downloadArtifact": Route("GET", "/v1/artifacts/{id}/content", True),
    "linkArtifact": Route("POST", "/v1/artifacts/{id}/link", True),
    "downloadLinkedArtifact": Route("GET", "/v1/artifact-links/{token}", True),
    "listCatalog": Route("GET", "/v1/catalog", True),
    "getGraph": Route("GET", "/v1/catalog/{name}", True),
    "putGraph": Route("PUT", "/v1/catalog/{name}", True),
    "removeGraph": Route("DELETE", "/v1/catalog/{name}", True),
    "submitRun": Route("POST", "/v1/runs", False),
    "listRuns": Route("GET", "/v1/runs", True),
    "getRun": Route("GET", "/v1/runs/{id}", True),
    "cancelRun": Route("POST", "/v1/runs/{id}/cancel", True),
    "runEvents": Route("GET", "/v1/runs/{id}/events", True),
    "runLog": Route("GET", "/v1/runs/{id}/log", True),
    "openaiChat": Route("POST", "/v1/openai/chat/completions", False),
    "openaiModels": Route("GET", "/v1/openai/models", True),
    "registerAgent": Route("POST", "/v1/agents", False),
    "listAgents": Route("GET", "/v1/agents", True),
    "getAgent": Route("GET", "/v1/agents/{id}", True),
    "updateAgent": Route("PUT", "/v1/agents/{id}", True),
    "removeAgent": Route("DELETE", "/v1/agents/{id}", True),
    "approveAgent": Route("POST", "/v1/agents/{id}/approve", True),
    "revokeAgent": Route("POST", "/v1/agents/{id}/revoke", True),
    "suspendAgent": Route("POST", "/v1/agents/{id}/suspend", True),
    "resumeAgent": Route("POST", "/v1/agents/{id}/resume", True),
    "heartbeatAgent": Route("POST", "/v1/agents/{id}/heartbeat", True),
    "addGrant": Route("POST", "/v1/agents/{id}/grants", False),
    "listGrants": Route("GET", "/v1/agents/{id}/grants", True),
    "removeGrant": Route("DELETE", "/v1/agents/{id}/grants/{grant}", True),
    "createKey": Route("POST", "/v1/keys", False),
    "listKeys": Route("GET", "/v1/keys", True),
    "getKey": Route("GET", "/v1/keys/{id}", True),
    "rotateKey": Route("POST", "/v1/keys/{id}/rotate", False),
    "revokeKey": Route("POST", "/v1/keys/{id}/revoke", True),
    "createTenant": Route("POST", "/v1/tenants", False),
    "listTenants": Route("GET", "/v1/tenants", True),
    "getTenant": Route("GET", "/v1/tenants/{id}", True),
    "getAgentBudget": Route("GET", "/v1/budgets/agents/{id}", True),
    "setAgentBudget": Route("PUT", "/v1/budgets/agents/{id}", True),
    "getTenantBudget": Route("GET", "/v1/budgets/tenants/{id}", True),
    "setTenantBudget": Route("PUT", "/v1/budgets/tenants/{id}", True),
    "getUsage": Route("GET", "/v1/usage", True),
    "listPolicies": Route("GET", "/v1/policies", True),
    "getPolicy": Route("GET", "/v1/policies/{name}", True),
    "putPolicy": Route("PUT", "/v1/policies/{name}", False),
    "removePolicy": Route("DELETE", "/v1/policies/{name}", True),
    "listPolicyVersions": Route("GET", "/v1/policies/{name}/versions", True),
    "checkPolicy": Route("POST", "/v1/policies/check", True),
    "evaluatePolicies": Route("POST", "/v1/policies/evaluate", True),
    "backtestPolicy": Route("POST", "/v1/policies/backtest", True),
    "getGuardian": Route("GET", "/v1/guardian", True),
    "listRules": Route("GET", "/v1/guardian/rules", True),
    "turnKillswitchOn": Route("POST", "/v1/killswitch", True),
    "listKillswitches": Route("GET", "/v1/killswitch", True),
    "liftKillswitch": Route("POST", "/v1/killswitch/lift", False),
    "listApprovals": Route("GET", "/v1/approvals", True),
    "approvalEvents": Route("GET", "/v1/approvals/events", True),
    "getApproval": Route("GET", "/v1/approvals/{id}", True),
    "approveApproval": Route("POST", "/v1/approvals/{id}/approve", False),
    "rejectApproval": Route("POST", "/v1/approvals/{id}/reject", True),
    "revokeApproval": Route("POST", "/v1/approvals/{id}/revoke", True),
    "createWebhook": Route("POST", "/v1/webhooks", False),
    "listWebhooks": Route("GET", "/v1/webhooks", True),
    "getWebhook": Route("GET", "/v1/webhooks/{id}", True),
    "removeWebhook": Route("DELETE", "/v1/webhooks/{id}", True),
    "events": Route("GET", "/v1/events", True),
    "agentEvents": Route("GET", "/v1/agents/{id}/events", True),
    "sandboxEvents": Route("GET", "/v1/sandboxes/{id}/events", True),
    "agentSummary": Route("GET", "/v1/agents/{id}/summary", True),
    "auditStats": Route("GET", "/v1/audit/stats", True),
    "tenantMetrics": Route("GET", "/v1/metrics", True),
    "sandboxMetrics": Route("GET", "/v1/sandboxes/{id}/metrics", True),
    "agentMetrics": Route("GET", "/v1/agents/{id}/metrics", True),
    "listModels": Route("GET", "/v1/models", True),
    "getLlmStatus": Route("GET", "/v1/llm/status", True),
    "getSealKey": Route("GET", "/v1/secrets/key", True),
    "listSecrets": Route("GET", "/v1/secrets", True),
    "putSecret": Route("PUT", "/v1/secrets/{name}", False),
    "removeSecret": Route("DELETE", "/v1/secrets/{name}", True),
    "listTools": Route("GET", "/v1/tools", True),
    "getTool": Route("GET", "/v1/tools/{name}", True),
    "putTool": Route("PUT", "/v1/tools/{name}", False),
    "removeTool": Route("DELETE", "/v1/tools/{name}", True),
    "auditEvents": Route("GET", "/v1/audit/events", True),
    "auditExport": Route("GET", "/v1/audit/export", True),
    "auditHead": Route("GET", "/v1/audit/head", True),
    "auditQuarantine": Route("POST", "/v1/audit/quarantine", False),
    "auditChains": Route("GET", "/v1/audit/chains", True),
    "whoami": Route("GET", "/v1/whoami", True),
    "health": Route("GET", "/healthz", True),
    "ready": Route("GET", "/readyz", True),
    "metrics": Route("GET", "/metrics", True),
    "openapi": Route("GET", "/openapi.json", True),
    "docs": Route("GET", "/docs", True),
}


class Caller(Protocol):
    """The transport that operations are called over."""

    def json(
        self,
        name: str,
        *,
        params: Optional[Mapping[str, str]] = None,
        query: Optional[Mapping[str, QueryValue]] = None,
        body: Optional[object] = None,
    ) -> Any: ...


class Operations:
    """Every operation of the API that sends and answers JSON, by its name in the OpenAPI document."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create_sandbox(self, body: Optional["types.CreateSandboxBody"] = None) -> "types.CreatedSandbox":
        """Create a sandbox and wait until it is active."""
        answer = self._caller.json("createSandbox", body=body or {})
        return cast("types.CreatedSandbox", answer)

    def list_sandboxes(
        self,
        *,
        state: Optional[Union[Literal["creating", "active", "paused", "stopping", "stopped", "error"], Literal["all"]]] = None,
        agent: Optional[str] = None,
        name: Optional[str] = None,
        label: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> "types.ListSandboxesAnswer":
        """List sandboxes, newest first; the living ones unless a state is asked for."""
        answer = self._caller.json(
            "listSandboxes",
            query={
                "state": state,
                "agent": agent,
                "name": name,
                "label": label,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("types.ListSandboxesAnswer", answer)

    def get_sandbox(self, id: str) -> "types.Sandbox":
        """Look at one sandbox."""
        answer = self._caller.json("getSandbox", params={"id": id})
        return cast("types.Sandbox", answer)

    def get_or_create_sandbox(
        self,
        name: str,
        body: Optional["types.GetOrCreateSandboxBody"] = None,
    ) -> "types.CreatedSandbox":
        """The living sandbox of that name, or a new one."""
        answer = self._caller.json("getOrCreateSandbox", params={"name": name}, body=body or {})
        return cast("types.CreatedSandbox", answer)

    def connect_sandbox(self, id: str, body: Optional["types.ConnectSandboxBody"] = None) -> "types.Connection":
        """Give a sandbox a new token for its door, and say what a program inside needs to reach us."""
        answer = self._caller.json("connectSandbox", params={"id": id}, body=body or {})
        return cast("types.Connection", answer)

    def extend_sandbox(self, id: str, body: Optional["types.ExtendSandboxBody"] = None) -> "types.Sandbox":
        """Let a sandbox live longer, never past its maximum lifetime."""
        answer = self._caller.json("extendSandbox", params={"id": id}, body=body or {})
        return cast("types.Sandbox", answer)

    def change_limits(self, id: str, body: "types.ChangeLimitsBody") -> "types.Sandbox":
        """Change limits of a living sandbox, upward or downward; what is absent stays. All of them or none."""
        answer = self._caller.json("changeLimits", params={"id": id}, body=body)
        return cast("types.Sandbox", answer)

    def pause_sandbox(self, id: str) -> "types.Sandbox":
        """Stop the processes of a sandbox where they stand; its time stops too. Pausing it again answers the same."""
        answer = self._caller.json("pauseSandbox", params={"id": id})
        return cast("types.Sandbox", answer)

    def resume_sandbox(self, id: str) -> "types.Sandbox":
        """Let a paused sandbox go on, with the time that it had left. Resuming it again answers the same."""
        answer = self._caller.json("resumeSandbox", params={"id": id})
        return cast("types.Sandbox", answer)

    def terminate_sandbox(self, id: str, body: Optional["types.TerminateSandboxBody"] = None) -> "types.Sandbox":
        """End a sandbox. Ending it again answers the same."""
        answer = self._caller.json("terminateSandbox", params={"id": id}, body=body or {})
        return cast("types.Sandbox", answer)

    def run_command(self, id: str, body: "types.RunCommandBody") -> "types.CommandResult":
        """Run a command; answers when it has ended, as SSE while it runs, or at once with background."""
        answer = self._caller.json("runCommand", params={"id": id}, body=body)
        return cast("types.CommandResult", answer)

    def list_commands(
        self,
        id: str,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> "types.ListCommandsAnswer":
        """List the commands of a sandbox, newest first."""
        answer = self._caller.json("listCommands", params={"id": id}, query={"limit": limit, "cursor": cursor})
        return cast("types.ListCommandsAnswer", answer)

    def get_command(self, id: str, command: str) -> "types.Command":
        """Look at one command."""
        answer = self._caller.json("getCommand", params={"id": id, "command": command})
        return cast("types.Command", answer)

    def command_output(self, id: str, command: str, *, from_: Optional[int] = None) -> "types.CommandResult":
        """The output of a command from an offset on: what there is as JSON, or SSE until it ends."""
        answer = self._caller.json("commandOutput", params={"id": id, "command": command}, query={"from": from_})
        return cast("types.CommandResult", answer)

    def signal_command(self, id: str, command: str, body: "types.SignalCommandBody") -> None:
        """Send a signal to a command; SIGKILL ends its whole tree."""
        self._caller.json("signalCommand", params={"id": id, "command": command}, body=body)

    def remove_file(self, id: str, *, path: str, recursive: Optional[bool] = None) -> None:
        """Remove a file or a directory."""
        self._caller.json("removeFile", params={"id": id}, query={"path": path, "recursive": recursive})

    def stat_file(self, id: str, *, path: str) -> "types.FileEntry":
        """Look at a file without reading it; a link is not followed."""
        answer = self._caller.json("statFile", params={"id": id}, query={"path": path})
        return cast("types.FileEntry", answer)

    def list_files(self, id: str, *, path: str, limit: Optional[int] = None) -> "types.ListFilesAnswer":
        """List a directory."""
        answer = self._caller.json("listFiles", params={"id": id}, query={"path": path, "limit": limit})
        return cast("types.ListFilesAnswer", answer)

    def make_directory(self, id: str, body: "types.MakeDirectoryBody") -> None:
        """Make a directory."""
        self._caller.json("makeDirectory", params={"id": id}, body=body)

    def move_file(self, id: str, body: "types.MoveFileBody") -> None:
        """Move a file or a directory."""
        self._caller.json("moveFile", params={"id": id}, body=body)

    def diff_worktree(self, id: str) -> "types.DiffWorktreeAnswer":
        """Seal what a sandbox changed in its worktree, and say what it is."""
        answer = self._caller.json("diffWorktree", params={"id": id})
        return cast("types.DiffWorktreeAnswer", answer)

    def export_worktree(
        self,
        id: str,
        body: Optional["types.ExportWorktreeBody"] = None,
    ) -> "types.ExportWorktreeAnswer":
        """Write what a sandbox changed as a branch sandbox/<name> of the repository; the gate decides."""
        answer = self._caller.json("exportWorktree", params={"id": id}, body=body or {})
        return cast("types.ExportWorktreeAnswer", answer)

    def create_session(self, body: "types.CreateSessionBody") -> "types.Session":
        """Start an interpreter that remembers, in a sandbox of yours or in a new one."""
        answer = self._caller.json("createSession", body=body)
        return cast("types.Session", answer)

    def list_sessions(
        self,
        *,
        state: Optional[Union[Literal["active", "expired", "terminated"], Literal["all"]]] = None,
        sandbox: Optional[str] = None,
        agent: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> "types.ListSessionsAnswer":
        """List sessions, newest first; the active ones unless a state is asked for."""
        answer = self._caller.json(
            "listSessions",
            query={"state": state, "sandbox": sandbox, "agent": agent, "limit": limit, "cursor": cursor},
        )
        return cast("types.ListSessionsAnswer", answer)

    def get_session(self, id: str) -> "types.Session":
        """Look at one session."""
        answer = self._caller.json("getSession", params={"id": id})
        return cast("types.Session", answer)

    def interrupt_session(self, id: str, *, step: Optional[str] = None) -> None:
        """Interrupt the step that runs, like Ctrl-C, or one by its id; what the session remembers is kept."""
        self._caller.json("interruptSession", params={"id": id}, query={"step": step})

    def restart_session(self, id: str) -> "types.Session":
        """Start the interpreter anew; what it remembered is gone, files stay."""
        answer = self._caller.json("restartSession", params={"id": id})
        return cast("types.Session", answer)

    def terminate_session(self, id: str) -> "types.Session":
        """End a session, and the sandbox that was made for it. Ending it again answers the same."""
        answer = self._caller.json("terminateSession", params={"id": id})
        return cast("types.Session", answer)

    def run_step(self, id: str, body: "types.RunStepBody") -> "types.StepResult":
        """Run code in a session; answers when it has ended, or as SSE while it runs. At most once per stepId."""
        answer = self._caller.json("runStep", params={"id": id}, body=body)
        return cast("types.StepResult", answer)

    def list_steps(
        self,
        id: str,
        *,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> "types.ListStepsAnswer":
        """List the steps of a session, newest first."""
        answer = self._caller.json("listSteps", params={"id": id}, query={"limit": limit, "cursor": cursor})
        return cast("types.ListStepsAnswer", answer)

    def get_step(self, id: str, step: str) -> "types.Step":
        """Look at one step."""
        answer = self._caller.json("getStep", params={"id": id, "step": step})
        return cast("types.Step", answer)

    def step_output(self, id: str, step: str, *, from_: Optional[int] = None) -> "types.StepResult":
        """The result of a step from an offset on: what there is as JSON, or SSE until it ends."""
        answer = self._caller.json("stepOutput", params={"id": id, "step": step}, query={"from": from_})
        return cast("types.StepResult", answer)

    def list_templates(self) -> "types.ListTemplatesAnswer":
        """What a sandbox can start from: what is shipped, and what your tenant has."""
        answer = self._caller.json("listTemplates")
        return cast("types.ListTemplatesAnswer", answer)

    def get_template(self, name: str) -> "types.Template":
        """Look at one template."""
        answer = self._caller.json("getTemplate", params={"name": name})
        return cast("types.Template", answer)

    def put_template(self, name: str, body: Optional["types.PutTemplateBody"] = None) -> "types.Template":
        """Make a template of Debian packages and defaults, or change one; it is built when it is first used."""
        answer = self._caller.json("putTemplate", params={"name": name}, body=body or {})
        return cast("types.Template", answer)

    def remove_template(self, name: str) -> None:
        """Remove a template and, when nothing stands on it, its image."""
        self._caller.json("removeTemplate", params={"name": name})

    def build_template(self, name: str) -> "types.Template":
        """Build the image of a template now; as SSE with progress. One that is ready is answered at once."""
        answer = self._caller.json("buildTemplate", params={"name": name})
        return cast("types.Template", answer)

    def submit_job(self, body: "types.SubmitJobBody") -> None:
        """Queue a job: a command in a fresh sandbox that outlives this call. With an idempotencyKey, asking again is safe."""
        self._caller.json("submitJob", body=body)

    def list_jobs(
        self,
        *,
        state: Optional[Literal["queued", "running", "succeeded", "failed", "canceled"]] = None,
        agent: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> "types.ListJobsAnswer":
        """List jobs, newest first."""
        answer = self._caller.json(
            "listJobs",
            query={"state": state, "agent": agent, "limit": limit, "cursor": cursor},
        )
        return cast("types.ListJobsAnswer", answer)

    def get_job(self, id: str) -> "types.SubmitJobAnswer":
        """Look at one job, and at its result once it has ended."""
        answer = self._caller.json("getJob", params={"id": id})
        return cast("types.SubmitJobAnswer", answer)

    def cancel_job(self, id: str) -> "types.SubmitJobAnswer":
        """Cancel a job: one that waits ends at once, the sandbox of one that runs is ended. Asking again answers the same."""
        answer = self._caller.json("cancelJob", params={"id": id})
        return cast("types.SubmitJobAnswer", answer)

    def job_logs(self, id: str, *, from_: Optional[int] = None) -> "types.JobLogsAnswer":
        """The output of a job from an offset on: what there is as JSON, or SSE until it ends."""
        answer = self._caller.json("jobLogs", params={"id": id}, query={"from": from_})
        return cast("types.JobLogsAnswer", answer)

    def collect_artifacts(self, id: str, body: "types.CollectArtifactsBody") -> "types.CollectArtifactsAnswer":
        """Collect files of a sandbox as artifacts, by patterns. Links, devices, FIFOs and sockets are left out."""
        answer = self._caller.json("collectArtifacts", params={"id": id}, body=body)
        return cast("types.CollectArtifactsAnswer", answer)

    def list_artifacts(
        self,
        *,
        sandbox: Optional[str] = None,
        command: Optional[str] = None,
        step: Optional[str] = None,
        job: Optional[str] = None,
        agent: Optional[str] = None,
        name: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> "types.ListArtifactsAnswer":
        """List artifacts, newest first."""
        answer = self._caller.json(
            "listArtifacts",
            query={
                "sandbox": sandbox,
                "command": command,
                "step": step,
                "job": job,
                "agent": agent,
                "name": name,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("types.ListArtifactsAnswer", answer)

    def get_artifact(self, id: str) -> "types.UploadArtifactAnswer":
        """Look at one artifact."""
        answer = self._caller.json("getArtifact", params={"id": id})
        return cast("types.UploadArtifactAnswer", answer)

    def remove_artifact(self, id: str) -> None:
        """Remove an artifact; its links stop working at once."""
        self._caller.json("removeArtifact", params={"id": id})

    def link_artifact(self, id: str, body: Optional["types.LinkArtifactBody"] = None) -> "types.LinkArtifactAnswer":
        """Make a signed URL that downloads an artifact without a key until it expires."""
        answer = self._caller.json("linkArtifact", params={"id": id}, body=body or {})
        return cast("types.LinkArtifactAnswer", answer)

    def list_catalog(self) -> "types.ListCatalogAnswer":
        """Agent programs that runs may name."""
        answer = self._caller.json("listCatalog")
        return cast("types.ListCatalogAnswer", answer)

    def get_graph(self, name: str) -> "types.Graph":
        """Look at one agent program."""
        answer = self._caller.json("getGraph", params={"name": name})
        return cast("types.Graph", answer)

    def put_graph(self, name: str, body: "types.PutGraphBody") -> "types.Graph":
        """Put an agent program into the catalog of the tenant, or replace it. Runs that began keep the old one."""
        answer = self._caller.json("putGraph", params={"name": name}, body=body)
        return cast("types.Graph", answer)

    def remove_graph(self, name: str) -> None:
        """Take an agent program out of the catalog. Its runs go on."""
        self._caller.json("removeGraph", params={"name": name})

    def submit_run(self, body: "types.SubmitRunBody") -> None:
        """Give messages to an agent program, in a fresh sandbox that outlives this call. Answers the run at once, or its events as SSE."""
        self._caller.json("submitRun", body=body)

    def list_runs(
        self,
        *,
        state: Optional[Literal["queued", "running", "succeeded", "failed", "canceled"]] = None,
        agent: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> "types.ListRunsAnswer":
        """List runs, newest first."""
        answer = self._caller.json(
            "listRuns",
            query={"state": state, "agent": agent, "limit": limit, "cursor": cursor},
        )
        return cast("types.ListRunsAnswer", answer)

    def get_run(self, id: str) -> "types.Run":
        """Look at one run, its result and what it used."""
        answer = self._caller.json("getRun", params={"id": id})
        return cast("types.Run", answer)

    def cancel_run(self, id: str) -> "types.Run":
        """Cancel a run: its sandbox ends. Asking again answers the same."""
        answer = self._caller.json("cancelRun", params={"id": id})
        return cast("types.Run", answer)

    def run_events(self, id: str, *, from_: Optional[int] = None) -> "types.RunEventsAnswer":
        """What a run does from an offset on: what there is as JSON, or SSE until it is done."""
        answer = self._caller.json("runEvents", params={"id": id}, query={"from": from_})
        return cast("types.RunEventsAnswer", answer)

    def run_log(self, id: str) -> "types.RunLog":
        """What the program of a run has printed so far."""
        answer = self._caller.json("runLog", params={"id": id})
        return cast("types.RunLog", answer)

    def openai_chat(self, body: "types.OpenaiChatBody") -> "types.OpenaiChatAnswer":
        """A run by the API of OpenAI: the model is the name of an agent program."""
        answer = self._caller.json("openaiChat", body=body)
        return cast("types.OpenaiChatAnswer", answer)

    def openai_models(self) -> "types.OpenaiModelsAnswer":
        """The catalog as the API of OpenAI lists models."""
        answer = self._caller.json("openaiModels")
        return cast("types.OpenaiModelsAnswer", answer)

    def register_agent(self, body: "types.RegisterAgentBody") -> "types.Agent":
        """Register an agent. It is not approved unless an admin says so."""
        answer = self._caller.json("registerAgent", body=body)
        return cast("types.Agent", answer)

    def list_agents(
        self,
        *,
        state: Optional[Literal["unknown", "connected", "idle", "suspended"]] = None,
        approved: Optional[bool] = None,
        label: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> "types.ListAgentsAnswer":
        """List agents, by name."""
        answer = self._caller.json(
            "listAgents",
            query={"state": state, "approved": approved, "label": label, "limit": limit, "cursor": cursor},
        )
        return cast("types.ListAgentsAnswer", answer)

    def get_agent(self, id: str) -> "types.Agent":
        """Look at one agent."""
        answer = self._caller.json("getAgent", params={"id": id})
        return cast("types.Agent", answer)

    def update_agent(self, id: str, body: Optional["types.UpdateAgentBody"] = None) -> "types.Agent":
        """Change the version, the labels or the metadata of an agent; what is absent stays, and so does its approval."""
        answer = self._caller.json("updateAgent", params={"id": id}, body=body or {})
        return cast("types.Agent", answer)

    def remove_agent(self, id: str, *, expected_generation: Optional[float] = None) -> None:
        """Delete an agent and end its sandboxes. Its generation is never given again."""
        self._caller.json(
            "removeAgent",
            params={"id": id},
            query={"expectedGeneration": expected_generation},
        )

    def approve_agent(self, id: str, body: Optional["types.ChangeAgentBody"] = None) -> "types.Agent":
        """Let an agent have sandboxes. Approving it again answers the same."""
        answer = self._caller.json("approveAgent", params={"id": id}, body=body or {})
        return cast("types.Agent", answer)

    def revoke_agent(self, id: str, body: Optional["types.ChangeAgentBody"] = None) -> "types.Agent":
        """Take the approval of an agent back and end its sandboxes. Doing it again answers the same."""
        answer = self._caller.json("revokeAgent", params={"id": id}, body=body or {})
        return cast("types.Agent", answer)

    def suspend_agent(self, id: str, body: Optional["types.ChangeAgentBody"] = None) -> "types.Agent":
        """Stop an agent until an admin resumes it, and end its sandboxes."""
        answer = self._caller.json("suspendAgent", params={"id": id}, body=body or {})
        return cast("types.Agent", answer)

    def resume_agent(self, id: str, body: Optional["types.ChangeAgentBody"] = None) -> "types.Agent":
        """Let a suspended agent go on, in a new generation."""
        answer = self._caller.json("resumeAgent", params={"id": id}, body=body or {})
        return cast("types.Agent", answer)

    def heartbeat_agent(self, id: str, body: Optional["types.ChangeAgentBody"] = None) -> "types.Agent":
        """Say that an agent lives. Every use of its sandboxes says so too."""
        answer = self._caller.json("heartbeatAgent", params={"id": id}, body=body or {})
        return cast("types.Agent", answer)

    def add_grant(self, id: str, body: "types.AddGrantBody") -> "types.Grant":
        """Let the sandboxes of an agent see a path of this host, from the next one on."""
        answer = self._caller.json("addGrant", params={"id": id}, body=body)
        return cast("types.Grant", answer)

    def list_grants(self, id: str, *, tenant: Optional[str] = None) -> "types.ListGrantsAnswer":
        """List what an agent was granted, oldest first."""
        answer = self._caller.json("listGrants", params={"id": id}, query={"tenant": tenant})
        return cast("types.ListGrantsAnswer", answer)

    def remove_grant(self, id: str, grant: str, *, tenant: Optional[str] = None) -> None:
        """Take a grant back and end the sandboxes that hold it."""
        self._caller.json("removeGrant", params={"id": id, "grant": grant}, query={"tenant": tenant})

    def create_key(self, body: "types.CreateKeyBody") -> "types.NewApiKey":
        """Make an API key. Its secret is in this answer and never again."""
        answer = self._caller.json("createKey", body=body)
        return cast("types.NewApiKey", answer)

    def list_keys(
        self,
        *,
        tenant: Optional[str] = None,
        all: Optional[bool] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> "types.ListKeysAnswer":
        """List the keys of a tenant, newest first, without their secrets."""
        answer = self._caller.json(
            "listKeys",
            query={"tenant": tenant, "all": all, "limit": limit, "cursor": cursor},
        )
        return cast("types.ListKeysAnswer", answer)

    def get_key(self, id: str) -> "types.ApiKey":
        """Look at one key, without its secret."""
        answer = self._caller.json("getKey", params={"id": id})
        return cast("types.ApiKey", answer)

    def rotate_key(self, id: str, body: Optional["types.RotateKeyBody"] = None) -> "types.NewApiKey":
        """Make a key that takes over from another. Both are good for a while, then only the new one."""
        answer = self._caller.json("rotateKey", params={"id": id}, body=body or {})
        return cast("types.NewApiKey", answer)

    def revoke_key(self, id: str) -> "types.ApiKey":
        """End a key, from the next request on. Revoking it again answers the same."""
        answer = self._caller.json("revokeKey", params={"id": id})
        return cast("types.ApiKey", answer)

    def create_tenant(self, body: "types.CreateTenantBody") -> "types.Tenant":
        """Make a tenant, with its approved agent "default"."""
        answer = self._caller.json("createTenant", body=body)
        return cast("types.Tenant", answer)

    def list_tenants(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> "types.ListTenantsAnswer":
        """List the tenants that you may see: yours, or all with a key of the platform."""
        answer = self._caller.json("listTenants", query={"limit": limit, "cursor": cursor})
        return cast("types.ListTenantsAnswer", answer)

    def get_tenant(self, id: str) -> "types.Tenant":
        """Look at one tenant."""
        answer = self._caller.json("getTenant", params={"id": id})
        return cast("types.Tenant", answer)

    def get_agent_budget(self, id: str) -> "types.Budget":
        """What an agent may have at once and spend in a day, and how much of it is taken."""
        answer = self._caller.json("getAgentBudget", params={"id": id})
        return cast("types.Budget", answer)

    def set_agent_budget(self, id: str, body: Optional["types.SetBudgetBody"] = None) -> "types.Budget":
        """Set limits of an agent. What is absent stays; null goes back to the default. Sandboxes that live go on."""
        answer = self._caller.json("setAgentBudget", params={"id": id}, body=body or {})
        return cast("types.Budget", answer)

    def get_tenant_budget(self, id: str) -> "types.Budget":
        """The same of all agents of a tenant together."""
        answer = self._caller.json("getTenantBudget", params={"id": id})
        return cast("types.Budget", answer)

    def set_tenant_budget(self, id: str, body: Optional["types.SetBudgetBody"] = None) -> "types.Budget":
        """Set limits of a tenant; only the platform may."""
        answer = self._caller.json("setTenantBudget", params={"id": id}, body=body or {})
        return cast("types.Budget", answer)

    def get_usage(
        self,
        *,
        tenant: Optional[str] = None,
        agent: Optional[str] = None,
        sandbox: Optional[str] = None,
        run: Optional[str] = None,
        model: Optional[str] = None,
        from_: Optional[str] = None,
        to: Optional[str] = None,
        by: Optional[Literal["day", "agent", "sandbox", "model"]] = None,
    ) -> "types.UsageReport":
        """What was used: compute, calls of models, tokens and dollars, in rows as asked for; as CSV when asked for."""
        answer = self._caller.json(
            "getUsage",
            query={
                "tenant": tenant,
                "agent": agent,
                "sandbox": sandbox,
                "run": run,
                "model": model,
                "from": from_,
                "to": to,
                "by": by,
            },
        )
        return cast("types.UsageReport", answer)

    def list_policies(self, *, scope: Optional[Literal["tenant", "platform"]] = None) -> "types.ListPoliciesAnswer":
        """List the policies of your tenant, or those of the whole server, each in its latest version."""
        answer = self._caller.json("listPolicies", query={"scope": scope})
        return cast("types.ListPoliciesAnswer", answer)

    def get_policy(
        self,
        name: str,
        *,
        scope: Optional[Literal["tenant", "platform"]] = None,
        version: Optional[int] = None,
    ) -> "types.Policy":
        """Look at a policy, in its latest version or in another."""
        answer = self._caller.json("getPolicy", params={"name": name}, query={"scope": scope, "version": version})
        return cast("types.Policy", answer)

    def put_policy(
        self,
        name: str,
        body: "types.PutPolicyBody",
        *,
        scope: Optional[Literal["tenant", "platform"]] = None,
    ) -> "types.Policy":
        """Give a policy a new version. Its examples must hold; it is in force at once, everywhere within two seconds."""
        answer = self._caller.json("putPolicy", params={"name": name}, query={"scope": scope}, body=body)
        return cast("types.Policy", answer)

    def remove_policy(
        self,
        name: str,
        *,
        scope: Optional[Literal["tenant", "platform"]] = None,
        expected_version: Optional[int] = None,
    ) -> None:
        """Take a policy out of force. Its versions are kept."""
        self._caller.json(
            "removePolicy",
            params={"name": name},
            query={"scope": scope, "expectedVersion": expected_version},
        )

    def list_policy_versions(
        self,
        name: str,
        *,
        scope: Optional[Literal["tenant", "platform"]] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> "types.ListPolicyVersionsAnswer":
        """List the versions of a policy, newest first."""
        answer = self._caller.json(
            "listPolicyVersions",
            params={"name": name},
            query={"scope": scope, "limit": limit, "cursor": cursor},
        )
        return cast("types.ListPolicyVersionsAnswer", answer)

    def check_policy(self, body: "types.CheckPolicyBody") -> "types.PolicyCheck":
        """Whether a policy would be accepted: compiles it and tries its examples. Nothing is stored."""
        answer = self._caller.json("checkPolicy", body=body)
        return cast("types.PolicyCheck", answer)

    def evaluate_policies(self, body: "types.EvaluatePoliciesBody") -> "types.Evaluation":
        """What Guardian would say if you did this, and by which rules. Nothing happens."""
        answer = self._caller.json("evaluatePolicies", body=body)
        return cast("types.Evaluation", answer)

    def backtest_policy(self, body: "types.BacktestPolicyBody") -> "types.Backtest":
        """Replay recorded decisions of your tenant on this node against a draft: what would change."""
        answer = self._caller.json("backtestPolicy", body=body)
        return cast("types.Backtest", answer)

    def get_guardian(self) -> "types.GuardianStatus":
        """What decides: the policies in force for your tenant, how many rules of which sort, and other sources."""
        answer = self._caller.json("getGuardian")
        return cast("types.GuardianStatus", answer)

    def list_rules(self) -> "types.ListRulesAnswer":
        """Every rule that is in force for your tenant, and those that are switched off."""
        answer = self._caller.json("listRules")
        return cast("types.ListRulesAnswer", answer)

    def turn_killswitch_on(self, body: "types.TurnKillswitchOnBody") -> "types.KillReport":
        """End a sandbox, or all of an agent, a tenant or the server, and grant nothing there until it is lifted."""
        answer = self._caller.json("turnKillswitchOn", body=body)
        return cast("types.KillReport", answer)

    def list_killswitches(self, *, all: Optional[bool] = None) -> "types.ListKillswitchesAnswer":
        """The killswitches that concern your tenant, newest first, with what each did."""
        answer = self._caller.json("listKillswitches", query={"all": all})
        return cast("types.ListKillswitchesAnswer", answer)

    def lift_killswitch(self, body: "types.LiftKillswitchBody") -> "types.KillReport":
        """Turn a killswitch off. What it ended stays ended."""
        answer = self._caller.json("liftKillswitch", body=body)
        return cast("types.KillReport", answer)

    def list_approvals(
        self,
        *,
        state: Optional[Union[Literal["pending", "approved", "rejected", "expired", "revoked", "used"], Literal["all"]]] = None,
        agent: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> "types.ListApprovalsAnswer":
        """List asks and what became of them, newest first; the pending ones unless a state is asked for."""
        answer = self._caller.json(
            "listApprovals",
            query={"state": state, "agent": agent, "limit": limit, "cursor": cursor},
        )
        return cast("types.ListApprovalsAnswer", answer)

    def approval_events(self, *, agent: Optional[str] = None) -> "types.ApprovalEventsAnswer":
        """The pending asks as JSON; as SSE those, then every new one and every answer."""
        answer = self._caller.json("approvalEvents", query={"agent": agent})
        return cast("types.ApprovalEventsAnswer", answer)

    def get_approval(self, id: str) -> "types.ApprovalDetail":
        """Look at one ask, with all that was asked for."""
        answer = self._caller.json("getApproval", params={"id": id})
        return cast("types.ApprovalDetail", answer)

    def approve_approval(self, id: str, body: Optional["types.ApproveApprovalBody"] = None) -> "types.Approval":
        """Let what was asked for happen. Never by who asked, nor by a key that is bound to agents."""
        answer = self._caller.json("approveApproval", params={"id": id}, body=body or {})
        return cast("types.Approval", answer)

    def reject_approval(self, id: str, body: Optional["types.RejectApprovalBody"] = None) -> "types.Approval":
        """Say no. The same request is then denied until the ask would have expired."""
        answer = self._caller.json("rejectApproval", params={"id": id}, body=body or {})
        return cast("types.Approval", answer)

    def revoke_approval(self, id: str) -> "types.Approval":
        """Take an approval back that is not used yet, or is used again and again."""
        answer = self._caller.json("revokeApproval", params={"id": id})
        return cast("types.Approval", answer)

    def create_webhook(self, body: "types.CreateWebhookBody") -> "types.NewWebhook":
        """Be told of events by HTTP. The answer holds the secret that signs them, once."""
        answer = self._caller.json("createWebhook", body=body)
        return cast("types.NewWebhook", answer)

    def list_webhooks(self) -> "types.ListWebhooksAnswer":
        """List the webhooks of your tenant, oldest first."""
        answer = self._caller.json("listWebhooks")
        return cast("types.ListWebhooksAnswer", answer)

    def get_webhook(self, id: str) -> "types.Webhook":
        """Look at one webhook, and how its last delivery went."""
        answer = self._caller.json("getWebhook", params={"id": id})
        return cast("types.Webhook", answer)

    def remove_webhook(self, id: str) -> None:
        """Tell it nothing any more."""
        self._caller.json("removeWebhook", params={"id": id})

    def events(
        self,
        *,
        agent: Optional[str] = None,
        sandbox: Optional[str] = None,
        point: Optional[str] = None,
        status: Optional[str] = None,
        since: Optional[str] = None,
        after: Optional[int] = None,
        limit: Optional[int] = None,
    ) -> "types.EventPage":
        """What happens on this node, as SSE from now on or after a record; without SSE the latest, or a page after a record."""
        answer = self._caller.json(
            "events",
            query={
                "agent": agent,
                "sandbox": sandbox,
                "point": point,
                "status": status,
                "since": since,
                "after": after,
                "limit": limit,
            },
        )
        return cast("types.EventPage", answer)

    def agent_events(
        self,
        id: str,
        *,
        sandbox: Optional[str] = None,
        point: Optional[str] = None,
        status: Optional[str] = None,
        since: Optional[str] = None,
        after: Optional[int] = None,
        limit: Optional[int] = None,
    ) -> "types.EventPage":
        """The same of one agent."""
        answer = self._caller.json(
            "agentEvents",
            params={"id": id},
            query={
                "sandbox": sandbox,
                "point": point,
                "status": status,
                "since": since,
                "after": after,
                "limit": limit,
            },
        )
        return cast("types.EventPage", answer)

    def sandbox_events(
        self,
        id: str,
        *,
        point: Optional[str] = None,
        status: Optional[str] = None,
        since: Optional[str] = None,
        after: Optional[int] = None,
        limit: Optional[int] = None,
    ) -> "types.EventPage":
        """The same of one sandbox."""
        answer = self._caller.json(
            "sandboxEvents",
            params={"id": id},
            query={"point": point, "status": status, "since": since, "after": after, "limit": limit},
        )
        return cast("types.EventPage", answer)

    def agent_summary(self, id: str, *, days: Optional[int] = None) -> "types.AgentSummary":
        """What an agent did on this node in the last days: operations, failures, durations, resources, trend."""
        answer = self._caller.json("agentSummary", params={"id": id}, query={"days": days})
        return cast("types.AgentSummary", answer)

    def audit_stats(self) -> "types.AuditStats":
        """How much evidence of your tenant this node has, how fast it grows, whether it verifies, what was dropped."""
        answer = self._caller.json("auditStats")
        return cast("types.AuditStats", answer)

    def tenant_metrics(self, *, agent: Optional[str] = None) -> "types.TenantMetrics":
        """What every living sandbox of yours on this node uses now, and all of them together."""
        answer = self._caller.json("tenantMetrics", query={"agent": agent})
        return cast("types.TenantMetrics", answer)

    def sandbox_metrics(
        self,
        id: str,
        *,
        resolution: Optional[Literal["5s", "1m", "15m"]] = None,
        since: Optional[str] = None,
    ) -> "types.SandboxMetrics":
        """What a sandbox uses now and used before; as SSE each sample and alert while it lives."""
        answer = self._caller.json(
            "sandboxMetrics",
            params={"id": id},
            query={"resolution": resolution, "since": since},
        )
        return cast("types.SandboxMetrics", answer)

    def agent_metrics(
        self,
        id: str,
        *,
        resolution: Optional[Literal["5s", "1m", "15m"]] = None,
        since: Optional[str] = None,
    ) -> "types.AgentMetrics":
        """The same of all sandboxes of an agent on this node, and together."""
        answer = self._caller.json(
            "agentMetrics",
            params={"id": id},
            query={"resolution": resolution, "since": since},
        )
        return cast("types.AgentMetrics", answer)

    def list_models(self) -> "types.ListModelsAnswer":
        """Models that sandboxes may name, with their prices."""
        answer = self._caller.json("listModels")
        return cast("types.ListModelsAnswer", answer)

    def get_llm_status(self) -> "types.GetLlmStatusAnswer":
        """Upstreams of models with the state of their keys and breakers, and the calls of your tenant under way."""
        answer = self._caller.json("getLlmStatus")
        return cast("types.GetLlmStatusAnswer", answer)

    def get_seal_key(self) -> "types.GetSealKeyAnswer":
        """The public key to which clients seal secrets. Only the process that sends them has the private one."""
        answer = self._caller.json("getSealKey")
        return cast("types.GetSealKeyAnswer", answer)

    def list_secrets(self) -> "types.ListSecretsAnswer":
        """List the secrets of your tenant. No route answers a value."""
        answer = self._caller.json("listSecrets")
        return cast("types.ListSecretsAnswer", answer)

    def put_secret(self, name: str, body: "types.PutSecretBody") -> "types.PutSecretAnswer":
        """Store a sealed secret, or give it a new value: no call starts with the old one after a second."""
        answer = self._caller.json("putSecret", params={"name": name}, body=body)
        return cast("types.PutSecretAnswer", answer)

    def remove_secret(self, name: str) -> None:
        """Remove a secret. Tools that name it are refused from then on."""
        self._caller.json("removeSecret", params={"name": name})

    def list_tools(self) -> "types.ListToolsAnswer":
        """List the tools of your tenant."""
        answer = self._caller.json("listTools")
        return cast("types.ListToolsAnswer", answer)

    def get_tool(self, name: str) -> "types.GetToolAnswer":
        """Look at one tool."""
        answer = self._caller.json("getTool", params={"name": name})
        return cast("types.GetToolAnswer", answer)

    def put_tool(self, name: str, body: "types.PutToolBody") -> "types.GetToolAnswer":
        """Describe a tool, or give it another description. No sandbox may call it until a rule names it."""
        answer = self._caller.json("putTool", params={"name": name}, body=body)
        return cast("types.GetToolAnswer", answer)

    def remove_tool(self, name: str) -> None:
        """Remove a tool."""
        self._caller.json("removeTool", params={"name": name})

    def audit_events(
        self,
        *,
        agent: Optional[str] = None,
        sandbox: Optional[str] = None,
        point: Optional[
            Literal[
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
            ],
        ] = None,
        status: Optional[Literal["requested", "done", "failed", "denied", "unknown"]] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> "types.AuditEventsAnswer":
        """Evidence of your tenant on this node, newest first."""
        answer = self._caller.json(
            "auditEvents",
            query={
                "agent": agent,
                "sandbox": sandbox,
                "point": point,
                "status": status,
                "since": since,
                "until": until,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("types.AuditEventsAnswer", answer)

    def audit_head(self) -> "types.AuditHeadAnswer":
        """A freshly signed head and the public key: keep it elsewhere, and truncation shows."""
        answer = self._caller.json("auditHead")
        return cast("types.AuditHeadAnswer", answer)

    def audit_quarantine(self, body: "types.AuditQuarantineBody") -> "types.QuarantinedHead":
        """Set aside what does not verify of the chain of a tenant on this node, kept and stated with a signature; the chain goes on."""
        answer = self._caller.json("auditQuarantine", body=body)
        return cast("types.QuarantinedHead", answer)

    def audit_chains(self) -> "types.AuditChainsAnswer":
        """The chains of your tenant on all nodes that share a store: where each is, and its latest head."""
        answer = self._caller.json("auditChains")
        return cast("types.AuditChainsAnswer", answer)

    def whoami(self) -> "types.WhoamiAnswer":
        """Who the server takes you for."""
        answer = self._caller.json("whoami")
        return cast("types.WhoamiAnswer", answer)

    def health(self) -> "types.HealthAnswer":
        """The process lives."""
        answer = self._caller.json("health")
        return cast("types.HealthAnswer", answer)

    def ready(self) -> "types.ReadyAnswer":
        """It can create sandboxes; warnings about the disk of the host and the evidence of tenants."""
        answer = self._caller.json("ready")
        return cast("types.ReadyAnswer", answer)

    def openapi(self) -> Any:
        """This API as OpenAPI 3.1."""
        answer = self._caller.json("openapi")
        return cast(Any, answer)
