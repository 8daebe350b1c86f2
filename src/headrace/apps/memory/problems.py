"""What the database refuses of the tables of memory, as an error that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace import NotAllowedError

_FORBIDDEN = "42501"


@contextmanager
def told() -> Iterator[None]:
    """Raise NotAllowedError where the user of the store may not use the tables."""
    try:
        yield
    except Exception as error:
        if getattr(error, "sqlstate", None) != _FORBIDDEN:
            raise
        fix = "grant it, or run `headrace memory set-up` as the owner of the schema"
        raise NotAllowedError(f"the database refuses this of the tables of memory ({error}): {fix}") from None
