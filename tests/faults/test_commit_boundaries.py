"""Processes that die before and after every commit, and between the statements of every transaction."""

from __future__ import annotations

import pytest

from tests.faults.campaign_boundaries import EXEMPT, ROUTES, boundaries, visited
from tests.faults.failpoints import Action, port_verbs, writing_statements
from tests.faults.site import Site


def test_every_verb_and_statement_that_writes_has_a_boundary() -> None:
    """A new verb of a port, or a new statement that writes or locks, has to be added to the campaign."""
    assert set(ROUTES) == {*port_verbs(), *writing_statements()} - EXEMPT


#: Every run visits some of them: each thirteenth verb or statement, before one and after the next.
SOME = slice(None, None, 13)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "part", [pytest.param(SOME, id="some"), pytest.param(slice(None), id="all", marks=pytest.mark.slow)]
)
async def test_a_kill_at_a_commit_boundary_loses_and_doubles_nothing(fragile_site: Site, part: slice) -> None:
    """kill -9 before and after each verb and each statement: what was begun is ended once, by whoever goes on."""
    assert await visited(fragile_site, boundaries()[part], Action.KILL, lanes=2) == set()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("action", [Action.RAISE, Action.SLEEP, Action.STOP])
async def test_calls_that_fail_or_hang_at_every_boundary_double_nothing(fragile_site: Site, action: Action) -> None:
    """A refused call, an answer lost or later than the lease, a process frozen beyond it: nothing doubles."""
    assert await visited(fragile_site, boundaries(), action, lanes=6) == set()
