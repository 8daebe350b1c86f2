"""Parts of details that are written twice, by runs that know nothing of each other: no item too many, no name twice."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from headrace.apps.details.coordinating import Coordinator
from headrace.apps.details.means import Means
from headrace.apps.details.tallying import Tally
from headrace.apps.details.writing import Part, Written, write
from headrace.llm.gateway import LLM
from headrace.testing.provider import ChatRequest
from tests.integration.details_world import STORES, Names, details_on, names_of
from tests.integration.test_details_ends import part_of

#: Unlike one another by any rule.
POOL = ("Babakeru", "Dumizolefa", "Goshivyny", "Kerufale", "Mizodugo", "Nyvyshile", "Zofababa", "Lekedumi")


def scripted(*orders: Sequence[int]) -> Any:
    """Return a model whose answers name those of the pool in these orders, one answer after another, then new ones."""
    left, names = list(orders), Names()

    def answer(request: ChatRequest) -> str:
        if not left:
            return names(request)
        return json.dumps({"items": [{"name": POOL[place]} for place in left.pop(0)]})

    return answer


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of an answer is kept or shared, as where a process was killed before its answer was whole."""
    stream, samples = LLM.stream_items, count()

    def anew(self: LLM, *given: Any, **options: Any) -> Any:
        return stream(self, *given, **options, sample=next(samples))

    monkeypatch.setattr(LLM, "stream_items", anew)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("second", [(2, 3, 0, 1, 4), (0, 1, 2, 3, 4), (1, 0, 4, 3, 2), (5, 6, 7, 0, 1)])
async def test_a_run_after_a_death_gives_no_name_twice(
    second: Sequence[int], store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the model says the second time: what stands there stays, and the rest is filled with other names."""
    deliver, calls = Means.deliver, Counter[str]()

    async def dying(means: Means, *given: Any) -> int:
        calls["all"] += 1
        if calls["all"] == 3:
            raise ConnectionError("as planned: killed in mid-stream")
        return await deliver(means, *given)

    monkeypatch.setattr(Means, "deliver", dying)
    async with details_on(store, tmp_path, scripted((0, 1, 2, 3, 4), second)) as world:
        feed = world.details.feed("b")
        await feed.append("accepted", {}, key="accepted")
        with pytest.raises(ConnectionError):
            await write(Means(world.app), part_of("b", 5))
        written = await write(Means(world.app), part_of("b", 5))
        stored = [entry.data["name"] for entry in await feed.read() if entry.type == "item"]
        assert len(stored) == len(set(stored)) == 5 and stored[:2] == list(POOL[:2])
        assert [item["name"] for item in written.items] == stored


@pytest.mark.parametrize("store", STORES)
async def test_runs_at_once_give_no_name_twice(store: str, tmp_path: Path) -> None:
    """Also where their models say the same names in other orders."""
    orders = [(0, 1, 2, 3, 4, 5), (5, 4, 3, 2, 1, 0), (2, 4, 0, 5, 1, 3)]
    async with details_on(store, tmp_path, scripted(*orders)) as world:
        feed = world.details.feed("b")
        await feed.append("accepted", {}, key="accepted")
        written = await asyncio.gather(*(write(Means(world.app), part_of("b", 6)) for _ in orders))
        stored = [entry.data["name"] for entry in await feed.read() if entry.type == "item"]
        assert len(stored) == len(set(stored)) == 6
        assert [[item["name"] for item in one.items] for one in written] == [stored] * 3


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("mode", ["normal", "single-call"])
async def test_two_coordinators_at_once_make_one_batch(
    mode: str, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where one was frozen and its successor has begun: as many items as were asked for, and one end."""
    run = Coordinator.run

    async def twice(self: Coordinator) -> Any:
        context = replace(self.context, _used=set(), emitted=[])
        other = replace(self, context=context, tally=Tally())
        ended = await asyncio.gather(run(self), run(other), return_exceptions=True)
        if isinstance(ended[0], BaseException):
            raise ended[0]
        return ended[0]

    monkeypatch.setattr(Coordinator, "run", twice)
    async with details_on(store, tmp_path) as world:
        await world.details.set_mode(mode)
        batch_id, entries = await world.make(count=12)
        assert len(names_of(entries)) == len(set(names_of(entries))) == 12
        kinds = Counter(entry.type for entry in await world.entries(batch_id))
        assert kinds == {"accepted": 1, "item": 12, "first_response": 1, "completed": 1}
        assert entries[-1].data["status"] == "completed"
        assert [entry.key for entry in await world.figures()] == [batch_id]


@pytest.mark.parametrize("store", STORES)
async def test_a_part_that_was_topped_up_and_goes_on_adds_no_item(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked for anew fills the places that stayed empty: a frozen run that wakes up finds them full."""
    frozen: list[Part] = []

    async def short(means: Means, part: Part) -> Written:
        if part.subtask_id.endswith(":0"):
            frozen.append(part)
            [call, *_] = part.calls
            return await write(means, replace(part, calls=(replace(call, count=2),)))
        written = await write(means, part)
        if frozen:
            await write(means, frozen.pop())
        return written

    monkeypatch.setattr("headrace.apps.details.agents.write", short)
    async with details_on(store, tmp_path) as world:
        batch_id, entries = await world.make(count=6)
        assert (entries[-1].data["status"], entries[-1].data["delivered"]) == ("completed", 6)
        assert len(names_of(entries)) == 6
        state = await world.rebuilt(batch_id, entries[0].data["session_id"])
        assert sorted(item["name"] for item in state.items) == sorted(names_of(entries))
