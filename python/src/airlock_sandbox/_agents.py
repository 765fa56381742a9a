from __future__ import annotations

from typing import Any, List, Mapping, Optional

from . import types
from ._body import Page, body_of, label_query
from ._operations import Operations
from ._transport import Transport


class Agents:
    """The registry of agents. Registering is for everybody; approving and resuming need an admin.

    With `expected_generation` nothing happens when the agent has another generation by now: `stale_generation`.
    """

    def __init__(self, transport: Transport) -> None:
        self._api = Operations(transport)

    def register(
        self,
        id: str,
        *,
        version: Optional[str] = None,
        labels: Optional[Mapping[str, str]] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        approve: Optional[bool] = None,
    ) -> types.Agent:
        """Safe to repeat. The agent can have sandboxes once it is approved."""
        body = body_of(id=id, version=version, labels=labels, metadata=metadata, approve=approve)
        return self._api.register_agent(body)

    def list(
        self,
        *,
        state: Optional[types.AgentState] = None,
        approved: Optional[bool] = None,
        labels: Optional[Mapping[str, str]] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Page[types.Agent]:
        """One page, by name."""
        answer = self._api.list_agents(
            state=state, approved=approved, label=label_query(labels), limit=limit, cursor=cursor
        )
        return Page(answer["items"], answer["nextCursor"])

    def get(self, id: str) -> types.Agent:
        return self._api.get_agent(id)

    def summary(self, id: str, *, days: Optional[int] = None) -> types.AgentSummary:
        """Its records of the last days, on the node that is asked."""
        return self._api.agent_summary(id, days=days)

    def update(self, id: str, changes: types.UpdateAgentBody) -> types.Agent:
        """An absent field stays as it is."""
        return self._api.update_agent(id, changes)

    def approve(self, id: str, *, expected_generation: Optional[int] = None) -> types.Agent:
        return self._api.approve_agent(id, body_of(expected_generation=expected_generation))

    def revoke(self, id: str, *, expected_generation: Optional[int] = None) -> types.Agent:
        """Takes the approval back and ends the sandboxes of the agent."""
        return self._api.revoke_agent(id, body_of(expected_generation=expected_generation))

    def suspend(self, id: str, *, expected_generation: Optional[int] = None) -> types.Agent:
        """Stops the agent until an admin resumes it, and ends its sandboxes."""
        return self._api.suspend_agent(id, body_of(expected_generation=expected_generation))

    def resume(self, id: str, *, expected_generation: Optional[int] = None) -> types.Agent:
        return self._api.resume_agent(id, body_of(expected_generation=expected_generation))

    def heartbeat(self, id: str, *, expected_generation: Optional[int] = None) -> types.Agent:
        """A sign of life; every use of a sandbox of the agent is one too."""
        return self._api.heartbeat_agent(id, body_of(expected_generation=expected_generation))

    def remove(self, id: str, *, expected_generation: Optional[int] = None) -> None:
        """Deletes the agent and ends its sandboxes."""
        self._api.remove_agent(id, expected_generation=expected_generation)


class Grants:
    """Host paths that the sandboxes of an agent see. Only a key of the platform adds one."""

    def __init__(self, transport: Transport) -> None:
        self._api = Operations(transport)

    def add(
        self,
        agent: str,
        path: str,
        *,
        mode: Optional[str] = None,
        kind: Optional[str] = None,
        target: Optional[str] = None,
        allowed: Optional[List[str]] = None,
        blocked: Optional[List[str]] = None,
        tenant: Optional[str] = None,
    ) -> types.Grant:
        """For sandboxes that are created from now on; read-only unless the mode is "rw"."""
        body = body_of(path=path, mode=mode, kind=kind, target=target, allowed=allowed, blocked=blocked, tenant=tenant)
        return self._api.add_grant(agent, body)

    def list(self, agent: str, *, tenant: Optional[str] = None) -> List[types.Grant]:
        return self._api.list_grants(agent, tenant=tenant)["items"]

    def remove(self, agent: str, grant: str, *, tenant: Optional[str] = None) -> None:
        """Ends the sandboxes that hold it."""
        self._api.remove_grant(agent, grant, tenant=tenant)


class Budgets:
    """Quotas of agents and tenants. Setting one needs the role admin; that of a tenant, a key of the platform."""

    def __init__(self, transport: Transport) -> None:
        self._api = Operations(transport)

    def of_agent(self, id: str) -> types.Budget:
        return self._api.get_agent_budget(id)

    def of_tenant(self, id: str) -> types.Budget:
        return self._api.get_tenant_budget(id)

    def set_agent(self, id: str, limits: types.SetBudgetBody) -> types.Budget:
        """An absent limit stays as it is; None goes back to the default of the server."""
        return self._api.set_agent_budget(id, limits)

    def set_tenant(self, id: str, limits: types.SetBudgetBody) -> types.Budget:
        return self._api.set_tenant_budget(id, limits)


class Keys:
    """API keys. Needs the key of an admin."""

    def __init__(self, transport: Transport) -> None:
        self._api = Operations(transport)

    def create(
        self,
        name: str,
        *,
        role: types.Role,
        tenant: Optional[str] = None,
        agents: Optional[List[str]] = None,
        platform: Optional[bool] = None,
        person: Optional[str] = None,
        expires_in_ms: Optional[int] = None,
    ) -> types.NewApiKey:
        """The answer holds the secret; no later call does."""
        body = body_of(
            name=name,
            role=role,
            tenant=tenant,
            agents=agents,
            platform=platform,
            person=person,
            expires_in_ms=expires_in_ms,
        )
        return self._api.create_key(body)

    def list(
        self,
        *,
        tenant: Optional[str] = None,
        all: Optional[bool] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Page[types.ApiKey]:
        """One page, newest first. `all` includes those that are revoked or have expired."""
        answer = self._api.list_keys(tenant=tenant, all=all, limit=limit, cursor=cursor)
        return Page(answer["items"], answer["nextCursor"])

    def get(self, id: str) -> types.ApiKey:
        return self._api.get_key(id)

    def rotate(
        self, id: str, *, overlap_ms: Optional[int] = None, expires_in_ms: Optional[int] = None
    ) -> types.NewApiKey:
        """A new key with the rights of the old one, which stays good for the overlap: a day by default."""
        return self._api.rotate_key(id, body_of(overlap_ms=overlap_ms, expires_in_ms=expires_in_ms))

    def revoke(self, id: str) -> types.ApiKey:
        """Takes effect with the next request."""
        return self._api.revoke_key(id)


class Killswitch:
    """Ends a sandbox, an agent, a tenant or everything, and grants nothing there until it is lifted by an admin."""

    def __init__(self, transport: Transport) -> None:
        self._api = Operations(transport)

    def on(
        self,
        scope: types.KillScope,
        target: Optional[str] = None,
        *,
        tenant: Optional[str] = None,
        reason: Optional[str] = None,
    ) -> types.KillReport:
        """Answers when every process is seen to be gone, or with those in `unverified` that may live."""
        body = body_of(scope=scope, target=target, tenant=tenant, reason=reason)
        return self._api.turn_killswitch_on(body)

    def list(self, *, all: bool = False) -> List[types.KillReport]:
        """Newest first: those that are on, or with `all` the lifted ones too."""
        return self._api.list_killswitches(all=all)["items"]

    def lift(
        self, scope: types.KillScope, target: Optional[str] = None, *, tenant: Optional[str] = None
    ) -> types.KillReport:
        """A sandbox that was ended stays ended."""
        return self._api.lift_killswitch(body_of(scope=scope, target=target, tenant=tenant))
