"""Processes that die, or whose calls fail or hang, before and after every script of the Redis store that writes."""

from __future__ import annotations

import pytest

from tests.faults.campaign_boundaries import EXEMPT_SCRIPTS, SCRIPT_ROUTES, boundaries, visited
from tests.faults.failpoints import Action, writing_scripts
from tests.faults.site import Site

#: Those of every run: what claims, records and closes.
FEW = ("claim_jobs.lua", "complete_jobs.lua", "close_batches.lua")


def test_every_script_that_writes_has_a_boundary() -> None:
    """A new script that writes has to be added to the campaign."""
    assert set(SCRIPT_ROUTES) == set(writing_scripts()) - EXEMPT_SCRIPTS


@pytest.mark.timeout(600)
async def test_a_kill_around_a_few_scripts_loses_and_doubles_nothing(fragile_redis: Site) -> None:
    """kill -9 before and after what claims, records and closes: what was begun is ended once."""
    assert await visited(fragile_redis, boundaries(FEW), Action.KILL, lanes=3) == set()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("action", list(Action))
async def test_faults_around_every_script_lose_and_double_nothing(fragile_redis: Site, action: Action) -> None:
    """Killed, frozen, refused, or told too late or not at all, at every script: nothing is lost or doubled."""
    assert (
        await visited(fragile_redis, boundaries(SCRIPT_ROUTES), action, lanes=3 if action is Action.KILL else 6)
        == set()
    )
