"""What the database refuses of the tables of memory, as errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace import ConfigError, NotAllowedError

_MISSING, _FORBIDDEN = ("42P01", "3F000"), ("42501",)


@contextmanager
def told() -> Iterator[None]:
    """Raise ConfigError for tables that there are not, NotAllowedError where this user may not use them."""
    try:
        yield
    except Exception as error:
        state = getattr(error, "sqlstate", None)
        if state in _MISSING:
            fix = "run `headrace memory set-up`, or start `headrace memory run`"
            raise ConfigError(f"the tables of memory are not there: {fix}") from None
        if state in _FORBIDDEN:
            raise NotAllowedError(
                f"the database does not let this user do that with the tables of memory: {error}"
            ) from None
        raise
