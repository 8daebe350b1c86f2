"""What pages show of a batch: `/batches/ID/states`, `/faults`, and its results as files."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest

from headrace import App, Backoff, Batch
from headrace.model.batch import BatchItem, ItemPage
from headrace.model.job import JobState
from headrace.service import batch_reads
from headrace.service.batch_files import CSV, JSON_LINES, LEAST_ITEMS, FileType, parts_of
from headrace.stores.memory import open_memory_stores
from tests.unit.service_calls import code_of, served
from tests.unit.test_service_following import listening

API = "/api/v1/batches"
#: What is sent to whoever opens the file with a program that calculates.
FORMULAS = ("=1+1", "+1", "-1+1", "@SUM(A1)", "\tx", "\rx")


def failing_app() -> App:
    """Return an app whose task gives back what it is given, and fails with texts that begin so."""
    app = App("memory://")

    @app.task(retry=Backoff.none())
    async def echo(value: Any) -> Any:
        if isinstance(value, str) and value.startswith("fail:"):
            raise ValueError(value.removeprefix("fail:"))
        return value

    return app


@pytest.fixture
async def client() -> AsyncIterator[tuple[App, httpx2.AsyncClient]]:
    """An app at work, and its service."""
    app = failing_app()
    async with served(app) as opened:
        yield app, opened


async def closed(app: App, values: Sequence[Any]) -> Batch[Any]:
    """Submit a batch and wait for its end."""
    batch = await app.submit(app.find_task("echo"), values)
    await batch.wait("20s")
    return batch


async def test_states_are_letters(client: tuple[App, httpx2.AsyncClient]) -> None:
    """All items, or those of a part, each by its letter."""
    app, http = client
    batch = await closed(app, [1, "fail:x", 3])
    answer = await http.get(f"{API}/{batch.id}/states")
    assert answer.json() == {"first": 0, "states": "ofo", "end": 3}
    answer = await http.get(f"{API}/{batch.id}/states?first=1&limit=1")
    assert answer.json() == {"first": 1, "states": "f", "end": 3}


@pytest.mark.parametrize("what", ["states", "faults", "results.csv", "results.jsonl"])
async def test_a_batch_that_is_not_there_is_told(client: tuple[App, httpx2.AsyncClient], what: str) -> None:
    """Also of files: before they begin."""
    assert code_of(await client[1].get(f"{API}/{uuid4()}/{what}")) == "not_found"
    answer = await client[1].get(f"{API}/7/{what}")
    assert (answer.status_code, code_of(answer)) == (422, "invalid_input")


@pytest.mark.parametrize(
    "query",
    ["states?first=-1", "states?limit=0", "states?limit=10001", "states?from=1", "faults?limit=201", "faults?x=1"],
)
async def test_what_cannot_be_asked_is_refused(client: tuple[App, httpx2.AsyncClient], query: str) -> None:
    """By name, and names that mean nothing, too."""
    answer = await client[1].get(f"{API}/{uuid4()}/{query}")
    assert answer.status_code == 422
    name = query.partition("?")[2].partition("=")[0]
    assert answer.json()["detail"].startswith(name)


async def test_faults_are_groups_of_one_fingerprint(client: tuple[App, httpx2.AsyncClient]) -> None:
    """The largest first, with the newest message and three jobs at most; a retried item that succeeds is none."""
    app, http = client
    batch = await closed(app, [*(f"fail:page {number} is empty" for number in range(5)), "fail:no licence", 1])
    answer = await http.get(f"{API}/{batch.id}/faults")
    document = answer.json()
    assert (document["batch"], document["looked_at"], document["sampled"]) == (str(batch.id), 6, False)
    first, second = document["faults"]
    assert (first["count"], first["kind"], len(first["examples"])) == (5, "ValueError", 3)
    assert (second["count"], second["message"], len(second["examples"])) == (1, "no licence", 1)
    view = await app.runtime.stores.inspect.get_job(UUID(first["examples"][0]))
    assert view is not None and view.error is not None and view.error.message == first["message"]

    answer = await http.get(f"{API}/{batch.id}/faults?limit=1")
    assert (answer.json()["faults"], answer.json()["left_out"]) == ([first], 1)
    other = await closed(app, [1])
    assert (await http.get(f"{API}/{other.id}/faults")).json()["faults"] == []


async def test_results_are_downloaded_as_csv(client: tuple[App, httpx2.AsyncClient]) -> None:
    """A line per item; results are JSON, errors have their class and message."""
    app, http = client
    values = [1, -2.5, None, True, "ü", {"a": [1]}, 'say "x", y', "two\nlines", "fail:no"]
    batch = await closed(app, values)
    answer = await http.get(f"{API}/{batch.id}/results.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == f'attachment; filename="batch-{batch.id}.csv"'
    assert answer.headers["x-content-type-options"] == "nosniff"
    rows = {int(row["index"]): row for row in csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig")))}
    assert [json.loads(rows[index]["result"]) for index in range(8)] == values[:8]
    assert {rows[index]["status"] for index in range(8)} == {"succeeded"}
    assert (rows[8]["status"], rows[8]["result"]) == ("failed", "")
    assert (rows[8]["error_kind"], rows[8]["error_message"]) == ("ValueError", "no")
    assert len(rows) == len(values)


async def test_no_cell_is_a_formula(client: tuple[App, httpx2.AsyncClient]) -> None:
    """Whatever text comes first in a cell, no program that opens the file calculates it; numbers stay numbers."""
    app, http = client
    batch = await closed(app, [*FORMULAS, *(f"fail:{text}" for text in FORMULAS), -7])
    text = (await http.get(f"{API}/{batch.id}/results.csv")).content.decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    messages = {row["error_message"] for row in rows if row["status"] == "failed"}
    assert messages == {f"'{text}" for text in FORMULAS}
    cells = [cell for row in rows for cell in row.values() if cell != "-7"]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert [row["result"] for row in rows if row["index"] == "12"] == ["-7"]


async def test_results_are_downloaded_as_json_lines(client: tuple[App, httpx2.AsyncClient]) -> None:
    """The lines are items as the results have them; of an item that was run again only what came of that."""
    app, http = client
    batch = await closed(app, [1, "fail:no", "fail:never"])
    [first, *_] = [item async for item in batch.results() if item.status is JobState.FAILED]
    await batch.retry_failed()
    await batch.wait("20s")
    answer = await http.get(f"{API}/{batch.id}/results.jsonl")
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["content-disposition"] == f'attachment; filename="batch-{batch.id}.jsonl"'
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert sorted(line["index"] for line in lines) == [0, 1, 2]
    assert str(first.job_id) not in {line["job"] for line in lines}
    assert [line["result"] for line in lines if line["index"] == 0] == [1]


async def test_a_batch_of_which_nothing_has_ended_is_an_empty_file() -> None:
    """The columns are there, and nothing else."""
    app = failing_app()
    async with served(app, worker=False) as http:
        batch = await app.submit(app.find_task("echo"), [1, 2])
        assert (await http.get(f"{API}/{batch.id}/states")).json()["states"] == "ww"
        assert (await http.get(f"{API}/{batch.id}/results.jsonl")).text == ""
        text = (await http.get(f"{API}/{batch.id}/results.csv")).content.decode("utf-8-sig")
        assert text == '"index","status","result","error_kind","error_message","cost","job"\r\n'


class Endless:
    """Reads of a batch whose items hardly end; counts how many were read."""

    def __init__(self, size: int, most: int = 1_000_000) -> None:
        self.read, self.largest, self.most, self._result = 0, 0, most, "x" * size

    async def read_items(self, batch_id: UUID, *, cursor: str, limit: int) -> ItemPage:
        """Return as many as are asked for, without waiting for anything."""
        ids = range(self.read, min(self.read + limit, self.most))
        self.read, self.largest = self.read + limit, max(self.largest, limit)
        return ItemPage(tuple(BatchItem(index, JobState.SUCCEEDED, batch_id, self._result) for index in ids), "next")


@pytest.mark.parametrize(("size", "largest"), [(40 << 10, LEAST_ITEMS), (1, 1_024)])
@pytest.mark.parametrize("kind", [CSV, JSON_LINES])
async def test_a_file_is_read_as_it_is_sent(kind: Any, size: int, largest: int) -> None:
    """Nothing is read ahead of what was taken, and a part has few items where each is large."""
    inspect = Endless(size)
    parts = parts_of(inspect, uuid4(), kind)  # type: ignore[arg-type]
    await anext(parts)
    assert inspect.read == 0
    await anext(parts)
    assert inspect.read == LEAST_ITEMS
    for _ in range(10):
        await anext(parts)
    await parts.aclose()
    assert inspect.largest == largest


async def test_a_client_that_leaves_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read for whoever has gone away, also where reading waits for nothing."""
    app, inspect, ended = failing_app(), Endless(1_000, most=100_000), asyncio.Event()

    async def watched(_: Any, batch_id: UUID, kind: FileType) -> AsyncGenerator[bytes, None]:
        try:
            async for part in parts_of(inspect, batch_id, kind):  # type: ignore[arg-type]
                yield part
        finally:
            ended.set()

    monkeypatch.setattr(batch_reads, "parts_of", watched)
    async with listening(app, worker=False) as (base, _):
        batch = await app.submit(app.find_task("echo"), [1])
        reader, writer = await asyncio.open_connection(*base.removeprefix("http://").split(":"))
        writer.write(f"GET {API}/{batch.id}/results.csv HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        writer.close()
        async with asyncio.timeout(20):
            await ended.wait()
        assert inspect.read < inspect.most


async def test_a_half_of_a_sign_does_not_end_a_file() -> None:
    """What no file can hold stays as JSON has it."""
    stores = open_memory_stores()
    item = BatchItem(0, JobState.SUCCEEDED, uuid4(), "\ud800")

    async def read_items(*_: Any, **__: Any) -> ItemPage:
        return ItemPage((item,), "1")

    stores.inspect.read_items = read_items  # type: ignore[method-assign]
    written = b"".join([part async for part in parts_of(stores.inspect, uuid4(), CSV)]).decode("utf-8-sig")
    [row] = csv.DictReader(io.StringIO(written))
    assert json.loads(row["result"]) == item.result
