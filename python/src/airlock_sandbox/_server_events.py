"""Server-sent events, and streams of them that go on over broken connections."""

from __future__ import annotations

import json
import time
from typing import Any, Callable, Dict, Generator, Iterable, Iterator, List, Mapping, NamedTuple, Optional

from ._airlock_error import AirlockError
from ._connection import Answer, Broken
from ._deadline import NEVER, Deadline
from ._faults import fault, fault_of_event
from ._transport import Transport

# Longest line: a rich output has up to 8 MiB, and JSON may need two characters for one of them.
_MOST_LINE = 20 * 1024 * 1024
# The server sends a comment every 15 seconds: a connection that is silent for longer is dead.
SILENCE_S = 60.0
# How long a broken stream is tried again in vain: longer than a restart of the server on a busy machine.
_RESUME_LIMIT_S = 60.0
_FIRST_PAUSE_S = 0.2
_MOST_PAUSE_S = 2.0
# A connection that lasted this long was alive, even without an event.
_ALIVE_S = 20.0

EVENT_STREAM = {"accept": "text/event-stream"}


class ServerEvent(NamedTuple):
    id: Optional[str]
    data: Dict[str, Any]


def parse_server_events(chunks: Iterable[bytes]) -> Iterator[ServerEvent]:
    """Comments and unknown fields are skipped, and so is the unfinished event of a stream that broke."""
    event_id: Optional[str] = None
    data: List[bytes] = []
    for line in _lines(chunks):
        if not line:
            if data:
                yield ServerEvent(event_id, _parse(b"\n".join(data)))
            event_id, data = None, []
            continue
        name, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if name == b"id":
            event_id = value.decode("utf-8", "replace")
        elif name == b"data":
            data.append(value)


def open_events(
    transport: Transport,
    name: str,
    *,
    deadline: Deadline,
    headers: Optional[Mapping[str, str]] = None,
    **call: Any,
) -> Answer:
    return transport.send(name, headers={**EVENT_STREAM, **(headers or {})}, deadline=deadline, **call)


def read_events(answer: Answer, deadline: Deadline = NEVER) -> Iterator[ServerEvent]:
    """Ends quietly where the connection breaks: what is missing tells the reader."""
    try:
        yield from parse_server_events(answer.chunks(deadline, SILENCE_S))
    except Broken:
        return
    finally:
        answer.close()


class Patience:
    """Waits longer each time, and gives up after a minute in which nothing was achieved."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._vain_since = time.monotonic()
        self._pause_s = _FIRST_PAUSE_S

    def pause(self, achieved: bool = False) -> None:
        now = time.monotonic()
        if achieved:
            self._vain_since = now
        self._pause_s = _FIRST_PAUSE_S if achieved else min(self._pause_s * 2, _MOST_PAUSE_S)
        if now - self._vain_since > _RESUME_LIMIT_S:
            raise fault("server_unreachable", "The stream broke and could not be resumed.")
        self._deadline.sleep(self._pause_s)


class Progress:
    """How far a stream was read: its subject, the last byte that was passed on, and whether its end was."""

    def __init__(self, start: int = 0, subject: Optional[str] = None) -> None:
        self.start = start
        self.subject = subject
        self.ended = False


class Subject(NamedTuple):
    """A command or a step: where its output is, and the id in its `started` event."""

    route: str
    params: Mapping[str, str]
    subject_of: Callable[[Dict[str, Any]], str]


def follow_events(
    transport: Transport,
    subject: Subject,
    *,
    start: int = 0,
    resumes: Optional[str] = None,
    deadline: Deadline = NEVER,
) -> Iterator[Dict[str, Any]]:
    """Events from a byte on until the end, over any number of connections. `resumes`: its beginning was passed on."""
    progress = Progress(start, resumes)
    patience = Patience(deadline)
    while True:
        before = progress.start
        answer = _open_output(transport, subject, progress, deadline)
        opened = time.monotonic()
        if answer is not None:
            yield from events_of(answer, subject.subject_of, progress, deadline)
        if progress.ended:
            return
        was_alive = answer is not None and time.monotonic() - opened > _ALIVE_S
        patience.pause(progress.start > before or was_alive)


def events_of(
    answer: Answer,
    subject_of: Callable[[Dict[str, Any]], str],
    progress: Progress,
    deadline: Deadline = NEVER,
    is_final: Callable[[AirlockError], bool] = lambda error: False,
) -> Iterator[Dict[str, Any]]:
    """Ends quietly where the stream breaks or the server asks for patience; `progress` tells if the end was seen."""
    for event_id, event in read_events(answer, deadline):
        kind = event.get("event")
        if kind == "error":
            error = fault_of_event(event["error"])
            if error.retryable and not is_final(error):
                return
            raise error
        if kind == "started":
            if progress.subject is not None:
                continue
            progress.subject = subject_of(event)
        elif kind == "ended":
            progress.ended = True
        elif "offset" in event:
            progress.start = int(event_id or event["offset"])
        yield event


def _open_output(transport: Transport, subject: Subject, progress: Progress, deadline: Deadline) -> Optional[Answer]:
    """None when a stream that was there could not be resumed now, but maybe soon."""
    headers = {"last-event-id": str(progress.start)}
    try:
        return open_events(transport, subject.route, params=subject.params, headers=headers, deadline=deadline)
    except AirlockError as error:
        if progress.subject is not None and error.retryable and not deadline.is_over:
            return None
        raise


def _lines(chunks: Iterable[bytes]) -> Generator[bytes, None, None]:
    parts: List[bytes] = []
    length = 0
    for chunk in chunks:
        *pieces, rest = chunk.split(b"\n")
        for piece in pieces:
            line = b"".join(parts) + piece
            parts, length = [], 0
            yield line[:-1] if line.endswith(b"\r") else line
        parts.append(rest)
        length += len(rest)
        if length > _MOST_LINE:
            raise fault("internal", "A line of the event stream is too long.")


def _parse(data: bytes) -> Dict[str, Any]:
    try:
        event = json.loads(data)
    except ValueError as cause:
        raise fault("internal", "An event of the stream is not JSON.") from cause
    if not isinstance(event, dict):
        raise fault("internal", "An event of the stream is no object.")
    return event
