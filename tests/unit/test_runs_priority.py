"""The priority of a run: that of its tasks' jobs, unless a node says otherwise."""

from __future__ import annotations

import pytest

from headrace import App, chain
from headrace.model.errors import InvalidInputError

app = App("memory://")


@app.task
async def grind(sack: str) -> str:
    """Return flour."""
    return f"flour of {sack}"


@app.task
async def bake(flour: str) -> str:
    """Return bread."""
    return f"bread of {flour}"


@app.workflow(tags=("schedule:node_level",))
def loaf(sack: str):  # type: ignore[no-untyped-def]
    """Return the parts."""
    return chain(grind.s(sack), bake.s().options(priority="low"))


async def test_a_run_has_a_priority() -> None:
    """Its tasks' jobs are stored with it; a node keeps its own; the same key may come with another one."""
    async with app:
        run = await app.start(loaf, sack="rye", priority="high", key="k")
        again = await app.start(loaf, sack="rye", priority="bulk", key="k")
        assert again.id == run.id
        async with app.worker():
            assert await run.result() == "bread of flour of rye"
        jobs = await app.runtime.stores.inspect.list_jobs()
        assert {job.task: job.priority for job in jobs if "." not in job.task} == {"grind": 3, "bake": 7}


async def test_a_wrong_one_is_refused() -> None:
    """The error names rule and value."""
    async with app:
        with pytest.raises(InvalidInputError, match="priority must be one of interactive"):
            await app.start(loaf, sack="rye", priority="soon")


def test_a_workflow_has_no_argument_of_that_name() -> None:
    """It would never reach its function."""
    with pytest.raises(InvalidInputError, match=r"app\.start takes these"):

        @App("memory://").workflow
        def wrong(priority: int):  # type: ignore[no-untyped-def]
            return grind.s("rye")
