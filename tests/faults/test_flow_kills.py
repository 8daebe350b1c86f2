"""JSON flows on real stores, whose workers die: each node of each flow puts out what it has to, at both levels."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.faults.conftest import ON_EVERY_STORE, ON_EVERY_STORE_SLOWLY
from tests.faults.flow_kills import run_all
from tests.faults.site import Site


@pytest.mark.timeout(600)
@ON_EVERY_STORE_SLOWLY
async def test_flows_come_to_the_same_when_a_worker_dies(site: Site, tmp_path: Path) -> None:
    """Two workers, one of which is killed with jobs under way: another takes them over, and nothing is different."""
    report = await run_all(site, tmp_path, hits=1)
    print(json.dumps(asdict(report)))
    assert report.wrong == {}
    assert report.hits
    assert report.cut_off


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@ON_EVERY_STORE
async def test_flows_come_to_the_same_when_all_workers_die_again_and_again(site: Site, tmp_path: Path) -> None:
    """Ten workers and more die with jobs under way."""
    report = await run_all(site, tmp_path, hits=10)
    print(json.dumps(asdict(report)))
    assert report.wrong == {}
    assert report.hits >= 10
