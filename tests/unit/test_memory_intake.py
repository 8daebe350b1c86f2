"""What a program may not put into memory, nor ask of it: each is named with its field, before anything is stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headrace import InvalidInputError
from headrace.apps.memory.intake import parse_blob
from headrace.apps.memory.memory import Memory
from tests.unit.memory_world import settings_of, settled

SAID = {"messages": [{"role": "user", "content": "hello"}]}
FIRST = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))


def said(content: Any, **more: Any) -> dict[str, Any]:
    """Return a chat of one message."""
    return {"user_id": "ada", "data": {"messages": [{"role": "user", "content": content, **more}]}}


@pytest.mark.parametrize(
    ("blob", "field"),
    [
        ("hello", r"blobs\[3\] must be an object"),
        ({"user_id": "ada", "data": SAID, "kind": "chat"}, r"blobs\[3\] must have user_id, type"),
        ({"user_id": "ada", "data": {"messages": [{7: "x", "y": 1}]}}, r"blobs\[3\]\.messages\[0\] must have role"),
        ({"data": SAID}, r"blobs\[3\]\.user_id"),
        ({"user_id": "a\nb", "data": SAID}, r"blobs\[3\]\.user_id"),
        ({"user_id": "ada", "type": "song", "data": SAID}, r"blobs\[3\]\.type"),
        ({"user_id": "ada", "data": ["hello"]}, r"blobs\[3\]\.data"),
        ({"user_id": "ada"}, r"blobs\[3\]\.messages"),
        ({"user_id": "ada", "data": {"messages": []}}, r"blobs\[3\]\.messages"),
        ({"user_id": "ada", "data": {"messages": [7]}}, r"blobs\[3\]\.messages\[0\]"),
        (said(" "), r"messages\[0\]\.content"),
        (said("a\x00b"), r"messages\[0\]\.content must not hold the character 0"),
        (said("a\ud800b"), r"messages\[0\]\.content must not hold"),
        (said("hello", alias="a\x00"), r"messages\[0\]\.alias"),
        (said("hello", created_at="\udfff"), r"messages\[0\]\.created_at"),
        (said("x" * 200_001), r"messages\[0\]\.content"),
        ({"user_id": "ada", "type": "summary", "data": SAID}, r"blobs\[3\]\.summary"),
        ({"user_id": "ada", "type": "summary", "data": {"summary": "\x00"}}, r"blobs\[3\]\.summary"),
        ({"user_id": "ada", "data": SAID, "blob_id": "7"}, r"blobs\[3\]\.blob_id"),
        ({"user_id": "ada", "data": SAID, "created_at": "today"}, r"blobs\[3\]\.created_at"),
        ({"user_id": "ada", "data": SAID, "created_at": datetime(2026, 5, 1)}, r"blobs\[3\]\.created_at"),
        ({"user_id": "ada", "data": SAID, "created_at": FIRST}, r"blobs\[3\]\.created_at must be in the years"),
    ],
)
def test_a_blob_that_cannot_be_stored_is_refused(blob: Any, field: str) -> None:
    """With its place among the others."""
    with pytest.raises(InvalidInputError, match=field):
        parse_blob(3, blob)


def test_what_no_memory_is_made_of_is_kept_as_it_is() -> None:
    """A chat may have members of its own beside its messages, too."""
    image = {"url": "https://a.example/1.png"}
    assert parse_blob(0, {"user_id": "ada", "type": "image", "data": image}).data == image
    assert parse_blob(0, {"user_id": "ada", "data": SAID | {"room": 7}}).data == SAID | {"room": 7}


async def test_a_wrong_question_is_named(tmp_path: Path) -> None:
    """Whatever type it has; and nothing of several blobs is stored where one is wrong."""
    with settled(settings_of(tmp_path)):
        memory = Memory()
        async with memory.app:
            await memory.set_up()
            with pytest.raises(InvalidInputError, match=r"blobs\[1\]"):
                await memory.insert_blobs([{"user_id": "ada", "data": SAID}, said(" ")])
            assert (await memory.buffer("ada")).rows == 0
            for limit in (0, -1, "7", 1.5, 2**31, True):
                for ask in (memory.events, memory.flushes, lambda user, limit: memory.search(user, "rye", limit=limit)):
                    with pytest.raises(InvalidInputError, match="limit"):
                        await ask("ada", limit=limit)  # type: ignore[arg-type]
            for before in (datetime(2026, 5, 1), "today", FIRST):
                with pytest.raises(InvalidInputError, match="before"):
                    await memory.events("ada", before=before)  # type: ignore[arg-type]
            assert await memory.events("ada", before=datetime.max.replace(tzinfo=UTC)) == []
            with pytest.raises(InvalidInputError, match="blob_id"):
                await memory.submit("ada", SAID["messages"], blob_id=str(uuid4()))  # type: ignore[arg-type]
            with pytest.raises(InvalidInputError, match=r"messages\[0\]"):
                await memory.submit("ada", [{"role": "user", "content": "\x00"}])
            with pytest.raises(InvalidInputError, match="level"):
                await memory.put_user("ada", level=11)
