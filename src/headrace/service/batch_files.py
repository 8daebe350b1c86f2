"""Results of a batch as a file that is written while it is read: a part is made once the one before it was sent."""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from headrace.engine.queries import item_document
from headrace.model.batch import BatchItem
from headrace.model.job import JobState
from headrace.nodes.tables import write_csv
from headrace.ports.inspect_batches import InspectBatches

COLUMNS = ("index", "status", "result", "error_kind", "error_message", "cost", "job")
#: Items of a part, at first and at most: a result may have 256 KiB. Parts grow while they are smaller than this many
#: bytes, and shrink where they are larger than four times as many.
LEAST_ITEMS, MOST_ITEMS, PART_BYTES = 16, 1_024, 256 << 10


@dataclass(frozen=True, slots=True)
class FileType:
    """A kind of file: how it begins, and how items are written."""

    suffix: str
    media_type: str
    head: bytes
    lines: Callable[[Sequence[BatchItem]], str]


async def parts_of(inspect: InspectBatches, batch_id: UUID, kind: FileType) -> AsyncGenerator[bytes, None]:
    """Yield a file of the items that have ended, but for tries that were run again."""
    yield kind.head
    cursor, limit = "", LEAST_ITEMS
    while True:
        page = await inspect.read_items(batch_id, cursor=cursor, limit=limit)
        # A half of a pair of surrogates, which no file can hold, becomes what it is in JSON.
        part = kind.lines([item for item in page.items if not item.retried]).encode(errors="backslashreplace")
        if part:
            yield part
        # Where nobody reads any more sending is no wait: the end of the client has to be heard of.
        await asyncio.sleep(0)
        if len(page.items) < limit:
            return
        cursor, limit = page.cursor, _next_limit(limit, len(part))


def _next_limit(limit: int, size: int) -> int:
    """Return how many items the next part has, after one of so many bytes.

    >>> _next_limit(16, 2_000), _next_limit(1_024, 2_000), _next_limit(64, 2 << 20), _next_limit(16, 4 << 20)
    (32, 1024, 32, 16)
    """
    if size < PART_BYTES:
        return min(2 * limit, MOST_ITEMS)
    return max(limit // 2, LEAST_ITEMS) if size > 4 * PART_BYTES else limit


def _json_lines(items: Sequence[BatchItem]) -> str:
    return "".join(json.dumps(item_document(item)) + "\n" for item in items)


def _csv_lines(items: Sequence[BatchItem]) -> str:
    return write_csv([_record(item) for item in items], COLUMNS, delimiter=",", header=False)


def _record(item: BatchItem) -> dict[str, Any]:
    """Return a line of CSV: what is JSON stays JSON, so that whatever a result is can be read back."""
    record = {"index": item.index, "status": str(item.status), "cost": _json(item.cost), "job": str(item.job_id)}
    if item.status is JobState.SUCCEEDED:
        return record | {"result": "null" if item.result is None else _json(item.result)}
    error = item.error
    return record if error is None else record | {"error_kind": error.kind, "error_message": error.message}


def _json(value: Any) -> Any:
    """Return the JSON of a value; of numbers themselves, for a sign of theirs begins no formula."""
    return value if value is None or isinstance(value, int | float) else json.dumps(value, ensure_ascii=False)


_HEAD = write_csv([], COLUMNS, delimiter=",", header=True).encode()
#: With a mark of its encoding: spreadsheet programs would take another one.
CSV = FileType("csv", "text/csv; charset=utf-8", codecs.BOM_UTF8 + _HEAD, _csv_lines)
JSON_LINES = FileType("jsonl", "application/x-ndjson", b"", _json_lines)
