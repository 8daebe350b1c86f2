"""Flows that ask a model for each item, whose workers die: every item of every node is paid once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.model.run import Level
from tests.faults.conftest import ON_EVERY_STORE
from tests.faults.flow_llm_kills import describe, run
from tests.faults.site import Site


@pytest.mark.timeout(600)
@pytest.mark.parametrize("level", [pytest.param(Level.WORKFLOW, marks=pytest.mark.slow), Level.NODE])
async def test_items_of_nodes_that_ask_are_paid_once(site: Site, tmp_path: Path, level: Level) -> None:
    """3 nodes of 20 items and 3 kills: only what was in flight at a kill is asked again, and that is listed."""
    report = await run(site, tmp_path, level, nodes=3, items=20, kills=3, latency=0.5)
    print(json.dumps(describe(report)))
    assert report.clean, describe(report)
    assert report.kills == 3


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("level", [Level.WORKFLOW, Level.NODE])
@ON_EVERY_STORE
async def test_two_thousand_paid_calls_through_ten_kills(site: Site, tmp_path: Path, level: Level) -> None:
    """10 nodes of 200 items: a call for each, and none when it is run again."""
    report = await run(site, tmp_path, level, nodes=10, items=200, kills=10)
    print(json.dumps(describe(report)))
    assert report.clean, describe(report)
    assert report.kills == 10
