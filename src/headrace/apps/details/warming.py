"""What the first batch of a process would wait for, done when the process starts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from headrace.apps.details.items import DetailItem
from headrace.apps.details.kinds import KINDS
from headrace.model.errors import HeadraceError

if TYPE_CHECKING:
    from headrace import App

Lifespan = Callable[["App"], AbstractAsyncContextManager[Any]]


def warming(lifespan: Lifespan | None) -> Lifespan:
    """Return the lifespan of an app whose workers and agents are warm before they begin."""

    @asynccontextmanager
    async def warmed(app: App) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            resources = None if lifespan is None else await stack.enter_async_context(lifespan(app))
            await warm_up(app)
            yield resources

    return warmed


async def warm_up(app: App) -> None:
    """Import what compares names, make the schema of items, and open the model's client; ask nothing.

    What is wrong with the model is for the first call to say: others than agents do without it.
    """
    for kind in KINDS.values():
        app.names(f"details/warm/{kind.name}", kind.rule())
    DetailItem.model_json_schema()
    try:
        await app.llm.prepare()
    except HeadraceError:
        return
