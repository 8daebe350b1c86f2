"""How a run is to be worked: whole, by one job, or node by node; and how long its nodes may take in a row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from headrace.model.errors import InvalidInputError
from headrace.model.explaining import span
from headrace.model.graph.nodes import Container, Graph, LoopNode, MapNode, Node, TaskNode, WaitNode
from headrace.model.graph.order import graphs_within, longest_ahead
from headrace.model.run import Level

HYBRID = "hybrid"
MODES = (HYBRID, *Level)
#: A workflow with one of these tags is worked at that level, unless a task needs a job of its own.
TAGS: Mapping[str, Level] = {f"schedule:{level}": level for level in Level}
#: Sums beyond this are no estimates any more, and still are durations.
_LONGEST = timedelta(days=36_525).total_seconds()


@dataclass(frozen=True, slots=True)
class LevelSettings:
    """What `choose_level` goes by where neither tags nor tasks decide. Raises InvalidInputError for another mode."""

    #: "hybrid": by the graph; "workflow_level" or "node_level": always that.
    default_mode: str = HYBRID
    #: More nodes, or a longer estimate, are worked node by node.
    most_nodes: int = 10
    longest: timedelta = timedelta(minutes=5)

    def __post_init__(self) -> None:
        if self.default_mode not in MODES:
            raise InvalidInputError("default_mode", f"must be one of {', '.join(MODES)}", self.default_mode)


def choose_level(
    graph: Graph, *, settings: LevelSettings, estimates: Mapping[str, timedelta], own_jobs: Collection[str]
) -> tuple[Level, str]:
    """Return the level of a run of a checked graph, and why, in a clause for people.

    `estimates`: how long tasks took lately, by name. `own_jobs`: tasks that can only run as jobs of their own, because
    something counts their jobs: a gate, at most one delivery, a handler that gathers, a farm that runs them.

    >>> graph = Graph((TaskNode("a", "fetch"), TaskNode("b", "parse")))
    >>> choose_level(graph, settings=LevelSettings(), estimates={"fetch": timedelta(seconds=2)}, own_jobs=())
    (<Level.WORKFLOW: 'workflow_level'>, '2 nodes, at most 10; about 2.0 s, at most 5 m')
    """
    # Before all wishes: within another job nobody would count them.
    if own := _own_job(graph, own_jobs):
        return Level.NODE, own
    for tag in graph.tags:
        if tag in TAGS:
            return TAGS[tag], f"tag {tag}"
    if settings.default_mode != HYBRID:
        return Level(settings.default_mode), f"default_mode is {settings.default_mode}"
    return _by_graph(graph, settings, estimates)


def _own_job(graph: Graph, own_jobs: Collection[str]) -> str | None:
    for one in graphs_within(graph):
        for node in one.graph.nodes:
            if isinstance(node, TaskNode) and node.task in own_jobs:
                why = "passes a gate, is delivered at most once, gathers or runs on a farm"
                return f"task {node.task} {why}: it needs jobs of its own"
    return None


def _by_graph(graph: Graph, settings: LevelSettings, estimates: Mapping[str, timedelta]) -> tuple[Level, str]:
    count, about = count_nodes(graph), estimate(graph, estimates)
    if count > settings.most_nodes:
        return Level.NODE, f"{count} nodes, more than {settings.most_nodes}"
    for one in graphs_within(graph):
        for node in one.graph.nodes:
            if isinstance(node, WaitNode):
                return Level.NODE, f"node {node.id} waits"
    if about is not None and about > settings.longest:
        return Level.NODE, f"about {span(about)}, more than {span(settings.longest)}"
    nodes = f"{count} node{'' if count == 1 else 's'}, at most {settings.most_nodes}"
    return Level.WORKFLOW, nodes if about is None else f"{nodes}; about {span(about)}, at most {span(settings.longest)}"


def count_nodes(graph: Graph) -> int:
    """Return how many nodes a graph has, with those of graphs within it; a map counts as one."""
    count, todo = 0, [graph]
    for one in todo:  # which grows
        count += len(one.nodes)
        todo.extend(node.body for node in one.nodes if isinstance(node, Container) and not isinstance(node, MapNode))
    return count


def estimate(graph: Graph, estimates: Mapping[str, timedelta]) -> timedelta | None:
    """Return how long the slowest way through a checked graph takes; None when nothing is known of any node.

    A node takes what it is declared to, a task else what `estimates` says, a map what one entry does, a loop all its
    rounds. What is not known takes no time.
    """
    known = _seconds(graph, estimates)
    return None if known is None else timedelta(seconds=min(known, _LONGEST))


def _seconds(graph: Graph, estimates: Mapping[str, timedelta]) -> float | None:
    by_node = {node.id: _node_seconds(node, estimates) for node in graph.nodes}
    if all(seconds is None for seconds in by_node.values()):
        return None
    return max(longest_ahead(graph, {name: seconds or 0.0 for name, seconds in by_node.items()}).values())


def _node_seconds(node: Node, estimates: Mapping[str, timedelta]) -> float | None:
    if node.options.estimate is not None:
        return node.options.estimate.total_seconds()
    if isinstance(node, TaskNode):
        known = estimates.get(node.task)
        return None if known is None else known.total_seconds()
    if not isinstance(node, Container):
        return None
    inner = _seconds(node.body, estimates)
    return inner * node.most if isinstance(node, LoopNode) and inner is not None else inner
