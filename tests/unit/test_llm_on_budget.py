"""What a call does that a budget has no room for: wait, or fail at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from headrace import App, BudgetUsedUpError, InvalidInputError, JobFailedError
from headrace.settings import load_settings
from headrace.testing.provider import ScriptedProvider
from tests.unit.engine_app import QUICK


def app_of(model: ScriptedProvider) -> App:
    """Return an app in memory that asks a scripted model."""
    return App(settings=replace(QUICK, llm=load_settings(environ=model.environment).llm))


def oslo() -> ScriptedProvider:
    """Return a model that answers Oslo."""
    return ScriptedProvider(answer=lambda request: "Oslo")


async def test_a_call_that_does_not_wait_fails_when_the_budget_is_used_up() -> None:
    """It fails in a job and outside of one, nothing is sent, and once the budget is raised it is answered."""
    async with oslo() as model:
        app = app_of(model)

        @app.task
        async def name(question: str) -> str:
            return await app.llm.using(tenant="acme", on_budget="fail").complete(question, max_tokens=10)

        async with app.worker():
            await app.budgets.set("tenant:acme", tokens=1)
            with pytest.raises(BudgetUsedUpError, match=r"tenant:acme .*headrace llm budget"):
                await app.llm.using(tenant="acme", on_budget="fail").complete("Which city?", max_tokens=10)
            handle = await name.enqueue("Which city?")
            with pytest.raises(JobFailedError, match="tenant:acme"):
                await handle.result("10s")
            assert model.count() == 0

            await app.budgets.set("tenant:acme", tokens=500)
            assert await (await name.enqueue("Which city?")).result("10s") == "Oslo"


async def test_who_does_not_wait_does_not_share_the_wait_of_an_equal_ask() -> None:
    """One fails at once, the other waits and is answered when the budget is raised, with one call."""
    async with oslo() as model, app_of(model) as app:
        await app.budgets.set("day", tokens=1)
        waits = asyncio.create_task(app.llm.complete("Which city?", max_tokens=10))
        await asyncio.sleep(0)  # it begins first

        with pytest.raises(BudgetUsedUpError):
            await asyncio.wait_for(app.llm.using(on_budget="fail").complete("Which city?", max_tokens=10), 2)
        assert not waits.done()
        await app.budgets.set("day", tokens=500)
        assert await asyncio.wait_for(waits, 20) == "Oslo"
        assert model.count() == 1


async def test_a_wrong_word_is_refused() -> None:
    """The words are told."""
    async with oslo() as model, app_of(model) as app:
        with pytest.raises(InvalidInputError, match='must be "wait" or "fail"'):
            app.llm.using(on_budget="pay")
