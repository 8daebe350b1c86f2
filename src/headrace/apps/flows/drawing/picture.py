"""What is drawn of a flow: boxes, the lines between them, and notes. How it looks is for `mermaid` and `svg`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.apps.flows.form import MAIN, Connection, Flow, Node, Policy
from headrace.nodes.base import NodeType, Ports, Shape
from headrace.nodes.registry import find_type

ERROR = "error"
#: What is known of a node whose type is not.
_UNKNOWN = Ports()
_FARTHEST = 1e7


@dataclass(frozen=True, slots=True)
class Box:
    """A node. `state`: what has become of it in a run, a word of `states`; empty where none is drawn."""

    name: str
    type: str
    shape: Shape | None = None
    disabled: bool = False
    position: tuple[float, float] | None = None
    state: str = ""
    #: Beside the state: "12 items".
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A connection. `label`: the port it leaves by, and the input it leads to where there are several."""

    source: str
    target: str
    label: str = ""
    #: "main", "error", or the kind by which models and tools are connected.
    kind: str = MAIN


@dataclass(frozen=True, slots=True)
class Note:
    """Text for people, with the room it takes on the canvas."""

    text: str
    position: tuple[float, float]
    size: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Picture:
    """A flow as it is drawn."""

    title: str
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    notes: tuple[Note, ...] = ()


def picture_of(flow: Flow, states: Mapping[str, tuple[str, str]] | None = None) -> Picture:
    """Return what is drawn of a flow. `states`: of a run, the state of each node by its name, and a remark."""
    types = {name: find_type(node.type, node.parameters) for name, node in flow.nodes.items()}
    notes = [name for name, kind in types.items() if kind is not None and kind.shape is Shape.NOTE]
    shown = {name: node for name, node in flow.nodes.items() if name not in notes}
    known = states or {}
    boxes = tuple(_box(node, types[name], *known.get(name, ("", ""))) for name, node in shown.items())
    lines = tuple(
        _line(flow, types, link) for link in flow.connections if link.source in shown and link.target in shown
    )
    written = tuple(_note(flow.nodes[name]) for name in notes if _place(flow.nodes[name]) is not None)
    return Picture(flow.name, boxes, lines, written)


def _box(node: Node, kind: NodeType | None, state: str, remark: str) -> Box:
    shape = None if kind is None else kind.shape
    return Box(node.name, node.type.rpartition(".")[2], shape, node.disabled, _place(node), state, remark)


def _place(node: Node) -> tuple[float, float] | None:
    """Return where a node stands; None for what is on no canvas, such as an infinite number."""
    found = node.position
    return found if found is not None and all(abs(value) < _FARTHEST for value in found) else None


def _note(node: Node) -> Note:
    width, height = (_length(node.parameters.get(name), usual) for name, usual in (("width", 240), ("height", 160)))
    content = node.parameters.get("content")
    return Note(content if isinstance(content, str) else "", node.position or (0, 0), (width, height))


def _length(value: object, usual: float) -> float:
    return float(value) if isinstance(value, int | float) and 0 < value < 10_000 else usual


def _line(flow: Flow, types: Mapping[str, NodeType | None], link: Connection) -> Line:
    if link.kind != MAIN:
        return Line(link.source, link.target, link.kind, link.kind)
    ports = _ports(flow.nodes[link.source], types[link.source])
    label = _port_name(flow.nodes[link.source], ports, link.port)
    if _ports(flow.nodes[link.target], types[link.target]).inputs > 1 or link.input > 0:
        label = f"{label} → input {link.input + 1}".removeprefix(" ")
    return Line(link.source, link.target, label, ERROR if label.startswith(ERROR) else MAIN)


def _ports(node: Node, kind: NodeType | None) -> Ports:
    return _UNKNOWN if kind is None else kind.ports(node.parameters, node.version)


def _port_name(node: Node, ports: Ports, port: int) -> str:
    """Return the name of an output port; that of the only one is not shown."""
    if node.policy is Policy.OUTPUT and port == len(ports.outputs):
        return ERROR
    if port < len(ports.outputs):
        name = ports.outputs[port]
        return "" if name == MAIN else name
    return f"output {port + 1}"
