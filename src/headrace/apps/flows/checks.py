"""Whether a flow can run: each reason why not names the node, where it stands, and what to use instead."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from headrace import InvalidInputError
from headrace.apps.flows.compiling import PASSING_TYPE, Plan, compile_plan
from headrace.apps.flows.form import MAIN, Flow, Node, Policy, parse_flow
from headrace.apps.flows.structure import arrange
from headrace.model.expressions.evaluation import check, node_names
from headrace.model.graph.checks import MAX_NODES, check_graph
from headrace.model.graph.nodes import Graph
from headrace.model.schedule import find_zone
from headrace.nodes.base import Fault, NodeType, Shape
from headrace.nodes.execute_workflow import Target, target_of
from headrace.nodes.hints import hint_of
from headrace.nodes.registry import find_type

LOG = logging.getLogger("headrace.flows")

#: Finds another flow by its id or name; None where there is none.
Find = Callable[[str], Flow | None]
#: Flows that run one another are followed so far.
MAX_DEPTH = 4
_APART = "use executeWorkflow with waitForSubWorkflow off: such runs are counted by themselves"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a flow cannot run."""

    message: str
    #: The node, its type and its place on the canvas; empty where it is of the whole flow.
    node: str = ""
    type: str = ""
    position: tuple[float, float] | None = None
    #: The path in the JSON: "flow.nodes[3].parameters.mode".
    field: str = "flow"
    #: What to use in its place.
    instead: str = ""

    def __str__(self) -> str:
        """Return it in one line."""
        place = "" if self.position is None else f" at {_place(self.position)}"
        where = f"node {self.node!r} ({self.type}{place}): " if self.node else ""
        return f"{self.field}: {where}{self.message}" + (f"; {self.instead}" if self.instead else "")

    def to_json(self) -> dict[str, Any]:
        """Return it for machines."""
        place = None if self.position is None else list(self.position)
        return {
            "field": self.field, "node": self.node or None, "type": self.type or None, "position": place,
            "message": self.message, "instead": self.instead or None,
        }  # fmt: skip


def _place(position: tuple[float, float]) -> str:
    return f"({position[0]:g}, {position[1]:g})"


@dataclass(slots=True)
class Checked:
    """What came of a look at a flow: a graph, or problems."""

    flow: Flow
    problems: list[Problem] = field(default_factory=list)
    #: What people may want to know of a flow that can run.
    notes: list[Problem] = field(default_factory=list)
    plan: Plan | None = None
    graph: Graph | None = None

    @property
    def runs(self) -> bool:
        """Whether it can run."""
        return self.graph is not None


def check_flow(flow: Flow, find: Find = lambda _: None) -> Checked:
    """Look at a flow, and at those that it runs."""
    checked = _Checker(flow, find, (), Counter()).check()
    if checked.plan is not None:
        try:
            checked.graph = check_graph(compile_plan(checked.plan))
        except InvalidInputError as error:
            checked.problems.append(Problem(f"makes a graph that cannot run: {error}"))
    return checked


class _Checker:
    """Looks at one flow."""

    def __init__(self, flow: Flow, find: Find, around: tuple[str, ...], seen: Counter[str]) -> None:
        """`around`: the flows that it stands in. `seen`: "nodes" that were looked at, in all of them."""
        self._flow, self._find, self._around, self._seen = flow, find, around, seen
        self._checked = Checked(flow)
        self._types: dict[str, NodeType] = {}
        self._inner: dict[str, Plan] = {}

    def check(self) -> Checked:
        """Return all there is to say; a plan where nothing is wrong."""
        self._seen["nodes"] += len(self._flow.nodes)
        if self._seen["nodes"] > MAX_NODES:
            rule = f"has more than {MAX_NODES} nodes, those of the flows that it runs included"
            self._problems.append(Problem(rule, field="flow.nodes", instead=_APART))
            return self._checked
        for node in self._flow.nodes.values():
            self._look_at(node)
        self._look_at_whole()
        if not self._problems:
            self._plan()
        return self._checked

    def _look_at_whole(self) -> None:
        if not any(self._begins(name) for name in self._types):
            rule = "has no trigger that begins it: add one, such as headrace.manual"
            self._problems.append(Problem(rule, field="flow.nodes"))
        for at, name in self._flow.loose:
            self._problems.append(Problem(f"leads to {name!r}, and there is no such node; remove it", field=at))
        self._check_zone()
        self._note_settings()

    def _plan(self) -> None:
        """Arrange the nodes, each of which can run."""
        refers = {name: _names_in(self._flow.nodes[name]) for name in self._types}
        block, faults = arrange(self._flow, self._types, lambda name: refers[name])
        for fault in faults:
            self._blame(self._flow.nodes[fault.node], fault.message)
        names = Counter(_all_names(block))
        self._note_dead(set(names))
        for name in (name for name, count in names.items() if count > 1):
            self._note(self._flow.nodes[name], "runs in each round of a loop, and once more outside: draw two if not")
        if not faults:
            self._checked.plan = Plan(self._flow, self._types, block, refers, self._inner)

    @property
    def _problems(self) -> list[Problem]:
        return self._checked.problems

    def _begins(self, name: str) -> bool:
        return self._types[name].shape is Shape.TRIGGER and not self._flow.nodes[name].disabled

    def _check_zone(self) -> None:
        try:
            find_zone(self._flow.timezone)
        except InvalidInputError as error:
            self._problems.append(Problem(f"{error.rule}, got {error.value!r}", field="flow.settings.timezone"))

    def _note_settings(self) -> None:
        if (self._flow.settings.get("executionTimeout") or -1) != -1:
            rule = "is not kept to: cancel a run with `headrace run cancel`, or bound its requests by their timeout"
            self._checked.notes.append(Problem(rule, field="flow.settings.executionTimeout"))

    def _look_at(self, node: Node) -> None:
        if self._serves_others(node):
            self._note(node, "is connected as a model or a tool: the models of [llm] are used in its place")
            return
        found = find_type(PASSING_TYPE if self._only_passes(node) else node.type, node.parameters)
        if found is None:
            self._tell_unknown(node)
        elif found.shape is not Shape.NOTE:
            self._types[node.name] = found
            if not node.disabled:
                self._look_closer(node, found)

    def _tell_unknown(self, node: Node) -> None:
        if self._is_alone(node):
            self._note(node, "never runs: nothing leads to it, and it leads nowhere; there is no such node type here")
        else:
            self._blame(node, "there is no such node type here", instead=hint_of(node.type))

    def _look_closer(self, node: Node, found: NodeType) -> None:
        self._check_version(node, found)
        self._check_inputs(node, found)
        self._note_policies(node, found)
        for fault in _faults(found, node):
            self._blame(node, f"parameter {fault.parameter} {fault.message}", f"parameters.{fault.parameter}")
        try:
            check(dict(node.parameters), field="parameters")
        except InvalidInputError as error:
            self._blame(node, f"{error.rule}, got {error.value!r:.80}", error.field)
        if found.shape is Shape.FLOW:
            self._look_inside(node)

    @staticmethod
    def _only_passes(node: Node) -> bool:
        """Whether a node does nothing but pass its items on, so that its type need not be known."""
        return node.disabled and find_type(node.type, node.parameters) is None

    def _is_alone(self, node: Node) -> bool:
        return not any(node.name in (link.source, link.target) for link in self._flow.connections)

    def _check_inputs(self, node: Node, found: NodeType) -> None:
        """Blame connections to inputs that a node does not have: their items would be lost."""
        for link in self._flow.connections:
            if link.target == node.name and link.kind == MAIN:
                inputs = found.ports(node.parameters, node.version).inputs
                if link.input >= max(inputs, 1):
                    rule = f"has inputs 0 to {inputs - 1}, and {link.source!r} leads to input {link.input}"
                    self._blame(node, rule if inputs > 1 else f"has one input, and {link.source!r} leads to another")

    def _note_policies(self, node: Node, found: NodeType) -> None:
        """Tell of what is asked of a node as a whole and can only be done within it."""
        if found.shape is Shape.FLOW and node.tries is not None:
            self._note(node, "retryOnFail is not kept to: write it at the nodes of the flow that it runs")
        if found.shape is Shape.LOOP and (node.tries is not None or node.policy is not Policy.STOP):
            self._note(node, "retryOnFail and onError are not kept to: write them at the nodes within the loop")

    def _check_version(self, node: Node, found: NodeType) -> None:
        lowest, highest = found.versions
        if not lowest <= node.version <= highest:
            rule = f"typeVersion must be from {lowest:g} to {highest:g}, got {node.version:g}"
            self._blame(node, rule, "typeVersion")

    def _serves_others(self, node: Node) -> bool:
        """Whether a node leads to others as a model or tool alone."""
        kinds = {link.kind for link in self._flow.connections if link.source == node.name}
        return bool(kinds) and MAIN not in kinds

    def _look_inside(self, node: Node) -> None:
        try:
            target = target_of(node.parameters)
            flow = self._find_flow(target)
        except InvalidInputError:
            return  # its own check has said so
        if flow is None:
            shown = target.name or target.id
            self._blame(node, f"there is no flow {shown!r}; import it first, or put it beside this one")
        elif flow.name in (*self._around, self._flow.name):
            self._blame(node, f"runs {flow.name!r} within itself; use splitInBatches to do something again")
        elif len(self._around) >= MAX_DEPTH:
            self._blame(node, f"stands more than {MAX_DEPTH} flows deep")
        else:
            self._take_in(node, flow)

    def _take_in(self, node: Node, flow: Flow) -> None:
        inner = _Checker(flow, self._find, (*self._around, self._flow.name), self._seen).check()
        if inner.plan is not None:
            self._inner[node.name] = inner.plan
        else:
            self._blame(node, f"runs {flow.name!r}, which cannot run: {inner.problems[0]}")

    def _find_flow(self, target: Target) -> Flow | None:
        if target.flow is not None:
            return parse_flow(target.flow)
        return self._find(target.id) or (self._find(target.name) if target.name else None)

    def _note_dead(self, live: set[str]) -> None:
        for name in self._types:
            if name not in live and not self._flow.nodes[name].disabled:
                self._note(self._flow.nodes[name], "never runs: no trigger leads to it")

    def _blame(self, node: Node, message: str, path: str = "", instead: str = "") -> None:
        self._problems.append(_problem(node, message, path, instead))

    def _note(self, node: Node, message: str) -> None:
        self._checked.notes.append(_problem(node, message))


def _faults(found: NodeType, node: Node) -> list[Fault]:
    """Return what a type says of a node's parameters. Types of other packages may do anything."""
    try:
        found.ports(node.parameters, node.version)
        return found.check(node.parameters, node.version)
    except Exception as error:
        LOG.exception("node type %s cannot check the parameters of node %r", found.name, node.name)
        return [Fault("", f"cannot be checked: {type(error).__name__}: {error}")]


def _problem(node: Node, message: str, path: str = "", instead: str = "") -> Problem:
    at = f"{node.field}.{path}" if path else node.field
    return Problem(message, node.name, node.type, node.position, at, instead)


def _names_in(node: Node) -> frozenset[str]:
    return frozenset() if node.disabled else node_names(dict(node.parameters))


def _all_names(block: Any) -> Iterable[str]:
    yield from block.names
    for body in block.loops.values():
        yield from _all_names(body)
