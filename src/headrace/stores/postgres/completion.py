"""How attempts end: final ones move to history, the others go back, each under its fence."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headrace.model.crashes import MAX_LONE_CRASHES, POISON
from headrace.model.job import Completion
from headrace.stores.postgres.database import Database, Transaction
from headrace.stores.postgres.queries import Runner
from headrace.stores.postgres.rows import HEAD_STARTS, encode_error


async def complete_jobs(database: Database, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
    """Do what `JobStore.complete_jobs` promises; one statement unless both kinds of ending occur."""
    # By id: statements that end the same jobs then wait for one another instead of deadlocking.
    ordered = sorted(completions, key=lambda completion: completion.job_id)
    final = [completion for completion in ordered if completion.state.final]
    others = [completion for completion in ordered if not completion.state.final]
    if not others:
        return await _finish(database, session, final) if final else []
    if not final:
        return await _return(database, session, others)

    async def work(tx: Transaction) -> list[UUID]:
        return await _finish(tx, session, final) + await _return(tx, session, others)

    return await database.run(work)


async def _finish(runner: Runner, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
    rows = await runner.fetch(
        "finish_jobs",
        session=session,
        ids=[c.job_id for c in completions],
        attempts=[c.attempt for c in completions],
        states=[c.state for c in completions],
        results=[c.result for c in completions],
        errors=[encode_error(c.error) for c in completions],
        usages=[c.usage for c in completions],
        failures=[int(c.charged) for c in completions],
        crashes=[int(c.lone_crash) for c in completions],
    )
    return [row[0] for row in rows]


async def _return(runner: Runner, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
    rows = await runner.fetch(
        "return_jobs",
        session=session,
        ids=[c.job_id for c in completions],
        attempts=[c.attempt for c in completions],
        errors=[encode_error(c.error) for c in completions],
        usages=[c.usage for c in completions],
        delays=[c.delay for c in completions],
        charged=[c.charged for c in completions],
        lone=[c.lone_crash for c in completions],
        progressed=[c.progressed for c in completions],
        released=[c.released for c in completions],
        head_starts=HEAD_STARTS,
        max_lone_crashes=MAX_LONE_CRASHES,
        poison=encode_error(POISON),
    )
    return [row[0] for row in rows]
