"""Flows as values, read from the JSON that people draw and export; what is not known here is kept as it was written.

{"name": "Prices", "nodes": [
    {"id": "1", "name": "Start", "type": "headrace.manual", "typeVersion": 1, "position": [0, 0], "parameters": {}},
    {"id": "2", "name": "Cheap", "type": "headrace.filter", "typeVersion": 2, "position": [220, 0],
     "parameters": {"conditions": {…}}, "onError": "continueErrorOutput", "retryOnFail": true, "maxTries": 3}],
 "connections": {"Start": {"main": [[{"node": "Cheap", "type": "main", "index": 0}]]}},
 "settings": {"timezone": "Europe/Berlin", "errorWorkflow": "Alarm"}}
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from headrace.apps.flows.reading import FlowError, flag, listed, members, number, text

MAIN = "main"
#: Ports that a node may have of one side.
MOST_PORTS = 64
#: Tries of a node with `retryOnFail`, and the longest wait between two: as elsewhere.
LEAST_TRIES, USUAL_TRIES, MOST_TRIES = 2, 3, 5
USUAL_WAIT_MS, MOST_WAIT_MS = 1_000, 5_000


class Policy(StrEnum):
    """`onError`: what becomes of items that failed."""

    STOP = "stopWorkflow"
    CONTINUE = "continueRegularOutput"
    OUTPUT = "continueErrorOutput"


@dataclass(frozen=True, slots=True)
class Node:
    """A node as it was drawn."""

    name: str
    type: str
    version: float
    parameters: Mapping[str, Any]
    #: Where it stands in the JSON, "flow.nodes[3]".
    field: str
    id: str = ""
    position: tuple[float, float] | None = None
    disabled: bool = False
    policy: Policy = Policy.STOP
    #: None: it is not tried again.
    tries: int | None = None
    wait: timedelta = timedelta()
    always_output: bool = False
    execute_once: bool = False


@dataclass(frozen=True, slots=True)
class Connection:
    """Leads the items of an output port to an input port."""

    source: str
    port: int
    target: str
    input: int = 0
    #: Other kinds than "main" connect models and tools with nodes of agents.
    kind: str = MAIN


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow. `document` returns what it was read from, unchanged."""

    name: str
    nodes: Mapping[str, Node]
    connections: tuple[Connection, ...]
    settings: Mapping[str, Any]
    #: Whether schedules and webhooks are to start it.
    active: bool
    id: str = ""
    #: Connections to nodes that are not there: where each stands, and the name.
    loose: tuple[tuple[str, str], ...] = ()
    _document: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the JSON that it was read from, with every field that is not known here."""
        return copy.deepcopy(dict(self._document))

    @property
    def timezone(self) -> str:
        """The zone of its clocks."""
        zone = self.settings.get("timezone")
        return zone if isinstance(zone, str) and zone not in ("", "DEFAULT") else "UTC"

    @property
    def error_flow(self) -> str | None:
        """The flow that is started when a run of this one fails: its name or id."""
        name = self.settings.get("errorWorkflow")
        return name if isinstance(name, str) and name else None


def parse_flow(data: Any, *, field: str = "flow") -> Flow:
    """Return the flow of its JSON. Whether its nodes can run is looked at by `checks`.

    Raises FlowError with the path of what is missing or of a wrong type, such as `flow.nodes[3].name`.

    >>> flow = parse_flow({"name": "A", "nodes": [{"name": "Go", "type": "headrace.manual"}], "connections": {}})
    >>> flow.nodes["Go"].type
    'headrace.manual'
    """
    document = members(data, field)
    nodes: dict[str, Node] = {}
    for index, one in enumerate(listed(document.get("nodes"), f"{field}.nodes")):
        node = _node(one, f"{field}.nodes[{index}]")
        if node.name in nodes:
            raise FlowError(f"{node.field}.name", "must be the only one of the flow", node.name)
        nodes[node.name] = node
    connections, loose = _connections(document.get("connections") or {}, f"{field}.connections", nodes)
    return Flow(
        name=text("My workflow" if document.get("name") is None else document["name"], f"{field}.name"),
        nodes=nodes,
        connections=connections,
        settings=members(document.get("settings") or {}, f"{field}.settings"),
        active=flag(document.get("active"), f"{field}.active"),
        id=text(_id(document.get("id")), f"{field}.id", ""),
        loose=loose,
        _document=document,
    )


def _id(value: Any) -> Any:
    """Return an id: older exports have numbers."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _node(data: Any, field: str) -> Node:
    form = members(data, field)
    retry = flag(form.get("retryOnFail"), f"{field}.retryOnFail")
    tries = number(form.get("maxTries"), f"{field}.maxTries", USUAL_TRIES)
    wait = number(form.get("waitBetweenTries"), f"{field}.waitBetweenTries", USUAL_WAIT_MS)
    return Node(
        name=text(form.get("name"), f"{field}.name"),
        type=text(form.get("type"), f"{field}.type"),
        version=number(form.get("typeVersion"), f"{field}.typeVersion", 1),
        parameters=members(form.get("parameters") or {}, f"{field}.parameters") | _credentials(form),
        field=field,
        id=text(form.get("id"), f"{field}.id", ""),
        position=_position(form.get("position")),
        disabled=flag(form.get("disabled"), f"{field}.disabled"),
        policy=_policy(form, field),
        tries=int(min(max(tries, LEAST_TRIES), MOST_TRIES)) if retry else None,
        wait=timedelta(milliseconds=min(max(wait, 0), MOST_WAIT_MS)),
        always_output=flag(form.get("alwaysOutputData"), f"{field}.alwaysOutputData"),
        execute_once=flag(form.get("executeOnce"), f"{field}.executeOnce"),
    )


def _credentials(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a node says of its secrets, by name alone, as a parameter of it."""
    named = form.get("credentials")
    return {"$credentials": named} if isinstance(named, dict) and named else {}


def _position(value: Any) -> tuple[float, float] | None:
    if isinstance(value, list) and len(value) == 2 and all(isinstance(one, int | float) for one in value):
        return float(value[0]), float(value[1])
    return None


def _policy(form: Mapping[str, Any], field: str) -> Policy:
    written = form.get("onError")
    if written is None:
        return Policy.CONTINUE if flag(form.get("continueOnFail"), f"{field}.continueOnFail") else Policy.STOP
    if written not in tuple(Policy):
        raise FlowError(f"{field}.onError", f"must be one of {', '.join(Policy)}", written)
    return Policy(written)


def _connections(
    data: Any, field: str, nodes: Mapping[str, Node]
) -> tuple[tuple[Connection, ...], tuple[tuple[str, str], ...]]:
    """Return connections between nodes, and where others lead to none. Those of nodes that are gone have no effect.

    They come in the order of the nodes they lead from: that of an object's members means nothing in JSON.
    """
    found: list[Connection] = []
    loose: list[tuple[str, str]] = []
    written = members(data, field)
    for source in (*nodes, *sorted(written.keys() - nodes.keys())):
        kinds = written.get(source) or {}
        for at, port, kind, one in _targets(members(kinds, f"{field}.{source}"), f"{field}.{source}"):
            link = _connection(source, kind, port, one, at)
            if link.target not in nodes:
                loose.append((f"{at}.node", link.target))
            elif source in nodes:
                found.append(link)
    return tuple(dict.fromkeys(found)), tuple(loose)


def _targets(kinds: Mapping[str, Any], field: str) -> Iterator[tuple[str, int, str, Any]]:
    """Yield what each output of a node leads to: where it stands, port, kind, and what is written."""
    for kind, ports in kinds.items():
        for port, targets in enumerate(listed(ports, f"{field}.{kind}")):
            at = f"{field}.{kind}[{port}]"
            for index, one in enumerate(listed(targets or [], at)):
                yield f"{at}[{index}]", port, kind, one


def _connection(source: str, kind: str, port: int, data: Any, field: str) -> Connection:
    form = members(data, field)
    target = text(form.get("node"), f"{field}.node", "")
    index = number(form.get("index"), f"{field}.index", 0)
    for at, one in ((f"{field}.index", index), (field, port)):
        if not 0 <= one < MOST_PORTS or one != int(one):
            raise FlowError(at, f"must be of a port from 0 to {MOST_PORTS - 1}", one)
    return Connection(source, port, target, int(index), kind)
