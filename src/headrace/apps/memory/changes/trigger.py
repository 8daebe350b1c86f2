"""The trigger that tells of changes of the buffer table where no Debezium does: in the same envelope, by our outbox."""

from __future__ import annotations

import re
from importlib.resources import files

from headrace import InvalidInputError
from headrace.apps.memory.changes.reading import TABLE

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_PREFIX = re.compile(r"[A-Za-z0-9_-]{1,64}")


def topic_of(schema: str, prefix: str) -> str:
    """Return the topic of changes of the buffer table, as Debezium names it.

    >>> topic_of("headrace_memory", "memory")
    'memory.headrace_memory.buffer_zone'
    """
    return f"{prefix}.{schema}.{TABLE}"


def trigger_sql(schema: str, headrace_schema: str, prefix: str) -> str:
    """Return the statements that make the triggers on the buffer table, or make them anew; run them in one transaction.

    `schema`: of the tables of memory; `headrace_schema`: of the store, in the same database. Who runs them must own
    the table and be allowed to write to the store; who inserts into the table need not. Raises InvalidInputError.
    """
    _check(_PREFIX, "prefix", prefix)
    names = {"headrace": _quoted("headrace_schema", headrace_schema), "prefix": prefix, "name": schema}
    return _filled("trigger.sql", schema, names | {"topic": topic_of(schema, prefix)})


def no_trigger_sql(schema: str) -> str:
    """Return the statements that remove the triggers, if they are there. Raises InvalidInputError."""
    return _filled("no_trigger.sql", schema, {})


def _filled(path: str, schema: str, names: dict[str, str]) -> str:
    text = (files(__package__) / path).read_text("utf-8")
    for name, value in {"schema": _quoted("schema", schema), **names}.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _quoted(field: str, name: str) -> str:
    _check(_NAME, field, name)
    return f'"{name}"'


def _check(form: re.Pattern[str], field: str, value: str) -> None:
    if not form.fullmatch(value):
        raise InvalidInputError(field, f"must match {form.pattern}", value)
