from __future__ import annotations

from typing import Generator, Optional, cast

from . import types
from ._body import Page, body_of
from ._connection import Broken
from ._deadline import Deadline
from ._faults import fault_of_event
from ._operations import Operations
from ._server_events import SILENCE_S, open_events, parse_server_events
from ._transport import Transport


class Approvals:
    """Requests that wait for a person, and the answers. Answering needs the key of another admin or operator."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._api = Operations(transport)

    def list(
        self,
        *,
        state: Optional[str] = None,
        agent: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Page[types.Approval]:
        """One page, newest first: the pending ones unless a state, or "all", is asked for."""
        answer = self._api.list_approvals(
            state=cast("types.ApprovalState", state), agent=agent, limit=limit, cursor=cursor
        )
        return Page(answer["items"], answer["nextCursor"])

    def get(self, id: str) -> types.ApprovalDetail:
        """With the whole request."""
        return self._api.get_approval(id)

    def approve(
        self,
        id: str,
        *,
        scope: Optional[types.ApprovalScope] = None,
        until: Optional[str] = None,
        note: Optional[str] = None,
    ) -> types.Approval:
        """For this request once, unless a wider scope is given."""
        return self._api.approve_approval(id, body_of(scope=scope, until=until, note=note))

    def reject(self, id: str, *, note: Optional[str] = None) -> types.Approval:
        return self._api.reject_approval(id, body_of(note=note))

    def revoke(self, id: str) -> types.Approval:
        """Takes an approval back that is not used yet, or is used again and again."""
        return self._api.revoke_approval(id)

    def watch(
        self, *, agent: Optional[str] = None, wait_s: Optional[float] = None
    ) -> Generator[types.ApprovalEvent, None, None]:
        """What is pending, then every new request and every answer, until the connection ends."""
        deadline = Deadline(wait_s)
        answer = open_events(self._transport, "approvalEvents", query={"agent": agent}, deadline=deadline)
        try:
            for _, event in parse_server_events(answer.chunks(deadline, SILENCE_S)):
                if event.get("event") == "error":
                    raise fault_of_event(event["error"])
                yield cast(types.ApprovalEvent, event)
        except Broken as broken:
            raise self._transport.unreachable(broken) from broken.cause
        finally:
            answer.close()
