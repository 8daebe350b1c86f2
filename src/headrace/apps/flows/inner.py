"""Flows that nodes run: what they are started with, and the items they give back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.apps.flows.calling import not_run, put_out
from headrace.apps.flows.given import Given
from headrace.nodes.base import Call, Items, NodeError
from headrace.nodes.execute_workflow import each_by_itself, inputs_of


def starts_of(call: Call, trigger: str, variables: Any) -> list[dict[str, Any]]:
    """Return the inputs of the runs that a node of the shape `flow` asks for: one for all items, or one for each."""
    # What an item was paired with here says nothing there.
    items = [
        {key: value for key, value in item.items() if key != "pairedItem"} for item in inputs_of(call.items, call.at)
    ]
    parts = [[item] for item in items] if each_by_itself(call.parameters) else [items]
    start = {"trigger": trigger, "mode": "integrated", "vars": variables}
    return [start | {"items": part} for part in parts if part]


def refuse_files(items: Items) -> None:
    """Raise NodeError for items with binary data: they belong to this run, and another one has an end of its own."""
    if any(item.get("binary") for item in items):
        raise NodeError(
            "binary data cannot be handed to a flow that nobody waits for: wait for it "
            "(options.waitForSubWorkflow), or write it to a file"
        )


def leave(given: Given, outputs: Sequence[Any]) -> dict[str, Any]:
    """Return what a node puts out that ran another flow, once or for each of its items."""
    if not given.has_items:
        return not_run(given)
    each, items = each_by_itself(given.node["parameters"]), given.items
    made: Items = []
    failures = []
    for number, output in enumerate(outputs):
        if output is None:
            error = {"message": "the flow that it runs failed", "name": "run_failed"}
            lost = [(number, items[number])] if each else list(enumerate(items))
            failures += [(item | {"pairedItem": {"item": index}}, error) for index, item in lost]
            continue
        paired = len(output) == len(items)
        for index, item in enumerate(output):
            pair = {"pairedItem": {"item": number if each else index}} if each or paired else {}
            made.append({key: value for key, value in item.items() if key != "pairedItem"} | pair)
    return put_out(given, [made], failures)
