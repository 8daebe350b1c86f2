"""Nodes as JSON; see `form`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.model.graph.form_conditions import condition_form, parse_condition
from headrace.model.graph.form_options import options_form, parse_options
from headrace.model.graph.members import Members, Read, duration, seconds, text, whole
from headrace.model.graph.nodes import (
    Graph,
    LoopNode,
    MapNode,
    Node,
    SubNode,
    TaskNode,
    ValueNode,
    WaitNode,
    kind_of,
)

GraphForm = Callable[[Graph], dict[str, Any]]


def parse_node(data: Any, field: str, body: Read[Graph]) -> Node:
    """Return a node of its JSON form; `body` reads a graph within it. Raises InvalidInputError."""
    form = Members(data, field)
    name = form.need("id", text)
    kind = form.get("kind", text, "task")
    if kind not in _PARSERS:
        raise InvalidInputError(form.at("kind"), f"must be one of {', '.join(_PARSERS)}", kind)
    node = _PARSERS[kind](form, name, body)
    form.close()
    return node


def _task(form: Members, name: str, _: Read[Graph]) -> Node:
    return TaskNode(
        name,
        form.need("task", text),
        form.get("args", _args, None),
        form.get("kwargs", _kwargs, ()),
        parse_options(form),
    )


def _args(value: Any, field: str) -> tuple[Any, ...] | None:
    if isinstance(value, list):
        return tuple(value)
    raise InvalidInputError(field, "must be an array of templates", value)


def _kwargs(value: Any, field: str) -> tuple[tuple[str, Any], ...]:
    if isinstance(value, dict):
        return tuple(value.items())
    raise InvalidInputError(field, "must be an object of templates", value)


def _value(form: Members, name: str, _: Read[Graph]) -> Node:
    return ValueNode(name, form.raw("value"), form.has("value"), parse_options(form))


def _wait(form: Members, name: str, _: Read[Graph]) -> Node:
    return WaitNode(name, form.raw("signal"), form.get("timeout", duration, None), parse_options(form, timeout=False))


def _map(form: Members, name: str, body: Read[Graph]) -> Node:
    written = form.has("max_failed")
    return MapNode(
        name,
        form.need("over", lambda value, _: value),
        form.need("body", body),
        form.get("max_failed", whole, None) if written else 0,
        parse_options(form),
    )


def _loop(form: Members, name: str, body: Read[Graph]) -> Node:
    return LoopNode(
        name,
        form.need("body", body),
        form.need("while", parse_condition),
        form.need("max_rounds", whole, "must be given, a loop has to have an end"),
        form.raw("input"),
        form.has("input"),
        parse_options(form),
    )


def _sub(form: Members, name: str, body: Read[Graph]) -> Node:
    return SubNode(name, form.need("body", body), form.raw("input"), form.has("input"), parse_options(form))


_PARSERS: Mapping[str, Callable[[Members, str, Read[Graph]], Node]] = {
    "task": _task,
    "value": _value,
    "wait": _wait,
    "map": _map,
    "loop": _loop,
    "workflow": _sub,
}


def node_form(node: Node, body: GraphForm) -> dict[str, Any]:
    """Return the JSON form of a node; `body` gives that of a graph within it."""
    kind = {} if isinstance(node, TaskNode) else {"kind": kind_of(node)}
    return {"id": node.id, **kind, **_own_members(node, body), **options_form(node.options)}


def _own_members(node: Node, body: GraphForm) -> dict[str, Any]:
    match node:
        case TaskNode():
            args = {} if node.args is None else {"args": list(node.args)}
            kwargs = {"kwargs": dict(node.kwargs)} if node.kwargs else {}
            return {"task": node.task, **args, **kwargs}
        case ValueNode():
            return {"value": node.value} if node.given else {}
        case WaitNode():
            signal = {} if node.signal is None else {"signal": node.signal}
            return signal if node.timeout is None else {**signal, "timeout": seconds(node.timeout)}
        case MapNode():
            failed = {} if node.max_failed == 0 else {"max_failed": node.max_failed}
            return {"over": node.over, "body": body(node.body), **failed}
        case LoopNode():
            loop = {"body": body(node.body), "while": condition_form(node.again), "max_rounds": node.most}
            return {**loop, "input": node.start} if node.given else loop
        case SubNode():
            start = {"input": node.start} if node.given else {}
            return {"body": body(node.body), **start}
