"""expressions.md: the functions of expressions, with examples that were run."""

from __future__ import annotations

import json

from headrace.model.expressions.functions.listing import Function, Table
from headrace.model.expressions.functions.table import TABLES
from tools.reference.text import NOTE, cell

EXPRESSIONS = f"""{NOTE}
# Functions of expressions

`f(x, a)` and `x.f(a)` mean the same. What a parameter may be, and the values that expressions begin with, are told in
[Write and run JSON flows](../howto/flows.md#expressions).
"""


def functions() -> str:
    """Return the page of all functions of expressions."""
    parts = [EXPRESSIONS]
    for group in TABLES:
        rows = [
            f"| {names_of(one, group)} | {cell(one.description)} | {example_of(one)} |"
            for one in group.functions.values()
            if not one.alias_of
        ]
        parts.append(
            "\n".join([f"## {group.title}", "", "| function | what it gives | example |", "|---|---|---|", *rows, ""])
        )
    return "\n".join(parts)


def names_of(function: Function, group: Table) -> str:
    """Return a function's names, the one it is listed by first."""
    others = [name for name, one in group.functions.items() if one.alias_of == function.name]
    return ", ".join(f"`{name}`" for name in [function.name, *others])


def example_of(function: Function) -> str:
    """Return a function's example with what it gives."""
    return f"`{cell(function.example)}` → `{cell(json.dumps(function.result, ensure_ascii=False))}`"
