from __future__ import annotations

from types import TracebackType
from typing import Generator, List, Mapping, Optional, Type, Union, cast

from . import types
from ._body import Page, body_of, label_query
from ._commands import CommandLine, CommandResult, RunningCommand, collect_command, command_body, stream_command
from ._deadline import Deadline
from ._files import SandboxFiles
from ._metrics import Resolution, follow_metrics
from ._operations import Operations
from ._transport import Transport


class Sandbox:
    """A sandbox: the last known state in `data`, and what can be done with it. Leaving `with` ends it."""

    def __init__(self, transport: Transport, data: Union[types.Sandbox, types.CreatedSandbox]) -> None:
        self._transport = transport
        self._api = Operations(transport)
        self._data: types.Sandbox = data
        self.id = data["id"]
        self.files = SandboxFiles(transport, self.id)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.terminate()

    def __repr__(self) -> str:
        return f"<Sandbox {self.id} {self._data['state']}>"

    @property
    def data(self) -> types.Sandbox:
        return self._data

    @property
    def name(self) -> Optional[str]:
        return self._data["name"]

    def run(
        self,
        command: CommandLine,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        timeout_ms: Optional[int] = None,
        cpu_time_ms: Optional[int] = None,
        max_output_bytes: Optional[int] = None,
        wait_s: Optional[float] = None,
    ) -> CommandResult:
        """Runs a command to its end. A failing command is a result, not an error.

        `timeout_ms` ends the command. `wait_s` ends the wait with `TimedOutError`, and the command goes on.
        """
        events = self.stream(
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout_ms=timeout_ms,
            cpu_time_ms=cpu_time_ms,
            max_output_bytes=max_output_bytes,
            wait_s=wait_s,
        )
        return collect_command(events)

    def stream(
        self,
        command: CommandLine,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        timeout_ms: Optional[int] = None,
        cpu_time_ms: Optional[int] = None,
        max_output_bytes: Optional[int] = None,
        wait_s: Optional[float] = None,
    ) -> Generator[types.CommandEvent, None, None]:
        """Runs a command when it is first iterated, and yields its events. Leaving the loop does not end it."""
        body = command_body(
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            open_stdin=False,
            timeout_ms=timeout_ms,
            cpu_time_ms=cpu_time_ms,
            max_output_bytes=max_output_bytes,
        )
        return stream_command(self._transport, self.id, body, Deadline(wait_s))

    def start(
        self,
        command: CommandLine,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        open_stdin: bool = False,
        timeout_ms: Optional[int] = None,
        cpu_time_ms: Optional[int] = None,
        max_output_bytes: Optional[int] = None,
    ) -> RunningCommand:
        """Starts a command, and answers as soon as it runs. With `open_stdin`, write its input later."""
        body = command_body(
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            open_stdin=open_stdin,
            timeout_ms=timeout_ms,
            cpu_time_ms=cpu_time_ms,
            max_output_bytes=max_output_bytes,
        )
        body["background"] = True
        return self.command(self._api.run_command(self.id, body)["id"])

    def command(self, id: str) -> RunningCommand:
        """A command that is already there."""
        return RunningCommand(self._transport, sandbox=self.id, id=id)

    def commands(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Page[types.Command]:
        """One page, newest first."""
        answer = self._api.list_commands(self.id, limit=limit, cursor=cursor)
        return Page(answer["items"], answer["nextCursor"])

    def refresh(self) -> Sandbox:
        return self._update(self._api.get_sandbox(self.id))

    def connect(self, *, revoke: bool = False) -> types.Connection:
        """Gives it a new token for its door, and answers what a program inside needs to reach the server."""
        return self._api.connect_sandbox(self.id, {"revoke": revoke})

    def extend(self, ttl_ms: Optional[int] = None) -> Sandbox:
        """Lets it live `ttl_ms` from now, or its own TTL; never past its maximum lifetime."""
        return self._update(self._api.extend_sandbox(self.id, body_of(ttl_ms=ttl_ms)))

    def set_limits(self, limits: types.ChangeLimitsBody) -> Sandbox:
        """Holds it to other limits from now on, all of them or none; an absent limit stays."""
        return self._update(self._api.change_limits(self.id, limits))

    def pause(self) -> Sandbox:
        """Stops its processes where they stand; its time stops too. Pausing it again does nothing."""
        return self._update(self._api.pause_sandbox(self.id))

    def resume(self) -> Sandbox:
        """Lets it go on with the time that it had left. Resuming it again does nothing."""
        return self._update(self._api.resume_sandbox(self.id))

    def metrics(self, *, resolution: Optional[Resolution] = None, since: Optional[str] = None) -> types.SandboxMetrics:
        """Its usage now and before."""
        return self._api.sandbox_metrics(self.id, resolution=resolution, since=since)

    def follow_metrics(self) -> Generator[types.MetricEvent, None, None]:
        """Each sample and alert, until it has ended."""
        return follow_metrics(self._transport, self.id)

    def terminate(self, *, force: bool = False) -> Sandbox:
        """Ends it. Ending it again does nothing."""
        return self._update(self._api.terminate_sandbox(self.id, {"force": force}))

    def _update(self, data: types.Sandbox) -> Sandbox:
        self._data = data
        return self


class Sandboxes:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._api = Operations(transport)

    def create(
        self,
        *,
        name: Optional[str] = None,
        agent: Optional[str] = None,
        template: Optional[str] = None,
        labels: Optional[Mapping[str, str]] = None,
        ephemeral: Optional[bool] = None,
        env: Optional[Mapping[str, str]] = None,
        ttl_ms: Optional[int] = None,
        idle_ms: Optional[int] = None,
        on_idle: Optional[str] = None,
        max_paused_ms: Optional[int] = None,
        max_lifetime_ms: Optional[int] = None,
        limits: Optional[types.ChangeLimitsBody] = None,
        tier: Optional[types.Tier] = None,
        doors: Optional[List[types.DoorName]] = None,
        models: Optional[List[str]] = None,
        model_limits: Optional[types.CreateSandboxBodyModelLimits] = None,
        worktree: Optional[types.CreateSandboxBodyWorktree] = None,
    ) -> Sandbox:
        """Answers when the sandbox is active."""
        body = body_of(
            name=name,
            agent=agent,
            template=template,
            labels=labels,
            ephemeral=ephemeral,
            env=env,
            ttl_ms=ttl_ms,
            idle_ms=idle_ms,
            on_idle=on_idle,
            max_paused_ms=max_paused_ms,
            max_lifetime_ms=max_lifetime_ms,
            limits=limits,
            tier=tier,
            doors=doors,
            models=models,
            model_limits=model_limits,
            worktree=worktree,
        )
        return Sandbox(self._transport, self._api.create_sandbox(body))

    def get_or_create(
        self,
        name: str,
        *,
        agent: Optional[str] = None,
        template: Optional[str] = None,
        labels: Optional[Mapping[str, str]] = None,
        ephemeral: Optional[bool] = None,
        env: Optional[Mapping[str, str]] = None,
        ttl_ms: Optional[int] = None,
        idle_ms: Optional[int] = None,
        on_idle: Optional[str] = None,
        max_paused_ms: Optional[int] = None,
        max_lifetime_ms: Optional[int] = None,
        limits: Optional[types.ChangeLimitsBody] = None,
        tier: Optional[types.Tier] = None,
        doors: Optional[List[types.DoorName]] = None,
        models: Optional[List[str]] = None,
        model_limits: Optional[types.CreateSandboxBodyModelLimits] = None,
        worktree: Optional[types.CreateSandboxBodyWorktree] = None,
    ) -> Sandbox:
        """The living sandbox of that name, or a new one."""
        body = body_of(
            agent=agent,
            template=template,
            labels=labels,
            ephemeral=ephemeral,
            env=env,
            ttl_ms=ttl_ms,
            idle_ms=idle_ms,
            on_idle=on_idle,
            max_paused_ms=max_paused_ms,
            max_lifetime_ms=max_lifetime_ms,
            limits=limits,
            tier=tier,
            doors=doors,
            models=models,
            model_limits=model_limits,
            worktree=worktree,
        )
        return Sandbox(self._transport, self._api.get_or_create_sandbox(name, body))

    def get(self, id: str) -> Sandbox:
        return Sandbox(self._transport, self._api.get_sandbox(id))

    def list(
        self,
        *,
        state: Optional[str] = None,
        agent: Optional[str] = None,
        name: Optional[str] = None,
        labels: Optional[Mapping[str, str]] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Page[Sandbox]:
        """One page, newest first: the living ones unless a state, or "all", is asked for."""
        answer = self._api.list_sandboxes(
            state=cast("types.SandboxState", state),
            agent=agent,
            name=name,
            label=label_query(labels),
            limit=limit,
            cursor=cursor,
        )
        return Page([Sandbox(self._transport, data) for data in answer["items"]], answer["nextCursor"])
