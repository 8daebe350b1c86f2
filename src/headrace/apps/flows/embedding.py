"""Flows in an app of one's own: declared from their JSON, started with items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace import App, Run, Workflow
from headrace.apps.flows.checks import Checked, check_flow
from headrace.apps.flows.form import Flow, parse_flow
from headrace.apps.flows.naming import workflow_name
from headrace.apps.flows.reading import read_json
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

    `source`: its JSON, or a file that has it; `others`: flows that it runs. Raises FlowError with the first reason why
    it cannot run.

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
    known = [_flow(one) for one in others]
    checked = check_flow(_flow(source), finder({one.name: one for one in known}))
    alarm = checked.flow.error_flow
    found = None if alarm is None else next((one for one in known if alarm in (one.name, one.id)), None)
    workflow = app.workflow(workflow_name(checked.flow.name), graph_of(checked, alarm=found))
    return AddedFlow(app, checked, workflow)


def _flow(source: Source) -> Flow:
    return parse_flow(source if isinstance(source, Mapping) else read_json(Path(source)))
