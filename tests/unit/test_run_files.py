"""Files of runs: bytes are handed on by a mark, survive reruns, and no mark reads what is not the run's own."""

from __future__ import annotations

import hashlib
from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headrace import App, Run, chain
from headrace.blobs.memory import MemoryBlobs
from headrace.engine.values import Values
from headrace.model.errors import (
    BlobStoreError,
    ConfigError,
    InvalidInputError,
    PayloadTooLargeError,
    RunFailedError,
)
from headrace.model.graph.nodes import RetryRule
from headrace.model.ids import uuid7
from headrace.model.reference import FileMark, file_value, files_in, json_text, parse_file
from tests.unit.engine_app import quick_app

LEVELS = ["node_level", "workflow_level"]
DATA = bytes(range(256)) * 400
DIGEST = hashlib.sha256(DATA).hexdigest()
MARK = {"$file": {"bytes": len(DATA), "sha256": DIGEST}}
ONCE = RetryRule("fixed", max_tries=1)
STORE = "5f0c"


async def store_id() -> str:
    """Return the id of a store."""
    return STORE


class Site:
    """An app of two tasks: one writes a file, one reads it back as often as it is told to fail first."""

    def __init__(self, level: str, *, padding: int = 0) -> None:
        self.app = app = quick_app()
        self.calls = calls = Counter[str]()
        self.failures = 0

        @app.task
        async def write(value: Any = None) -> dict[str, Any]:
            calls["write"] += 1
            mark = await app.files.put(DATA)
            return {"binary": {"data": {**mark, "fileName": "a.bin"}}, "padding": "x" * padding}

        @app.task
        async def size(value: dict[str, Any]) -> int:
            calls["size"] += 1
            if self.failures:
                self.failures -= 1
                raise ValueError("not yet")
            return len(await app.files.get(value["binary"]["data"]))

        canvas = chain(write.s(), size.s().options(retry=ONCE))
        app.workflow("flow", canvas, tags=(f"schedule:{level}",))

    async def keys(self) -> set[str]:
        """Return what lies in the blob storage, without the store's id."""
        blobs = self.app.runtime.means.values.blobs
        assert blobs is not None
        return {key.partition("/")[2] async for key, _ in blobs.list_blobs("")}

    async def remove(self, run: Run) -> None:
        """Let the run that ended first leave with its blobs, as pruner and sweeper do."""
        blobs = self.app.runtime.means.values.blobs
        assert blobs is not None
        runs = self.app.runtime.stores.runs
        assert await runs.prune_runs(older_than=timedelta(0), limit=1) == 1
        assert not await runs.known_runs([run.id])
        for key in [key async for key, _ in blobs.list_blobs("") if str(run.id) in key]:
            await blobs.delete_blob(key)


@pytest.mark.parametrize("level", LEVELS)
async def test_a_file_goes_from_task_to_task_as_a_mark(level: str) -> None:
    """The next task reads the bytes; what travels is their length and SHA-256, and they lie in the run's folder."""
    site = Site(level)
    async with site.app.worker():
        run = await site.app.start("flow")
        assert await run.result("10s") == len(DATA)
        assert await site.keys() == {f"runs/{run.id}/{DIGEST}"}
        [ending] = await site.app.runtime.stores.runs.read_nodes(run.id, ["write"])
        assert ending.output is not None
        assert files_in(ending.output) == {FileMark(len(DATA), DIGEST)}
        assert await site.app.files.get(MARK, run=run.id) == await site.app.files.get(MARK, run=str(run.id)) == DATA


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("padding", [0, 100_000])
async def test_a_rerun_has_copies_of_the_files_it_reuses(level: str, padding: int) -> None:
    """A node keeps its output in a rerun; the file can be read when the first run is gone, and from a third run too."""
    site = Site(level, padding=padding)
    site.failures = 2
    async with site.app.worker():
        first = await site.app.start("flow")
        with pytest.raises(RunFailedError, match="not yet"):
            await first.result("10s")
        second = await first.rerun()
        with pytest.raises(RunFailedError, match="not yet"):
            await second.result("10s")
        await site.remove(first)
        third = await second.rerun()
        assert await third.result("10s") == len(DATA)
        await site.remove(second)
        assert await site.app.files.get(MARK, run=third.id) == DATA
    assert site.calls == {"write": 1, "size": 3}


async def test_a_mark_of_another_run_stands_for_nothing() -> None:
    """A mark that came from elsewhere, as a part of a run's input, reads no file but the run's own."""
    site = Site(LEVELS[0])
    app = site.app

    @app.task
    async def read(value: dict[str, Any]) -> int:
        return len(await app.files.get(value))

    app.workflow("thief", read.s().options(retry=ONCE), tags=("schedule:node_level",))
    async with app.worker():
        first = await app.start("flow")
        await first.result("10s")
        thief = await app.start("thief", MARK)
        with pytest.raises(RunFailedError, match=rf"the blob .*{thief.id}/{DIGEST} is missing"):
            await thief.result("10s")
        again = await thief.rerun()
        with pytest.raises(RunFailedError, match="is missing"):
            await again.result("10s")


@pytest.mark.parametrize(
    "value",
    [
        None, [], "x", {}, {"$file": 1}, {"$file": {}}, {"bytes": 3, "sha256": DIGEST},
        {"$file": MARK["$file"] | {"key": "other/runs/a"}}, {"$file": MARK["$file"] | {"bytes": -1}},
        {"$file": MARK["$file"] | {"bytes": True}}, {"$file": MARK["$file"] | {"sha256": f"../{DIGEST[3:]}"}},
        {"$file": MARK["$file"] | {"sha256": DIGEST.upper()}}, {"$file": {"sha256": DIGEST}},
    ],
)  # fmt: skip
async def test_what_is_no_mark_is_refused(value: Any) -> None:
    """A mark has exactly its members, of the right kinds; a key or a path in it makes it none."""
    assert parse_file(value) is None
    async with App("memory://") as app:
        with pytest.raises(InvalidInputError, match=r"reference must be what app\.files\.put returned"):
            await app.files.get(value, run=uuid7())


async def test_outside_of_a_run_files_have_no_owner() -> None:
    """`put` needs a run, and so does `get` unless it is told one: also in a job that is a node of none."""
    app = quick_app()

    @app.task
    async def alone() -> str:
        with pytest.raises(ConfigError, match="no node of one"):
            await app.files.put(DATA)
        return "refused"

    async with app.worker():
        assert await (await alone.enqueue()).result("10s") == "refused"
        with pytest.raises(ConfigError, match=r"name the run: app\.files\.get\(reference, run=…\)"):
            await app.files.get(MARK)
        with pytest.raises(BlobStoreError, match="is missing"):
            await app.files.get(MARK, run=uuid7())
        with pytest.raises(InvalidInputError, match="run id"):
            await app.files.get(MARK, run="../x")


async def test_only_bytes_up_to_the_limit_are_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text is refused, and so is what is larger than a value may be; an empty file is one."""
    monkeypatch.setattr("headrace.engine.values.MAX_VALUE_BYTES", 1 << 20)
    async with App("memory://") as app:
        with pytest.raises(InvalidInputError, match="data must be bytes, got 'str'"):
            await app.files.put("text")  # type: ignore[arg-type]
    values = Values(MemoryBlobs(), store_id)
    with pytest.raises(PayloadTooLargeError, match="at most 1 MiB"):
        await values.put_file(uuid7(), b"x" * ((1 << 20) + 1))
    run = uuid7()
    assert await values.get_file(run, await values.put_file(run, b"")) == b""
    with pytest.raises(ConfigError, match=r"\[blob_storage\]"):
        await Values(None, store_id).put_file(run, b"")


@pytest.mark.parametrize(("change", "words"), [(b"", "has 0 bytes"), (b"x" * len(DATA), "is not what was stored")])
async def test_a_file_that_was_changed_is_named(change: bytes, words: str) -> None:
    """Length and SHA-256 are checked whenever a file is read."""
    blobs, run = MemoryBlobs(), uuid7()
    values = Values(blobs, store_id)
    file = await values.put_file(run, DATA)
    await blobs.put_blob(f"{STORE}/runs/{run}/{DIGEST}", change)
    with pytest.raises(BlobStoreError, match=words) as caught:
        await values.get_file(run, file)
    assert caught.value.lost


@pytest.mark.parametrize("outer", [{"$literal": {"$blob": {}}}, {"$blob": {"key": "a"}}, {"$file": 1}, {}])
async def test_marks_in_values_stay_as_they_are(outer: dict[str, Any]) -> None:
    """Storing, loading and taking over change no mark, within data that look like references too; others copy it."""
    values, source, run = Values(MemoryBlobs(), store_id), uuid7(), uuid7()
    mark = file_value(await values.put_file(source, DATA))
    data = [{**outer, "a": mark}, {"$literal": {"$blob": mark}}, {"$file": {"bytes": 1, "sha256": "ab" * 32}}]
    stored = await values.store(source, json_text(data))
    taken = await values.take_over(run, stored, source)
    assert taken == stored
    assert await values.load(taken) == data
    assert await values.get_file(run, FileMark(len(DATA), DIGEST)) == DATA


async def test_files_are_copied_from_the_run_that_is_repeated_alone() -> None:
    """A mark in its output that stands for a file of a third run brings nothing; storage that is away is an error."""
    blobs, other = MemoryBlobs(), uuid7()
    values = Values(blobs, store_id)
    text = json_text(file_value(await values.put_file(other, DATA)))
    run, source = uuid7(), UUID(int=5)
    assert await values.take_over(run, text, source) == text
    with pytest.raises(BlobStoreError, match="is missing"):
        await values.get_file(run, FileMark(len(DATA), DIGEST))

    async def away(key: str) -> bytes:
        raise BlobStoreError

    blobs.get_blob = away  # type: ignore[method-assign]
    with pytest.raises(BlobStoreError):
        await values.take_over(run, text, other)
