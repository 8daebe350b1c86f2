"""Parts of streamed answers: those of all calls in one statement a second, and no call's fault is another's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from headrace.clock import SystemClock
from headrace.llm import ledger as llm_ledger
from headrace.llm import spool as llm_spool
from headrace.llm.coalescing import MAX_STATEMENT
from headrace.llm.ledger import Ledger
from headrace.llm.spool import Spool
from headrace.model.calls import NewCall, Opening, SpooledPart
from headrace.model.errors import HeadraceError, StoreUnavailableError
from headrace.stores.memory.call_store import MemoryCallStore
from headrace.stores.memory.memo_retention import DatedMemoStore
from headrace.stores.memory.state import State
from tests.conformance.books import ask, parts
from tests.unit.llm_answers import WrittenProvider, llm_of
from tests.unit.test_llm_calls import streamed
from tests.waiting import wait_until

TURN = 0.05


class SpooledCalls(MemoryCallStore):
    """A ledger that shows what it was given to spool; it is away for a while, refuses a call, or takes its time."""

    def __init__(self, state: State, memo: DatedMemoStore) -> None:
        super().__init__(state, memo)
        self.statements: list[list[SpooledPart]] = []
        self.outages = 0
        self.refused: UUID | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def spool_items(self, parts: Sequence[SpooledPart]) -> None:
        """Note what is asked for, then fail or store it."""
        self.statements.append(list(parts))
        await self.gate.wait()
        if self.outages:
            self.outages -= 1
            raise StoreUnavailableError
        if any(part.call == self.refused for part in parts):
            raise HeadraceError("refused")
        await super().spool_items(parts)

    def texts(self, call: NewCall) -> list[str]:
        """The texts that are spooled of a call."""
        return [part.text for _, part in sorted(self._state.ledger.spool.get(call.key, {}).items())]


class Streams:
    """Streams of one process, a ledger and what is below it."""

    def __init__(self) -> None:
        state = State(SystemClock())
        self.store = SpooledCalls(state, DatedMemoStore(state))
        self.ledger = Ledger(self.store, self._session)
        self.calls: list[NewCall] = []

    async def begin(self, count: int) -> list[Spool]:
        """Open calls and return their spools."""
        self.calls = [ask(number) for number in range(count)]
        assert None not in await asyncio.gather(*map(self.open, self.calls))
        return [self.ledger.spool(call) for call in self.calls]

    async def open(self, call: NewCall) -> Opening:
        """Open one call."""
        return await self.ledger.open(call)

    def texts(self) -> list[list[str]]:
        """What is spooled of each call."""
        return [self.store.texts(call) for call in self.calls]

    async def stored(self, count: int) -> None:
        """Wait until so many statements were sent."""
        await wait_until(lambda: len(self.store.statements) >= count)
        await asyncio.sleep(0)

    async def _session(self) -> UUID:
        return uuid4()


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts wait a short time."""
    monkeypatch.setattr(llm_spool, "SPOOL_SECONDS", TURN)
    monkeypatch.setattr(llm_ledger, "_AGAIN_AFTER", [timedelta(seconds=0.01)] * 2)


@pytest.mark.usefixtures("short_turns")
async def test_parts_of_many_calls_go_in_one_statement() -> None:
    """What came of all streams in a time is one statement, a part for each; many streams are a few slices."""
    on = Streams()
    spools = await on.begin(MAX_STATEMENT + 50)
    for word in ("a", "b"):
        for spool in spools:
            spool.add(word)
        await asyncio.sleep(0)
    await on.stored(2)
    assert [len(statement) for statement in on.store.statements] == [MAX_STATEMENT, 50]

    spools[0].add("c")
    spools[3].add("d")
    await on.stored(3)
    assert on.store.statements[2] == [*parts(on.calls[0].id, 1, "c"), *parts(on.calls[3].id, 1, "d")]
    texts = on.texts()
    assert (texts[0], texts[1], texts[3]) == (["ab", "c"], ["ab"], ["ab", "d"])
    await asyncio.sleep(3 * TURN)
    assert len(on.store.statements) == 3


@pytest.mark.usefixtures("short_turns")
async def test_what_came_first_waits_no_longer_for_what_comes_after_it() -> None:
    """The time runs from the oldest part that is not written, also where a statement takes long."""
    on = Streams()
    first, second = await on.begin(2)
    on.store.gate.clear()
    first.add("a")
    await on.stored(1)
    second.add("b")
    await asyncio.sleep(2 * TURN)
    first.add("c")
    on.store.gate.set()
    await on.stored(2)
    assert on.store.statements[1] == parts(on.calls[1].id, 0, "b")
    await on.stored(3)
    assert on.texts() == [["a", "c"], ["b"]]


@pytest.mark.usefixtures("short_turns")
async def test_a_call_that_fails_spoils_no_other() -> None:
    """Parts of calls that are over, and such as the store refuses, keep no others from being stored."""
    on = Streams()
    spools = await on.begin(4)
    await on.ledger.drop(on.calls[1])
    on.store.refused = on.calls[2].id
    for spool in spools:
        spool.add("a")
    # All of them, and then each alone.
    await on.stored(5)
    assert on.texts() == [["a"], [], [], ["a"]]


@pytest.mark.usefixtures("short_turns")
async def test_a_store_that_is_away_for_a_moment_leaves_no_gap() -> None:
    """A statement is tried again; where the store stays away its parts are lost, and nobody is told."""
    on = Streams()
    [spool] = await on.begin(1)
    on.store.outages = 2
    spool.add("a")
    await on.stored(3)
    assert on.texts() == [["a"]]
    on.store.outages = 3
    spool.add("b")
    await spool.flush()
    spool.add("c")
    await spool.flush()
    assert on.store.statements[-1] == parts(on.calls[0].id, 2, "c")


async def test_a_flush_stores_what_came_of_its_call() -> None:
    """It waits for no time and for no other's parts, and stands behind what is under way of its own."""
    on = Streams()
    first, second = await on.begin(2)
    first.add("a")
    second.add("b")
    on.store.gate.clear()
    flushes = [asyncio.create_task(first.flush())]
    await on.stored(1)
    first.add("c")
    flushes.append(asyncio.create_task(first.flush()))
    await asyncio.sleep(0)
    # Whoever is cancelled again closes the spool; what came is stored all the same.
    first.close()
    on.store.gate.set()
    await asyncio.gather(*flushes)
    assert on.texts() == [["a", "c"], []]
    second.close()
    await on.ledger.drain(timedelta(seconds=5))


@pytest.mark.usefixtures("short_turns")
async def test_a_closed_spool_stores_nothing_more() -> None:
    """What waited for its time, or for a statement that was under way, is not stored after the close."""
    on = Streams()
    first, second = await on.begin(2)
    on.store.gate.clear()
    first.add("a")
    await on.stored(1)
    second.add("b")
    await asyncio.sleep(2 * TURN)
    first.add("c")
    first.close()
    second.close()
    on.store.gate.set()
    await asyncio.sleep(2 * TURN)
    assert on.texts() == [["a"], []]
    assert len(on.store.statements) == 1


async def test_nothing_is_left_once_streams_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams that end leave no part that waits; closing leaves neither a timer nor a task."""
    monkeypatch.setattr(llm_spool, "SPOOL_SECONDS", 60.0)
    llm = llm_of(WrittenProvider(lambda request: "abcdefgh"))
    await asyncio.gather(*(streamed(llm, str(number)) for number in range(20)))
    desk = llm._models.means.ledger._desk
    assert not desk.spooler._waiting
    assert desk.spooler._timer is not None
    await llm._models.aclose()
    await asyncio.sleep(0)
    assert desk.spooler._timer is None
    assert "headrace-llm-commit" not in {task.get_name() for task in asyncio.all_tasks()}
