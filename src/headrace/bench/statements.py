"""The benchmark's own SQL: `sql/NAME.sql`, one statement (or one script of definitions) per file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def read(name: str) -> str:
    """Return the text of `sql/NAME.sql`."""
    return (files(__package__) / "sql" / f"{name}.sql").read_text("utf-8")
