from __future__ import annotations

import json
from typing import Any, Dict, Generator, Iterator, Literal, Optional, cast

from . import types
from ._airlock_error import AirlockError
from ._connection import Answer
from ._deadline import NEVER
from ._faults import fault_of_event
from ._operations import Operations
from ._server_events import Patience, open_events, read_events
from ._transport import Transport

# How fine the history is: for a quarter of an hour, a day, a week.
Resolution = Literal["5s", "1m", "15m"]


class Metrics:
    """Usage of sandboxes: processors, memory, processes and disk, and alerts."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._api = Operations(transport)

    def all(self, *, agent: Optional[str] = None) -> types.TenantMetrics:
        """Every living sandbox on the node that is asked, and the sum."""
        return self._api.tenant_metrics(agent=agent)

    def agent(
        self, id: str, *, resolution: Optional[Resolution] = None, since: Optional[str] = None
    ) -> types.AgentMetrics:
        return self._api.agent_metrics(id, resolution=resolution, since=since)

    def sandbox(
        self, id: str, *, resolution: Optional[Resolution] = None, since: Optional[str] = None
    ) -> types.SandboxMetrics:
        return self._api.sandbox_metrics(id, resolution=resolution, since=since)

    def follow(self, id: str) -> Generator[types.MetricEvent, None, None]:
        """Alerts in force and the latest sample, then each new one, until the sandbox has ended."""
        return follow_metrics(self._transport, id)


def follow_metrics(transport: Transport, id: str) -> Generator[types.MetricEvent, None, None]:
    """Ends after `ended`, over any number of connections. Nothing comes twice in a row."""
    patience = Patience(NEVER)
    told: Dict[str, str] = {}
    is_first = True
    while True:
        answer = _open(transport, id, is_first)
        is_heard = False
        for event in _events_of(answer) if answer is not None else ():
            is_heard = True
            if _is_news(told, event):
                yield cast(types.MetricEvent, event)
            if event["event"] == "ended":
                return
        is_first = False
        patience.pause(is_heard)


def _is_news(told: Dict[str, str], event: Dict[str, Any]) -> bool:
    kind = event["event"]
    about = event["alert"]["resource"] if kind == "alert" else event["resource"] if kind == "cleared" else kind
    said = json.dumps(event, sort_keys=True)
    if told.get(about) == said:
        return False
    told[about] = said
    return True


def _open(transport: Transport, id: str, is_first: bool) -> Optional[Answer]:
    """None when a stream that was there cannot be had again now, but maybe soon."""
    try:
        return open_events(transport, "sandboxMetrics", params={"id": id}, deadline=NEVER)
    except AirlockError as error:
        if not is_first and error.retryable:
            return None
        raise


def _events_of(answer: Answer) -> Iterator[Dict[str, Any]]:
    """Ends quietly where the stream breaks, or the server asks for patience."""
    for _, event in read_events(answer):
        if event.get("event") != "error":
            yield event
            continue
        error = fault_of_event(event["error"])
        if error.retryable:
            return
        raise error
