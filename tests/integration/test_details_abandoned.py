"""Batches that nobody goes on with end all the same, and what was paid for is on the bill of those that failed."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headrace import Backoff, HeadraceError
from headrace.apps.details import ending as endings
from headrace.apps.details import silence, writing
from headrace.apps.details.abandoned import kwargs_of
from headrace.apps.details.agents import LATE
from headrace.apps.details.commands.local import LocalDesk
from headrace.apps.details.coordinating import Coordinator
from headrace.apps.details.means import LAST, Means, Order
from headrace.apps.details.names import (
    COMPLETED,
    FLOW_TASK,
    FLOWS_QUEUE,
    INTAKE_QUEUE,
    REQUESTED,
    SUBTASKS_QUEUE,
    owner_of,
)
from headrace.apps.details.wording import Slice
from headrace.apps.details.writing import write
from headrace.feeds import Feed
from headrace.settings import RecoverySettings
from headrace.testing.provider import Fault
from tests.integration.details_world import STORES, details_on
from tests.integration.test_details_ends import held, part_of
from tests.waiting import wait_until

EARLY = Order(2, 0.0, lambda: 0.0)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("queue", [INTAKE_QUEUE, FLOWS_QUEUE])
async def test_a_batch_that_nobody_follows_is_ended(queue: str, store: str, tmp_path: Path) -> None:
    """Its figures are kept and its events tell the end, though its jobs were cancelled behind its back; once."""
    async with details_on(store, tmp_path) as world:
        batch_id = await held(world, queue)
        flows = await world.app.runtime.stores.inspect.list_jobs(task=FLOW_TASK, limit=10)
        await world.app.job(flows[0].id if flows else batch_id).cancel()
        await world.sweep()
        entries = await world.entries(batch_id)
        assert (entries[-1].type, entries[-1].data["status"]) == ("completed", "cancelled")
        [done] = await world.figures()
        assert (done.key, done.data["status"]) == (batch_id, "cancelled")
        session = (await world.details.find(batch_id))["session_id"]
        assert (await world.rebuilt(batch_id, session)).status == "cancelled"
        await world.sweep()
        assert len(await world.entries(batch_id)) == len(entries)


async def test_a_batch_whose_feed_was_removed_is_not_ended_again(tmp_path: Path) -> None:
    """Its message went out long ago; what is shown of it follows from its jobs."""
    async with details_on("memory", tmp_path, recovery=RecoverySettings(keep_feeds=timedelta(0))) as world:
        batch_id = await held(world, INTAKE_QUEUE)
        await world.app.job(batch_id).cancel()
        await world.sweep()
        assert await world.details.feed(batch_id).end() == 0
        assert (await world.details.view(batch_id))["status"] == "cancelled"


async def test_the_end_is_found_however_much_came_behind_it(tmp_path: Path) -> None:
    """Parts of a large batch that was cancelled may deliver hundreds of items yet."""
    async with details_on("memory", tmp_path) as world:
        batch_id, _ = await world.make(count=3)
        for place in range(LAST + 5):
            await world.details.means.deliver(
                batch_id, f"{batch_id}:9", f"{batch_id}:9:{place}", {"name": str(place)}, EARLY
            )
        [shown] = await world.details.latest()
        assert (shown["status"], shown["delivered"]) == ("completed", 3)
        assert (await world.details.view(batch_id))["status"] == "completed"
        assert await world.details.means.ending("none") is None


@pytest.mark.parametrize("store", STORES)
async def test_who_comes_later_says_the_first_response_for_one_who_died(store: str, tmp_path: Path) -> None:
    """At once, not with the next run of the part that died; and no process says it for each item."""
    async with details_on(store, tmp_path) as world:
        feed = world.details.feed("b")
        await feed.append("accepted", {}, key="accepted")
        for place in range(2):  # by one who died behind the second
            await feed.append("item", {"subtask_id": "b:0", "name": str(place)}, key=f"b:0:{place}")
        means = Means(world.app)
        for place in range(3):
            await means.deliver("b", "b:1", f"b:1:{place}", {"name": f"other {place}"}, EARLY)
        kinds = [entry.type for entry in await feed.read()]
        assert kinds == ["accepted", "item", "item", "item", "first_response", "item", "item"]


async def test_a_process_says_the_first_response_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items are what is many: none costs a call more than itself."""
    appended: list[str] = []
    append = Feed.append

    async def watched(self: Feed, type_: str, *given: Any, **more: Any) -> int:
        appended.append(type_)
        return await append(self, type_, *given, **more)

    monkeypatch.setattr(Feed, "append", watched)
    async with details_on("memory", tmp_path) as world:
        await world.make(count=12, first_response=3)
        assert (appended.count("item"), appended.count("first_response")) == (12, 1)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let agents give up soon."""
    monkeypatch.setattr("headrace.apps.details.agents.RETRY", Backoff.fixed("1ms", max_attempts=2))
    monkeypatch.setattr(writing, "PAUSES", (0.001, 0.002))
    monkeypatch.setattr(writing, "MOST_FAILURES", 2)


@pytest.mark.usefixtures("impatient")
async def test_what_dead_parts_cost_is_on_the_bill(tmp_path: Path) -> None:
    """Answers that were of no use were paid for: their calls and tokens are in the end and in the figures."""
    async with details_on("memory", tmp_path, faults=[Fault.parse("tool_call:contains=:0/")]) as world:
        _, entries = await world.make(count=6)
        ending = entries[-1].data
        assert ending["dead_letters"] == 1
        assert ending["calls"] == world.provider.count() and ending["failures"] == 2
        [done] = await world.figures()
        assert done.data["calls"] == ending["calls"]


@pytest.mark.usefixtures("impatient")
async def test_a_run_that_fails_tells_what_an_earlier_one_delivered(tmp_path: Path) -> None:
    """The part has something: it is no dead letter, and what is missing is asked for elsewhere."""
    faults = [Fault.parse("500:contains=b:0/")]
    async with details_on("memory", tmp_path, faults=faults) as world:
        feed = world.details.feed("b")
        await feed.append("accepted", {}, key="accepted")
        await feed.append("item", {"subtask_id": "b:0", "name": "Babakeru"}, key="b:0:0")
        written = await write(Means(world.app), part_of("b", 3))
        assert [item["name"] for item in written.items] == ["Babakeru"] and written.failures >= 2


async def test_parts_that_answered_before_the_wait_expired_are_on_the_bill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only those that said nothing are dead."""
    over: list[str] = []

    async def some(means: Means, part: Any) -> Any:
        if part.subtask_id.endswith(":0") and not over:
            raise RuntimeError("as planned")
        return await write(means, part)

    monkeypatch.setattr("headrace.apps.details.agents.write", some)
    monkeypatch.setattr("headrace.apps.details.agents.RETRY", Backoff.fixed("100ms", max_attempts=100))
    async with details_on("memory", tmp_path) as world:
        batch_id = (await world.details.submit({"type": "skill", "count": 12})).batch_id

        async def answered() -> bool:
            return bool(await world.details.means.answers(batch_id))

        await wait_until(answered)
        # Not before: the job of every minute runs by itself too.
        monkeypatch.setattr(silence, "PATIENCE", timedelta(0))
        await world.give_up(batch_id)
        ending = (await world.entries(batch_id))[-1].data
        assert (ending["status"], ending["dead_letters"]) == ("partial", 1)
        assert ending["calls"] >= 1 and ending["output_tokens"] > 0
        over.append("the agent may end")


@pytest.mark.parametrize("store", STORES)
async def test_parts_that_have_not_gone_out_are_not_silent(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long a pause, the queue or a closed pool holds them up: the batch is made when it can be."""
    async with details_on(store, tmp_path) as world:
        batch_id = await held(world, SUBTASKS_QUEUE)
        await wait_until(lambda: silence.waits(world.app))
        with monkeypatch.context() as impatient:
            impatient.setattr(silence, "PATIENCE", timedelta(0))
            await world.sweep()
            assert [handle.correlation_id for handle in await silence.waits(world.app)] == [batch_id]
        await world.app.resume(SUBTASKS_QUEUE)
        ending = (await world.entries(batch_id))[-1].data
        assert (ending["status"], ending["dead_letters"]) == ("completed", 0)


async def test_a_name_for_one_place_costs_no_read(tmp_path: Path) -> None:
    """Each item has an owner of its own: the scope must not be read anew for each. Others' names stay taken."""
    async with details_on("memory", tmp_path) as world:
        store, read = world.app.runtime.stores.names, 0
        listed = store.list_names

        async def watched(*given: Any, **more: Any) -> Any:
            nonlocal read
            read += 1
            return await listed(*given, **more)

        book = world.app.names("scope")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(store), "list_names", lambda self, *given, **more: watched(*given, **more))
            for place, name in enumerate(("Babakeru", "Dumizolefa", "Goshivyny")):
                assert (await book.claim([name], owner=owner_of(f"b:0:{place}"), only_one=True)).accepted
            assert read == 1
            assert not (await book.claim(["Babakeru"], owner=owner_of("b:0:5"), only_one=True)).accepted
            assert (await book.claim(["Babakeru"], owner=owner_of("b:0:0"), only_one=True)).accepted


@pytest.mark.parametrize("store", STORES)
async def test_parts_of_a_cancelled_batch_do_not_go_out(store: str, tmp_path: Path) -> None:
    """Nothing is bought that nobody waits for, and nothing stands behind the end."""
    async with details_on(store, tmp_path) as world:
        batch_id = await held(world, SUBTASKS_QUEUE)
        await world.details.cancel(batch_id)
        left = await world.app.runtime.stores.inspect.live_jobs(SUBTASKS_QUEUE)
        assert not any(left.values())
        await world.app.resume(SUBTASKS_QUEUE)
        assert (await world.entries(batch_id))[-1].type == "completed"
        assert world.provider.count() == 0


async def test_a_part_of_a_batch_that_ended_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its agent looks for the end first: the model is not asked."""
    looked, ending = [], Means.ending

    async def watched(self: Means, batch_id: str) -> Any:
        looked.append(await ending(self, batch_id))
        return looked[-1]

    async with details_on("memory", tmp_path) as world:
        batch_id, entries = await world.make(count=3)
        asked = await world.app.event_stores.outbox.list_events(correlation_id=batch_id)
        [request] = [event for event in asked if event.type == REQUESTED]
        bought = world.provider.count()
        monkeypatch.setattr(Means, "ending", watched)
        again = {**request.payload, "task_id": f"{batch_id}:7", "asked_at": request.payload["asked_at"] - LATE}
        await world.app.emit(REQUESTED, again, aggregate_id=request.aggregate_id, correlation_id=batch_id)
        await wait_until(lambda: bool(looked))
        assert looked[0] is not None and world.provider.count() == bought
        assert len(await world.details.feed(batch_id).read()) == len(entries)


@pytest.mark.parametrize("store", STORES)
async def test_a_cancel_that_meets_the_end_tells_it_once(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes second says the same event; a batch that has all its items is completed, not cancelled."""
    tell, cancelled = endings.tell_end, asyncio.Event()

    async def meeting(means: Means, request: Any, batch_id: str, *given: Any, **more: Any) -> Any:
        if not cancelled.is_set():
            cancelled.set()
            job = await world.app.runtime.stores.inspect.get_job(UUID(batch_id))
            await endings.end_early(means, kwargs_of(job), batch_id, "cancelled")
        return await tell(means, request, batch_id, *given, **more)

    monkeypatch.setattr("headrace.apps.details.coordinating.tell_end", meeting)
    async with details_on(store, tmp_path) as world:
        batch_id, entries = await world.make(count=3)
        assert (entries[-1].data["status"], entries[-1].data["delivered"]) == ("completed", 3)

        async def idle() -> bool:
            return not any((await world.app.runtime.stores.inspect.live_jobs(FLOWS_QUEUE)).values())

        await wait_until(idle)
        events = await world.app.event_stores.outbox.list_events(correlation_id=batch_id)
        [last] = [event for event in events if event.type == COMPLETED]
        assert (last.payload["status"], last.payload["delivered"]) == ("completed", 3)


@pytest.mark.parametrize("store", STORES)
async def test_what_a_cancelled_single_call_cost_is_on_the_bill(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first call was paid for, and its first response was there: the end and the figures tell both."""
    begun, write_here = asyncio.Event(), Coordinator._write_here

    async def hanging(self: Coordinator, asked: Slice, *given: Any) -> Any:
        if asked.batch_index:
            begun.set()
            await asyncio.Event().wait()
        return await write_here(self, asked, *given)

    monkeypatch.setattr(Coordinator, "_write_here", hanging)
    async with details_on(store, tmp_path) as world:
        await world.details.set_mode("single-call")
        accepted = await world.details.submit({"type": "skill", "count": 60})
        await asyncio.wait_for(begun.wait(), 20)
        shown = await world.details.cancel(accepted.batch_id)
        assert (shown["status"], shown["delivered"], shown["calls"]) == ("cancelled", 30, 1)
        assert shown["tokens"] > 0
        [done] = await world.figures()
        assert (done.data["calls"], len(done.data["tasks"])) == (1, 1)
        assert done.data["first_response_seconds"] == shown["first_response_seconds"] is not None


@pytest.mark.parametrize("store", STORES)
async def test_a_batch_that_ended_long_ago_is_not_waited_for(store: str, tmp_path: Path) -> None:
    """Its feed was removed: how it ended is known from its jobs, and who wants to watch it is told."""
    async with details_on(store, tmp_path) as world:
        batch_id, _ = await world.make(count=3)

        async def idle() -> bool:
            return not any((await world.app.runtime.stores.inspect.live_jobs(FLOWS_QUEUE)).values())

        await wait_until(idle)
        before = await world.details.view(batch_id)

        async def removed() -> bool:
            await world.app.runtime.stores.feeds.prune_feeds(older_than=timedelta(0), limit=1_000)
            return not await world.details.feed(batch_id).end()

        await wait_until(removed)
        assert await world.details.view(batch_id) == before | {"items": []}
        [listed] = await world.details.latest()
        assert (listed["status"], listed["delivered"]) == ("completed", 3)
        with pytest.raises(HeadraceError, match="was removed, as entries older than keep_feeds are"):
            async with asyncio.timeout(5):
                [told async for told in LocalDesk(world.details).follow(batch_id)]
