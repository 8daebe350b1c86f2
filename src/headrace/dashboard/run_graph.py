"""The graph of a run as it is drawn: its boxes once, and what of them changes as a short text with a record per box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any

from headrace.apps.flows.drawing.layout import Place
from headrace.apps.flows.drawing.svg import cut
from headrace.apps.flows.form import parse_flow
from headrace.apps.flows.naming import ids_of
from headrace.dashboard.formats import span
from headrace.dashboard.graph import Drawing, Line, draw, fold
from headrace.engine.workflows.tree import TreeNode
from headrace.model.errors import InvalidInputError
from headrace.model.graph.critical import Times, critical_path
from headrace.model.graph.layout import Layout
from headrace.model.graph.nodes import TaskNode, kind_of
from headrace.model.graph.paths import join_path
from headrace.model.run import NodeState

#: A record: a letter of the state, "!" on the critical path, and what stands beside the state in so many characters.
REMARK = 14
RECORD = REMARK + 2
#: Letters of a name that a box has room for, and that are told where there is more.
MOST_NAME, MOST_TITLE = 23, 200
#: Tasks that nodes of flows call.
_OF_FLOWS = "flows."
#: Letters of states, as the script of the page knows them too.
LETTERS = {
    NodeState.PENDING: "p", NodeState.RUNNING: "r", NodeState.PARKED: "w", NodeState.SUCCESS: "s",
    NodeState.FAILED: "f", NodeState.CANCELLED: "c", NodeState.SKIPPED: "k",
}  # fmt: skip
#: Of several nodes in one box, the first of these that any is in is the state of the box.
_WORST = (
    NodeState.FAILED, NodeState.RUNNING, NodeState.PARKED, NodeState.PENDING, NodeState.CANCELLED, NodeState.SUCCESS,
    NodeState.SKIPPED,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Box:
    """A node, or several that are alike."""

    #: ids of nodes of the graph
    members: tuple[str, ...]
    label: str
    #: what it is: the task it calls, or its kind
    what: str


@dataclass(frozen=True, slots=True)
class Scene:
    """A graph as it is drawn, whatever becomes of its nodes."""

    boxes: tuple[Box, ...]
    drawing: Drawing
    #: Boxes that lead to each, by their numbers.
    before: Mapping[int, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Mark:
    """What has become of a box."""

    state: NodeState
    critical: bool = False
    remark: str = ""

    @property
    def record(self) -> str:
        """Return it as a record of fixed length."""
        return f"{LETTERS[self.state]}{'!' if self.critical else '-'}{self.remark[:REMARK]:{REMARK}}"


@dataclass(frozen=True, slots=True)
class DrawnBox:
    """A box where it stands, with what has become of it."""

    #: "x y" of its left upper corner
    place: str
    #: What is written in it, and what it is called in full.
    label: str
    title: str
    #: Path of its node in the run; empty where it is several.
    path: str
    mark: Mark | None = None
    #: Below the name, and further classes, of a box without a state.
    note: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A line. `kind`: "", "critical", "error" or "other"; `label`: what stands at a place beside its beginning."""

    #: Numbers of its boxes: "0 2".
    ends: str
    way: str
    kind: str = ""
    label: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A graph for a template."""

    width: float
    height: float
    boxes: Sequence[DrawnBox]
    lines: Sequence[DrawnLine]

    @property
    def text(self) -> str:
        """What has become of the boxes, as it is sent while it changes."""
        return "".join(box.mark.record for box in self.boxes if box.mark is not None)


def drawn(layout: Layout, scope: str, nodes: Sequence[TreeNode], labels: Mapping[str, str], now: datetime) -> Drawn:
    """Return the graph at a scope of a run as it is now; `nodes`: those of it."""
    scene = scene_of(layout)
    marks = marks_of(scene, {node.path.rpartition("/")[2]: node for node in nodes}, now)
    boxes = []
    for box, mark, corner in zip(scene.boxes, marks, scene.drawing.corners, strict=True):
        name = labels.get(box.label, box.label)
        path = join_path(scope, box.members[0]) if len(box.members) == 1 else ""
        boxes.append(DrawnBox(place(corner), cut(name, MOST_NAME), title_of(name, box.what), path, mark))
    steps = _steps(scene, marks)
    lines = [
        drawn_line(line, "critical" if (line.source, line.target) in steps else "") for line in scene.drawing.lines
    ]
    return Drawn(scene.drawing.width, scene.drawing.height, boxes, lines)


def title_of(name: str, what: str) -> str:
    """Return what a box is called in full, within bounds: people may name nodes of flows as they like.

    >>> title_of("a", "fetch"), title_of("fetch", "fetch")
    ('a (fetch)', 'fetch')
    """
    return cut(name, MOST_TITLE) if what == name else f"{cut(name, MOST_TITLE)} ({cut(what, MOST_TITLE)})"


def drawn_line(line: Line, kind: str = "", label: str = "", at: Place = (0.0, 0.0)) -> DrawnLine:
    """Return a line for a template."""
    return DrawnLine(f"{line.source} {line.target}", line.way, kind, label, place(at))


def place(corner: Place) -> str:
    """Return a place as SVG has it.

    >>> place((12.0, 0.5))
    '12 0.5'
    """
    return f"{corner[0]:g} {corner[1]:g}"


def _steps(scene: Scene, marks: Sequence[Mark]) -> set[tuple[int, int]]:
    """Return the lines of the critical path, which lead between neighbours on it."""
    path = [number for number, mark in enumerate(marks) if mark.critical]
    path.sort(key=lambda number: scene.drawing.corners[number][0])
    return set(pairwise(path))


@lru_cache(maxsize=64)
def scene_of(layout: Layout) -> Scene:
    """Return the drawing of a graph: the same layout is worked out once."""
    names = list(layout.nodes)
    links = list(dict.fromkeys((edge.source, edge.target) for edge in layout.graph.edges))
    whats = {name: node.task if isinstance(node, TaskNode) else kind_of(node) for name, node in layout.nodes.items()}
    # Each node of a flow is drawn by itself: people gave it a name.
    kinds = {name: name if what.startswith(_OF_FLOWS) else what for name, what in whats.items()}
    groups = fold(names, links, kinds)
    first = {name: group[0] for group in groups for name in group}
    drawn = list(dict.fromkeys((first[source], first[target]) for source, target in links))
    drawing = draw([group[0] for group in groups], drawn)
    before: dict[int, list[int]] = {number: [] for number in range(len(groups))}
    for line in drawing.lines:
        before[line.target].append(line.source)
    boxes = tuple(Box(tuple(group), _label(group, whats), whats[group[0]]) for group in groups)
    return Scene(boxes, drawing, before)


def _label(group: Sequence[str], whats: Mapping[str, str]) -> str:
    return group[0] if len(group) == 1 else f"{len(group)} × {whats[group[0]]}"


def node_words(translate: Callable[..., str]) -> dict[str, tuple[str, str]]:
    """Return the state of each letter, with what people call it."""
    return {letter: (str(state), translate(state)) for state, letter in LETTERS.items()}


@lru_cache(maxsize=64)
def labels_of(root: Layout) -> Mapping[str, str]:
    """Return what people call nodes, by their ids, in a graph that was made of a flow; others are called by their ids.

    >>> from headrace.model.graph.nodes import Graph
    >>> flow = {"name": "A", "nodes": [{"name": "Get prices", "type": "headrace.noOp"}]}
    >>> labels_of(Layout(Graph((), source=flow)))
    {'get-prices': 'Get prices'}
    """
    source: Any = root.graph.source
    if not isinstance(source, dict) or "nodes" not in source:
        return {}
    try:
        return {one: name for name, one in ids_of(parse_flow(source).nodes).items()}
    except InvalidInputError:
        return {}


def marks_of(scene: Scene, nodes: Mapping[str, TreeNode], now: datetime) -> list[Mark]:
    """Return what has become of each box; `nodes`: those of the graph by their ids."""
    inside = [[nodes[name] for name in box.members if name in nodes] for box in scene.boxes]
    times = {number: found for number, some in enumerate(inside) if (found := _times(some, now)) is not None}
    names = {number: str(number) for number in range(len(scene.boxes))}
    critical = critical_path(
        {names[number]: [names[one] for one in scene.before[number]] for number in names},
        {names[number]: one for number, one in times.items()},
    )
    return [_mark(some, times.get(number), names[number] in critical) for number, some in enumerate(inside)]


def _mark(nodes: Sequence[TreeNode], times: Times | None, critical: bool) -> Mark:
    state = state_of(nodes)
    parts = nodes if len(nodes) > 1 else entries_of(nodes[0]) if nodes else []
    if parts and state is not NodeState.SKIPPED:
        done = sum(one.state.final for one in parts)
        return Mark(state, critical, f"{done}/{len(parts)}")
    shown = times is not None and state not in (NodeState.SKIPPED, NodeState.PENDING, NodeState.PARKED)
    return Mark(state, critical, span(times[1] - times[0]) if times is not None and shown else "")


def entries_of(node: TreeNode) -> Sequence[TreeNode]:
    """Return the entries of a map and the rounds of a loop; other nodes have none."""
    return node.children if node.kind in ("map", "loop") else []


def state_of(nodes: Sequence[TreeNode]) -> NodeState:
    """Return what has become of several nodes together."""
    states = {node.state for node in nodes}
    return next((state for state in _WORST if state in states), NodeState.PENDING)


def counts_of(nodes: Sequence[TreeNode]) -> list[tuple[NodeState, int]]:
    """Return how many nodes are in each state that any is in."""
    counts = Counter(node.state for node in nodes)
    return [(state, counts[state]) for state in NodeState if counts[state]]


def _times(nodes: Sequence[TreeNode], now: datetime) -> Times | None:
    """Return from when to when some nodes were worked on; what was not begun, or taken over, was not.

    What waits for a worker or a signal is what others wait for: it takes until now.
    """
    begun = [node for node in nodes if node.started_at is not None and not node.reused]
    if not begun:
        waits = any(node.job_id is not None or node.state is NodeState.PARKED for node in nodes)
        return (now, now) if waits else None
    ends = [node.finished_at or (node.started_at if node.state.final else now) for node in begun]
    first = min(node.started_at for node in begun if node.started_at is not None)
    return first, max(first, *(end for end in ends if end is not None))
