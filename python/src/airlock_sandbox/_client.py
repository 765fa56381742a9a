from __future__ import annotations

from types import TracebackType
from typing import Any, Callable, Generator, List, Literal, Optional, Type

from . import types
from ._agents import Agents, Budgets, Grants, Keys, Killswitch
from ._approvals import Approvals
from ._config import resolve_config
from ._connection import Broken
from ._events import Words, follow_records, words
from ._faults import fault
from ._metrics import Metrics
from ._operations import Operations
from ._sandboxes import Sandboxes
from ._sessions import Sessions
from ._templates import Templates
from ._transport import Transport


class Airlock:
    """An Airlock server. Without arguments the one on this machine.

    The address is `url`, else AIRLOCK_URL, else http://127.0.0.1:7070. The key is `api_key`, else AIRLOCK_API_KEY,
    else the one that a server on this machine left beside its state (AIRLOCK_HOME): `role` chooses which.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        api_key: Optional[str] = None,
        *,
        role: str = "developer",
        # How long the server may be silent before a call fails.
        timeout_s: float = 300.0,
        # How long a call waits when a person must approve it first: at most 240 seconds, and not at all when None.
        wait_approval_s: Optional[float] = None,
        # A PEM file with the authority of the server; those of the system when None.
        ca_file: Optional[str] = None,
    ) -> None:
        if not timeout_s > 0:
            raise fault("invalid_request", "timeout_s must be more than 0.", hint="Leave it out for 300 seconds.")
        config = resolve_config(url, api_key, role)
        self._transport = Transport(config, timeout_s=timeout_s, wait_approval_s=wait_approval_s, ca_file=ca_file)
        # Every operation that sends and answers JSON, by its name in the OpenAPI document.
        self.api = Operations(self._transport)
        self.sandboxes = Sandboxes(self._transport)
        self.sessions = Sessions(self._transport)
        self.templates = Templates(self._transport)
        self.agents = Agents(self._transport)
        self.grants = Grants(self._transport)
        self.budgets = Budgets(self._transport)
        self.keys = Keys(self._transport)
        self.killswitch = Killswitch(self._transport)
        self.approvals = Approvals(self._transport)
        self.metrics = Metrics(self._transport)
        self.audit = Audit(self._transport)

    def __enter__(self) -> Airlock:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Airlock {self.url}>"

    @property
    def url(self) -> str:
        return self._transport.url

    def close(self) -> None:
        """Closes idle connections. Sandboxes go on, and the client can be used again."""
        self._transport.close()

    def whoami(self) -> types.WhoamiAnswer:
        """The identity that the server sees."""
        return self.api.whoami()

    def events(
        self,
        *,
        agent: Optional[str] = None,
        sandbox: Optional[str] = None,
        point: Optional[Words] = None,
        status: Optional[Words] = None,
        since: Optional[str] = None,
        after: Optional[int] = None,
        on_progress: Optional[Callable[[int], Any]] = None,
        on_gap: Optional[Callable[[int], Any]] = None,
        wait_s: Optional[float] = None,
    ) -> Generator[types.AuditEvent, None, None]:
        """Records as they are written, each once and in order, also over restarts of the server.

        From now on, or `since` a time, or `after` a record. Leave the loop to end it; with `wait_s` it raises
        `TimedOutError`. `on_progress` gets the number of each record that was read, `on_gap` that of the last record
        which retention dropped before it could be read.
        """
        query = {"agent": agent, "sandbox": sandbox, "point": words(point), "status": words(status), "since": since}
        return follow_records(
            self._transport, query, after=after, on_progress=on_progress, on_gap=on_gap, wait_s=wait_s
        )

    def event_page(
        self,
        *,
        agent: Optional[str] = None,
        sandbox: Optional[str] = None,
        point: Optional[Words] = None,
        status: Optional[Words] = None,
        since: Optional[str] = None,
        after: Optional[int] = None,
        limit: Optional[int] = None,
    ) -> types.EventPage:
        """The latest records, or a page after a record; oldest first. Its `after` is where the next page begins."""
        return self.api.events(
            agent=agent,
            sandbox=sandbox,
            point=words(point),
            status=words(status),
            since=since,
            after=after,
            limit=limit,
        )

    def usage(
        self,
        *,
        agent: Optional[str] = None,
        tenant: Optional[str] = None,
        sandbox: Optional[str] = None,
        model: Optional[str] = None,
        from_day: Optional[str] = None,
        to_day: Optional[str] = None,
        by: Optional[Literal["day", "agent", "sandbox", "model"]] = None,
    ) -> types.UsageReport:
        """The ledger: rows by day and agent, latest first, or as `by` says. Days are like 2026-01-31."""
        return self.api.get_usage(
            agent=agent,
            tenant=tenant,
            sandbox=sandbox,
            model=model,
            from_=from_day,
            to=to_day,
            by=by,
        )


class Audit:
    """The evidence of the tenant of the caller. Needs a key that may read it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._api = Operations(transport)

    def stats(self) -> types.AuditStats:
        return self._api.audit_stats()

    def head(self) -> types.AuditHeadAnswer:
        """Signed now: kept elsewhere, it shows a later truncation."""
        return self._api.audit_head()

    def chains(self) -> List[types.AuditChain]:
        return self._api.audit_chains()["items"]

    def export(self) -> Generator[bytes, None, None]:
        """The whole chain as NDJSON, to be verified elsewhere. Raises when it does not arrive whole."""
        answer = self._transport.send("auditExport")
        try:
            yield from answer.chunks()
        except Broken as broken:
            message = "The connection broke before the whole chain was here."
            raise fault("server_unreachable", message) from broken.cause
        finally:
            answer.close()
