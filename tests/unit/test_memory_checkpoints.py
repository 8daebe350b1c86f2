"""Memory: checkpoints say what the tables say, and a restore finds what is unfinished and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from headrace import App
from headrace.apps.memory.checkpoints import (
    FEED,
    checkpoint,
    last_checkpoint,
)
from headrace.apps.memory.data.flushes import Flush, FlushState, Reason
from headrace.apps.memory.restoring import restore
from headrace.memory_settings import MemorySettings
from headrace.settings import Settings, use_store

START = datetime(2026, 5, 1, tzinfo=UTC)


def flush(number: int, user: str = "ada", state: FlushState = FlushState.WAITING, *, later: int = 0) -> Flush:
    """A flush of a user; its id is made of both."""
    at = START + timedelta(minutes=number + later)
    ident = UUID(int=number + 1_000 * sum(map(ord, user)))
    return Flush(ident, user, (UUID(int=number),), 10, number, state, Reason.FULL, at)


@dataclass
class Buffer:
    """Tokens that wait."""

    tokens: int


@dataclass
class Tables:
    """What the tables would answer, held in memory: for rules about it. They have tests of their own."""

    flushes: list[Flush] = field(default_factory=list)
    buffers: dict[str, int] = field(default_factory=dict)
    #: what happens right after the first look at the flushes
    then: list[Flush] | None = None

    async def list_flushes(
        self, user_id: str | None = None, state: FlushState | None = None, limit: int = 100
    ) -> Sequence[Flush]:
        """Return those of a state, the newest first."""
        found = [one for one in self.flushes if state in (None, one.state) and user_id in (None, one.user_id)]
        if self.then is not None:
            self.flushes, self.then = self.then, None
        return sorted(found, key=lambda one: one.created_at, reverse=True)[:limit]

    async def idle_users(self, idle: timedelta, limit: int) -> Sequence[str]:
        """Return users with buffers."""
        return list(self.buffers)[:limit]

    async def buffer(self, user_id: str) -> Buffer:
        """Return a buffer."""
        return Buffer(self.buffers.get(user_id, 0))


def app_of(interval: timedelta = timedelta(seconds=60)) -> App:
    """An app in memory."""
    memory = replace(MemorySettings(), checkpoint_interval=interval)
    return App(settings=use_store(replace(Settings(), memory=memory), "memory://"))


DONE, PROCESSING, FAILED = FlushState.DONE, FlushState.PROCESSING, FlushState.FAILED


async def test_a_checkpoint_says_what_the_tables_say() -> None:
    """Done, to be done in the order of work, and buffers; failed flushes are neither."""
    tables = Tables(
        [flush(1, state=DONE), flush(2, state=PROCESSING), flush(3), flush(1, "bob", FAILED), flush(2, "bob", later=5)],
        {"cid": 40, "dan": 0},
    )
    async with app_of() as app:
        point = await checkpoint(app, tables)
        assert await last_checkpoint(app) == point
    assert (point.workflow_id, point.state, point.left_out) == ("memory", "running", 0)
    assert point.completed_tasks == (str(flush(1).id),)
    assert point.pending_tasks == (str(flush(2).id), str(flush(3).id), str(flush(2, "bob").id))
    assert point.user_buffers == {"cid": 40}
    assert set(point.to_json()) >= {
        "workflow_id", "state", "timestamp", "completed_tasks", "pending_tasks", "user_buffers"
    }  # fmt: skip


async def test_nothing_to_do_is_idle() -> None:
    """Whatever was done before; without any checkpoint there is no last one."""
    async with app_of() as app:
        assert await last_checkpoint(app) is None
        assert (await checkpoint(app, Tables([flush(1, state=DONE)]))).state == "idle"


async def test_one_checkpoint_is_kept_for_each_interval() -> None:
    """However many look, one entry; in the next interval the next one."""
    async with app_of(timedelta(hours=24 * 30)) as app:
        for _ in range(3):
            await checkpoint(app, Tables())
        assert await app.feed(FEED).end() == 1
    async with app_of(timedelta(milliseconds=1)) as app:
        first = await checkpoint(app, Tables())
        while datetime.now(UTC) <= first.timestamp + timedelta(milliseconds=1):
            pass
        await checkpoint(app, Tables([flush(1)]))
        assert await app.feed(FEED).end() == 2
        last = await last_checkpoint(app)
        assert last is not None
        assert last.pending_tasks == (str(flush(1).id),)


async def test_what_ends_while_it_is_read_is_not_both() -> None:
    """A flush that ended between two looks is done; one whose lease ended is still to be done."""
    before = [flush(1, state=PROCESSING), flush(2, "bob")]
    ended = [flush(1, state=PROCESSING), flush(2, "bob", DONE)]
    async with app_of() as app:
        point = await checkpoint(app, Tables(before, then=ended))
    assert point.completed_tasks == (str(flush(2, "bob").id),)
    assert point.pending_tasks == (str(flush(1).id),)
    found = await restore(Tables(before, then=[flush(1), flush(2, "bob")]))
    assert [one.id for one in found.first] == [flush(1).id, flush(2, "bob").id]


async def test_an_entry_has_room_for_the_longest_names() -> None:
    """Thousands of flushes and users with long names fit the 64 KiB of an entry; what is not named is counted."""
    tables = Tables([flush(number) for number in range(1, 800)], {"名" * 199 + f"{n}": 5 for n in range(300)})
    async with app_of() as app:
        point = await checkpoint(app, tables)
        assert await last_checkpoint(app) == point
    assert (len(point.pending_tasks), point.left_out) == (500, 299)
    assert 10 <= len(point.user_buffers) < 100


STATES = st.sampled_from(list(FlushState))


@given(
    made=st.lists(st.tuples(st.sampled_from(["ada", "bob", "cid"]), STATES, st.integers(0, 50)), max_size=25),
    buffers=st.dictionaries(st.sampled_from(["ada", "dan"]), st.integers(1, 99)),
)
async def test_a_restore_is_of_what_is_unfinished(
    made: list[tuple[str, FlushState, int]], buffers: dict[str, int]
) -> None:
    """Whatever there is: each unfinished flush once, the first of each user apart, and again the same."""
    numbers: dict[str, int] = {}
    flushes = []
    for user, state, later in made:
        numbers[user] = numbers.get(user, 0) + 1
        flushes.append(flush(numbers[user], user, state, later=later))
    tables = Tables(flushes, buffers)
    found = await restore(tables)
    unfinished = [one for one in flushes if one.state in (FlushState.WAITING, PROCESSING)]
    assert sorted(one.id for one in (*found.first, *found.later)) == sorted(one.id for one in unfinished)
    assert {one.user_id: one.number for one in found.first} == {
        user: min(one.number for one in unfinished if one.user_id == user) for user in {o.user_id for o in unfinished}
    }
    assert len(found.first) == len({one.user_id for one in unfinished})
    assert found.users == tuple(buffers)
    assert await restore(tables) == found


async def test_a_restore_says_that_there_is_more() -> None:
    """At its bound, so that whoever submits asks again."""
    tables = Tables([flush(1), flush(1, "bob"), flush(1, "cid")])
    assert (await restore(tables, limit=3)).more
    assert not (await restore(tables, limit=4)).more
