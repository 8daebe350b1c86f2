"""Definitions of workflows in memory."""

from __future__ import annotations

from dataclasses import replace
from heapq import nsmallest

from headrace.model.errors import NotFoundError
from headrace.model.run import StoredWorkflow, WorkflowEntry
from headrace.stores.memory.state import State, atomic


class MemoryWorkflowStore:
    """`ports.workflow_store.WorkflowStore` over a dict; the port says what each verb promises."""

    def __init__(self, state: State) -> None:
        self._state = state
        #: The versions of each workflow, from 1 on.
        self._rows: dict[str, list[StoredWorkflow]] = {}

    @atomic
    async def save_workflow(self, name: str, graph: str, snapshot: str) -> StoredWorkflow:
        """Store a definition unless it equals the latest."""
        versions = self._rows.setdefault(name, [])
        if versions and versions[-1].snapshot == snapshot:
            return versions[-1]
        active = not versions or versions[-1].active
        stored = StoredWorkflow(name, len(versions) + 1, snapshot, graph, active, self._state.now())
        versions.append(stored)
        return stored

    @atomic
    async def get_workflow(self, name: str, version: int | None = None) -> StoredWorkflow | None:
        """Return a version of a workflow."""
        versions = self._rows.get(name, [])
        chosen = len(versions) if version is None else version
        return versions[chosen - 1] if 1 <= chosen <= len(versions) else None

    @atomic
    async def list_workflows(self) -> list[StoredWorkflow]:
        """Return the latest version of each workflow, by name."""
        return [self._rows[name][-1] for name in sorted(self._rows)]

    @atomic
    async def page_workflows(self, *, after: str, limit: int) -> list[WorkflowEntry]:
        """Return the latest version of some workflows, by name, without their graphs."""
        names = nsmallest(limit, (name for name in self._rows if name > after))
        latest = [self._rows[name][-1] for name in names]
        return [WorkflowEntry(one.name, one.version, one.snapshot, one.active, one.created_at) for one in latest]

    @atomic
    async def set_workflow_active(self, name: str, *, active: bool) -> None:
        """Allow or forbid starts of a workflow."""
        if name not in self._rows:
            raise NotFoundError(f"There is no workflow {name!r}.")
        self._rows[name] = [replace(version, active=active) for version in self._rows[name]]
