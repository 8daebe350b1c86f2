"""The one loader of SQL: `queries/NAME.sql`, one statement per file, read once per schema.

A statement names its parameters `%(name)s`, the form psycopg takes, and its tables `{schema}.table`; `{other}` stands
for the text of the statement `other`, so that one which does the work of two repeats neither. For asyncpg the names
become `$1 … $n`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

from headrace.model.errors import InvalidInputError

_PARAMETER = re.compile(r"%\((\w+)\)s")
_COMMENT = re.compile(r"--[^\n]*")
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,47}")
_INCLUDED = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Query:
    """One statement. `named` is for psycopg, `numbered` with `parameters` in their order for asyncpg."""

    name: str
    named: str
    numbered: str
    parameters: tuple[str, ...]

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        """Return `values` in the order of the numbered form; a missing one is a KeyError."""
        return [values[name] for name in self.parameters]


class Runner(Protocol):
    """Runs statements by name: a pool, one transaction, or the caller's own connection."""

    async def fetch(self, name: str, /, **values: Any) -> Sequence[Any]:
        """Run the statement `queries/NAME.sql` and return its rows, each indexable by position."""
        ...


def check_schema(schema: str) -> str:
    """Return `schema` if it can name a PostgreSQL schema without surprises, else raise InvalidInputError."""
    if not _SCHEMA.fullmatch(schema):
        raise InvalidInputError("schema", "must match [a-z_][a-z0-9_]{0,47}", schema)
    return schema


def read_sql(path: str, schema: str) -> str:
    """Return the text of an SQL file of this package with its schema filled in."""
    return (files(__package__) / path).read_text("utf-8").replace("{schema}", f'"{check_schema(schema)}"')


@cache
def load_query(name: str, schema: str) -> Query:
    """Return the statement `queries/NAME.sql` for `schema`."""
    text = _COMMENT.sub("", read_sql(f"queries/{name}.sql", schema)).strip().rstrip(";")
    text = _INCLUDED.sub(lambda match: load_query(match[1], schema).named, text)
    names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    numbers = {parameter: f"${index}" for index, parameter in enumerate(names, 1)}
    return Query(name, text, _PARAMETER.sub(lambda match: numbers[match[1]], text), names)
