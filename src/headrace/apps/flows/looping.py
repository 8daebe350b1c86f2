"""Rounds of a loop: the next batch of its items, and what its body gave back.

The state goes from round to round, written and read several times in each, so it must stay small: the items of a loop,
and what came back so far, lie in files of the run and are named by their marks, unless they are few.
"""

from __future__ import annotations

import json
from typing import Any

from headrace.apps.flows.given import TRACE, Given
from headrace.model.graph.check_nodes import MAX_ROUNDS
from headrace.model.payload import encode_json
from headrace.model.reference import MAX_VALUE_BYTES
from headrace.nodes.base import Items, NodeError
from headrace.nodes.parameters import Parameters
from headrace.nodes.services import Files
from headrace.nodes.split_in_batches import batch_size

#: Bytes of items that the state has in it at most: for each part of what came back, a mark of about 150 is left.
STATE_BYTES = 12 * 1024


async def take_batch(state: dict[str, Any], run_id: str, files: Files) -> dict[str, Any]:
    """Return the batch of a round at the port of the loop. Raises NodeError for too many rounds."""
    if "items" in state:
        kept, size = state["items"], state["size"]
        items = await _load(files, kept)
    else:
        items, size = _begin(Given.of(state, run_id))
        kept = await _keep(files, items)
    name, port, offset = state["node"]["name"], state["ports"]["loop"], state.get("offset", 0)
    out: list[Items] = [[], []]
    out[port] = [
        item | {TRACE: item.get(TRACE, {}) | {name: [port, index]}}
        for index, item in enumerate(items[offset : offset + size])
    ]
    return {"out": out, "items": kept, "count": len(items), "size": size, "ran": bool(items)}


def _begin(given: Given) -> tuple[Items, int]:
    size = batch_size(Parameters(given.node["parameters"], given.scope_of(0)), given.node["version"])
    rounds = -(-len(given.items) // size)
    if rounds > MAX_ROUNDS:
        raise NodeError(
            f"{len(given.items)} items in batches of {size} are {rounds} rounds, more than {MAX_ROUNDS}; "
            "raise batchSize"
        )
    traced = zip(given.items, given.traces[0], strict=True) if given.inputs else ()
    return [item | {TRACE: trace} if trace else item for item, trace in traced], size


async def go_back(state: dict[str, Any], taken: dict[str, Any], returned: Items, files: Files) -> dict[str, Any]:
    """Return the state that the next round begins with; of the last one it is what the loop puts out."""
    ports, offset = state["ports"], state.get("offset", 0)
    before = state.get("done", {"number": 0, "parts": []})
    done = {
        "number": before["number"] + len(returned),
        "parts": await _appended(files, before["parts"], _done(state, returned, before["number"])),
    }
    left = max(taken["count"] - offset - taken["size"], 0)
    out: list[Items] = [[], []]
    if not left:
        out[ports["done"]] = [item for part in done["parts"] for item in await _load(files, part)]
    return {
        "node": state["node"], "around": state["around"], "ports": ports, "outer": state["outer"],
        "items": taken["items"] if left else [], "size": taken["size"], "offset": offset + taken["size"], "left": left,
        "done": done if left else {"number": 0, "parts": []}, "out": out, "ran": taken["ran"] or offset > 0,
    }  # fmt: skip


def _done(state: dict[str, Any], returned: Items, number: int) -> Items:
    """Return what came back, paired with the items of the loop, and traced to their places among all that did."""
    name, port, offset = state["node"]["name"], state["ports"]["done"], state.get("offset", 0)
    made: Items = []
    for index, item in enumerate(returned):
        place = item.get(TRACE, {}).get(name)
        trace = item.get(TRACE, {}) | {name: [port, number + index]}
        pair = {} if place is None else {"pairedItem": {"item": offset + place[1]}}
        made.append({key: value for key, value in item.items() if key != "pairedItem"} | {TRACE: trace} | pair)
    return made


async def _appended(files: Files, parts: list[Any], items: Items) -> list[Any]:
    """Return parts with items behind the last one: where that is no file yet, together with it."""
    if not parts or not isinstance(parts[-1], list):
        return [*parts, await _keep(files, items)]
    return [*parts[:-1], await _keep(files, parts[-1] + items)]


async def _keep(files: Files, items: Items) -> Any:
    """Return items, or the mark of a file that has them."""
    data = encode_json(items, field="items of a loop", most=MAX_VALUE_BYTES).encode()
    if len(data) <= STATE_BYTES:
        return items
    return await files.put(data, name="items.json", mime="application/json")


async def _load(files: Files, kept: Any) -> Items:
    """Return the items that were kept."""
    items: Items = kept if isinstance(kept, list) else json.loads(await files.get(kept))
    return items
