"""sql-schema.md: tables, columns, indexes and functions, from the schema file that the migrations are held to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from headrace.stores import postgres
from tools.reference.sql_reading import Statement, column, elements, statements
from tools.reference.text import NOTE, table

FILE = Path(postgres.__file__).parent / "schema.sql"

SQL_SCHEMA = f"""{NOTE}
# SQL schema

What `headrace migrate` makes in PostgreSQL, in the schema that `[queue] schema` names (`headrace` unless told
otherwise). It is told so that you can look: reading is safe, and the [command line](cli.md) reads the same rows. Do not
write, and build nothing lasting on a column: what is promised are the command line, [HTTP](http.md) and
[Python](api.md), and each release may move columns. [Memory](memory.md) has tables of its own.

There are no foreign keys: each would cost the hot path a lock per row. Jobs that are not final and those that are lie
in two tables, a job in exactly one of them: [why](../decisions/0001-hot-path.md).
"""

FUNCTIONS = """## Functions

What the store calls; nothing that you would.
"""


def sql_schema() -> str:
    """Return the page of the schema."""
    found = list(statements(FILE.read_text(encoding="utf-8")))
    tables = [one for one in found if one.kind == "TABLE"]
    listed = table(["table", "what it holds"], [[f"[`{one.name}`](#{one.name})", first(one.about)] for one in tables])
    parts = [SQL_SCHEMA, "## Tables\n", f"{listed}\n"]
    parts += [table_section(one, found) for one in tables]
    rows = [[f"`{one.name}`", one.about] for one in found if one.kind in ("FUNCTION", "PROCEDURE")]
    return "\n".join([*parts, FUNCTIONS, table(["function", "what it does"], rows), ""])


def first(about: str) -> str:
    """Return the first sentence of a comment."""
    return re.split(r"(?<=[.:]) (?=[A-Z])", about)[0].rstrip(" .:")


def table_section(made: Statement, found: Sequence[Statement]) -> str:
    """Return the section of a table: columns, constraints, indexes, storage."""
    heads = ["column", "type", "", "meaning"]
    parts = [f"### `{made.name}`", "", made.about, "", table(heads, columns(made)), ""]
    held = [f"- `{text.removeprefix('CONSTRAINT ')}`" for text, _ in elements(made) if text.startswith("CONSTRAINT ")]
    parts += [*held, ""] if held else []
    indexes = [[f"`{one.name}`", f"`{place(one)}`", one.about] for one in found if is_index_of(one, made)]
    parts += [table(["index", "on", "for"], indexes), ""] if indexes else []
    parts += [f"Stored with `{made.storage}`.", ""] if made.storage else []
    return "\n".join(parts)


def columns(made: Statement) -> Iterator[list[str]]:
    """Yield the rows of a table's columns."""
    for text, about in elements(made):
        found = column(text, about)
        if found is not None:
            default = f"default `{found.default}`" if found.default else ""
            yield [f"`{found.name}`", found.type, default or ("" if found.required else "may be null"), found.about]


def is_index_of(one: Statement, made: Statement) -> bool:
    """Return whether a statement makes an index of a table."""
    return one.kind == "INDEX" and f" ON {{schema}}.{made.name} " in one.text


def place(index: Statement) -> str:
    """Return what an index is on: columns, and for which rows."""
    unique = "unique " if index.text.startswith("CREATE UNIQUE") else ""
    return unique + re.sub(r"^.* ON \{schema\}\.\w+ ", "", index.text)
