from __future__ import annotations

from types import TracebackType
from typing import Generator, Mapping, Optional, Type, Union, cast

from . import types
from ._body import Page, body_of
from ._deadline import Deadline
from ._files import SandboxFiles
from ._operations import Operations
from ._sandboxes import Sandbox
from ._steps import OnOutput, OnText, SessionStep, StepResult, collect_step, stream_step
from ._transport import Transport


class Session:
    """An interpreter that remembers: the last known state in `data`. Leaving `with` ends it."""

    def __init__(self, transport: Transport, data: types.Session) -> None:
        self._transport = transport
        self._api = Operations(transport)
        self._data = data
        self.id = data["id"]
        self.runtime = data["runtime"]
        # Files of its sandbox.
        self.files = SandboxFiles(transport, data["sandbox"])

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.terminate()

    def __repr__(self) -> str:
        return f"<Session {self.id} {self.runtime} {self._data['state']}>"

    @property
    def data(self) -> types.Session:
        return self._data

    def sandbox(self) -> Sandbox:
        """The sandbox that it runs in, for commands beside it."""
        return Sandbox(self._transport, self._api.get_sandbox(self._data["sandbox"]))

    def run(
        self,
        code: str,
        *,
        step_id: Optional[str] = None,
        timeout_ms: Optional[int] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        max_output_bytes: Optional[int] = None,
        on_stdout: Optional[OnText] = None,
        on_stderr: Optional[OnText] = None,
        on_output: Optional[OnOutput] = None,
        wait_s: Optional[float] = None,
    ) -> StepResult:
        """Runs code to its end. Code that fails is a result with an `error`, not an exception.

        Ctrl-C, and the end of `wait_s` (`TimedOutError`), interrupt the step; what the session remembers is kept.
        """
        events = self.stream(
            code,
            step_id=step_id,
            timeout_ms=timeout_ms,
            env=env,
            stdin=stdin,
            max_output_bytes=max_output_bytes,
            wait_s=wait_s,
        )
        return collect_step(events, on_stdout=on_stdout, on_stderr=on_stderr, on_output=on_output)

    def stream(
        self,
        code: str,
        *,
        step_id: Optional[str] = None,
        timeout_ms: Optional[int] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        max_output_bytes: Optional[int] = None,
        wait_s: Optional[float] = None,
    ) -> Generator[types.StepEvent, None, None]:
        """Runs code when it is first iterated, and yields its events. Leaving the loop does not end the step."""
        body = body_of(
            code=code,
            step_id=step_id,
            timeout_ms=timeout_ms,
            env=env,
            stdin=stdin,
            max_output_bytes=max_output_bytes,
        )
        return stream_step(self._transport, self.id, body=body, deadline=Deadline(wait_s))

    def step(self, id: str) -> SessionStep:
        """A step that is already there."""
        return SessionStep(self._transport, session=self.id, id=id)

    def steps(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Page[types.Step]:
        """One page, newest first."""
        answer = self._api.list_steps(self.id, limit=limit, cursor=cursor)
        return Page(answer["items"], answer["nextCursor"])

    def interrupt(self) -> None:
        """Interrupts the step that runs, like Ctrl-C; what the session remembers is kept."""
        self._api.interrupt_session(self.id)

    def restart(self) -> Session:
        """Starts the interpreter anew: what it remembered is gone, files stay."""
        return self._update(self._api.restart_session(self.id))

    def refresh(self) -> Session:
        return self._update(self._api.get_session(self.id))

    def terminate(self) -> Session:
        """Ends it, and the sandbox that was made for it. Ending it again does nothing."""
        return self._update(self._api.terminate_session(self.id))

    def _update(self, data: types.Session) -> Session:
        self._data = data
        return self


class Sessions:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._api = Operations(transport)

    def create(
        self,
        runtime: types.Runtime,
        *,
        sandbox: Union[None, str, Sandbox] = None,
        create: Optional[types.CreateSandboxBody] = None,
        labels: Optional[Mapping[str, str]] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        ttl_ms: Optional[int] = None,
    ) -> Session:
        """Answers when the interpreter waits for its first step.

        `sandbox` is a living one to open it in, `create` the body of a new one, which ends with it. With neither,
        Python gets a sandbox of the template `data`.
        """
        body = body_of(
            runtime=runtime,
            sandbox=sandbox.id if isinstance(sandbox, Sandbox) else sandbox,
            create=create,
            labels=labels,
            env=env,
            cwd=cwd,
            ttl_ms=ttl_ms,
        )
        return Session(self._transport, self._api.create_session(body))

    def get(self, id: str) -> Session:
        return Session(self._transport, self._api.get_session(id))

    def list(
        self,
        *,
        state: Optional[str] = None,
        sandbox: Optional[str] = None,
        agent: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Page[Session]:
        """One page, newest first: the active ones unless a state, or "all", is asked for."""
        answer = self._api.list_sessions(
            state=cast("types.SessionState", state), sandbox=sandbox, agent=agent, limit=limit, cursor=cursor
        )
        return Page([Session(self._transport, data) for data in answer["items"]], answer["nextCursor"])
