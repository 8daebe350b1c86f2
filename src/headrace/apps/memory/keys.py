"""Blob ids that idempotency keys stand for."""

from __future__ import annotations

from uuid import UUID, uuid5

_KEYED = UUID("3c9f0d9e-6a3b-4bb0-8f3e-2a5b7f0c6d11")


def keyed_id(user_id: str, key: str) -> UUID:
    """Return the blob id that an idempotency key of a user stands for.

    >>> keyed_id("ada", "k") == keyed_id("ada", "k") != keyed_id("bob", "k")
    True
    """
    return uuid5(_KEYED, f"{len(user_id)}/{user_id}/{key}")
