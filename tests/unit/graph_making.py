"""Makes random graphs. A node that starts before all its predecessors have ended refers to none that may still run."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.unit.graph_parts import make_condition, make_failure, make_rule
from tests.unit.graph_tasks import ALWAYS, USUAL_TRIES

#: Kinds of nodes with their weights; within a graph of the last depth only the first three.
KINDS = {"task": 60, "value": 8, "wait": 2, "map": 12, "loop": 6, "workflow": 8}
MOST_DEPTH = 3
PATHS: tuple[list[str | int], ...] = ([], ["n"], ["word"], ["list"], ["list", 0])
#: Seconds.
SHORT = 0.01
LARGE = 40_000


@dataclass
class Budget:
    """Nodes that may still be made, of all graphs within each other."""

    nodes: int


@dataclass
class GraphMaker:
    """Makes one graph; its nodes come in an order of their own."""

    chance: random.Random
    budget: Budget
    depth: int
    is_root: bool = False
    #: Whether it is the body of a map or a loop.
    repeated: bool = False
    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    #: By node: those that have ended whenever it starts, or is passed over.
    before: dict[str, set[str]] = field(default_factory=dict)

    def make(self, count: int) -> dict[str, Any]:
        """Return a graph of about so many nodes."""
        while len(self.nodes) < count and self.budget.nodes > 0:
            if count - len(self.nodes) > 3 and self._with(0.12):
                self._add_switch()
            else:
                self._add_node()
        graph: dict[str, Any] = {"nodes": self.nodes, "edges": self.edges}
        if self._with(0.25):
            graph["output"] = {"picked": [self._reference(list(self._by_id())) for _ in range(2)]}
        # The order in which they stand says nothing of the order in which they run.
        self.chance.shuffle(self.nodes)
        return graph

    def _with(self, probability: float) -> bool:
        return self.chance.random() < probability

    def _by_id(self) -> dict[str, dict[str, Any]]:
        return {node["id"]: node for node in self.nodes}

    # Nodes

    def _add_node(self) -> None:
        node: dict[str, Any] = {"id": f"n{len(self.nodes)}"}
        sources = self._sources()
        edges = [edge for source in sources for edge in self._edges_from(source, node["id"])]
        early = len(edges) > 1 and self._with(0.35)
        if early:
            node["join"] = self.chance.choice(["any", *range(1, len(edges))])
        self._settle(node["id"], sources, early)
        self.budget.nodes -= 1
        usual = not early and all(self._is_plain(edge) for edge in edges)
        self._fill_in(node, usual)
        self.nodes.append(node)
        self.edges += edges

    def _fill_in(self, node: dict[str, Any], usual: bool) -> None:
        kinds = KINDS if self.depth > 1 and self.budget.nodes > 0 else {"task": 60, "value": 8, "wait": 2}
        kind = self.chance.choices(list(kinds), list(kinds.values()))[0]
        if kind != "task":
            node["kind"] = kind
        getattr(self, f"_make_{kind}")(node, usual)
        if "on_error" not in node and self._with(0.3):
            node["on_error"] = self.chance.choice(["continue", "output"])

    def _sources(self) -> list[str]:
        known = list(self._by_id())
        count = min(len(known), self.chance.choices([0, 1, 2, 3, 6], [10, 45, 25, 15, 5])[0])
        near = known[-12:] if self._with(0.8) else known
        return self.chance.sample(near, min(count, len(near)))

    def _settle(self, name: str, sources: list[str], early: bool) -> None:
        parts = [self.before[source] | {source} for source in sources]
        if not parts:
            self.before[name] = set()
        else:
            self.before[name] = set.intersection(*parts) if early else set.union(*parts)

    def _add_switch(self) -> None:
        """Add ways that exclude each other, with the node where they meet: it is given what the taken one put out."""
        first = f"n{len(self.nodes)}"
        sources = self._sources()[:1]
        self.edges += [{"from": source, "to": first} for source in sources]
        self._settle(first, sources, early=False)
        node = {
            "id": first,
            "task": "act",
            "kwargs": {"given": self._value(first), "plan": {"ports": ["left", "right"]}},
        }
        ways = [f"{first}-{way}" for way in ("left", "right")]
        meeting = f"{first}-meet"
        self.nodes += [node, *({"id": way, "task": "mix"} for way in ways)]
        self.nodes.append({"id": meeting, "task": "mix", "join": self.chance.choice(["any", 1])})
        for way in ways:
            self.edges.append({"from": first, "to": way, "port": way.rpartition("-")[2]})
            self.edges.append({"from": way, "to": meeting})
            self._settle(way, [first], early=False)
        self._settle(meeting, ways, early=True)
        self.budget.nodes -= 4

    # Edges

    def _edges_from(self, source: str, target: str) -> list[dict[str, Any]]:
        node = self._by_id()[source]
        ports = list(dict.fromkeys(node.get("kwargs", {}).get("plan", {}).get("ports", ["main"])))
        if node.get("on_error") == "output":
            ports.append("error")
        edges = []
        for port in self.chance.sample(ports, 1 if self._with(0.8) else min(2, len(ports))):
            edge: dict[str, Any] = {"from": source, "to": target}
            if port != "main":
                edge["port"] = port
            if self._with(0.25):
                edge["when"] = make_condition(self.chance, port)
            edges.append(edge)
        return edges

    def _is_plain(self, edge: dict[str, Any]) -> bool:
        """Whether what leads on over an edge has no words of Headrace's own in it."""
        return "port" not in edge or edge["port"] != "error" or "task" in self._by_id()[edge["from"]]

    # Values

    def _reference(self, names: list[str]) -> Any:
        nodes = [self._by_id()[name] for name in names]
        if not nodes or self._with(0.15):
            places = [{"$input": []}, {"$input": ["n"]}, {"$run": ["input"]}, {"$run": ["metadata", "nothing"]}]
            places += [{"$literal": {"$index": True}}, [{"$index": True}, 1]]
            return self.chance.choice(places)
        node = self.chance.choice(nodes)
        if node.get("on_error") == "output":
            return {"$node": node["id"], "path": ["kind"]}
        path = self.chance.choice(PATHS)
        return {"$node": node["id"], "path": path} if path else {"$node": node["id"]}

    def _value(self, name: str) -> Any:
        """Return a template for a node of which it is known what comes before."""
        known = sorted(self.before[name])
        one = self._reference(known)
        return {"one": one, "two": [self._reference(known), 5]} if self._with(0.2) else one

    # Kinds

    def _make_task(self, node: dict[str, Any], usual: bool) -> None:
        if usual and self._with(0.45):
            node["task"] = "mix"
            return
        node["task"] = "act"
        plan: dict[str, Any] = {"salt": self.chance.randrange(1_000)}
        node["kwargs"] = {"given": self._value(node["id"]), "plan": plan}
        if self._with(0.25):
            plan["ports"] = self.chance.choice([["main", "other"], ["left", "right"], ["main", "main", "other"]])
        if self._with(0.05):
            plan["snooze"] = True
        if self._with(0.02):
            plan["pad"] = LARGE
        if self._with(0.35):
            self._make_failing(node, plan)

    def _make_failing(self, node: dict[str, Any], plan: dict[str, Any]) -> None:
        plan |= make_failure(self.chance)
        if self._with(0.6):
            node["retry"] = make_rule(self.chance)
        if plan.get("fails", 0) >= node.get("retry", {}).get("max_tries", USUAL_TRIES):
            plan["fails"] = ALWAYS  # a try that is killed is one that the task counts, and nobody else does
        node["on_error"] = self.chance.choices(["stop", "continue", "output"], [3, 3, 4])[0]

    def _make_value(self, node: dict[str, Any], usual: bool) -> None:
        if not usual or self._with(0.5):
            node["value"] = self._value(node["id"])

    def _make_wait(self, node: dict[str, Any], usual: bool) -> None:
        del usual
        match self.chance.choices(["signal", "time", "both", "never"], [4, 2, 2, 2])[0]:
            case "signal":
                node["signal"] = {"$run": ["metadata", "signal"]}
            case "time":
                node["timeout"] = SHORT
            case "both":
                node |= {"signal": {"$run": ["metadata", "signal"]}, "timeout": 600}
            case "never":
                node |= {"signal": {"$run": ["metadata", "nobody"]}, "timeout": SHORT}

    def _make_map(self, node: dict[str, Any], usual: bool) -> None:
        del usual
        known = sorted(name for name in self.before[node["id"]] if self._by_id()[name].get("task"))
        node["over"] = self._list(known)
        node["body"] = self._body(repeated=True)
        if self._with(0.6):
            node["max_failed"] = self.chance.choice([None, 1, 2])

    def _list(self, known: list[str]) -> Any:
        if known and self._with(0.75):
            return {"$node": self.chance.choice(known), "path": ["list"]}
        length = self.chance.choice([0, 1, 2, 3, 5])
        return self.chance.choice([list(range(length)), [{"n": number} for number in range(length)], {"$input": []}])

    def _make_loop(self, node: dict[str, Any], usual: bool) -> None:
        node |= {
            "body": self._body(repeated=True),
            "while": make_condition(self.chance),
            "max_rounds": self.chance.randint(1, 4),
        }
        self._give_start(node, usual)

    def _make_workflow(self, node: dict[str, Any], usual: bool) -> None:
        node["body"] = self._body()
        self._give_start(node, usual)

    def _give_start(self, node: dict[str, Any], usual: bool) -> None:
        if not usual or self._with(0.4):
            node["input"] = self._value(node["id"])

    def _body(self, *, repeated: bool = False) -> dict[str, Any]:
        most = 4 if repeated or self.repeated else 8
        count = 1 if self._with(0.4) else self.chance.randint(2, most)
        inner = GraphMaker(self.chance, self.budget, self.depth - 1, repeated=repeated or self.repeated)
        return inner.make(min(count, max(1, self.budget.nodes)))
