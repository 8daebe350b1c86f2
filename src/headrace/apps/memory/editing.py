"""Changes of a profile by hand: what they may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace import InvalidInputError
from headrace.apps.memory.data.profiles import ProfileChange
from headrace.model.payload import encode_json

OPERATIONS = ("add", "update", "delete")
MOST_CHANGES, MOST_TOPIC, MOST_ENTRY = 100, 100, 10_000
_KEYS = ("op", "topic", "sub_topic", "content", "expected_version")


def parse_changes(value: Any) -> tuple[ProfileChange, ...]:
    """Return changes of entries of a profile, each of another one. Raises InvalidInputError.

    >>> parse_changes([{"op": "delete", "topic": "work", "sub_topic": "title", "expected_version": 2}])[0].op
    'delete'
    """
    if not isinstance(value, Sequence) or isinstance(value, str) or not 1 <= len(value) <= MOST_CHANGES:
        raise InvalidInputError("changes", f"must be a list of 1 to {MOST_CHANGES} changes", value)
    changes = tuple(_change(f"changes[{place}]", one) for place, one in enumerate(value))
    places = [(change.topic, change.sub_topic) for change in changes]
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice is not None:
        raise InvalidInputError("changes", "must change each entry of the profile once", "/".join(twice))
    return changes


def _change(field: str, value: Any) -> ProfileChange:
    if not isinstance(value, Mapping):
        raise InvalidInputError(field, "must be an object such as {op, topic, sub_topic, content}", value)
    unknown = sorted(map(str, set(value) - set(_KEYS)))
    if unknown:
        raise InvalidInputError(field, f"must have {', '.join(_KEYS)} alone", unknown[0])
    op = value.get("op")
    if op not in OPERATIONS:
        raise InvalidInputError(f"{field}.op", f"must be one of {', '.join(OPERATIONS)}", op)
    topic, sub_topic = (_name(f"{field}.{name}", value.get(name)) for name in ("topic", "sub_topic"))
    return ProfileChange(op, topic, sub_topic, _content(field, op, value.get("content")), _version(field, op, value))


def _name(field: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MOST_TOPIC or not value.isprintable():
        raise InvalidInputError(field, f"must be 1 to {MOST_TOPIC} printable characters", value)
    return value.strip()


def _content(field: str, op: str, value: Any) -> str | None:
    if op == "delete":
        if value is not None:
            raise InvalidInputError(f"{field}.content", "must be left out where an entry is deleted", value)
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > MOST_ENTRY:
        raise InvalidInputError(f"{field}.content", f"must be a text of 1 to {MOST_ENTRY:,} characters", value)
    encode_json(value, field=f"{field}.content")
    return value.strip()


def _version(field: str, op: str, value: Mapping[str, Any]) -> int:
    version = value.get("expected_version", 0 if op == "add" else None)
    least = 0 if op == "add" else 1
    whole = isinstance(version, int) and not isinstance(version, bool)
    if not whole or version < least or (op == "add" and version):
        rule = "must be 0, for there is none yet" if op == "add" else "must be the version that it changes, 1 or more"
        raise InvalidInputError(f"{field}.expected_version", rule, version)
    return int(version)
