"""`headrace flows nodes` and `functions`: what flows are made of."""

from __future__ import annotations

from typing import Any

import click

from headrace import NotFoundError
from headrace.apps.flows.commands.telling import (
    broken_types,
    json_option,
    shorten,
    tell,
    tell_broken,
    tell_json,
    tell_table,
)
from headrace.nodes.base import NodeType, Shape
from headrace.nodes.hints import hint_of
from headrace.nodes.registry import all_types


@click.command()
@click.argument("kind", metavar="[TYPE]", required=False)
@json_option
def nodes(kind: str | None, as_json: bool) -> None:
    """List the node types, those of installed packages too; or show one of them.

    TYPE is its word, or a value of `type`. Packages bring types through the entry-point group headrace.nodes.

    \b
    Examples:
      headrace flows nodes
      headrace flows nodes n8n-nodes-base.if
    """
    if kind is not None:
        _show(_types_of(kind), as_json=as_json)
        return
    types = all_types()
    if as_json:
        tell_json({"types": [_document(one) for one in types], "broken": broken_types()})
        return
    tell_table(("NODE", "SHAPE", "TYPES", "VERSIONS", "WHAT IT DOES"), [_row(one) for one in types])
    tell_broken()


def _types_of(kind: str) -> list[NodeType]:
    """Return the types of a word or a value of `type`. Raises NotFoundError with what to use instead."""
    found = [one for one in all_types() if kind in (one.name, *one.types)]
    if not found:
        instead = hint_of(kind if "." in kind else f"n8n-nodes-base.{kind}")
        rest = f"; {instead}" if instead else "; `headrace flows nodes` lists those there are"
        raise NotFoundError(f"there is no node type {kind!r}{rest}")
    return found


def _document(one: NodeType) -> dict[str, Any]:
    ports = one.ports({}, one.versions[1])
    return {
        "name": one.name, "types": list(one.types), "versions": list(one.versions), "shape": one.shape,
        "summary": one.summary, "inputs": 0 if one.shape is Shape.TRIGGER else ports.inputs,
        "outputs": list(ports.outputs), "package": type(one).__module__.partition(".")[0],
    }  # fmt: skip


def _row(one: NodeType) -> tuple[object, ...]:
    return one.name, str(one.shape), ", ".join(one.types), _versions(one), one.summary


def _versions(one: NodeType) -> str:
    lowest, highest = one.versions
    return f"{lowest:g}" if lowest == highest else f"{lowest:g} to {highest:g}"


def _show(found: list[NodeType], *, as_json: bool) -> None:
    documents = [_document(one) for one in found]
    if as_json:
        tell_json({"types": documents})
        return
    for number, (one, document) in enumerate(zip(found, documents, strict=True)):
        if number:
            tell()
        tell(f"{one.name}: {one.summary}")
        tell(f"  type         {', '.join(one.types)}")
        tell(f"  typeVersion  {_versions(one)}")
        tell(f"  shape        {one.shape}")
        tell(f"  inputs       {document['inputs']}")
        tell(f"  outputs      {', '.join(document['outputs']) or 'none'} (may depend on its parameters)")
        tell(f"  package      {document['package']}")


@click.command()
@json_option
def functions(as_json: bool) -> None:
    """List the functions of expressions, each with an example.

    \b
    Example:
      headrace flows functions --json
    """
    from headrace.model.expressions.functions.table import TABLES

    listed = [
        {
            "function": one.name, "group": table.title, "description": one.description, "example": one.example,
            "result": one.result,
        }
        for table in TABLES for one in table.functions.values() if not one.alias_of
    ]  # fmt: skip
    if as_json:
        tell_json(listed)
        return
    rows = [
        (one["group"], one["function"], one["description"], f"{one['example']} → {shorten(repr(one['result']), 60)}")
        for one in listed
    ]
    tell_table(("GROUP", "FUNCTION", "WHAT IT GIVES", "EXAMPLE"), rows)
