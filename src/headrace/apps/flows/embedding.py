"""Flows in an app of one's own: declared from their JSON, started with items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace import App, Run, Workflow
from headrace.apps.flows.checks import Checked, Find, check_flow
from headrace.apps.flows.form import Flow, parse_flow
from headrace.apps.flows.naming import workflow_name
from headrace.apps.flows.reading import FlowError, read_json
from headrace.apps.flows.running import sent_by
from headrace.apps.flows.starting import alarm_of
from headrace.apps.flows.storing import finder, graph_of, input_of
from headrace.apps.flows.tasks import register

Source = Mapping[str, Any] | Path | str


@dataclass(frozen=True, slots=True)
class AddedFlow:
    """A flow that an app declares."""

    app: App
    checked: Checked
    workflow: Workflow

    async def start(
        self, items: Iterable[Mapping[str, Any]] = (), *, trigger: str | None = None,
        variables: Mapping[str, Any] | None = None, **options: Any,
    ) -> Run:  # fmt: skip
        """Start a run and return it; its result is the list of items of the last nodes.

        `items`: what the trigger gives, each the `json` of an item; none: one empty item. `trigger`: the node that
        begins, where there are several. `variables`: `$vars`, over those of `[flows] vars`. `options` are those of
        `App.start`: key, user_id, correlation_id, metadata. Raises InvalidInputError, ConflictError.
        """
        made = [{"json": dict(item)} for item in items]
        known = {**self.app.settings.flows.vars, **(variables or {})}
        return await self.app.start(
            self.workflow, input_of(self.checked, made, trigger=trigger, variables=known), **options
        )


def add_flow(app: App, source: Source, *, others: Sequence[Source] = ()) -> AddedFlow:
    """Declare a flow with an app; its workers then run it.

    `source`: its JSON, or a file that has it; `others`: flows that it runs, and the one that follows its failures
    (`settings.errorWorkflow`). Those that are started by their names, the error workflow and flows that nobody waits
    for, are declared too. Raises FlowError with the first reason why one of them cannot run.

    >>> from headrace import App
    >>> app = App("memory://")
    >>> document = {"name": "Hello", "nodes": [{"name": "Go", "type": "headrace.manual"}], "connections": {}}
    >>> hello = add_flow(app, document)
    >>> async def main() -> None:
    ...     async with app.worker():
    ...         print(await (await hello.start([{"name": "Ada"}])).result("10s"))
    >>> import asyncio; asyncio.run(main())
    [{'json': {'name': 'Ada'}}]
    """
    if app.registry.get("flows.node") is None:
        register(app)
    flow = _flow(source)
    find = finder({one.name: one for one in [*map(_flow, others), flow]})
    made: dict[str, AddedFlow] = {}
    todo = [flow]
    for one in todo:  # which grows
        if one.name not in made:
            made[one.name], behind = _declare(app, one, find)
            todo += behind
    return made[flow.name]


def _declare(app: App, flow: Flow, find: Find) -> tuple[AddedFlow, list[Flow]]:
    """Declare one flow; return it, and those that its runs start by their names. Raises FlowError."""
    checked = check_flow(flow, find)
    alarm, why = alarm_of(flow, find)
    if why and checked.runs:
        rule = f"of flow {flow.name!r} {why}; give others= a flow that begins with an errorTrigger"
        raise FlowError("flow.settings.errorWorkflow", rule, flow.error_flow)
    workflow = app.workflow(workflow_name(flow.name), graph_of(checked, alarm=alarm))
    assert checked.plan is not None
    return AddedFlow(app, checked, workflow), [*sent_by(checked.plan), *([] if alarm is None else [alarm])]


def _flow(source: Source) -> Flow:
    return parse_flow(source if isinstance(source, Mapping) else read_json(Path(source)))
