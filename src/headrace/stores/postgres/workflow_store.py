"""The workflow store port on PostgreSQL: definitions, their versions, and whether they may be started."""

from __future__ import annotations

from headrace.model.errors import NotFoundError
from headrace.model.run import StoredWorkflow, WorkflowEntry
from headrace.stores.postgres.database import Database, Row, Transaction


class PostgresWorkflowStore:
    """`ports.workflow_store.WorkflowStore`. Writers of a workflow take turns on an advisory lock."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save_workflow(self, name: str, graph: str, snapshot: str) -> StoredWorkflow:
        """Store a definition and return it; an equal one as the latest is no new version."""
        latest = await self.get_workflow(name)
        if latest is not None and latest.snapshot == snapshot:
            return latest

        async def work(tx: Transaction) -> Row | None:
            await tx.fetch("lock_workflow", name=name)
            await tx.fetch("insert_workflow", name=name, graph=graph, snapshot=snapshot)
            return await tx.fetch_one("get_workflow", name=name, version=None)

        row = await self._database.run(work)
        assert row is not None
        return StoredWorkflow(**dict(row))

    async def get_workflow(self, name: str, version: int | None = None) -> StoredWorkflow | None:
        """Return a version of a workflow, None for the latest."""
        row = await self._database.fetch_one("get_workflow", name=name, version=version)
        return None if row is None else StoredWorkflow(**dict(row))

    async def list_workflows(self) -> list[StoredWorkflow]:
        """Return the latest version of each workflow, by name."""
        return [StoredWorkflow(**dict(row)) for row in await self._database.fetch("list_workflows")]

    async def page_workflows(self, *, after: str, limit: int) -> list[WorkflowEntry]:
        """Return the latest version of some workflows, by name, without their graphs."""
        rows = await self._database.fetch("page_workflows", after=after, limit=limit)
        return [WorkflowEntry(**dict(row)) for row in rows]

    async def set_workflow_active(self, name: str, *, active: bool) -> None:
        """Allow or forbid starts of a workflow, all versions. Raises NotFoundError."""

        async def work(tx: Transaction) -> list[Row]:
            await tx.fetch("lock_workflow", name=name)
            return await tx.fetch("set_workflow_active", name=name, active=active)

        if not await self._database.run(work):
            raise NotFoundError(f"There is no workflow {name!r}. `headrace workflow list` shows those that exist.")
