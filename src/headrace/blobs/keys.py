"""What a key of a blob may be, the same in every storage."""

from __future__ import annotations

import re

from headrace.model.errors import InvalidInputError, PayloadTooLargeError

#: S3 takes no more, nor does a file system of one part.
_LONGEST_KEY, _LONGEST_PART = 1_024, 200
_PART = re.compile(rf"(?!\.)[A-Za-z0-9._-]{{1,{_LONGEST_PART}}}")


def check_key(key: str) -> str:
    """Return the key. Raises InvalidInputError for one that could lead out of the storage or that it cannot hold.

    >>> check_key("runs/1/a")
    'runs/1/a'
    """
    if len(key) > _LONGEST_KEY or not all(_PART.fullmatch(part) for part in key.split("/")):
        rule = "must be parts of A-Z a-z 0-9 . _ - with / between them, none of which begins with a dot or has more "
        raise InvalidInputError("key", f"{rule}than {_LONGEST_PART} characters, {_LONGEST_KEY} in all", key)
    return key


def check_prefix(prefix: str) -> str:
    """Return the folder that a prefix names, without a slash at its end; empty: everything. Raises InvalidInputError.

    >>> check_prefix("runs/")
    'runs'
    """
    folder = prefix.removesuffix("/")
    return check_key(folder) if folder else ""


def check_size(key: str, size: int, most: int | None) -> None:
    """Raise PayloadTooLargeError for a blob of more than `most` bytes."""
    if most is not None and size > most:
        raise PayloadTooLargeError(f"blob {key}", f"must be at most {most:,} bytes", f"{size:,} bytes")
