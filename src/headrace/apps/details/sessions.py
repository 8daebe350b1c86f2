"""Sessions of requests that name none."""

from __future__ import annotations

from uuid import UUID, uuid5

_SPACE = UUID("7f0d5a38-6d2f-5b52-9c55-5f2a3b0c9e41")


def session_of(key: str) -> str:
    """Return the session of a request by its idempotency key: the same request again must have the same one.

    >>> session_of("order-7") == session_of("order-7"), session_of("order-7") == session_of("order-8")
    (True, False)
    """
    return str(uuid5(_SPACE, key))
