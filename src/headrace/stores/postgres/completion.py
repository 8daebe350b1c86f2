"""How attempts end: final ones move to history, the others go back, each under its fence.

The statement that ends jobs can claim others with it: under load that halves the commits and the round trips.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from uuid import UUID

import asyncpg

from headrace.model.crashes import MAX_LONE_CRASHES, POISON
from headrace.model.errors import HeadraceError
from headrace.model.job import Claim, ClaimedJob, Completion, JobState
from headrace.stores.postgres.database import Database, Transaction
from headrace.stores.postgres.queries import Runner
from headrace.stores.postgres.rows import HEAD_STARTS, claim_values, claimed_jobs, encode_ending, encode_error

Exchanged = tuple[list[UUID], list[ClaimedJob]]


async def complete_jobs(
    database: Database, session: UUID, completions: Sequence[Completion], claim: Claim | None = None
) -> Exchanged:
    """Do what `JobStore.complete_jobs` promises, and claim with it; one statement unless both kinds of ending occur.

    A claim goes along with final endings only, and only one without caps; else it brings nothing.
    """
    # By id: statements that end the same jobs then wait for one another instead of deadlocking.
    ordered = sorted(completions, key=_job_id)
    others = [completion for completion in ordered if not completion.state.final]
    final = [completion for completion in ordered if completion.state.final] if others else ordered
    if not final:
        return await _return(database, session, others) if others else [], []

    async def work(tx: Transaction, *, again: bool) -> Exchanged:
        dropped = await _drop(tx, session, final) if again else []
        ended, claimed = await _finish(tx, session, final, claim)
        returned = await _return(tx, session, others) if others else []
        return dropped + ended + returned, claimed

    try:
        if others:
            return await database.run(partial(work, again=False))
        return await _finish(database, session, final, claim)
    except HeadraceError as error:
        if not isinstance(error.__cause__, asyncpg.UniqueViolationError):
            raise
        return await database.run(partial(work, again=True))


_job_id = attrgetter("job_id")


async def _drop(runner: Runner, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
    ids, attempts = [c.job_id for c in completions], [c.attempt for c in completions]
    return [row[0] for row in await runner.fetch("drop_ended_again", session=session, ids=ids, attempts=attempts)]


async def _finish(runner: Runner, session: UUID, completions: Sequence[Completion], claim: Claim | None) -> Exchanged:
    rows = await runner.fetch(
        "finish_jobs",
        session=session,
        ids=[c.job_id for c in completions],
        attempts=[c.attempt for c in completions],
        results=[c.result for c in completions],
        endings=[None if _plain(c) else encode_ending(c) for c in completions],
        **claim_values(claim if claim is not None else Claim(session, "", 0)),
    )
    *claimed, last = rows
    return last["ended"], claimed_jobs(claimed)


def _plain(completion: Completion) -> bool:
    """Whether the attempt ended as most do: well, and with nothing to count."""
    return (
        completion.state is JobState.SUCCEEDED
        and completion.usage is None
        and not completion.charged
        and not completion.lone_crash
    )


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
