"""Following batches and runs over HTTP: every entry once and in order, however often the client comes again."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from headrace import App, Backoff, chain, loop, map_, sub, when
from headrace.service.serving import Address, serve
from headrace.service.stream_shapes import BATCH, RUN
from tests.unit.event_reading import Event, Stream
from tests.unit.service_calls import code_of, served
from tests.waiting import wait_until


def shop() -> App:
    """Return an app with a task of which some calls fail, one of large results, and workflows."""
    app = App("memory://")

    @app.task(retry=Backoff.none())
    async def halve(number: int) -> int:
        if number % 5 == 4:
            raise ValueError(f"cannot halve {number}")
        return number // 2

    @app.task
    async def large(number: int) -> str:
        return "x" * number

    @app.task
    async def numbers(count: int) -> list[int]:
        return [5 * number for number in range(count)]

    app.workflow("halves", chain(numbers.s(), map_(halve)))

    @app.task
    async def add(number: int) -> int:
        return number + 1

    app.workflow("half", chain(halve.s()))
    app.workflow("rounds", chain(add.s(), loop(add.s(), again=when().lt(4), most=9), sub(chain(add.s(), add.s()))))
    return app


@asynccontextmanager
async def listening(app: App, *, worker: bool = True) -> AsyncIterator[tuple[str, asyncio.Event]]:
    """Serve an app on a socket; yield its URL and what stops it."""
    stopping, told = asyncio.Event(), list[str]()
    task = asyncio.create_task(
        serve(app, Address("127.0.0.1", 0), worker=worker, stopping=stopping, announce=told.append)
    )
    await wait_until(lambda: told or task.done())
    try:
        yield told[0], stopping
    finally:
        stopping.set()
        await asyncio.wait_for(task, 10)


async def follow(base: str, path: str, last: int | None = None) -> list[Event]:
    """Return the events of a stream up to its end."""
    stream = await Stream.open(base, path, last=last)
    assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    try:
        return await asyncio.wait_for(stream.events(), 20)
    finally:
        stream.close()


async def test_a_batch_is_followed_to_its_end() -> None:
    """Each item once, with its result or its error, then how it was closed; the numbers have no gap."""
    app = shop()
    async with listening(app) as (base, _):
        batch = await app.submit(app.find_task("halve"), range(20))
        events = await follow(base, f"/api/v1/batches/{batch.id}/events")
    assert [event.id for event in events] == list(range(1, 22))
    items = {event.data["index"]: event.data for event in events if event.type == "item"}
    assert sorted(items) == list(range(20))
    assert (items[6]["result"], items[6]["status"]) == (3, "succeeded")
    assert (items[4]["error"]["message"], items[4]["status"]) == ("cannot halve 4", "failed")
    closed = {"round": 1, "outcome": "partial", "total": 20, "succeeded": 16, "failed": 4, "cancelled": 0}
    assert (events[-1].type, events[-1].data) == ("closed", closed)
    for event in events:
        BATCH[event.type].model_validate(event.data)


async def test_a_client_that_is_cut_has_every_event_once() -> None:
    """It comes again with the last id it saw, after every third event, while the batch runs."""
    app = shop()
    async with listening(app) as (base, _):
        batch = await app.submit(app.find_task("halve"), range(150))
        path, seen = f"/api/v1/batches/{batch.id}/events", list[Event]()
        while not seen or seen[-1].type != "closed":
            stream = await Stream.open(base, path, last=seen[-1].id if seen else None)
            seen += await asyncio.wait_for(stream.events(3), 20)
            stream.close()
        again = await follow(base, path)
    assert [event.id for event in seen] == list(range(1, 152))
    assert seen == again


async def test_another_service_gives_the_same_numbers() -> None:
    """Two services, and one that comes later, let the same feed grow: nothing stands twice in it."""
    app, other = shop(), shop()
    async with app.worker(), listening(app, worker=False) as (base, _):
        batch = await app.submit(app.find_task("halve"), range(100))
        path = f"/api/v1/batches/{batch.id}/events"
        other._runtime, other._users = _twin(app), 1
        async with listening(other, worker=False) as (second, _):
            one, two = await asyncio.gather(follow(base, path), follow(second, path))
            assert one == two == await follow(second, path)
        other._users = 1
    assert Counter(event.data["job"] for event in one if event.type == "item").most_common(1)[0][1] == 1


def _twin(app: App) -> Any:
    """Return a runtime of its own over the store of another app."""
    from headrace.runtime import Runtime

    async def close() -> None:
        """Leave the store to the other app."""

    own = app.runtime
    return Runtime(
        own.settings,
        own.stores,
        llm=own.llm,
        means=own.means,
        close_others=close,
        limiter=own.limiter,
        caches=own.caches,
    )


async def test_results_that_are_too_large_are_left_out() -> None:
    """And said to be; the others stand there."""
    app = shop()
    async with listening(app) as (base, _):
        batch = await app.submit(app.find_task("large"), [10, 20_000])
        events = await follow(base, f"/api/v1/batches/{batch.id}/events")
    found = {event.data["index"]: event.data for event in events if event.type == "item"}
    assert (found[0]["result"], found[0].get("left_out")) == ("x" * 10, None)
    assert (found[1]["result"], found[1]["left_out"], found[1]["status"]) == (None, True, "succeeded")


async def test_a_batch_that_goes_on_is_followed_again() -> None:
    """Whoever has seen the end is told that nothing follows, until there is another round."""
    app = shop()
    async with listening(app) as (base, _):
        batch = await app.submit(app.find_task("halve"), [1, 4])
        path = f"/api/v1/batches/{batch.id}/events"
        events = await follow(base, path)
        done = await Stream.open(base, path, last=events[-1].id)
        assert done.status == 204
        done.close()
        assert await batch.retry_failed() == 1
        more = await follow(base, path, last=events[-1].id)
    assert [event.type for event in more] == ["round", "item", "closed"]
    assert (more[0].id, more[0].data, more[-1].data["round"]) == (events[-1].id + 1, {"round": 2}, 2)


async def test_the_pauses_of_a_batch_are_told() -> None:
    """Its pause with the reason, and its end; both once, also to whoever comes again to another service."""
    app = shop()
    async with app:
        batch = await app.submit(app.find_task("halve"), [1])
        await batch.pause("an incident")
        path = f"/api/v1/batches/{batch.id}/events"
        async with listening(app) as (base, _):
            stream = await Stream.open(base, path)
            told = await stream.events(1)
            stream.close()
        async with listening(app) as (base, _):
            await batch.resume()
            events = told + await follow(base, path, last=told[-1].id)
    assert [event.type for event in events] == ["paused", "resumed", "item", "closed"]
    assert events[0].data["reason"] == "an incident"
    for event in events:
        BATCH[event.type].model_validate(event.data)


async def test_a_run_is_followed_to_its_end() -> None:
    """Every node that ended, those of a map among them, and the end last."""
    app = shop()
    async with listening(app) as (base, _):
        run = await app.start("halves", 250)
        events = await follow(base, f"/api/v1/runs/{run.id}/events")
        tree = await run.tree()
    nodes = [event.data for event in events if event.type == "node" and event.data["state"] != "running"]
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    assert (events[-1].type, events[-1].data["state"]) == ("ended", "failed" if tree.run.error else "succeeded")
    entries = [node["path"] for node in nodes if "[" in node["path"]]
    assert len(entries) == len(set(entries)) == 250
    assert {node.path for node in tree.nodes} <= {node["path"] for node in nodes}
    for event in events:
        RUN[event.type].model_validate(event.data)


async def test_rounds_of_loops_and_graphs_within_are_followed() -> None:
    """Each node of each round, and those of a part that is one node, as the tree has them at the end."""
    app = shop()
    async with listening(app) as (base, _):
        run = await app.start("rounds", 0)
        events = await follow(base, f"/api/v1/runs/{run.id}/events")
        todo = list((await run.tree()).nodes)
    for node in todo:  # which grows
        todo += node.children
    told = [event.data["path"] for event in events if event.type == "node" and event.data["state"] != "running"]
    assert len(todo) > 6
    assert sorted(told) == sorted(node.path for node in todo if node.finished_at is not None)


async def test_a_run_that_fails_says_why() -> None:
    """At its node, and at its end."""
    app = shop()
    async with listening(app) as (base, _):
        run = await app.start("half", 4)
        events = await follow(base, f"/api/v1/runs/{run.id}/events")
    failed = next(event.data for event in events if event.type == "node" and event.data["state"] == "failed")
    assert failed["error"]["message"] == "cannot halve 4"
    assert (events[-1].data["state"], events[-1].type) == ("failed", "ended")
    assert events[-1].data["error"]["message"]


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("/batches/{batch}/events", {"last-event-id": "x"}, 400, "invalid_request"),
        ("/batches/{batch}/events", {"last-event-id": "-1"}, 400, "invalid_request"),
        ("/batches/{batch}/events?after=9999999999999999", {}, 400, "invalid_request"),
        ("/batches/{batch}/events?after=7", {}, 410, "entries_gone"),
        ("/batches/{batch}/events", {"sec-fetch-site": "cross-site"}, 403, "forbidden_origin"),
        ("/runs/{run}/events", {"sec-fetch-site": "same-site"}, 403, "forbidden_origin"),
        ("/batches/01980000-0000-7000-8000-000000000000/events", {}, 404, "not_found"),
        ("/runs/01980000-0000-7000-8000-000000000000/events", {}, 404, "not_found"),
        ("/batches/nothing/events", {}, 422, "invalid_input"),
    ],
)
async def test_what_cannot_be_followed_is_told(path: str, headers: dict[str, str], status: int, code: str) -> None:
    """As a problem, before a stream begins."""
    app = shop()
    async with served(app) as client:
        batch = await app.submit(app.find_task("halve"), [1])
        run = await app.start("half", 2)
        answer = await client.get(f"/api/v1{path.format(batch=batch.id, run=run.id)}", headers=headers)
        assert (answer.status_code, code_of(answer)) == (status, code)


async def test_stopping_ends_the_streams_at_once() -> None:
    """With a whole end of the answer, though the batch goes on; so does leaving a block that follows."""
    app = shop()
    async with listening(app, worker=False) as (base, stopping):
        batch = await app.submit(app.find_task("halve"), [1])
        stream = await Stream.open(base, f"/api/v1/batches/{batch.id}/events")
        await stream.chunk()
        stopping.set()
        assert await asyncio.wait_for(stream.events(), 5) == []
        stream.close()


async def test_there_is_a_bound_for_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is told to come again; one that ends makes room, also when its client just goes away."""
    monkeypatch.setenv("HEADRACE_SERVICE_MOST_STREAMS", "2")
    app = shop()
    async with listening(app, worker=False) as (base, _), httpx2.AsyncClient(base_url=base) as client:
        batch = await app.submit(app.find_task("halve"), [1])
        path = f"/api/v1/batches/{batch.id}/events"
        streams = [await Stream.open(base, path) for _ in range(2)]
        refused = await client.get(path)
        assert (refused.status_code, code_of(refused), refused.headers["retry-after"]) == (503, "too_many_streams", "1")
        assert (await client.get("/healthz")).status_code == 200
        streams[0].close()

        async def let_in() -> bool:
            streams.append(await Stream.open(base, path))
            return streams[-1].status == 200

        await wait_until(let_in)
        assert app.runtime.growing._followers == {f"batch:{batch.id}": 2}
        for stream in streams:
            stream.close()
        await wait_until(lambda: not app.runtime.growing._followers and not app.runtime.feeds._tails)


async def test_silence_is_broken_by_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that proxies keep the connection, and clients notice when it is gone."""
    monkeypatch.setattr("headrace.service.sse.PING_SECONDS", 0.02)
    app = shop()
    async with listening(app, worker=False) as (base, _):
        batch = await app.submit(app.find_task("halve"), [1])
        stream = await Stream.open(base, f"/api/v1/batches/{batch.id}/events")
        assert [await stream.chunk() for _ in range(3)] == [b"retry: 1000\n\n", b": ping\n\n", b": ping\n\n"]
        stream.close()


async def test_a_client_that_does_not_read_is_cut(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What it leaves unread is bounded, and so is the time."""
    monkeypatch.setattr("headrace.service.sse.SLOW_SECONDS", 0.2)
    app = shop()
    async with listening(app, worker=False) as (base, _):
        run = await app.start("half", 4)
        for number in range(200):
            await app.feed(f"run:{run.id}").append("node", {"text": f"{number}" + "x" * 60_000})
        port = int(base.rpartition(":")[2])
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.connect(("127.0.0.1", port))
            client.sendall(f"GET /api/v1/runs/{run.id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            await wait_until(lambda: app.runtime.growing._followers)
            await wait_until(lambda: not app.runtime.growing._followers)
            client.setblocking(False)
            received = b""
            while part := await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1 << 20), 5):
                received += part
    assert 60_000 < len(received) < 200 * 60_000
    assert not received.endswith(b"0\r\n\r\n")
    assert not [record for record in caplog.records if record.name.startswith("uvicorn")]
