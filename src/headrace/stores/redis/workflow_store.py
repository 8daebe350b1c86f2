"""The workflow store port on Redis: definitions, their versions, and whether they may be started."""

from __future__ import annotations

from headrace.model.errors import NotFoundError
from headrace.model.run import StoredWorkflow, WorkflowEntry
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.run_rows import stored_workflow, workflow_entry

#: Definitions that one script reads at most.
PAGE = 50


class RedisWorkflowStore:
    """Durable definitions; their graphs are snapshots, as those of runs."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def save_workflow(self, name: str, graph: str, snapshot: str) -> StoredWorkflow:
        """Store a definition and return it; an equal one as the latest is no new version."""
        return stored_workflow(*await self._namespace.run("save_workflow", name, graph, snapshot))

    async def get_workflow(self, name: str, version: int | None = None) -> StoredWorkflow | None:
        """Return a version of a workflow, None for the latest."""
        row = await self._namespace.run("get_workflow", name, "" if version is None else version)
        return None if row is None else stored_workflow(*row)

    async def list_workflows(self) -> list[StoredWorkflow]:
        """Return the latest version of each workflow, by name."""
        found: list[StoredWorkflow] = []
        while True:
            rows = await self._namespace.run("list_workflows", len(found), PAGE)
            found += [stored_workflow(*row) for row in rows]
            if len(rows) < PAGE:
                return found

    async def page_workflows(self, *, after: str, limit: int) -> list[WorkflowEntry]:
        """Return the latest version of some workflows, by name, without their graphs."""
        return [workflow_entry(*row) for row in await self._namespace.run("page_workflows", after, limit)]

    async def set_workflow_active(self, name: str, *, active: bool) -> None:
        """Allow or forbid starts of a workflow, all versions. Raises NotFoundError."""
        if not await self._namespace.run("set_workflow_active", name, int(active)):
            raise NotFoundError(f"There is no workflow {name!r}. `headrace workflow list` shows those that exist.")
