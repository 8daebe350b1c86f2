"""Keeps the ends of nodes at workflow level: one statement at a time, and what ends meanwhile goes with the next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from headrace.engine.retrying import with_retries
from headrace.engine.workflows.boards import RunNotes
from headrace.model.run import NodeEnding
from headrace.ports.run_store import RunStore


@dataclass(slots=True)
class Saver:
    """Writes under the fence of the run's job."""

    runs: RunStore
    run_id: UUID
    job_id: UUID
    attempt: int
    session: UUID
    notes: RunNotes
    _pending: list[NodeEnding] = field(default_factory=list)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: Why nothing is written any more: what followed could not tell what went before it.
    _trouble: Exception | None = None

    def keep(self, endings: Sequence[NodeEnding]) -> None:
        """Write these with the next ones: the graph played again gives the same."""
        self._pending += endings

    async def save(self, endings: Sequence[NodeEnding]) -> None:
        """Write these; they are durable when this returns. Raises FenceLostError."""
        self._pending += endings
        async with self._turn:
            if self._trouble is not None:
                raise self._trouble
            if self._pending:
                part, self._pending = self._pending, []
                await self._write(part)
                self.notes.note_endings(self.run_id, part)

    async def _write(self, part: Sequence[NodeEnding]) -> None:
        try:
            await with_retries(lambda _: self._save(part))
        except asyncio.CancelledError:
            # Perhaps it was written. What is written after it must not be there without it.
            self._pending[:0] = part
            raise
        except Exception as error:
            self._trouble = error
            raise

    async def _save(self, part: Sequence[NodeEnding]) -> None:
        await self.runs.save_nodes(self.run_id, part, job_id=self.job_id, attempt=self.attempt, session=self.session)

    async def save_events(self) -> None:
        """Write what is left now if events leave with it, which the end of the job does not take along."""
        if any(ending.events for ending in self._pending):
            await self.save(())

    def rest(self) -> list[NodeEnding]:
        """Return what was not written; the end of the job takes it along."""
        rest, self._pending = self._pending, []
        return rest
