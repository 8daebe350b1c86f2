"""Calls of nodes: for all items at once, or for each of them; and what becomes of what they give.

What a node puts out is {"out": [[item, …] of port 0, …], "ran": whether it did}.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any

from headrace import Context, HeadraceError
from headrace.apps.flows.beginning import start_of
from headrace.apps.flows.compiling import PASSING
from headrace.apps.flows.form import Policy
from headrace.apps.flows.given import Given, parent_of, with_traces
from headrace.apps.flows.outcomes import Failures, error_of, place
from headrace.apps.flows.vetting import vet
from headrace.model.expressions.evaluation import evaluate, uses_now
from headrace.nodes.base import Call, EachType, Item, Items, NodeError, NodeType, OneCall, Shape, WholeType
from headrace.nodes.parameters import Parameters
from headrace.nodes.registry import find_type
from headrace.nodes.services import Services


def _type_of(node: Any) -> NodeType:
    found = find_type(node["type"], node.get("parameters", {}))
    if found is None:
        raise NodeError(f"this worker has no node type {node['type']!r}; install the package that brings it")
    return found


def _call(given: Given, services: Services, *, strict: bool = True) -> Call:
    node = given.node
    return Call(
        node["name"], node["version"], node["parameters"], given.inputs, given.scope_of, services, strict=strict,
        zone=given.zone,
    )  # fmt: skip


def not_run(given: Given) -> dict[str, Any]:
    """Return what a node puts out that was given no items, or did not begin this run."""
    ports = given.node["outputs"] + (given.policy is Policy.OUTPUT)
    return {"out": [[] for _ in range(ports)], "ran": False}


def put_out(given: Given, ports: Sequence[Items], failures: Failures = ()) -> dict[str, Any]:
    """Return what a node puts out: items by port, those that failed among them."""
    padded = [*ports, *([] for _ in range(given.node["outputs"] - len(ports)))]
    out = place(padded, failures, given.policy)
    if given.node.get("always") and not out[0]:
        out[0] = [{"json": {}, "pairedItem": _all_of(given)}]
    return {"out": with_traces(given, out), "ran": True}


def _all_of(given: Given) -> list[dict[str, int]]:
    """Return the pairing of an item that stands for all there were."""
    return [{"item": index, "input": port} for port, items in enumerate(given.inputs) for index in range(len(items))]


class TriedAgainError(HeadraceError):
    """The node failed, and is tried again."""

    transient = True

    def __init__(self, error: HeadraceError) -> None:
        super().__init__(str(error))
        self.code = error.code


def settle(node: Mapping[str, Any], error: HeadraceError, ctx: Context) -> dict[str, Any]:
    """Return what an item says of an error that nothing more is done about.

    Raises it where the policy of the node is to stop, or where a store or model may answer the next time; and, of a
    node that is tried again, TriedAgainError until its last try: whatever it was, as with `retryOnFail` elsewhere.
    """
    if node.get("tries") is not None and not ctx.last_try:
        raise TriedAgainError(error) from error
    passing = type(error).__name__ in PASSING
    if node.get("policy", Policy.STOP) == Policy.STOP or (passing and not ctx.last_try):
        raise error
    return error_of(error)


async def ready(given: Given, services: Services, *, strict: bool = True) -> Call:
    """Return the call of a node, with the time where its expressions ask for that."""
    if uses_now(given.node["parameters"]):
        given.now = await services.now()
    return _call(given, services, strict=strict)


async def call_node(given: Given, services: Services, ctx: Context, start: Any) -> dict[str, Any]:
    """Call a node for all of its items, unless it has none. Raises what the node does, where its policy is to stop."""
    node, kind = given.node, _type_of(given.node)
    begins = kind.shape is Shape.TRIGGER
    start = start_of(start, node) if begins else {}
    if begins and start["trigger"] != node["name"]:
        return not_run(given)
    if not begins and not given.has_items:
        return not_run(given)
    if node.get("disabled"):
        return put_out(given, [[item | {"pairedItem": {"item": i}} for i, item in enumerate(given.items)]])
    strict = given.policy is Policy.STOP or not (ctx.last_try or not node.get("tries"))
    call = await ready(given, services, strict=strict)
    call.given = start.get("items") or []
    whole: WholeType = kind  # type: ignore[assignment]
    try:
        ports = await _run(whole, call)
        return await asyncio.to_thread(_ended, given, call, ports)
    except HeadraceError as error:
        return put_out(given, [], all_failed(given, settle(node, error, ctx)))


async def _run(kind: WholeType, call: Call) -> list[Items]:
    """Run a type: what computes in a thread, so that others on the loop go on meanwhile."""
    run: Callable[[Call], Any] = kind.run
    ports: list[Items] = await run(call) if iscoroutinefunction(run) else await asyncio.to_thread(run, call)
    return ports


def all_failed(given: Given, said: dict[str, Any]) -> list[tuple[Item, dict[str, Any]]]:
    """Return all items of a node as failed."""
    return [
        (item | {"pairedItem": {"item": index, "input": port}}, said)
        for port, items in enumerate(given.inputs)
        for index, item in enumerate(items)
    ]


def _ended(given: Given, call: Call, ports: Sequence[Items]) -> dict[str, Any]:
    """Return what a node puts out that ran; items that cannot be kept have failed like others."""
    kept, refused = vet(ports)
    if refused and call.strict:
        raise refused[0][1]
    failures = [(item, error_of(error)) for item, error in call.failed]
    failures += [(parent_of(given, item), error_of(error)) for item, error in refused]
    return put_out(given, kept, failures)


async def resolve(given: Given, services: Services) -> dict[str, Any]:
    """Return the calls of a node, one for each item, and the items whose parameters cannot be evaluated."""
    node = given.node
    if uses_now(node["parameters"]):
        given.now = await services.now()
    return await asyncio.to_thread(_resolved, given)


def _resolved(given: Given) -> dict[str, Any]:
    node = given.node
    facts = {key: node[key] for key in ("name", "type", "version", "policy", "tries") if key in node}
    calls, unable = [], []
    for index, item in enumerate(given.items):
        try:
            parameters = evaluate(node["parameters"], given.scope_of(index), field="parameters")
        except HeadraceError as error:
            if given.policy is Policy.STOP:
                raise
            unable.append({"index": index, "error": error_of(error)})
            continue
        calls.append({"node": facts, "parameters": parameters, "item": item})
    return {"calls": calls, "unable": unable}


async def call_one(entry: dict[str, Any], services: Services, ctx: Context) -> dict[str, Any]:
    """Call a node for one item. Raises what the node does, unless its policy makes an item of it."""
    node = entry["node"]
    kind: EachType = _type_of(entry["node"] | {"parameters": entry["parameters"]})  # type: ignore[assignment]
    parameters = Parameters(entry["parameters"])
    one = OneCall(node["name"], node["version"], parameters, entry["item"], services)
    try:
        (items,), refused = vet([await kind.run_one(one)])
        if refused:
            raise refused[0][1]
        return {"items": items}
    except HeadraceError as error:
        return {"error": settle(node, error, ctx)}


def collect(given: Given, unable: Sequence[Any], outcomes: Sequence[Any]) -> dict[str, Any]:
    """Return what a node puts out whose items were called one by one."""
    if not given.has_items:
        return not_run(given)
    failed = {one["index"]: one["error"] for one in unable}
    called = [index for index in range(len(given.items)) if index not in failed]
    made: Items = []
    for index, outcome in zip(called, outcomes, strict=True):
        if "error" in outcome:
            failed[index] = outcome["error"]
        made += [item | {"pairedItem": {"item": index}} for item in outcome.get("items", ())]
    failures = [(given.items[i] | {"pairedItem": {"item": i}}, error) for i, error in sorted(failed.items())]
    return put_out(given, [made], failures)
