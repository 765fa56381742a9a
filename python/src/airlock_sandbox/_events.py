from __future__ import annotations

from typing import Any, Callable, Generator, Mapping, Optional, Sequence, Union, cast

from . import types
from ._airlock_error import AirlockError
from ._connection import Answer
from ._deadline import Deadline
from ._faults import fault_of_event
from ._operations import QueryValue
from ._server_events import Patience, open_events, read_events
from ._transport import Transport

Words = Union[str, Sequence[str]]


def follow_records(
    transport: Transport,
    query: Mapping[str, QueryValue],
    *,
    after: Optional[int],
    on_progress: Optional[Callable[[int], Any]],
    on_gap: Optional[Callable[[int], Any]],
    wait_s: Optional[float],
) -> Generator[types.AuditEvent, None, None]:
    """Each record once and in order, over any number of connections and restarts of the server."""
    deadline = Deadline(wait_s)
    patience = Patience(deadline)
    seq = after
    while True:
        is_heard = is_cut = False
        answer = _open(transport, {**query, "after": after}, seq, resumes=seq != after, deadline=deadline)
        for _, event in read_events(answer, deadline) if answer is not None else ():
            kind = event["event"]
            if kind == "error":
                error = fault_of_event(event["error"])
                if not error.retryable:
                    raise error
                break
            is_heard, seq, is_cut = True, cast(int, event["seq"]), kind == "cut"
            if kind == "gap" and on_gap is not None:
                on_gap(seq)
            if kind == "record":
                yield cast(types.AuditEvent, event["record"])
            if on_progress is not None:
                on_progress(seq)
        if not is_cut:
            patience.pause(is_heard)


def words(value: Optional[Words]) -> Optional[str]:
    return value if value is None or isinstance(value, str) else ",".join(value)


def _open(
    transport: Transport, query: Mapping[str, QueryValue], seq: Optional[int], *, resumes: bool, deadline: Deadline
) -> Optional[Answer]:
    """None when a stream that was there cannot be resumed now, but maybe soon."""
    headers = {} if seq is None else {"last-event-id": str(seq)}
    try:
        return open_events(transport, "events", query=query, headers=headers, deadline=deadline)
    except AirlockError as error:
        if resumes and error.retryable and not deadline.is_over:
            return None
        raise
