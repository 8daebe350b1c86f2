"""The tasks that graphs of flows call; see `compiling` for who calls which, and with what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from headrace import App, Backoff, Context, HeadraceError
from headrace.apps.flows import compiling
from headrace.apps.flows.alarms import begun
from headrace.apps.flows.calling import (
    all_failed,
    call_node,
    call_one,
    collect,
    not_run,
    put_out,
    ready,
    resolve,
    settle,
)
from headrace.apps.flows.given import Given, flat, plain_items
from headrace.apps.flows.inner import entering, leave, send, why_failed
from headrace.apps.flows.looping import go_back, take_batch
from headrace.apps.flows.services import FlowServices

if TYPE_CHECKING:
    from headrace.app import TaskDecorator

QUEUE = "flows"
#: Of one try of a node; waiting for quota or for a signal does not count. A request may take an hour.
TIMEOUT = "65m"


def register(app: App) -> None:
    """Register the tasks of flows with an app."""
    _register_nodes(app)
    _register_loops(app)
    _register_inner(app)


def _task(app: App, name: str) -> TaskDecorator:
    return app.task(name=name, queue=QUEUE, timeout=TIMEOUT, retry=Backoff.exponential(max_attempts=4))


def _register_nodes(app: App) -> None:
    """Register what calls nodes."""

    @_task(app, compiling.NODE_TASK)
    async def flows_node(  # noqa: PLR0913 - named as the template is
        ctx: Context, node: dict[str, Any], inputs: list[Any], refs: dict[str, Any], around: dict[str, Any],
        start: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Call a node for all of its items."""
        given = Given.of({"node": node, "inputs": inputs, "refs": refs, "around": around}, _run_id(ctx), _vars(app))
        return await call_node(given, FlowServices(app, ctx), ctx, await begun(app, ctx, start, node))

    @_task(app, compiling.RESOLVE_TASK)
    async def flows_resolve(given: dict[str, Any], ctx: Context) -> dict[str, Any]:
        """Evaluate the parameters of a node for each of its items."""
        return await resolve(Given.of(given, _run_id(ctx), _vars(app)), FlowServices(app, ctx))

    @_task(app, compiling.CALL_TASK)
    async def flows_call(entry: dict[str, Any], ctx: Context) -> dict[str, Any]:
        """Call a node for one of its items."""
        return await call_one(entry, FlowServices(app, ctx), ctx)

    @_task(app, compiling.COLLECT_TASK)
    async def flows_collect(given: dict[str, Any], unable: list[Any], outcomes: list[Any]) -> dict[str, Any]:
        """Put together what came of the items of a node."""
        return collect(Given.of(given, ""), unable, outcomes)

    @_task(app, compiling.RESULT_TASK)
    async def flows_result(leaves: list[Any]) -> list[Any]:
        """Return the items of the last nodes of a flow."""
        return plain_items(flat(leaves))


def _register_loops(app: App) -> None:
    """Register what makes rounds of loops."""

    @_task(app, compiling.TAKE_TASK)
    async def flows_take(state: dict[str, Any], ctx: Context) -> dict[str, Any]:
        """Take the next batch of a loop."""
        return await take_batch(state, _run_id(ctx), FlowServices(app, ctx).files)

    @_task(app, compiling.BACK_TASK)
    async def flows_back(
        state: dict[str, Any], taken: dict[str, Any], returned: list[Any], ctx: Context
    ) -> dict[str, Any]:
        """Go back to the beginning of a loop with what its body gave."""
        return await go_back(state, taken, flat(returned), FlowServices(app, ctx).files)


def _register_inner(app: App) -> None:
    """Register what runs other flows."""

    @_task(app, compiling.ENTER_TASK)
    async def flows_enter(given: dict[str, Any], ctx: Context) -> dict[str, Any]:
        """Return what another flow is run with: once for all items, or once for each."""
        read = Given.of(given, _run_id(ctx), _vars(app))
        call = await ready(read, FlowServices(app, ctx))
        return asdict(entering(read, call, given["enters"]))

    @_task(app, compiling.SEND_TASK)
    async def flows_send(given: dict[str, Any], ctx: Context) -> dict[str, Any]:
        """Start runs of another flow, and do not wait for them."""
        read = Given.of(given, _run_id(ctx), _vars(app))
        if not read.has_items:
            return not_run(read)
        try:
            return await send(app, read, await ready(read, FlowServices(app, ctx)), given, ctx.idempotency_key)
        except HeadraceError as error:
            return put_out(read, [], all_failed(read, settle(read.node, error, ctx)))

    @_task(app, compiling.LEAVE_TASK)
    async def flows_leave(
        given: dict[str, Any], entered: dict[str, Any], outputs: list[Any], ctx: Context
    ) -> dict[str, Any]:
        """Return the items that another flow gave."""
        lost = [number for number, output in enumerate(outputs) if output is None]
        return leave(Given.of(given, ""), entered, outputs, await why_failed(app, ctx, lost) if lost else {})


def _run_id(ctx: Context) -> str:
    return "" if ctx.run is None else str(ctx.run.id)


def _vars(app: App) -> Mapping[str, Any]:
    return app.settings.flows.vars
