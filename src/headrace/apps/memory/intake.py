"""Stage 1, from inside: messages become a blob and a row of the buffer, which tells of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from headrace import InvalidInputError
from headrace.apps.memory.data.blobs import BLOB_TYPES, Blob, Message
from headrace.apps.memory.means import TABLES
from headrace.apps.memory.opening import CONSUME, RETRIES, app
from headrace.apps.memory.rules import BREAKERS
from headrace.apps.memory.tables.checks import check_text
from headrace.apps.memory.tables.values import NewBlob
from headrace.apps.memory.writing import count_tokens
from headrace.apps.memory.writing.messages import all_said, lines_of
from headrace.model.ids import uuid7

ROLES = ("user", "assistant", "system")
BLOB_KEYS = ("user_id", "type", "data", "blob_id", "created_at")
MOST_USER_ID, MOST_MESSAGES, MOST_CONTENT = 200, 1_000, 200_000


def parse_user_id(value: Any) -> str:
    """Return a user's id. Raises InvalidInputError."""
    if not isinstance(value, str) or not value.strip() or len(value) > MOST_USER_ID or not value.isprintable():
        raise InvalidInputError("user_id", f"must be 1 to {MOST_USER_ID} printable characters", value)
    return value


def parse_messages(value: Any) -> tuple[Message, ...]:
    """Return the messages of a chat: `[{"role", "content", "alias"?, "created_at"?}]`. Raises InvalidInputError.

    >>> parse_messages([{"role": "user", "content": "I moved to Lyon"}])[0].content
    'I moved to Lyon'
    """
    if not isinstance(value, Sequence) or isinstance(value, str) or not 1 <= len(value) <= MOST_MESSAGES:
        raise InvalidInputError("messages", f"must be a list of 1 to {MOST_MESSAGES:,} messages", value)
    return tuple(_message(f"messages[{place}]", one) for place, one in enumerate(value))


def _message(field: str, value: Any) -> Message:
    if isinstance(value, Message):
        value = asdict(value)
    if not isinstance(value, Mapping):
        raise InvalidInputError(field, 'must be an object such as {"role": "user", "content": "…"}', value)
    unknown = sorted(map(str, set(value) - {"role", "content", "alias", "created_at"}))
    if unknown:
        raise InvalidInputError(field, "must have role, content, alias and created_at alone", unknown[0])
    if value.get("role") not in ROLES:
        raise InvalidInputError(f"{field}.role", f"must be one of {', '.join(ROLES)}", value.get("role"))
    content = value.get("content")
    if not isinstance(content, str) or not content.strip() or len(content) > MOST_CONTENT:
        raise InvalidInputError(f"{field}.content", f"must be a text of 1 to {MOST_CONTENT:,} characters", content)
    check_text(f"{field}.content", content)
    return Message(value["role"], content, _text(field, value, "alias"), _text(field, value, "created_at"))


def _text(field: str, value: Mapping[str, Any], name: str) -> str | None:
    text = value.get(name)
    if text is not None and (not isinstance(text, str) or len(text) > MOST_USER_ID):
        raise InvalidInputError(f"{field}.{name}", f"must be a text of at most {MOST_USER_ID} characters", text)
    check_text(f"{field}.{name}", text or "")
    return text


def new_chat(
    user_id: str, messages: Any, *, blob_id: UUID | None = None, created_at: datetime | None = None
) -> NewBlob:
    """Return the blob of a chat. Raises InvalidInputError."""
    return new_blob(user_id, "chat", {"messages": messages}, blob_id=blob_id, created_at=created_at)


def new_blob(
    user_id: str, type: str, data: Mapping[str, Any], *, blob_id: UUID | None = None, created_at: datetime | None = None
) -> NewBlob:
    """Return a blob of any type; a chat's and a summary's text is checked and counted. Raises InvalidInputError."""
    if type not in BLOB_TYPES:
        raise InvalidInputError("type", f"must be one of {', '.join(BLOB_TYPES)}", type)
    user, own, at = parse_user_id(user_id), parse_blob_id(blob_id) or uuid7(), parse_moment("created_at", created_at)
    known = _data(type, data)
    said = all_said(lines_of([Blob(own, user, type, known, 0, at or datetime.now(UTC))]))
    return NewBlob(user, type, known, count_tokens(said), own, at)


def parse_blob(place: int, value: Any) -> NewBlob:
    """Return one of several blobs that are inserted together. Raises InvalidInputError."""
    field = f"blobs[{place}]"
    if not isinstance(value, Mapping):
        raise InvalidInputError(field, 'must be an object such as {"user_id": …, "type": "chat", "data": …}', value)
    unknown = sorted(map(str, set(value) - set(BLOB_KEYS)))
    if unknown:
        raise InvalidInputError(field, f"must have {', '.join(BLOB_KEYS)} alone", unknown[0])
    given = {name: value.get(name) for name in ("blob_id", "created_at")}
    try:
        return new_blob(value.get("user_id", ""), value.get("type", "chat"), value.get("data", {}), **given)
    except InvalidInputError as error:
        raise InvalidInputError(f"{field}.{error.field}", error.rule, error.value) from None


def parse_blob_id(value: Any) -> UUID | None:
    """Return the id that a caller made for a blob. Raises InvalidInputError."""
    if value is not None and not isinstance(value, UUID):
        raise InvalidInputError("blob_id", "must be a UUID", value)
    return value


def parse_moment(field: str, value: Any) -> datetime | None:
    """Return an instant in UTC, if there is one. Raises InvalidInputError."""
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidInputError(field, "must be a time with a time zone", value)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidInputError(field, "must be in the years 1 to 9999 of UTC", value) from None


def _data(type: str, data: Any) -> Mapping[str, Any]:
    """Return what a blob holds as it is stored. What no memory is made of is kept as it is."""
    if not isinstance(data, Mapping):
        raise InvalidInputError("data", 'must be an object such as {"messages": […]}', data)
    if type == "chat":
        return {**data, "messages": as_objects(parse_messages(data.get("messages")))}
    if type == "summary":
        text = data.get("summary")
        if not isinstance(text, str) or not text.strip() or len(text) > MOST_CONTENT:
            raise InvalidInputError("summary", f"must be a text of 1 to {MOST_CONTENT:,} characters", text)
        check_text("summary", text)
    return data


def as_objects(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as JSON has them, without what was not given."""
    return [{name: value for name, value in asdict(one).items() if value is not None} for one in messages]


@app.task(
    name="memory.insert_messages", queue=CONSUME, retry=RETRIES[CONSUME], breaker=BREAKERS["consume"], timeout="1m"
)
async def insert_messages(user_id: str, messages: list[dict[str, Any]], blob_id: str) -> dict[str, Any]:
    """Store messages as a blob, once; return `{user_id, blob_ids}`."""
    stored = await TABLES.insert_blobs([new_chat(user_id, messages, blob_id=UUID(blob_id))])
    return {"user_id": user_id, "blob_ids": [str(one) for one in stored]}
