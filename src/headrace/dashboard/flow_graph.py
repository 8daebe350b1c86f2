"""Workflows as they are drawn: flows as on their canvas, other graphs in layers."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.apps.flows.drawing.mermaid import class_of
from headrace.apps.flows.drawing.picture import Box, Picture, picture_of
from headrace.apps.flows.drawing.svg import cut
from headrace.apps.flows.form import MAIN, Flow
from headrace.apps.flows.triggers import triggers_of
from headrace.dashboard.graph import HEIGHT, WIDTH, draw
from headrace.dashboard.run_graph import MOST_NAME, Drawn, DrawnBox, DrawnLine, scene_of
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
    return FlowFacts(flow.name, kinds, flow.active)


def drawn_flow(flow: Flow) -> Drawn:
    """Return a flow with its boxes where people put them."""
    return _drawn(picture_of(flow))


def drawn_graph(layout: Layout) -> Drawn:
    """Return a graph of tasks."""
    scene = scene_of(layout)
    boxes = [
        DrawnBox(x, y, cut(box.label, MOST_NAME), f"{box.label} ({box.what})", "", note=cut(box.what, MOST_NAME))
        for box, (x, y) in zip(scene.boxes, scene.drawing.corners, strict=True)
    ]
    lines = [DrawnLine((line.source, line.target), line.way) for line in scene.drawing.lines]
    return Drawn(scene.drawing.width, scene.drawing.height, boxes, lines)


def _drawn(picture: Picture) -> Drawn:
    names = [box.name for box in picture.boxes]
    positions = {box.name: box.position for box in picture.boxes}
    drawing = draw(names, [(line.source, line.target) for line in picture.lines], positions)
    boxes = [_box(box, x, y) for box, (x, y) in zip(picture.boxes, drawing.corners, strict=True)]
    lines = []
    for line, way in zip(picture.lines, drawing.lines, strict=True):
        x, y = drawing.corners[way.source]
        kind = "" if line.kind == MAIN else "error" if line.kind == "error" else "other"
        lines.append(DrawnLine((way.source, way.target), way.way, kind, cut(line.label, MOST_NAME),
                               (x + WIDTH + 6, y + HEIGHT / 2 - 5)))  # fmt: skip
    return Drawn(drawing.width, drawing.height, boxes, _apart(lines))


def _apart(lines: list[DrawnLine]) -> list[DrawnLine]:
    """Return lines of which those with the same beginning have their labels below each other, each label once."""
    seen: dict[int, list[str]] = {}
    found = []
    for line in lines:
        known = seen.setdefault(line.ends[0], [])
        fresh = line.label not in known
        known += [line.label] if fresh and line.label else []
        place = (line.at[0], line.at[1] + 13 * (len(known) - 1))
        found.append(DrawnLine(line.ends, line.way, line.kind, line.label if fresh else "", place))
    return found


def _box(box: Box, x: float, y: float) -> DrawnBox:
    kinds = ["trigger" if box.shape is Shape.TRIGGER else "", class_of(box)]
    note = f"{box.type}{', disabled' if box.disabled else ''}"
    return DrawnBox(
        x, y, cut(box.name, MOST_NAME), f"{box.name} ({note})", "", note=cut(note, MOST_NAME),
        kind=" ".join(filter(None, kinds)),
    )  # fmt: skip
