"""Workers that call a model are killed at random points: the result is the same, and what was paid twice is listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faults.conftest import ON_EVERY_STORE, ON_EVERY_STORE_SLOWLY
from tests.faults.llm_kills import describe, run
from tests.faults.site import Site


@pytest.mark.timeout(600)
@ON_EVERY_STORE_SLOWLY
async def test_killed_callers_pay_twice_only_for_what_was_in_flight(site: Site, tmp_path: Path) -> None:
    """A dozen kills: every answer is right, each call paid twice is listed, and a second run costs nothing."""
    report = await run(site, tmp_path, kills=12, items=120)
    print(json.dumps(describe(report)))
    assert report.clean, describe(report)


@pytest.mark.slow
@pytest.mark.timeout(1_500)
@ON_EVERY_STORE
async def test_two_hundred_kills_in_a_thousand_items(site: Site, tmp_path: Path) -> None:
    """The same at full length."""
    report = await run(site, tmp_path, kills=200, items=1_000)
    print(json.dumps(describe(report)))
    assert report.clean, describe(report)
