"""Batches of details end once and whole: whoever writes twice, gives up, cancels, or changes its mind."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.apps.details import desk as desks
from headrace.apps.details import flow as flows
from headrace.apps.details import silence
from headrace.apps.details.coordinating import Coordinator
from headrace.apps.details.means import Means, Order
from headrace.apps.details.mode import REASON, set_mode
from headrace.apps.details.names import FLOW_TASK, FLOWS_QUEUE, INTAKE_QUEUE, MODE_FEED, SUBTASKS_QUEUE
from headrace.apps.details.wording import Slice
from headrace.apps.details.writing import Part, Written, write
from headrace.model.backoff import Backoff
from headrace.model.errors import ConflictError
from headrace.settings import WorkerSettings
from headrace.testing.provider import Fault
from tests.integration.details_world import STORES, World, details_on, names_of
from tests.waiting import wait_until

NOW = 0.0


def part_of(batch_id: str, count: int) -> Part:
    """Return the only part of a batch."""
    asked = Slice(subtask_id=f"{batch_id}:0", type="skill", count=count, style="", batch_index=0, batches=1)
    return Part(batch_id, asked.subtask_id, (asked,), "scope", Order(count, NOW, lambda: NOW))


@pytest.mark.parametrize("store", STORES)
async def test_a_part_that_two_write_at_once_is_delivered_once(store: str, tmp_path: Path) -> None:
    """Each with what it knows: places are filled once, and both tell what stands there."""
    async with details_on(store, tmp_path) as world:
        feed = world.details.feed("b")
        await feed.append("accepted", {}, key="accepted")
        written = await asyncio.gather(*(write(Means(world.app), part_of("b", 7)) for _ in range(3)))
        stored = [entry.data["name"] for entry in await feed.read() if entry.type == "item"]
        assert len(stored) == len(set(stored)) == 7
        assert [[item["name"] for item in one.items] for one in written] == [stored] * 3
        assert [entry.type for entry in await feed.read()].count("first_response") == 1


async def test_a_part_that_came_short_is_told_and_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that fails behind the first items makes no dead letter of them."""
    monkeypatch.setattr("headrace.apps.details.writing.PAUSES", (0.001, 0.002))
    monkeypatch.setattr("headrace.apps.details.writing.MOST_FAILURES", 2)
    faults = [Fault.parse(f"stream_cut:contains=:{part}/") for part in range(2)]
    async with details_on("memory", tmp_path, faults=faults) as world:
        _, entries = await world.make(count=12)
        assert (entries[-1].data["status"], entries[-1].data["dead_letters"]) == ("completed", 0)
        assert entries[-1].data["failures"] >= 2


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Parts are silent as soon as they went out, and no agent writes, until something is put into the list."""
    monkeypatch.setattr(silence, "PATIENCE", timedelta(0))
    monkeypatch.setattr("headrace.apps.details.agents.RETRY", Backoff.fixed("100ms", max_attempts=100))
    over: list[str] = []

    async def fail(*_: object) -> Written:
        if over:
            return Written()
        raise RuntimeError("as planned")

    monkeypatch.setattr("headrace.apps.details.agents.write", fail)
    return over


async def test_parts_that_say_nothing_are_not_asked_for_again(silent: list[str], tmp_path: Path) -> None:
    """Others would not answer either: the batch ends with what there is, and each part is counted once."""
    async with details_on("memory", tmp_path) as world:
        batch_id = (await world.details.submit({"type": "skill", "count": 12})).batch_id
        await world.give_up(batch_id)
        entries = await world.entries(batch_id)
        parts = await world.app.runtime.stores.inspect.list_jobs(task="details_subtask", limit=50)
        assert (entries[-1].data["status"], entries[-1].data["dead_letters"]) == ("failed", len(parts))
        late = await Means(world.app).deliver(
            batch_id, f"{batch_id}:0", f"{batch_id}:0:0", {"name": "late"}, Order(1, NOW, lambda: NOW)
        )
        assert late > entries[-1].seq
        shown = await world.details.view(batch_id)
        assert (shown["items"], shown["status"], shown["delivered"]) == ([], "failed", 0)
        outline = next(one for one in await world.details.latest() if one["batch_id"] == batch_id)
        assert outline["status"] == "failed", "what came behind the end hides it from nobody"
        silent.append("the agents may end")


async def held(world: World, queue: str) -> str:
    """Return a batch whose jobs wait in a queue."""
    await world.app.pause(queue)
    accepted = await world.details.submit({"type": "skill", "count": 3})
    if queue != INTAKE_QUEUE:

        async def begun() -> bool:
            return bool(sum((await world.app.runtime.stores.inspect.live_jobs(queue)).values()))

        await wait_until(begun)
    return accepted.batch_id


@pytest.mark.parametrize("queue", [INTAKE_QUEUE, FLOWS_QUEUE, SUBTASKS_QUEUE])
async def test_a_cancelled_batch_ends_wherever_it_is(queue: str, tmp_path: Path) -> None:
    """Its feed has its end, its jobs are cancelled, and cancelling it again changes nothing."""
    async with details_on("memory", tmp_path) as world:
        batch_id = await held(world, queue)
        assert (await world.details.cancel(batch_id))["status"] == "cancelled"
        entries = await world.entries(batch_id)
        assert (entries[-1].type, entries[-1].data["status"]) == ("completed", "cancelled")
        await world.app.resume(queue)
        assert await world.details.cancel(batch_id) == await world.details.view(batch_id)
        flow = await world.app.runtime.stores.inspect.list_jobs(task=FLOW_TASK, limit=10)
        assert {job.state.value for job in flow} <= {"cancelled"}
        whole, _ = await world.make(count=3)
        assert (await world.details.cancel(whole))["status"] == "completed"


async def test_a_batch_whose_flow_somebody_cancelled_is_ended_for_who_follows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its jobs know nothing of its feed: whoever looks at it, or follows it, ends it."""
    monkeypatch.setattr(desks, "FIRST_WATCH_SECONDS", 0.02)
    async with details_on("memory", tmp_path) as world:
        batch_id = await held(world, FLOWS_QUEUE)
        [flow] = await world.app.runtime.stores.inspect.list_jobs(task=FLOW_TASK, limit=10)
        await world.app.job(flow.id).cancel()
        async with world.details.watched(batch_id) as watch:
            assert (await world.entries(batch_id))[-1].data["status"] == "cancelled"
            await asyncio.wait_for(watch, 5)
        assert (await world.details.view(batch_id))["status"] == "cancelled"
        other = await held(world, FLOWS_QUEUE)
        await world.app.job(other).cancel()
        assert (await world.details.view(other))["status"] == "waiting", "its request has begun"


async def test_a_flow_that_fails_for_good_ends_its_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its last try; its webhook and figures are told as of any other."""
    monkeypatch.setattr(flows, "RETRY", Backoff.fixed("1ms", max_attempts=2))
    tries = Counter[str]()

    async def broken(self: Coordinator) -> Mapping[str, Any]:
        tries[self.batch_id] += 1
        raise RuntimeError("as planned")

    monkeypatch.setattr(Coordinator, "run", broken)
    async with details_on("memory", tmp_path) as world:
        batch_id, entries = await world.make(count=3)
        assert (entries[-1].data["status"], tries[batch_id]) == ("failed", 2)
        [done] = await world.figures()
        assert (done.key, done.data["status"]) == (batch_id, "failed")


async def test_a_key_without_a_session_is_the_same_batch(tmp_path: Path) -> None:
    """The session is the key's then."""
    async with details_on("memory", tmp_path) as world:
        made = [await world.details.submit({"type": "skill", "count": 2}, key="k") for _ in range(2)]
        assert made[0].batch_id == made[1].batch_id
        other = await world.details.submit({"type": "skill", "count": 2}, key="l")
        assert other.batch_id != made[0].batch_id


async def test_two_changes_of_mode_at_once_do_not_mix(tmp_path: Path) -> None:
    """The second is refused, from any process: what the first one waits for is told, and how to give it up."""
    async with details_on("memory", tmp_path) as world:
        await held(world, SUBTASKS_QUEUE)
        change = asyncio.create_task(world.details.set_mode("single-call"))

        async def frozen() -> bool:
            return (await world.app.queue_state(INTAKE_QUEUE)).paused

        await wait_until(frozen)
        with pytest.raises(
            ConflictError, match=r"being changed already \(to single-call\).*queue resume details.intake"
        ):
            await set_mode(world.app, "normal")
        await world.app.resume(INTAKE_QUEUE)
        with pytest.raises(ConflictError, match="the intake was resumed"):
            await asyncio.wait_for(change, 5)
        assert await world.details.mode() == "normal"


@pytest.mark.parametrize("where", ["headrace.apps.details.mode._note", "headrace.App.resume"])
async def test_a_change_that_was_cut_off_is_noted_once(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it was cut off, the feed of changes has it when it is finished."""

    async def cut(*_: object, **__: object) -> None:
        raise ConnectionError("as planned")

    async with details_on("memory", tmp_path) as world:
        with monkeypatch.context() as patch:
            patch.setattr(where, cut)
            with pytest.raises(ConnectionError):
                await set_mode(world.app, "single-call")
        assert (await world.app.queue_state(INTAKE_QUEUE)).paused
        await set_mode(world.app, "single-call")
        assert not (await world.app.queue_state(INTAKE_QUEUE)).paused
        assert [entry.data["mode"] for entry in await world.app.feed(MODE_FEED).read()] == ["single-call"]


@pytest.mark.parametrize("store", STORES)
async def test_first_response_is_said_again_where_who_should_have_said_it_died(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes the part again fills the same place, and says it."""
    async with details_on(store, tmp_path) as world:
        feed = world.details.feed("b")
        await feed.append("accepted", {}, key="accepted")
        append, died = type(feed).append, Counter[str]()

        async def dying(self: Any, type_: str, *given: Any, **more: Any) -> int:
            if type_ == "first_response" and not died[type_]:
                died[type_] += 1
                raise ConnectionError("as planned")
            return await append(self, type_, *given, **more)

        monkeypatch.setattr(type(feed), "append", dying)
        with pytest.raises(ConnectionError):
            await write(Means(world.app), part_of("b", 3))
        await write(Means(world.app), part_of("b", 3))
        kinds = [entry.type for entry in await feed.read()]
        assert kinds == ["accepted", "item", "item", "item", "first_response"]


@pytest.mark.parametrize("store", STORES)
async def test_a_change_of_mode_waits_for_no_dead_agents(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mode is there for that case: batches to which nothing comes are made by their coordinators, whole."""
    monkeypatch.setattr(silence, "STILL_SECONDS", 0.2)
    monkeypatch.setattr(silence, "LOOK_SECONDS", 0.05)
    worker = replace(WorkerSettings(), agents_enabled=False)
    async with details_on(store, tmp_path, worker=worker) as world:
        batch_id = (await world.details.submit({"type": "skill", "count": 12, "first_response": 3})).batch_id
        await wait_until(lambda: silence.waits(world.app))
        said: list[str] = []
        assert await asyncio.wait_for(world.details.set_mode("single-call", said.append), 20) == "single-call"
        assert any("nothing comes for 30 s is made by its coordinator" in one for one in said)
        entries = await world.entries(batch_id)
        assert (entries[-1].data["status"], entries[-1].data["calls"]) == ("completed", 1)
        assert len(names_of(entries)) == len(set(names_of(entries))) == 12
        state = await world.rebuilt(batch_id, entries[0].data["session_id"])
        assert len(state.items) == 12


@pytest.mark.parametrize("dies", [False, True])
async def test_a_flow_that_is_enqueued_late_is_made_in_the_new_mode(
    dies: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its request was claimed before the change and committed behind it: no parts go into a queue that is closed."""
    write_here, calls = Coordinator._write_here, Counter[str]()

    async def dying(self: Coordinator, *given: Any) -> Any:
        calls["all"] += 1
        if dies and calls["all"] == 1:
            raise ConnectionError("as planned")
        return await write_here(self, *given)

    monkeypatch.setattr(Coordinator, "_write_here", dying)
    async with details_on("memory", tmp_path) as world:
        await world.app.pause(FLOWS_QUEUE)
        batch_id = await held(world, FLOWS_QUEUE)
        await world.app.pause(SUBTASKS_QUEUE, reason=REASON)
        await world.app.resume(FLOWS_QUEUE)
        entries = await world.entries(batch_id)
        assert (entries[-1].data["status"], len(names_of(entries))) == ("completed", 3)
        assert not any((await world.app.runtime.stores.inspect.live_jobs(SUBTASKS_QUEUE)).values())


async def test_parts_of_a_coordinator_that_died_wait_in_no_closed_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It died before it waited for them, and the mode changed: its successor makes the batch, whatever the mode is."""
    send, write_here, died = Coordinator._send, Coordinator._write_here, list[str]()

    async def sending(self: Coordinator, *given: Any) -> None:
        await self.means.app.pause(SUBTASKS_QUEUE, reason=REASON)
        await send(self, *given)
        died.append("before it waited")
        raise ConnectionError("as planned")

    async def writing(self: Coordinator, *given: Any) -> Any:
        if len(died) == 1:
            await self.means.app.resume(SUBTASKS_QUEUE)
            died.append("before it wrote")
            raise ConnectionError("as planned")
        return await write_here(self, *given)

    monkeypatch.setattr(Coordinator, "_send", sending)
    monkeypatch.setattr(Coordinator, "_write_here", writing)
    async with details_on("memory", tmp_path) as world:
        batch_id, entries = await world.make(count=12)
        assert died == ["before it waited", "before it wrote"]
        assert (entries[-1].data["status"], entries[-1].data["calls"]) == ("completed", 1)
        parts = await world.app.runtime.stores.inspect.list_jobs(task="details_subtask", limit=10)
        assert [job.state.value for job in parts] == ["cancelled"] * 2
        assert {entry.data["subtask_id"] for entry in entries if entry.type == "item"} == {f"{batch_id}:2"}


async def test_what_parts_did_whose_coordinator_died_is_told_beside_what_is_made_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One answered before, one of them failed after it had paid, and one answers while the successor begins."""
    send, stop, stopped = Coordinator._send, Means.stop_parts, asyncio.Event()

    async def writing(means: Means, part: Part) -> Written:
        if part.subtask_id.endswith(":2"):
            await stopped.wait()
        return await write(means, part)

    async def sending(self: Coordinator, *given: Any) -> None:
        await send(self, *given)
        await wait_until(lambda: self.means.answers(self.batch_id))
        await wait_until(lambda: self.means.failures(self.batch_id))
        await self.means.app.pause(SUBTASKS_QUEUE, reason=REASON)
        raise ConnectionError("as planned")

    async def stopping(means: Means, batch_id: str) -> None:
        await stop(means, batch_id)
        stopped.set()

        async def two_answered() -> bool:
            return len(await means.answers(batch_id)) == 2

        await wait_until(two_answered)

    monkeypatch.setattr("headrace.apps.details.writing.PAUSES", (0.001, 0.002))
    monkeypatch.setattr("headrace.apps.details.agents.write", writing)
    monkeypatch.setattr("headrace.apps.details.agents.RETRY", Backoff.fixed("1ms", max_attempts=1))
    monkeypatch.setattr(Coordinator, "_send", sending)
    monkeypatch.setattr(Means, "stop_parts", stopping)
    async with details_on("memory", tmp_path, faults=[Fault.parse("tool_call:contains=:1.")]) as world:
        batch_id, entries = await world.make(count=25)
        ending = entries[-1].data
        assert (ending["status"], ending["calls"], ending["dead_letters"]) == ("completed", world.provider.count(), 0)
        parts = {entry.data["subtask_id"] for entry in entries if entry.type == "item"}
        assert parts == {f"{batch_id}:{number}" for number in (0, 2, 3)} and ending["failures"] > 0
        state = await world.rebuilt(batch_id, entries[0].data["session_id"])
        assert len(state.items) == 25


async def test_what_is_written_here_is_on_the_bill_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where whoever wrote it died, and its successor finds its event among the answers of silent parts."""
    monkeypatch.setattr(silence, "STILL_SECONDS", 0.2)
    monkeypatch.setattr(silence, "LOOK_SECONDS", 0.05)
    end, died = Coordinator._end, list[str]()

    async def ending(self: Coordinator) -> dict[str, Any]:
        if not died:
            died.append("before it told the end")
            raise ConnectionError("as planned")
        return await end(self)

    monkeypatch.setattr(Coordinator, "_end", ending)
    worker = replace(WorkerSettings(), agents_enabled=False)
    async with details_on("memory", tmp_path, worker=worker) as world:
        batch_id = (await world.details.submit({"type": "skill", "count": 12})).batch_id
        await wait_until(lambda: silence.waits(world.app))
        await asyncio.wait_for(world.details.set_mode("single-call"), 20)
        told = (await world.entries(batch_id))[-1].data
        assert died and (told["status"], told["calls"]) == ("completed", 1) == ("completed", world.provider.count())
