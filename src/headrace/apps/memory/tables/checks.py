"""What the tables refuse before the database would, in the words of whoever gave it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from headrace import InvalidInputError
from headrace.apps.memory.data.blobs import BLOB_TYPES
from headrace.apps.memory.data.profiles import ProfileChange
from headrace.apps.memory.tables.values import NewBlob

#: Characters of the id of a user, a topic and a sub-topic: three of them fit an index of the database.
MOST_NAME = 200
MOST_INT = 2**31 - 1
#: What no text of the database can hold: the character 0, and halves of a pair.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
LANGUAGES = ("en", "zh")


def check_user(user_id: str) -> None:
    """Raise InvalidInputError for what cannot be the id of a user."""
    check_name("user_id", user_id)


def check_name(field: str, value: object) -> None:
    """Raise InvalidInputError for what is no name of 1 to 200 characters."""
    fits = isinstance(value, str) and 1 <= len(value) <= MOST_NAME and not _UNSTORABLE.search(value)
    if not fits:
        raise InvalidInputError(field, f"must be a text of 1 to {MOST_NAME} characters, none of them a zero", value)


def check_whole(field: str, value: object, least: int = 0) -> None:
    """Raise InvalidInputError for what is no whole number from `least` on."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST_INT:
        raise InvalidInputError(field, f"must be a whole number from {least} to {MOST_INT}", value)


def check_text(field: str, value: str) -> None:
    """Raise InvalidInputError for a text that the database cannot hold."""
    if _UNSTORABLE.search(value):
        raise InvalidInputError(field, "must not hold the character 0 nor half a character", value)


def check_language(value: str | None) -> None:
    """Raise InvalidInputError for a language that nothing is written in."""
    if value is not None and value not in LANGUAGES:
        raise InvalidInputError("language", 'must be "en", "zh" or None', value)


def check_blob(blob: NewBlob) -> None:
    """Raise InvalidInputError for a blob that cannot be stored."""
    check_user(blob.user_id)
    if blob.type not in BLOB_TYPES:
        raise InvalidInputError("type", f"must be one of {', '.join(BLOB_TYPES)}", blob.type)
    check_whole("tokens", blob.tokens)
    if blob.created_at is not None and blob.created_at.tzinfo is None:
        raise InvalidInputError("created_at", "must have a time zone", blob.created_at)


def as_json(field: str, value: Mapping[str, Any]) -> str:
    """Return a value as JSON that the database takes, or raise InvalidInputError."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(field, f"must be JSON ({error})", value) from error
    if "\\u0000" in text.replace("\\\\", "") or _UNSTORABLE.search(text):
        raise InvalidInputError(field, "must not hold the character 0 nor half a character", value)
    return text


def storable(value: Any) -> Any:
    """Return what a model wrote without the characters that no text of the database can hold.

    >>> storable({"a": ["x\\x00y", 1]})
    {'a': ['xy', 1]}
    """
    if isinstance(value, str):
        return _UNSTORABLE.sub("", value)
    if isinstance(value, Mapping):
        return {storable(key): storable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [storable(each) for each in value]
    return value


def check_changes(changes: Sequence[ProfileChange]) -> None:
    """Raise InvalidInputError for changes that cannot be made together."""
    for change in changes:
        check_name("topic", change.topic)
        check_name("sub_topic", change.sub_topic)
        if change.op not in ("add", "update", "delete"):
            raise InvalidInputError("op", "must be add, update or delete", change.op)
        if (change.content is None) != (change.op == "delete"):
            raise InvalidInputError("content", "must be a text, and None of a deletion", change.content)
        check_whole("expected_version", change.expected_version, 0 if change.op == "add" else 1)
        if change.op == "add" and change.expected_version != 0:
            raise InvalidInputError("expected_version", "must be 0 of what is added", change.expected_version)
    places = [(change.topic, change.sub_topic) for change in changes]
    twice = sorted(place for place in set(places) if places.count(place) > 1)
    if twice:
        raise InvalidInputError("changes", "must name each slot once", twice[0])
