"""Details from the request to the last item: parts, agents, names, failures and the mode of single calls."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace as changed
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from headrace import App, Backoff, ConfigError, ConflictError, InvalidInputError
from headrace.apps.details import ending as endings
from headrace.apps.details.desk import register
from headrace.apps.details.means import LAST, Means
from headrace.apps.details.mode import read_mode
from headrace.apps.details.names import INTAKE_QUEUE, SUBTASKS_QUEUE
from headrace.details_settings import DetailSettings
from headrace.feeds import Feed, FeedEntry
from headrace.llm.gateway import LLM
from headrace.testing.provider import Fault
from headrace.webhook_settings import WebhookSettings
from headrace.webhooks import verify
from tests.integration.details_world import STORES, Names, details_on, names_of
from tests.unit.webhook_site import NEW, receiver
from tests.waiting import wait_until


@pytest.mark.parametrize("store", STORES)
async def test_a_batch_is_delivered_item_by_item_and_ends(store: str, tmp_path: Path) -> None:
    """First it is accepted, then items come, the first response is told behind its last item, and then the end."""
    async with details_on(store, tmp_path) as world:
        batch_id, entries = await world.make(count=23, type="item", first_response=7)
        kinds = [entry.type for entry in entries]
        assert kinds[0] == "accepted" and kinds[-1] == "completed"
        assert kinds.count("item") == 23 and len(set(names_of(entries))) == 23
        assert kinds.count("first_response") == 1 and kinds.index("first_response") >= 8
        assert {name: entries[-1].data[name] for name in ("status", "delivered", "dead_letters")} == {
            "status": "completed", "delivered": 23, "dead_letters": 0,
        }  # fmt: skip
        assert entries[-1].data["calls"] >= 2 and entries[-1].data["output_tokens"] > 0
        [done] = await world.figures()
        assert done.data["batch_id"] == batch_id and done.data["first_response_seconds"] is not None
        shown = await world.details.view(batch_id)
        assert shown["status"] == "completed" and len(shown["items"]) == 23
        assert [one["batch_id"] for one in await world.details.latest(5)] == [batch_id]


@pytest.mark.parametrize("store", STORES)
async def test_names_that_are_taken_are_asked_for_again(store: str, tmp_path: Path) -> None:
    """No name comes twice in a scope, in one batch and over several; the batch is whole all the same."""
    async with details_on(store, tmp_path, Names(repeated=["Ember Step", "ember step!"])) as world:
        _, first = await world.make(count=6, scope="saga")
        _, second = await world.make(count=6, scope="saga")
        names = [name.casefold() for name in names_of(first) + names_of(second)]
        assert len(set(names)) == len(names) == 12
        assert first[-1].data["duplicates"] >= 1 and second[-1].data["duplicates"] >= 2
        _, other = await world.make(count=6, scope="another saga")
        assert "Ember Step" in names_of(other)


@pytest.mark.parametrize("type_", ["character_name", "ship_name"])
async def test_each_type_has_its_writer(type_: str, tmp_path: Path) -> None:
    """Names of characters, and types that nobody knows, are delivered as well."""
    async with details_on("memory", tmp_path) as world:
        _, entries = await world.make(count=5, type=type_)
        assert entries[-1].data["status"] == "completed"


@pytest.mark.parametrize("fault", ["500:times=2", "cut:times=2"])
async def test_failures_that_pass_are_overcome_at_once(fault: str, tmp_path: Path) -> None:
    """They cost a pause, and neither an item nor a dead letter."""
    async with details_on("memory", tmp_path, faults=[Fault.parse(fault)]) as world:
        _, entries = await world.make()
        assert entries[-1].data["status"] == "completed" and entries[-1].data["dead_letters"] == 0
        assert len(set(names_of(entries))) == 12


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let agents give up soon."""
    monkeypatch.setattr("headrace.apps.details.agents.RETRY", Backoff.fixed("1ms", max_attempts=2))
    monkeypatch.setattr("headrace.apps.details.writing.PAUSES", (0.001, 0.002))
    monkeypatch.setattr("headrace.apps.details.writing.MOST_FAILURES", 2)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("parts", "status", "delivered"),
    [("0", "completed", 6), ("0 2 3 4", "partial", 3), ("0 1 2 3 4 5 6 7", "failed", 0)],
)
async def test_a_part_that_is_a_dead_letter_is_made_up_for_or_missing(
    parts: str, status: str, delivered: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others write what it did not; what nobody writes is told to be missing."""
    monkeypatch.setattr(
        "headrace.apps.details.departures.joined_parts", lambda sizes, _: tuple((one,) for one in sizes)
    )
    faults = [Fault.parse(f"500:contains=:{part}/") for part in parts.split()]
    async with details_on("memory", tmp_path, faults=faults) as world:
        _, entries = await world.make(count=6)
        ending = entries[-1].data
        assert (ending["status"], ending["delivered"], len(names_of(entries))) == (status, delivered, delivered)
        assert ending["dead_letters"] >= 1
        # What made up for it is on the bill too.
        assert ending["calls"] >= delivered / 3


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("failing", "dead"), [("1", 0), ("0 1", 1)])
async def test_calls_of_one_part_fail_by_themselves(failing: str, dead: int, tmp_path: Path) -> None:
    """What the others bring is delivered, and the rest asked for anew; only a part without any is a dead letter."""
    faults = [Fault.parse(f"500:contains=:0.{call}/") for call in failing.split()]
    async with details_on("memory", tmp_path, faults=faults) as world:
        batch_id, entries = await world.make(count=8)
        ending = entries[-1].data
        assert (ending["status"], ending["delivered"], ending["dead_letters"]) == ("completed", 8, dead)
        parts = Counter(entry.data["subtask_id"] for entry in entries if entry.type == "item")
        assert (parts[f"{batch_id}:0"], parts[f"{batch_id}:1"]) == ((4, 4) if not dead else (0, 8))
        assert ending["failures"] >= 2 * len(failing.split())
        assert len(set(names_of(entries))) == 8


@pytest.mark.parametrize("store", STORES)
async def test_an_agent_that_dies_midway_goes_on_behind_what_it_delivered(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came before is neither delivered twice nor forgotten, and the batch has as many as were asked for."""
    monkeypatch.setattr("headrace.apps.details.agents.RETRY", Backoff.fixed("1ms", max_attempts=9))
    deliver, calls = Means.deliver, Counter[str]()

    async def dying(means: Means, batch_id: str, subtask: str, place: int, *given: Any) -> int:
        calls[subtask] += 1
        if calls[subtask] == 2:
            raise RuntimeError("as planned: before the item was stored")
        number = await deliver(means, batch_id, subtask, place, *given)
        if calls[subtask] == 4:
            raise RuntimeError("as planned: after the item was stored")
        return number

    monkeypatch.setattr(Means, "deliver", dying)
    async with details_on(store, tmp_path) as world:
        _, entries = await world.make(count=12)
        assert entries[-1].data["status"] == "completed" and entries[-1].data["dead_letters"] == 0
        assert len(names_of(entries)) == len(set(names_of(entries))) == 12
        assert min(calls.values()) > 4


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("way", "count"), [("parts", 12), ("waves", 51), ("single-call", 60)])
async def test_a_batch_is_rebuilt_from_its_events(
    way: str, count: int, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They tell the same items and the same end as the feed does, in all ways to make a batch."""
    monkeypatch.setattr("headrace.apps.details.departures.WAVE", 2)
    async with details_on(store, tmp_path) as world:
        if way == "single-call":
            await world.details.set_mode(way)
        batch_id, entries = await world.make(count=count, style="grim", priority=7)
        state = await world.rebuilt(batch_id, entries[0].data["session_id"])
        assert sorted_items(state.items) == sorted_items([entry.data for entry in entries if entry.type == "item"])
        assert len(state.items) == count
        assert (state.status, state.count, state.style, state.type, state.priority) == (
            "completed", count, "grim", "skill", 7,
        )  # fmt: skip
        assert (state.calls, state.output_tokens) == (entries[-1].data["calls"], entries[-1].data["output_tokens"])
        assert state.open_subtasks == []
        assert (max(part.round for part in state.subtasks.values()) > 1) == (way == "waves")


def sorted_items(items: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return names and descriptions in their order."""
    return sorted((str(item["name"]), str(item["description"])) for item in items)


async def test_a_part_that_died_midway_is_in_the_events_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No event of its own tells what it delivered: the last one of the batch does."""
    monkeypatch.setattr("headrace.apps.details.agents.RETRY", Backoff.fixed("1ms", max_attempts=1))
    deliver = Means.deliver

    async def dying(means: Means, batch_id: str, subtask: str, *given: Any) -> int:
        number = await deliver(means, batch_id, subtask, *given)
        if subtask.endswith(":0"):
            raise RuntimeError("as planned")
        return number

    monkeypatch.setattr(Means, "deliver", dying)
    async with details_on("memory", tmp_path) as world:
        batch_id, entries = await world.make(count=12)
        assert (entries[-1].data["status"], entries[-1].data["dead_letters"]) == ("completed", 1)
        state = await world.rebuilt(batch_id, entries[0].data["session_id"])
        assert sorted_items(state.items) == sorted_items([entry.data for entry in entries if entry.type == "item"])
        # One of each of its calls, which were side by side.
        assert 1 <= len(state.subtasks[f"{batch_id}:0"].items) <= 2


async def test_many_items_are_several_large_calls_in_single_call_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after another, each told the names of those before it; what was made before a death is not made again."""
    deliver, calls, names = Means.deliver, Counter[str](), Names()

    async def dying(means: Means, batch_id: str, subtask: str, *given: Any) -> int:
        calls[subtask] += 1
        if (len(calls), calls[subtask]) == (2, 3):
            raise ConnectionError("as planned: two items of the second part are there")
        return await deliver(means, batch_id, subtask, *given)

    monkeypatch.setattr(Means, "deliver", dying)
    async with details_on("memory", tmp_path, names) as world:
        await world.details.set_mode("single-call")
        _, entries = await world.make(count=101)
        assert (entries[-1].data["status"], entries[-1].data["dead_letters"]) == ("completed", 0)
        assert [re.findall(r"Count: (\d+)", asked)[0] for asked in names.asked] == ["34", "34", "33"]
        parts = [entry.data["subtask_id"] for entry in entries if entry.type == "item"]
        assert [len([*part]) for _, part in groupby(parts)] == [34, 34, 33]
        assert "Taken names" not in names.asked[0] and names_of(entries)[0] in names.asked[1]


@pytest.mark.parametrize("store", STORES)
async def test_a_webhook_is_told_of_the_end_once(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the coordinator dies behind it and runs again: the message says what the feed says."""
    tell, died = endings.tell_webhook, Counter[str]()

    async def dying(app: Any, request: Any, batch_id: str, *given: Any) -> None:
        await tell(app, request, batch_id, *given)
        died[batch_id] += 1
        if died[batch_id] == 1:
            raise ConnectionError("as planned: behind the message")

    monkeypatch.setattr(endings, "tell_webhook", dying)
    webhooks = WebhookSettings(secrets=(NEW,), allow_private=True)
    async with receiver() as found, details_on(store, tmp_path, webhooks=webhooks) as world:
        batch_id, entries = await world.make(count=5, webhook=found.url)
        await wait_until(lambda: died[batch_id] == 2)
        await wait_until(lambda: len(found.came) >= 1)

        async def idle() -> bool:
            return not any((await world.app.runtime.stores.inspect.live_jobs("webhooks")).values())

        await wait_until(idle)
        [message] = found.came
        assert verify(message.headers, message.body, NEW)
        assert message.document["type"] == "details.completed"
        about = {"id": batch_id, "session_id": entries[0].data["session_id"], "type": "skill"}
        assert message.document["data"] == about | entries[-1].data


async def test_a_webhook_that_nothing_signs_is_refused(tmp_path: Path) -> None:
    """At once, with what to set, and nothing is stored."""
    async with details_on("memory", tmp_path) as world:
        with pytest.raises(InvalidInputError, match=r"webhook needs a secret .* set \[webhooks\] secrets"):
            await world.details.submit({"type": "skill", "count": 3, "webhook": "https://example.org/hook"})
        assert await world.details.latest() == []


async def test_batches_are_listed_without_reading_their_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last entry of each feed is enough, and tells what the whole view tells."""
    async with details_on("memory", tmp_path) as world:
        ids = [(await world.make(count=count))[0] for count in (3, 14)]
        views = [await world.details.view(batch_id) for batch_id in reversed(ids)]
        read, limits = Feed.read, []

        async def watched(feed: Feed, after: int = 0, limit: int = 100) -> list[FeedEntry]:
            limits.append(limit)
            return await read(feed, after, limit)

        monkeypatch.setattr(Feed, "read", watched)
        listed = await world.details.latest()
        assert listed == [{name: value for name, value in view.items() if name != "items"} for view in views]
        assert limits == [LAST, LAST]


async def test_what_is_promised_is_configured(tmp_path: Path) -> None:
    """A longer deadline makes larger parts, and a request that says nothing has the first response of the settings."""
    terms = DetailSettings(timedelta(minutes=4), timedelta(minutes=4), first_response=3)
    async with details_on("memory", tmp_path, details=terms) as world:
        batch_id, entries = await world.make(count=20)
        assert entries[0].data["promised"]
        assert {entry.data["subtask_id"] for entry in entries if entry.type == "item"} == {
            f"{batch_id}:0", f"{batch_id}:1",
        }  # fmt: skip
        [first] = [entry.data for entry in entries if entry.type == "first_response"]
        assert first["items"] == 3


async def test_workers_start_warm_and_keep_their_lifespan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's client is open before the first batch; what cannot be opened is for the first call to say."""
    opened = []

    async def prepare(self: LLM) -> None:
        opened.append(self.model_name)
        raise ConfigError("as planned")

    monkeypatch.setattr(LLM, "prepare", prepare)

    @asynccontextmanager
    async def lifespan(app: App) -> AsyncIterator[str]:
        yield "its own"

    app = App("memory://", lifespan=lifespan)
    register(app)
    assert app.lifespan is not None
    async with app, app.lifespan(app) as resources:
        assert resources == "its own" and len(opened) == 1


async def test_the_same_key_is_the_same_batch(tmp_path: Path) -> None:
    """However much the plan of the second time would differ; another request of the key is refused."""
    async with details_on("memory", tmp_path) as world:
        request = {"type": "skill", "count": 4, "session_id": "s"}
        first, second = [await world.details.submit(request, key="k") for _ in range(2)]
        assert changed(first, existing=True) == second
        with pytest.raises(ConflictError):
            await world.details.submit({**request, "count": 5}, key="k")
        await world.entries(first.batch_id)
        with pytest.raises(InvalidInputError, match="priority"):
            await world.details.submit({**request, "priority": 11})


@pytest.mark.parametrize("store", ["memory", pytest.param("postgres", marks=pytest.mark.slow)])
async def test_the_mode_changes_under_load_and_no_request_is_lost(store: str, tmp_path: Path) -> None:
    """What was begun ends in the old way, what waits begins in the new one; and back."""
    async with details_on(store, tmp_path) as world:

        async def ask(count: int) -> list[str]:
            made = [await world.details.submit({"type": "skill", "count": 11}) for _ in range(count)]
            return [one.batch_id for one in made]

        before = await ask(3)
        change = asyncio.create_task(world.details.set_mode("single-call"))
        meanwhile = await ask(3)
        assert await change == "single-call" == await world.details.mode()
        after = await ask(2)
        for batch_id in [*before, *meanwhile, *after]:
            assert (await world.entries(batch_id))[-1].data["status"] == "completed"
        for batch_id in after:
            items = [entry.data for entry in await world.entries(batch_id) if entry.type == "item"]
            assert len({item["subtask_id"] for item in items}) == 1
        assert await world.details.set_mode("normal") == "normal" == await read_mode(world.app)
        [last] = await ask(1)
        assert (await world.entries(last))[-1].data["status"] == "completed"
        assert [entry.data["mode"] for entry in await world.app.feed("details.mode").read()] == [
            "single-call", "normal",
        ]  # fmt: skip


async def test_a_change_of_mode_that_was_cut_off_is_finished_by_the_next(tmp_path: Path) -> None:
    """A frozen intake keeps what it accepted, and opens when the change is finished."""
    async with details_on("memory", tmp_path) as world:
        await world.app.pause(INTAKE_QUEUE, reason="the mode of details changes to single-call; …")
        accepted = await world.details.submit({"type": "skill", "count": 3})
        assert (await world.details.view(accepted.batch_id))["status"] == "waiting"
        await world.details.set_mode("single-call")
        assert (await world.entries(accepted.batch_id))[-1].data["status"] == "completed"
        assert (await world.app.queue_state(SUBTASKS_QUEUE)).paused
        assert not (await world.app.queue_state(INTAKE_QUEUE)).paused
        with pytest.raises(InvalidInputError, match="mode must be one of normal, single-call"):
            await world.details.set_mode("turbo")
