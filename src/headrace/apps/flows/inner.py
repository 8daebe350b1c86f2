"""Flows that nodes run: what they are started with, and the items they give back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headrace import App, Context, HeadraceError
from headrace.apps.flows.calling import not_run, put_out
from headrace.apps.flows.form import Policy
from headrace.apps.flows.given import Given
from headrace.apps.flows.outcomes import error_of
from headrace.nodes.base import Call, Item, Items, NodeError
from headrace.nodes.execute_workflow import each_by_itself, inputs_of
from headrace.nodes.parameters import Parameters


@dataclass(slots=True)
class Entering:
    """What another flow is run with: the inputs of its runs, and the items that none could be made of."""

    starts: list[dict[str, Any]] = field(default_factory=list)
    #: The items of each start, by their indices.
    parts: list[list[int]] = field(default_factory=list)
    unable: list[dict[str, Any]] = field(default_factory=list)


def entering(given: Given, call: Call, trigger: str) -> Entering:
    """Return what a node of the shape `flow` runs another flow with: all items at once, or each by itself.

    Raises what is wrong with an item, unless the node's policy has it go on.
    """
    found = Entering()
    made: dict[int, Item] = {}
    for index, item in enumerate(call.items):
        try:
            (entered,) = inputs_of([item], partial(_at, call, index))
        except HeadraceError as error:
            if given.policy is Policy.STOP:
                raise
            found.unable.append({"index": index, "error": error_of(error)})
            continue
        # What an item was paired with here says nothing there.
        made[index] = {key: value for key, value in entered.items() if key != "pairedItem"}
    found.parts = [[index] for index in made] if each_by_itself(call.parameters) else [list(made)] if made else []
    start = {"trigger": trigger, "mode": "integrated", "vars": given.around.get("vars")}
    found.starts = [start | {"items": [made[index] for index in part]} for part in found.parts]
    return found


def _at(call: Call, index: int, _: int) -> Parameters:
    return call.at(index)


async def send(app: App, given: Given, call: Call, written: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Start runs of another flow, once each whatever happens to this call; the node's own items go on."""
    if any(item.get("binary") for item in call.items):
        raise NodeError(
            "binary data cannot be handed to a flow that nobody waits for: wait for it "
            "(options.waitForSubWorkflow), or write it to a file"
        )
    entered = entering(given, call, written["enters"])
    for number, start in enumerate(entered.starts):
        await app.start(written["sends"], start, key=f"{key}-{number}")
    failed = {one["index"]: one["error"] for one in entered.unable}
    items = [item | {"pairedItem": {"item": index}} for index, item in enumerate(given.items)]
    passed = [item for index, item in enumerate(items) if index not in failed]
    return put_out(given, [passed], [(items[index], error) for index, error in failed.items()])


async def why_failed(app: App, context: Context, numbers: Sequence[int]) -> dict[int, str]:
    """Return what the runs of another flow within this one failed of, by their number: the innermost node says it."""
    assert context.run is not None
    scope = context.run.node.rpartition("/")[0]
    endings = await app.runtime.stores.runs.read_nodes(context.run.id)
    failed = sorted((one for one in endings if one.error is not None), key=lambda one: one.path.count("/"))
    return {
        number: one.error.message
        for number in numbers
        for one in failed
        if one.error is not None and one.path.startswith(f"{scope}/run[{number}]/")
    }


def leave(given: Given, entered: Mapping[str, Any], outputs: Sequence[Any], why: Mapping[int, str]) -> dict[str, Any]:
    """Return what a node puts out that ran another flow. `why`: the errors of its runs that failed, by their number."""
    if not given.has_items:
        return not_run(given)
    made: Items = []
    failed = {one["index"]: one["error"] for one in entered["unable"]}
    for number, (output, part) in enumerate(zip(outputs, entered["parts"], strict=True)):
        if output is None:
            message = why.get(number) or "the flow that it runs failed"
            failed |= {index: {"message": message, "name": "run_failed"} for index in part}
        else:
            made += _paired(output, part)
    failures = [(given.items[index] | {"pairedItem": {"item": index}}, failed[index]) for index in sorted(failed)]
    return put_out(given, [made], failures)


def _paired(output: Items, part: Sequence[int]) -> Items:
    """Return the items of a run, paired with those it was given: with the only one, or one by one where they agree."""
    if len(part) == 1:
        pairs: list[dict[str, Any]] = [{"pairedItem": {"item": part[0]}} for _ in output]
    elif len(part) == len(output):
        pairs = [{"pairedItem": {"item": index}} for index in part]
    else:
        pairs = [{} for _ in output]
    plain = [{key: value for key, value in item.items() if key != "pairedItem"} for item in output]
    return [item | pair for item, pair in zip(plain, pairs, strict=True)]
