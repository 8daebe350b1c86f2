"""Workers are killed at random points of runs: every node and every run end as they have to, and are paid once."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.faults import llm_kills
from tests.faults.conftest import ON_EVERY_STORE, ON_EVERY_STORE_SLOWLY
from tests.faults.site import Site
from tests.faults.workflow_kills import LEVELS, run_asking, run_graphs


@pytest.mark.timeout(600)
@pytest.mark.parametrize("level", LEVELS)
@ON_EVERY_STORE_SLOWLY
async def test_runs_end_as_they_have_to_whoever_dies(site: Site, tmp_path: Path, level: str) -> None:
    """Some graphs, and some kills: states and outputs are those of an interpreter."""
    report = await run_graphs(site, tmp_path, level, graphs=25)
    print(json.dumps(asdict(report)))
    assert report.wrong == {}
    assert report.kills


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("level", LEVELS)
@ON_EVERY_STORE
async def test_a_thousand_graphs(site: Site, tmp_path: Path, level: str) -> None:
    """The same at full length."""
    report = await run_graphs(site, tmp_path, level, graphs=1_000)
    print(json.dumps(asdict(report)))
    assert report.wrong == {}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("level", [pytest.param(LEVELS[0], marks=pytest.mark.slow), *LEVELS[1:]])
@ON_EVERY_STORE_SLOWLY
async def test_nodes_that_call_a_model_are_paid_once(site: Site, tmp_path: Path, level: str) -> None:
    """50 nodes and 4 kills: only what was in flight at a kill is asked for again, and that is listed."""
    report = await run_asking(site, tmp_path, level, kills=4)
    print(json.dumps(llm_kills.describe(report)))
    assert report.clean, llm_kills.describe(report)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("level", LEVELS)
@ON_EVERY_STORE
async def test_nodes_that_call_a_model_are_paid_once_through_many_kills(site: Site, tmp_path: Path, level: str) -> None:
    """The same with 20 kills: answers take so long that the run is not over before."""
    report = await run_asking(site, tmp_path, level, kills=20, seconds=4.0)
    print(json.dumps(llm_kills.describe(report)))
    assert report.clean, llm_kills.describe(report)
    assert report.kills == 20
