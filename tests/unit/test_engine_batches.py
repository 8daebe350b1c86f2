"""Submitting batches: lists, generators, keys, conflicts, extensions, and answers that were lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from headrace import App, Batch
from headrace.engine import retrying
from headrace.engine.closing import SETTLE_LIMIT
from headrace.model.batch import MAX_ATOMIC_ITEMS, SLICE_BYTES, SLICE_ITEMS, BatchOutcome, BatchState, Slice
from headrace.model.errors import ConflictError, InvalidInputError, NotFoundError, StoreUnavailableError
from headrace.model.ids import uuid7
from tests.unit.engine_app import quick_app
from tests.waiting import wait_until


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """Return an open app with two tasks and no worker."""
    app = quick_app()

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    @app.task
    async def add(left: int, right: int = 10) -> int:
        return left + right

    async with app:
        yield app


async def results(batch: Batch) -> dict[int, Any]:
    """Return every result of a batch by index, once it is closed."""
    return {item.index: item.result async for item in batch.results()}


async def numbers(count: int, *, first: int = 0) -> AsyncIterator[int]:
    """Yield numbers as a slow source does."""
    for number in range(first, first + count):
        if number % 100 == 0:
            await asyncio.sleep(0)
        yield number


async def test_a_paused_batch_waits_and_goes_on(app: App) -> None:
    """Appended items and the failed ones of a closed batch wait as well; what is resumed runs to the end."""
    batch = await app.submit(app.find_task("double"), [1, 2])
    async with app.worker():
        await batch.wait(10)
        with pytest.raises(ConflictError, match="closed"):
            await batch.pause()
        with pytest.raises(InvalidInputError, match="reason"):
            await batch.pause("two\nlines")
    await batch.extend([3, 4], key="more")
    await batch.pause("an incident")
    other = await app.submit(app.find_task("double"), [9])
    async with app.worker():
        await other.wait(10)
        assert (await batch.progress()).waiting == 2
        assert (await batch.view()).paused_reason == "an incident"
        await batch.resume()
        assert await results(batch) == {0: 2, 1: 4, 2: 6, 3: 8}


async def test_many_items_are_held_and_let_go_in_slices(app: App) -> None:
    """More than one slice of each, and none is forgotten."""
    batch = await app.submit(app.find_task("double"), range(2 * SETTLE_LIMIT + 1))
    await batch.pause()
    other = await app.submit(app.find_task("double"), [9])
    async with app.worker():
        await other.wait(10)
        assert (await batch.progress()).waiting == 2 * SETTLE_LIMIT + 1
    await batch.resume()
    [queue] = [queue for queue in await app.runtime.stores.inspect.queue_stats() if queue.parked or queue.ready]
    assert (queue.ready, queue.parked) == (2 * SETTLE_LIMIT + 1, 0)


async def test_a_list_is_one_transaction(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list is stored, sealed and dispatched by a single call of the store, and its results keep their index."""
    calls: list[str] = []
    store = app.runtime.stores.batches
    for name in ("create_batch", "append_slice", "seal_batch"):
        verb = getattr(store, name)

        async def counted(*args: Any, verb: Any = verb, name: str = name, **kwargs: Any) -> Any:
            calls.append(name)
            return await verb(*args, **kwargs)

        monkeypatch.setattr(store, name, counted)
    batch = await app.submit(app.find_task("double"), [5, 6, 7])
    assert calls == ["create_batch"]
    view = await batch.view()
    assert (view.state, view.total, view.round) == (BatchState.SEALED, 3, 1)
    async with app.worker():
        assert await results(batch) == {0: 10, 1: 12, 2: 14}
        assert (await batch.wait(10)).outcome is BatchOutcome.SUCCEEDED


async def test_an_empty_list_is_a_batch_that_is_done(app: App) -> None:
    """No items: the batch is closed as succeeded at once, complete, without results, and nothing divides by zero."""
    batch = await app.submit(app.find_task("double"), [])
    progress = await batch.progress()
    assert (progress.total, progress.done, progress.percent) == (0, 0, 100)
    assert (await batch.wait(10)).outcome is BatchOutcome.SUCCEEDED
    assert await results(batch) == {}


@pytest.mark.parametrize("kind", ["generator", "async generator", "iterator"])
async def test_a_stream_is_sent_in_slices(app: App, kind: str) -> None:
    """Generators of both kinds become slices of a batch that is sealed at their end."""
    count = 2 * SLICE_ITEMS + 7
    sources: dict[str, Any] = {
        "generator": (number for number in range(count)),
        "async generator": numbers(count),
        "iterator": iter(range(count)),
    }
    batch = await app.submit(app.find_task("double"), sources[kind])
    assert ((await batch.view()).state, (await batch.progress()).total) == (BatchState.SEALED, count)
    arguments = await batch.arguments()
    assert [arguments[index] for index in range(count)] == list(range(count))


@pytest.mark.parametrize("letter", ["x", "\N{FISH}"])
async def test_a_slice_of_large_items_is_a_short_one(app: App, monkeypatch: pytest.MonkeyPatch, letter: str) -> None:
    """No slice has more than 16 MiB and one item: servers do nothing else while they take it."""
    store, sizes = app.runtime.stores.batches, list[int]()
    append = store.append_slice

    async def note(part: Slice) -> bool:
        sizes.append(len(part.args))
        return await append(part)

    monkeypatch.setattr(store, "append_slice", note)
    large = letter * (SLICE_BYTES // 100 // len(letter.encode()))
    batch = await app.submit(app.find_task("double"), (large for _ in range(150)))
    assert ((await batch.progress()).total, sizes) == (150, [100, 50])


async def test_an_empty_stream_is_done(app: App) -> None:
    """A generator that yields nothing gives a closed, empty batch."""
    batch = await app.submit(app.find_task("double"), iter([]))
    assert (await batch.wait(10)).outcome is BatchOutcome.SUCCEEDED


async def test_a_long_list_is_streamed(app: App) -> None:
    """10,001 items are more than one transaction: they arrive in slices, in order, each once."""
    batch = await app.submit(app.find_task("double"), list(range(MAX_ATOMIC_ITEMS + 1)))
    progress = await batch.progress()
    assert (progress.total, progress.waiting) == (10_001, 10_001)
    assert (await batch.arguments())[10_000] == 10_000


async def test_a_stream_is_pulled_no_faster_than_the_store_takes_it(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator is held one slice at a time: its items are made while earlier ones are already stored."""
    store = app.runtime.stores.batches
    made, ahead = 0, []

    def source() -> Iterator[int]:
        nonlocal made
        for number in range(5 * SLICE_ITEMS):
            made += 1
            yield number

    async def note(part: Slice) -> bool:
        ahead.append(made - part.first)
        return True

    async def sealed(batch_id: Any, *, total: int, key: str | None = None) -> None:
        ahead.append(total)

    monkeypatch.setattr(store, "append_slice", note)
    monkeypatch.setattr(store, "seal_batch", sealed)
    await app.submit(app.find_task("double"), source())
    assert ahead == [SLICE_ITEMS] * 5 + [5 * SLICE_ITEMS]


async def test_spread_items_are_keyword_arguments(app: App) -> None:
    """With `spread=True` each item is a mapping of keyword arguments; defaults apply, wrong names are refused."""
    add = app.find_task("add")
    batch = await app.submit(add, [{"left": 1, "right": 2}, {"left": 3}], spread=True)
    assert await batch.arguments() == {0: {"left": 1, "right": 2}, 1: {"left": 3}}
    async with app.worker():
        assert await results(batch) == {0: 3, 1: 13}
    for wrong in ([{"left": 1, "up": 2}], [7]):
        with pytest.raises(InvalidInputError):
            await app.submit(add, wrong, spread=True)


@pytest.mark.parametrize("items", ["text", b"raw", {"a": 1}, 7, None], ids=repr)
async def test_what_is_no_collection_of_items_is_refused(app: App, items: Any) -> None:
    """A text, bytes, a mapping or a single value is no list of items, and the error says what to pass."""
    with pytest.raises(InvalidInputError, match=r"^items"):
        await app.submit(app.find_task("double"), items)


async def test_a_wrong_item_is_named_by_its_position_and_nothing_is_stored(app: App) -> None:
    """One item that cannot be stored refuses the whole list, and says which one it is."""
    with pytest.raises(InvalidInputError, match=r"item 2 .*JSON"):
        await app.submit(app.find_task("double"), [0, 1, object(), 3])
    assert await app.runtime.stores.inspect.list_batches() == []


async def test_an_item_must_fit_the_task(app: App) -> None:
    """A task that takes no single argument is refused before anything is stored."""
    none = app.task(name="none")(lambda: None)
    with pytest.raises(InvalidInputError, match="do not fit"):
        await app.submit(none, [1])
    assert await app.runtime.stores.inspect.list_batches() == []


async def test_the_same_key_and_items_are_the_same_batch(app: App) -> None:
    """Submitting again, also at the same moment or after the end, gives the batch there is."""
    double = app.find_task("double")
    batches = await asyncio.gather(*(app.submit(double, [1, 2], key="k") for _ in range(5)))
    assert len({batch.id for batch in batches}) == 1
    async with app.worker():
        await batches[0].wait(10)
    again = await app.submit(double, [1, 2], key="k")
    assert (again.id, await results(again)) == (batches[0].id, {0: 2, 1: 4})
    found = await app.find_batch(double, "k")
    assert found is not None
    assert found.id == again.id
    assert await app.find_batch(double, "other") is None


@pytest.mark.parametrize(
    ("items", "options"),
    [([1, 3], {}), ([1], {}), ([2, 1], {}), ([1, 2], {"priority": "high"}), ([1, 2], {"max_attempts": 9})],
)
async def test_the_same_key_with_another_body_is_a_conflict(
    app: App, items: list[int], options: dict[str, Any]
) -> None:
    """Other items, another order or other options under a known key are refused, and change nothing."""
    double = app.find_task("double")
    batch = await app.submit(double, [1, 2], key="k")
    with pytest.raises(ConflictError):
        await app.submit(double, items, key="k", **options)  # type: ignore[arg-type]
    assert await batch.arguments() == {0: 1, 1: 2}


async def test_a_key_belongs_to_its_task(app: App) -> None:
    """Two tasks may use one key, and a key of a batch is not one of a job."""
    batch = await app.submit(app.find_task("double"), [1], key="k")
    other = await app.submit(app.find_task("add"), [1], key="k")
    await app.find_task("double").options(key="k").enqueue(5)
    assert batch.id != other.id


async def test_a_cut_stream_is_continued_by_the_next_submitter(app: App) -> None:
    """A generator that dies leaves an open batch; the same key and items again complete it, each item once."""
    double = app.find_task("double")

    def cut() -> Iterator[int]:
        yield from range(2 * SLICE_ITEMS + 100)
        raise OSError("source lost")

    with pytest.raises(OSError, match="source lost"):
        await app.submit(double, cut(), key="k")
    view = await app.find_batch(double, "k")
    assert view is not None
    assert (await view.view()).state is BatchState.OPEN
    batch = await app.submit(double, iter(range(3 * SLICE_ITEMS)), key="k")
    assert batch.id == view.id
    assert list((await batch.arguments()).values()) == list(range(3 * SLICE_ITEMS))
    assert (await batch.view()).state is BatchState.SEALED


async def test_items_of_an_open_batch_run_already(app: App) -> None:
    """What a stream has stored runs while the stream goes on, and the batch closes only after it is sealed."""
    gate = asyncio.Event()

    async def slow() -> AsyncIterator[int]:
        for number in range(SLICE_ITEMS):
            yield number
        await gate.wait()
        yield SLICE_ITEMS

    async with app.worker(concurrency=500):
        submitting = asyncio.ensure_future(app.submit(app.find_task("double"), slow(), key="k"))

        async def ran() -> bool:
            batch = await app.find_batch(app.find_task("double"), "k")
            return batch is not None and (await batch.progress()).succeeded == SLICE_ITEMS

        await wait_until(ran)
        batch = await app.find_batch(app.find_task("double"), "k")
        assert batch is not None
        assert (await batch.view()).state is BatchState.OPEN
        gate.set()
        batch = await submitting
        assert (await batch.wait(10)).outcome is BatchOutcome.SUCCEEDED
        assert len(await results(batch)) == SLICE_ITEMS + 1


async def test_another_stream_under_a_known_key_is_a_conflict(app: App) -> None:
    """A stream whose items differ, or end earlier, is refused; what was stored stays as it is."""
    double = app.find_task("double")
    batch = await app.submit(double, iter(range(2_500)), key="k")
    for other in (iter(range(1, 2_501)), iter(range(2_499)), iter(range(1_000)), iter(range(3_000))):
        with pytest.raises(ConflictError):
            await app.submit(double, other, key="k")
    progress = await batch.progress()
    assert (progress.total, progress.waiting) == (2_500, 2_500)


async def test_a_lost_answer_makes_no_second_batch(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every verb of a submit may lose its answer after its commit: the batch is the same, its items are there once."""
    monkeypatch.setattr(retrying, "RETRY_DELAYS", (0.0, 0.0))
    store = app.runtime.stores.batches
    for name in ("create_batch", "append_slice", "seal_batch", "close_batches"):
        verb, lost = getattr(store, name), []

        async def cut(*args: Any, verb: Any = verb, lost: list[int] = lost, **kwargs: Any) -> Any:
            answer = await verb(*args, **kwargs)
            if len(lost) < 2:
                lost.append(1)
                raise StoreUnavailableError("connection lost after the commit")
            return answer

        monkeypatch.setattr(store, name, cut)
    double = app.find_task("double")
    listed, streamed = await app.submit(double, [1, 2]), await app.submit(double, iter([1, 2]))
    for batch in (listed, streamed):
        assert await batch.arguments() == {0: 1, 1: 2}
    assert len(await app.runtime.stores.inspect.list_batches()) == 2


async def test_a_batch_may_be_extended(app: App) -> None:
    """More items are a new round under a key of its own; the same key again changes nothing, other items conflict."""
    batch = await app.submit(app.find_task("double"), [1, 2])
    async with app.worker():
        await batch.wait(10)
        await batch.extend([3, 4], key="round-2")
        assert (await batch.wait(10)).round == 2
        assert await results(batch) == {0: 2, 1: 4, 2: 6, 3: 8}
        await batch.extend([3, 4], key="round-2")
        assert (await batch.view()).round == 2
        with pytest.raises(ConflictError):
            await batch.extend([3, 5], key="round-2")
        await batch.extend(numbers(3, first=5), key="round-3")
        assert (await batch.wait(10)).total == 7


async def test_an_extension_needs_a_task_and_a_key(app: App) -> None:
    """Extending asks for a printable key, and for the task to be registered here."""
    batch = await app.submit(app.find_task("double"), [1])
    with pytest.raises(InvalidInputError, match=r"^key"):
        await batch.extend([2], key="")
    other = quick_app()
    async with other:
        other.runtime.stores = app.runtime.stores
        with pytest.raises(NotFoundError, match="double"):
            await other.batch(batch.id).extend([2], key="k")


async def test_a_batch_that_does_not_exist_is_not_found(app: App) -> None:
    """Every question to an unknown batch raises NotFoundError."""
    ghost = app.batch(uuid7())
    for ask in (ghost.view, ghost.progress, ghost.wait, ghost.retry_failed, ghost.cancel, ghost.arguments):
        with pytest.raises(NotFoundError):
            await ask()
    with pytest.raises(NotFoundError):
        await results(ghost)


async def test_options_reach_every_item(app: App) -> None:
    """Priority, queue, attempts and time of a submit are those of its jobs."""
    batch = await app.submit(
        app.find_task("double"), [1, 2], priority="bulk", queue="slow", max_attempts=7, run_at="1h"
    )  # fmt: skip
    jobs = await app.runtime.stores.inspect.list_jobs(batch_id=batch.id)
    assert [(job.priority, job.queue, job.max_attempts, job.state.value) for job in jobs] == [
        (9, "slow", 7, "scheduled")
    ] * 2
