"""What a run of a graph has to come to, worked out from its JSON form node by node: no jobs, no sums, no stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.unit.graph_tasks import ERRORS, USUAL_TRIES, failures_of, port_of, worth

SUCCESS, FAILED, CANCELLED, SKIPPED = "success", "failed", "cancelled", "skipped"
#: Stands for a message of Headrace's own: nothing here depends on how it is worded.
SOME_MESSAGE = "…"


@dataclass(frozen=True)
class End:
    """How a node, a graph, or a run ended."""

    state: str
    output: Any = None
    port: str = "main"
    kind: str | None = None


@dataclass
class Oracle:
    """Plays one run. `run`: what templates find under `$run`; `signals`: payloads by key; all others never come."""

    run: Mapping[str, Any]
    signals: Mapping[str, Any]
    #: The end of every node, by path.
    nodes: dict[str, End] = field(default_factory=dict)

    def play(self, graph: Mapping[str, Any], given: Any, scope: str = "", index: int | None = None) -> End:
        """Return the end of a graph that is given a value."""
        return _Graph(self, graph, given, scope, index).play()


@dataclass
class _Graph:
    """One graph where it stands in a run."""

    oracle: Oracle
    graph: Mapping[str, Any]
    given: Any
    scope: str
    index: int | None
    ends: dict[str, End] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nodes = {node["id"]: node for node in self.graph["nodes"]}
        self.edges = self.graph.get("edges", [])

    def play(self) -> End:
        """Let one node after the other end, and return what the graph comes to."""
        left = list(self.nodes)
        while left:
            name = next(one for one in left if all(edge["from"] in self.ends for edge in self._into(one)))
            left.remove(name)
            self.ends[name] = self.oracle.nodes[self._path(name)] = self._end(self.nodes[name])
        for name, node in self.nodes.items():
            end = self.ends[name]
            if end.state == CANCELLED or (end.state == FAILED and node.get("on_error", "stop") == "stop"):
                return End(FAILED, kind=end.kind)
        return End(SUCCESS, self._output())

    def _path(self, name: str) -> str:
        return f"{self.scope}/{name}" if self.scope else name

    def _into(self, name: str) -> list[Mapping[str, Any]]:
        return [edge for edge in self.edges if edge["to"] == name]

    def _output(self) -> Any:
        if "output" in self.graph:
            return self._fill(self.graph["output"])
        leaves = [name for name in self.nodes if not any(edge["from"] == name for edge in self.edges)]
        outputs = {name: self.ends[name].output if self.ends[name].state == SUCCESS else None for name in leaves}
        if len(leaves) == 1:
            return outputs[leaves[0]]
        return {name: value for name, value in outputs.items() if self.ends[name].state in (SUCCESS, SKIPPED)}

    # Ways

    def _end(self, node: Mapping[str, Any]) -> End:
        edges = self._into(node["id"])
        join = node.get("join", "all")
        need = len(edges) if join == "all" else 1 if join == "any" else join
        if sum(map(self._leads, edges)) < need:
            return End(SKIPPED)
        end = getattr(self, f"_{node.get('kind', 'task')}")(node)
        if end.state == FAILED and node.get("on_error") == "output":
            message = "no luck" if node.get("kind", "task") == "task" else SOME_MESSAGE
            return End(FAILED, {"kind": end.kind, "message": message}, kind=end.kind)
        return end

    def _leads(self, edge: Mapping[str, Any]) -> bool:
        end, port = self.ends[edge["from"]], edge.get("port", "main")
        if "when" in edge and not holds(edge["when"], end.output):
            return False
        if end.state == SUCCESS:
            return port == end.port
        on_error = self.nodes[edge["from"]].get("on_error", "stop")
        return end.state == FAILED and (on_error, port) in (("continue", "main"), ("output", "error"))

    # Values

    def _fill(self, template: Any) -> Any:
        match template:
            case [*parts]:
                return [self._fill(part) for part in parts]
            case {"$node": name, **rest}:
                return at(self.ends[name].output, rest.get("path", []))
            case {"$input": path}:
                return at(self.given, path)
            case {"$run": path}:
                return at(self.oracle.run, path)
            case {"$index": True}:
                return self.index
            case {"$literal": value}:
                return value
            case {**members}:
                return {key: self._fill(value) for key, value in members.items()}
        return template

    def _usual(self, node: Mapping[str, Any]) -> Any:
        """Return what a node is given that says nothing of it."""
        sources = list(dict.fromkeys(edge["from"] for edge in self._into(node["id"])))
        if not sources:
            return self.given
        led = {edge["from"] for edge in self._into(node["id"]) if self._leads(edge)}
        outputs = [self.ends[source].output if source in led else None for source in sources]
        return outputs[0] if len(outputs) == 1 else outputs

    def _start(self, node: Mapping[str, Any]) -> Any:
        return self._fill(node["input"]) if "input" in node else self._usual(node)

    # Kinds

    def _task(self, node: Mapping[str, Any]) -> End:
        if "kwargs" not in node:
            return End(SUCCESS, worth(self._usual(node), {}))
        plan = self._fill(node["kwargs"]["plan"])
        output = worth(self._fill(node["kwargs"]["given"]), plan)
        if failures_of(output, plan) < self._tries(node, plan.get("how")):
            return End(SUCCESS, output, port_of(output, plan))
        if plan["how"] == "cancel":
            return End(CANCELLED, kind="cancelled")
        return End(FAILED, kind={"fail": "failed"}.get(plan["how"], plan["how"]))

    def _tries(self, node: Mapping[str, Any], how: str | None) -> int:
        rule = node.get("retry", {})
        if how in ("fail", "cancel"):
            return 1
        wanted = rule.get("on")
        if how in ERRORS and wanted and not {kind.__name__ for kind in ERRORS[how].__mro__} & set(wanted):
            return 1
        tries: int = rule.get("max_tries", 4) if "retry" in node else USUAL_TRIES
        return tries

    def _value(self, node: Mapping[str, Any]) -> End:
        return End(SUCCESS, self._fill(node["value"]) if "value" in node else self._usual(node))

    def _wait(self, node: Mapping[str, Any]) -> End:
        if "signal" not in node:
            return End(SUCCESS)
        key = self._fill(node["signal"])
        if key not in self.oracle.signals:
            return End(FAILED, kind="signal_timeout")
        return End(SUCCESS, self.oracle.signals[key])

    def _workflow(self, node: Mapping[str, Any]) -> End:
        end = self.oracle.play(node["body"], self._start(node), self._path(node["id"]))
        return End(end.state, end.output, kind=end.kind)

    def _loop(self, node: Mapping[str, Any]) -> End:
        value, path = self._start(node), self._path(node["id"])
        for number in range(node["max_rounds"]):
            end = self.oracle.play(node["body"], value, f"{path}[{number}]", number)
            value = end.output
            if end.state != SUCCESS or not holds(node["while"], value):
                break
        return End(end.state, value, kind=end.kind)

    def _map(self, node: Mapping[str, Any]) -> End:
        entries, path, body = self._fill(node["over"]), self._path(node["id"]), node["body"]
        if not isinstance(entries, list):
            return End(FAILED, kind="invalid_input")
        ends = []
        for number, entry in enumerate(entries):
            scope = f"{path}[{number}]"
            ends.append(self.oracle.play(body, entry, scope, number))
            if len(body["nodes"]) > 1 or "output" in body:
                self.oracle.nodes[scope] = ends[-1]
        most = node.get("max_failed", 0)
        if most is not None and sum(end.state != SUCCESS for end in ends) > most:
            return End(FAILED, kind="entries_failed")
        return End(SUCCESS, [end.output for end in ends])


MISSING = object()


def at(value: Any, path: list[str | int]) -> Any:
    """Return what lies at a path, None where nothing does."""
    found = look(value, path)
    return None if found is MISSING else found


def look(value: Any, path: list[str | int]) -> Any:
    """Return what lies at a path, or `MISSING`."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def holds(condition: Mapping[str, Any], value: Any) -> bool:
    """Whether a condition of those that worlds have holds."""
    match condition:
        case {"all": parts}:
            return all(holds(part, value) for part in parts)
        case {"any": parts}:
            return any(holds(part, value) for part in parts)
        case {"not": part}:
            return not holds(part, value)
    path = condition.get("path", [])
    if isinstance(path, str):
        path = [int(step) if step.isdigit() else step for step in path.split(".")]
    found, wanted = look(value, path), condition.get("value")
    return _OPS[condition["op"]](found, wanted)


_OPS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda found, wanted: bool(found == wanted),
    "in": lambda found, wanted: found in wanted,
    "lt": lambda found, wanted: isinstance(found, int) and found < wanted,
    "ge": lambda found, wanted: isinstance(found, int) and found >= wanted,
    "exists": lambda found, _: found is not MISSING,
    "truthy": lambda found, _: found is not MISSING and bool(found),
}
