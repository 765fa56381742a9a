from __future__ import annotations

import base64
import codecs
from dataclasses import dataclass
from typing import Any, Dict, Generator, Iterable, List, Mapping, Optional, Sequence, Union, cast

from . import types
from ._body import body_of
from ._connection import Broken
from ._deadline import Deadline
from ._faults import fault
from ._files import FileContent, as_upload
from ._operations import Operations
from ._server_events import Progress, Subject, events_of, follow_events, open_events
from ._transport import Transport

# A line for a shell; or a program and its arguments, without a shell.
CommandLine = Union[str, Sequence[str]]
OutputEvent = Union[types.CommandEventOutput, types.StepEventOutput]


@dataclass(frozen=True)
class CommandResult:
    """A command that has ended, or what there is of it now."""

    stdout: str
    stderr: str
    data: types.Command

    @property
    def id(self) -> str:
        return self.data["id"]

    @property
    def exit_code(self) -> Optional[int]:
        """None while it runs, and when a signal ended it."""
        return self.data["exitCode"]

    @property
    def signal(self) -> Optional[str]:
        return self.data["signal"]

    @property
    def cause(self) -> Optional[types.EndCause]:
        """Why it ended."""
        return self.data["cause"]

    @property
    def timed_out(self) -> bool:
        return self.data["timedOut"]

    @property
    def truncated(self) -> bool:
        """Output past `max_output_bytes` is not here: see `RunningCommand.full_output`."""
        return self.data["truncated"]

    @property
    def duration_ms(self) -> Optional[float]:
        return self.data["durationMs"]


class RunningCommand:
    """A command of a sandbox, running or ended. Iterating follows its events from the beginning, every time."""

    def __init__(self, transport: Transport, *, sandbox: str, id: str) -> None:
        self._transport = transport
        self._api = Operations(transport)
        self.sandbox = sandbox
        self.id = id

    def __iter__(self) -> Generator[types.CommandEvent, None, None]:
        return self.events()

    def __repr__(self) -> str:
        return f"<RunningCommand {self.id}>"

    def events(self, *, start: int = 0, wait_s: Optional[float] = None) -> Generator[types.CommandEvent, None, None]:
        """Its output from the byte `start` on, until it has ended."""
        subject = _subject(self.sandbox, self.id)
        events = follow_events(self._transport, subject, start=start, deadline=Deadline(wait_s))
        return cast(Generator[types.CommandEvent, None, None], events)

    def stdout(self) -> Generator[bytes, None, None]:
        return self._bytes("stdout")

    def stderr(self) -> Generator[bytes, None, None]:
        return self._bytes("stderr")

    def get(self) -> types.Command:
        """Its state now."""
        return self._api.get_command(self.sandbox, self.id)

    def output(self) -> CommandResult:
        """Its output so far, without waiting."""
        answer = self._api.command_output(self.sandbox, self.id)
        return CommandResult(answer["stdout"], answer["stderr"], _without_output(answer))

    def full_output(self) -> Generator[bytes, None, None]:
        """All output of a command that went over its cap: both streams as they came. Raises when it is cut."""
        params = {"id": self.sandbox, "command": self.id}
        answer = self._transport.send("fullCommandOutput", params=params)
        try:
            yield from answer.chunks()
        except Broken as broken:
            message = "The connection broke before the whole output was here."
            raise fault("server_unreachable", message) from broken.cause
        finally:
            answer.close()

    def wait(self, *, wait_s: Optional[float] = None) -> CommandResult:
        """Waits for its end. With `wait_s`, the wait ends with `TimedOutError`, and the command goes on."""
        return collect_command(self.events(wait_s=wait_s))

    def signal(self, name: types.SignalName) -> None:
        """SIGKILL ends everything that it started."""
        self._api.signal_command(self.sandbox, self.id, {"signal": name})

    def write(self, content: FileContent) -> None:
        """Writes to its stdin, which must have been opened."""
        self._write(content, end=False)

    def end(self, content: FileContent = b"") -> None:
        """Writes, then closes its stdin."""
        self._write(content, end=True)

    def _write(self, content: FileContent, *, end: bool) -> None:
        params = {"id": self.sandbox, "command": self.id}
        query = {"end": end or None}
        self._transport.json("writeStdin", params=params, query=query, upload=as_upload(content))

    def _bytes(self, stream: str) -> Generator[bytes, None, None]:
        for event in self.events():
            if event["event"] == "output" and event["stream"] == stream:
                yield output_bytes(event)


def stream_command(
    transport: Transport, sandbox: str, body: Any, deadline: Deadline
) -> Generator[types.CommandEvent, None, None]:
    """Runs a command over one connection. When that breaks, goes on with the output route where it was."""
    answer = open_events(transport, "runCommand", params={"id": sandbox}, body=body, deadline=deadline)
    progress = Progress()
    yield from cast(Generator[types.CommandEvent, None, None], events_of(answer, _started, progress, deadline))
    if progress.ended:
        return
    if progress.subject is None:
        raise fault("server_unreachable", "The connection broke.")
    subject = _subject(sandbox, progress.subject)
    events = follow_events(transport, subject, start=progress.start, resumes=progress.subject, deadline=deadline)
    yield from cast(Generator[types.CommandEvent, None, None], events)


def command_body(
    command: CommandLine,
    *,
    cwd: Optional[str],
    env: Optional[Mapping[str, str]],
    stdin: Optional[str],
    open_stdin: bool,
    timeout_ms: Optional[int],
    cpu_time_ms: Optional[int],
    max_output_bytes: Optional[int],
) -> types.RunCommandBody:
    fed: Union[None, str, Dict[str, str]] = "open" if open_stdin else None if stdin is None else {"text": stdin}
    if open_stdin and stdin is not None:
        raise fault("invalid_request", "Give either stdin or open_stdin.", hint="With open_stdin, write it later.")
    words: Dict[str, Any]
    if isinstance(command, str):
        words = {"shell": command}
    elif isinstance(command, Sequence) and not isinstance(command, (bytes, bytearray)):
        words = {"argv": list(command)}
    else:
        hint = "Write run('ls -la') or run(['ls', '-la']); options are named."
        raise fault("invalid_request", "A command is a line of shell or one list of words.", hint=hint)
    options = body_of(
        cwd=cwd,
        env=env,
        stdin=fed,
        timeout_ms=timeout_ms,
        cpu_time_ms=cpu_time_ms,
        max_output_bytes=max_output_bytes,
    )
    return cast(types.RunCommandBody, {**words, **options})


def output_bytes(event: OutputEvent) -> bytes:
    """The bytes of an output event, whichever way they came."""
    if "base64" in event:
        return base64.b64decode(event["base64"])
    return event.get("text", "").encode("utf-8")


class TextCollector:
    """Text of bytes that may be cut anywhere."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._parts: List[str] = []

    def push(self, data: bytes, final: bool = False) -> str:
        text = self._decoder.decode(data, final)
        self._parts.append(text)
        return text

    def whole(self) -> str:
        return "".join(self._parts)


def collect_command(events: Iterable[types.CommandEvent]) -> CommandResult:
    text = {"stdout": TextCollector(), "stderr": TextCollector()}
    command: Optional[types.Command] = None
    for event in events:
        if event["event"] == "output":
            text[event["stream"]].push(output_bytes(event))
        elif event["event"] == "ended":
            command = event["command"]
    if command is None:
        raise fault("server_unreachable", "The stream ended before the command.")
    for collector in text.values():
        collector.push(b"", final=True)
    return CommandResult(text["stdout"].whole(), text["stderr"].whole(), command)


def _without_output(answer: types.CommandResult) -> types.Command:
    return cast(types.Command, {key: value for key, value in answer.items() if key not in ("stdout", "stderr")})


def _subject(sandbox: str, command: str) -> Subject:
    return Subject("commandOutput", {"id": sandbox, "command": command}, _started)


def _started(event: Dict[str, Any]) -> str:
    return cast(str, event["command"]["id"])
