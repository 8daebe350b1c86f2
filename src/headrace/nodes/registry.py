"""Which node types there are: our own, one module each, and those of installed packages.

Another package adds types through the entry-point group `headrace.nodes`: each entry is a type, or a function without
arguments that returns several. One that cannot be used is left out and told by its name in `broken_entries`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from headrace.nodes.base import NodeType, Shape

ENTRY_POINT_GROUP = "headrace.nodes"

#: Modules of this package that have a `TYPE`.
MODULES = (
    "manual", "webhook", "schedule", "cron", "interval", "execute_workflow_trigger", "error_trigger",
    "set", "if_", "switch", "filter", "merge", "split_out", "aggregate", "split_in_batches", "sort", "limit",
    "remove_duplicates", "date_time", "wait", "no_op", "stop_and_error", "execute_workflow", "http_request",
    "llm_chat", "llm_extract", "information_extractor", "read_file", "read_binary_files", "extract_from_file",
    "write_file", "sticky_note",
)  # fmt: skip

#: What makes an object a type.
_FACTS = ("name", "types", "versions", "summary", "shape", "fits", "ports", "check")


@dataclass(frozen=True, slots=True)
class Broken:
    """An entry point that cannot be used, and why."""

    name: str
    #: The package it is of.
    package: str
    why: str


def find_type(kind: str, parameters: Mapping[str, Any]) -> NodeType | None:
    """Return the type that a node's `type` means, None where there is none; its parameters decide between several.

    >>> find_type("n8n-nodes-base.noOp", {}).name, find_type("n8n-nodes-base.gmail", {})
    ('noOp', None)
    """
    return next((one for one in _by_kind().get(kind, ()) if one.fits(parameters)), None)


def all_types() -> tuple[NodeType, ...]:
    """Return all types, ours first, those of packages by the names of their entry points."""
    return _known()[0]


def broken_entries() -> tuple[Broken, ...]:
    """Return the entry points that cannot be used."""
    return _known()[1]


def forget() -> None:
    """Look for types anew when they are asked for next: packages were installed since."""
    _known.cache_clear()
    _by_kind.cache_clear()


@lru_cache(maxsize=1)
def _by_kind() -> Mapping[str, list[NodeType]]:
    found: dict[str, list[NodeType]] = {}
    for one in all_types():
        for kind in one.types:
            found.setdefault(kind, []).append(one)
    return found


@lru_cache(maxsize=1)
def _known() -> tuple[tuple[NodeType, ...], tuple[Broken, ...]]:
    types: list[NodeType] = [import_module(f"headrace.nodes.{module}").TYPE for module in MODULES]
    taken = {kind: "Headrace" for one in types for kind in one.types}
    broken: list[Broken] = []
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda one: (one.name, one.value)):
        package = entry.dist.name if entry.dist else "an unknown package"
        found, why = _load(entry, taken)
        if why:
            broken.append(Broken(entry.name, package, why))
        types += found
        taken.update({kind: package for one in found for kind in one.types})
    return tuple(types), tuple(broken)


def _load(entry: EntryPoint, taken: Mapping[str, str]) -> tuple[list[NodeType], str]:
    """Return the types of an entry point, or why there are none: what it raises is told, never raised."""
    try:
        value = entry.load()
        made = value() if callable(value) else value
        found = [made] if _is_type(made) else list(made)
        why = next(filter(None, (_refused(one, taken) for one in found)), "")
    except Exception as error:  # code of others: whatever it raises
        return [], f"{entry.value} fails with {type(error).__name__}: {error}"
    return ([], why) if why else (found, "")


def _refused(found: Any, taken: Mapping[str, str]) -> str:
    """Return why a type cannot be used, an empty text if it can."""
    if not _is_type(found):
        return f"{found!r} is no node type: it must have what headrace.nodes.base.NodeType asks for"
    wrong = _wrong_facts(found)
    if wrong:
        return wrong
    kind = next((one for one in found.types if one in taken), None)
    return f"its type {kind!r} is one of {taken[kind]} already: give it a name of its own" if kind else ""


def _is_type(found: object) -> bool:
    return all(hasattr(found, fact) for fact in _FACTS)


def _wrong_facts(found: NodeType) -> str:
    if not isinstance(found.types, tuple) or not all(isinstance(one, str) and one for one in found.types):
        return f"the types of {found.name!r} must be a tuple of texts, such as ('acme.invoice',), got {found.types!r}"
    if found.shape not in (Shape.WHOLE, Shape.EACH, Shape.TRIGGER):
        return f"the shape of {found.name!r} must be whole, each or trigger, got {found.shape!r}"
    verb = "run_one" if found.shape is Shape.EACH else "run"
    return "" if callable(getattr(found, verb, None)) else f"{found.name!r} has no method {verb}"
