"""Rounds of a loop: the next batch of its items, and what its body gave back. The state goes from round to round."""

from __future__ import annotations

from typing import Any

from headrace.apps.flows.given import TRACE, Given
from headrace.model.graph.check_nodes import MAX_ROUNDS
from headrace.nodes.base import Items, NodeError
from headrace.nodes.parameters import Parameters
from headrace.nodes.split_in_batches import batch_size


def take_batch(state: dict[str, Any], run_id: str) -> dict[str, Any]:
    """Return the batch of a round at the port of the loop, and what is left. Raises NodeError for too many rounds."""
    if "todo" in state:
        todo, size = state["todo"], state["size"]
    else:
        todo, size = _begin(Given.of(state, run_id))
    name, port = state["node"]["name"], state["ports"]["loop"]
    out: list[Items] = [[], []]
    out[port] = [
        item | {TRACE: item.get(TRACE, {}) | {name: [port, index]}} for index, item in enumerate(todo[:size])
    ]  # fmt: skip
    return {"out": out, "rest": todo[size:], "size": size, "ran": bool(todo)}


def _begin(given: Given) -> tuple[Items, int]:
    size = batch_size(Parameters(given.node["parameters"], given.scope_of(0)), given.node["version"])
    rounds = -(-len(given.items) // size)
    if rounds > MAX_ROUNDS:
        raise NodeError(f"{len(given.items)} items in batches of {size} are {rounds} rounds, more than {MAX_ROUNDS}; "
                        "raise batchSize")  # fmt: skip
    traced = zip(given.items, given.traces[0], strict=True) if given.inputs else ()
    return [item | {TRACE: trace} if trace else item for item, trace in traced], size


def go_back(state: dict[str, Any], taken: dict[str, Any], returned: Items) -> dict[str, Any]:
    """Return the state that the next round begins with; of the last one it is what the loop puts out."""
    name, ports = state["node"]["name"], state["ports"]
    done: Items = list(state.get("done", ()))
    offset = state.get("offset", 0)
    for item in returned:
        place = item.get(TRACE, {}).get(name)
        trace = item.get(TRACE, {}) | {name: [ports["done"], len(done)]}
        pair = {} if place is None else {"pairedItem": {"item": offset + place[1]}}
        done.append({key: value for key, value in item.items() if key != "pairedItem"} | {TRACE: trace} | pair)
    out: list[Items] = [[], []]
    out[ports["done"]] = done
    return {
        "node": state["node"], "around": state["around"], "ports": ports, "outer": state["outer"],
        "todo": taken["rest"], "size": taken["size"], "offset": offset + len(taken["out"][ports["loop"]]),
        "done": done, "out": out, "ran": taken["ran"] or state.get("ran", False),
    }  # fmt: skip
