"""The rule for names of tasks, queues and steps, and for keys."""

from __future__ import annotations

import re

from headrace.model.errors import InvalidInputError, InvalidNameError

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
MAX_KEY_LENGTH, MAX_REASON_LENGTH = 255, 500


def check_name(field: str, value: object) -> str:
    """Return `value` if it is a valid name, else raise InvalidNameError.

    >>> check_name("queue", "llm")
    'llm'
    """
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidNameError(field, "must match [a-z0-9][a-z0-9_.-]{0,63}", value)
    return value


def check_key(field: str, value: object) -> str:
    """Return `value` if it is a valid idempotency key: 1–255 characters, none of them a control character."""
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_KEY_LENGTH or not value.isprintable():
        raise InvalidInputError(field, f"must be 1 to {MAX_KEY_LENGTH} printable characters", value)
    return value


def check_reason(field: str, value: object) -> str:
    """Return `value` if it is a text that people may be shown: 1–500 characters, none of them a control character."""
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_REASON_LENGTH or not value.isprintable():
        raise InvalidInputError(field, f"must be 1 to {MAX_REASON_LENGTH} printable characters", value)
    return value
