"""flow-nodes.md: the built-in node types of JSON flows, from their classes."""

from __future__ import annotations

import inspect

from headrace.nodes.base import NodeType, Shape
from headrace.nodes.registry import MODULES, all_types
from tools.reference.text import NOTE

FLOW_NODES = f"""{NOTE}
# Node types of flows

What a flow may consist of: `headrace flows nodes` lists the same, with the types that other packages bring. Each
understands the `parameters` of its namesake in n8n for the versions given; what it cannot do is refused when a flow is
checked or imported, with what to use in its place.
"""

SHAPES = {
    Shape.TRIGGER: "begins a run",
    Shape.WHOLE: "takes all items at once",
    Shape.EACH: "takes each item by itself, with tries and a stored result of its own",
    Shape.LOOP: "is a loop",
    Shape.FLOW: "runs another flow",
    Shape.NOTE: "never runs",
}


def flow_nodes() -> str:
    """Return the page of the built-in node types."""
    return "\n".join([FLOW_NODES, *(node_type(kind) for kind in own_types())])


def own_types() -> list[NodeType]:
    """Return the types of Headrace itself: they come first."""
    return list(all_types()[: len(MODULES)])


def node_type(kind: NodeType) -> str:
    """Return the section of a node type."""
    lowest, highest = kind.versions
    versions = f"{lowest:g}" if lowest == highest else f"{lowest:g} to {highest:g}"
    types = ", ".join(f"`{name}`" for name in kind.types)
    about = inspect.cleandoc(type(kind).__doc__ or "").partition("\n>>>")[0]
    facts = f"{SHAPES[kind.shape]} · `typeVersion` {versions} · {types}"
    return f"## {kind.name}\n\n{kind.summary[0].upper()}{kind.summary[1:]}. {about}\n\n{facts}\n"
