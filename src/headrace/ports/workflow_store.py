"""The workflow store port: definitions, their versions, and whether they may be started."""

from __future__ import annotations

from typing import Protocol

from headrace.model.run import StoredWorkflow, WorkflowEntry


class WorkflowStore(Protocol):
    """Durable definitions. All methods raise StoreUnavailableError when the store cannot answer."""

    async def save_workflow(self, name: str, graph: str, snapshot: str) -> StoredWorkflow:
        """Store a definition, JSON text with its hash, and return it; an equal one as the latest is no new version.

        A first version is active; a later one is as the one before it.
        """
        ...

    async def get_workflow(self, name: str, version: int | None = None) -> StoredWorkflow | None:
        """Return a version of a workflow, None for the latest."""
        ...

    async def list_workflows(self) -> list[StoredWorkflow]:
        """Return the latest version of each workflow, by name."""
        ...

    async def page_workflows(self, *, after: str, limit: int) -> list[WorkflowEntry]:
        """Return the latest version of up to `limit` workflows behind the name `after` ("" for the first), by name."""
        ...

    async def set_workflow_active(self, name: str, *, active: bool) -> None:
        """Allow or forbid starts of a workflow, all versions. Raises NotFoundError."""
        ...
