"""How attempts end: final ones move to history, the others go back, each under its fence.

The statement that ends jobs can claim others with it: under load that halves the commits and the round trips.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any
from uuid import UUID

import asyncpg

from headrace.model.attempt_log import MAX_ATTEMPTS
from headrace.model.crashes import MAX_LONE_CRASHES, POISON
from headrace.model.errors import HeadraceError
from headrace.model.event import Outgoing
from headrace.model.job import Claim, ClaimedJob, Completion, JobState, Park
from headrace.model.run import Effects
from headrace.stores.postgres import event_rows
from headrace.stores.postgres.database import Database, Transaction
from headrace.stores.postgres.effects import effects_values
from headrace.stores.postgres.queries import Runner
from headrace.stores.postgres.rows import HEAD_STARTS, claim_values, claimed_jobs, encode_ending, encode_error

Exchanged = tuple[list[UUID], list[ClaimedJob]]


async def complete_jobs(
    database: Database, session: UUID, completions: Sequence[Completion], claim: Claim | None = None
) -> Exchanged:
    """Do what `JobStore.complete_jobs` promises, and claim with it; one statement unless both kinds of ending occur.

    A claim goes along with final endings only, and only one without caps; else it brings nothing. Events need a
    transaction: they are inserted behind the statement that says which jobs ended here.
    """
    # By id: statements that end the same jobs then wait for one another instead of deadlocking.
    ordered = sorted(completions, key=_job_id)
    others = [completion for completion in ordered if not completion.state.final]
    final = [completion for completion in ordered if completion.state.final] if others else ordered
    if not final:
        return (await _send_back(database, session, others) if others else []), []

    async def work(tx: Transaction, *, again: bool) -> Exchanged:
        dropped = await _drop(tx, session, final) if again else []
        ended, claimed = await _finish(tx, session, final, claim, completions)
        await event_rows.insert_with(tx, _events_of(final, ended))
        returned = [] if not others else await _put_back(tx, session, others)
        return dropped + ended + returned, claimed

    try:
        if others or leaving(final):
            return await database.run(partial(work, again=False))
        return await _finish(database, session, final, claim, completions)
    except HeadraceError as error:
        if not isinstance(error.__cause__, asyncpg.UniqueViolationError):
            raise
        return await database.run(partial(work, again=True))


_job_id = attrgetter("job_id")


def leaving(completions: Iterable[Completion]) -> bool:
    """Whether events may leave with completions."""
    return any(completion.events for completion in completions)


def _events_of(completions: Sequence[Completion], ended: Sequence[UUID]) -> list[Outgoing]:
    """Return the events of the successes among the jobs that ended here: those that had ended before sent theirs."""
    if not leaving(completions):
        return []
    ids = set(ended)
    successes = (c for c in completions if c.state is JobState.SUCCEEDED and c.job_id in ids)
    return [event for completion in successes for event in completion.events]


async def _drop(runner: Runner, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
    ids, attempts = [c.job_id for c in completions], [c.attempt for c in completions]
    return [row[0] for row in await runner.fetch("drop_ended_again", session=session, ids=ids, attempts=attempts)]


async def _finish(
    runner: Runner,
    session: UUID,
    completions: Sequence[Completion],
    claim: Claim | None,
    given: Sequence[Completion] = (),
) -> Exchanged:
    """End `completions` for good; `given`: in which order they came, where that is another one."""
    values: dict[str, Any] = {
        "session": session,
        "ids": [c.job_id for c in completions],
        "attempts": [c.attempt for c in completions],
        "results": [c.result for c in completions],
        "endings": [None if _plain(c) else encode_ending(c) for c in completions],
        **claim_values(claim if claim is not None else Claim(session, "", 0)),
    }
    effects = [c.effects for c in completions]
    logs = [c.log for c in completions]
    if any(effects):
        came = {id(completion): place for place, completion in enumerate(given)}
        order = sorted(range(len(completions)), key=lambda place: came.get(id(completions[place]), place))
        rows = await runner.fetch("finish_nodes", **values, **effects_values(effects, order), held=[], logs=logs)
    elif any(logs):
        rows = await runner.fetch("finish_logged", **values, logs=logs)
    else:
        rows = await runner.fetch("finish_jobs", **values)
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


async def apply_effects(runner: Runner, effects: Sequence[Effects]) -> None:
    """Apply what the ends of jobs set going that are in history already."""
    nothing: dict[str, list[Any]] = {"ids": [], "attempts": [], "results": [], "endings": [], "logs": []}
    nobody = UUID(int=0)
    await runner.fetch(
        "finish_nodes",
        session=nobody,
        **nothing,
        **claim_values(Claim(nobody, "", 0)),
        **effects_values(effects, range(len(effects))),
        held=list(range(1, len(effects) + 1)),
    )


async def _send_back(database: Database, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
    """Put jobs back: in one statement where all of them wait for the same kind of thing."""
    parked = sum(completion.state is JobState.PARKED for completion in completions)
    if parked in (0, len(completions)):
        return await _put_back(database, session, completions)

    async def work(tx: Transaction) -> list[UUID]:
        return await _put_back(tx, session, completions)

    return await database.run(work)


async def _put_back(runner: Runner, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
    parked = [completion for completion in completions if completion.state is JobState.PARKED]
    returned = [completion for completion in completions if completion.state is not JobState.PARKED]
    ids = await _return(runner, session, returned) if returned else []
    return ids + (await _park(runner, session, parked) if parked else [])


async def _park(runner: Runner, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
    parks = [c.park if c.park is not None else Park() for c in completions]
    rows = await runner.fetch(
        "park_jobs",
        session=session,
        ids=[c.job_id for c in completions],
        attempts=[c.attempt for c in completions],
        keys=[park.key for park in parks],
        waits=[park.wait for park in parks],
        errors=[encode_error(c.error) for c in completions],
        usages=[c.usage for c in completions],
        progressed=[c.progressed for c in completions],
        logs=[c.log for c in completions],
        max_logs=MAX_ATTEMPTS,
        head_starts=HEAD_STARTS,
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
        logs=[c.log for c in completions],
        max_logs=MAX_ATTEMPTS,
        head_starts=HEAD_STARTS,
        max_lone_crashes=MAX_LONE_CRASHES,
        poison=encode_error(POISON),
    )
    return [row[0] for row in rows]
