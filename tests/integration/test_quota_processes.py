"""Three client processes on one key, a real limiter, a provider that refuses: what the benchmark measures, in short.

How much of a quota is used, and how soon, is the benchmark's to say, and that of the tests on virtual time: a busy
machine uses less. Here most of it has to be.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from benchmarks.quota import Figures, measure, scenarios
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.redis import new_prefix
from tests.backends.server import shared_server
from tests.backends.valkey import shared_server as shared_valkey

#: Forty calls a second, which leaves the machine time for other tests.
SCENARIOS = scenarios(2_400)
MOST = 0.75
#: ... and of a quota that has to be found, in the one second that is looked at.
HALF = 0.5


@asynccontextmanager
async def postgres(*, beside: bool) -> AsyncIterator[dict[str, str]]:
    """The environment of a schema of its own; `beside`: a Valkey counts the quota."""
    async with empty_schema() as schema, stores_on(schema, None):
        environ = {"HEADRACE_URL": shared_server().dsn, "HEADRACE_QUEUE_SCHEMA": schema}
        if beside:
            environ |= {"HEADRACE_LIMITS_URL": shared_valkey().url, "HEADRACE_QUEUE_STREAM_PREFIX": new_prefix()}
        yield environ


async def run(scenario: str, calls: int, *, beside: bool = False, arm: str = "calls") -> Figures:
    """Run a scenario through the gateway, with ten calls at a time in each process."""
    async with postgres(beside=beside) as environ:
        return await asyncio.to_thread(measure, SCENARIOS[scenario], environ, calls=calls, arm=arm, workers=10)


@pytest.mark.parametrize(
    ("scenario", "beside", "arm"),
    [
        pytest.param("requests, burst 1 s", False, "jobs", marks=pytest.mark.slow),
        ("tokens, burst 1 s", True, "calls"),
    ],
)
async def test_processes_share_a_quota_that_they_know(scenario: str, beside: bool, arm: str) -> None:
    """It is used, nothing is refused, and nothing is paid twice."""
    figures = await run(scenario, 300, beside=beside, arm=arm)
    assert (figures.refused, figures.calls, figures.paid_again) == (0, 300, 0)
    assert figures.utilisation >= MOST, figures


@pytest.mark.slow
async def test_processes_find_a_halved_quota() -> None:
    """Few calls are refused, and then what is left is used again: a run of thousands shows how few, see benchmarks."""
    figures = await run("halved, burst 1 s", 330)
    assert 0 < figures.refused_share <= 0.05, figures
    assert figures.utilisation >= HALF, figures
