"""Workflows as they are drawn: flows as on their canvas, other graphs in layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.apps.flows.drawing.layout import Place
from headrace.apps.flows.drawing.mermaid import class_of
from headrace.apps.flows.drawing.picture import ERROR, Box, Line, Picture, picture_of
from headrace.apps.flows.drawing.svg import cut
from headrace.apps.flows.form import MAIN, Flow
from headrace.apps.flows.triggers import triggers_of
from headrace.dashboard.graph import HEIGHT, WIDTH, draw
from headrace.dashboard.run_graph import MOST_NAME, MOST_TITLE, Drawn, DrawnBox, drawn_line, place, scene_of, title_of
from headrace.model.graph.layout import Layout
from headrace.nodes.base import Shape


@dataclass(frozen=True, slots=True)
class FlowFacts:
    """What a list tells of a flow."""

    name: str
    #: Types of the nodes that begin it.
    triggers: tuple[str, ...]
    #: Whether schedules and webhooks start it.
    active: bool


def facts_of(flow: Flow) -> FlowFacts:
    """Return what a list tells of a flow."""
    kinds = tuple(dict.fromkeys(kind.name for _, kind in triggers_of(flow)))
    return FlowFacts(cut(flow.name, MOST_TITLE), kinds, flow.active)


def drawn_flow(flow: Flow) -> Drawn:
    """Return a flow with its boxes where people put them."""
    return _drawn(picture_of(flow))


def drawn_graph(layout: Layout) -> Drawn:
    """Return a graph of tasks."""
    scene = scene_of(layout)
    boxes = [
        DrawnBox(place(at), cut(box.label, MOST_NAME), title_of(box.label, box.what), "", note=cut(box.what, MOST_NAME))
        for box, at in zip(scene.boxes, scene.drawing.corners, strict=True)
    ]
    lines = [drawn_line(line) for line in scene.drawing.lines]
    return Drawn(scene.drawing.width, scene.drawing.height, boxes, lines)


def _drawn(picture: Picture) -> Drawn:
    names = [box.name for box in picture.boxes]
    positions = {box.name: box.position for box in picture.boxes}
    exits = _exits(picture.lines)
    drawing = draw(names, [(line.source, line.target) for line in picture.lines], positions, exits)
    boxes = [_box(box, at) for box, at in zip(picture.boxes, drawing.corners, strict=True)]
    lines = []
    for line, way, down in zip(picture.lines, drawing.lines, exits, strict=True):
        x, y = drawing.corners[way.source]
        kind = {MAIN: "", ERROR: "error"}.get(line.kind, "other")
        at = (x + WIDTH + 6, y + HEIGHT * down - 4)
        lines.append(drawn_line(way, kind, cut(line.label, MOST_NAME), at))
    return Drawn(drawing.width, drawing.height, boxes, lines)


def _exits(lines: Sequence[Line]) -> list[float]:
    """Return how far down its box each line begins: those with several labels begin below each other."""
    labels: dict[str, list[str]] = {}
    for line in lines:
        known = labels.setdefault(line.source, [])
        if line.label not in known:
            known.append(line.label)
    return [(labels[line.source].index(line.label) + 1) / (len(labels[line.source]) + 1) for line in lines]


def _box(box: Box, at: Place) -> DrawnBox:
    kinds = ["trigger" if box.shape is Shape.TRIGGER else "", class_of(box)]
    note = f"{box.type}{', disabled' if box.disabled else ''}"
    return DrawnBox(
        place(at), cut(box.name, MOST_NAME), title_of(box.name, note), "", note=cut(note, MOST_NAME),
        kind=" ".join(filter(None, kinds)),
    )  # fmt: skip
