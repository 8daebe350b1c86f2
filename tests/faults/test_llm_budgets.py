"""Budgets over real processes, stores and provider: what the benchmark measures, in short."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.budget import SCENARIOS, SLOTS, measure
from tests.faults.site import Site

WORKERS, ITEMS = 2, 60
#: The others take long, and say little that these do not say.
SHORT = {("postgres", "dollars per batch")}
ALL = [(store, scenario) for store in ("postgres", "redis") for scenario in SCENARIOS]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("site", "scenario"),
    [pytest.param(*one, marks=() if one in SHORT else pytest.mark.slow) for one in ALL],
    indirect=["site"],
)
async def test_work_stops_at_a_budget_and_goes_on_when_it_is_raised(site: Site, tmp_path: Path, scenario: str) -> None:
    """It stops near the budget, over it by the calls in flight at most; none fails, and each is answered once."""
    figures = await measure(
        scenario, site.environment, items=ITEMS, folder=tmp_path, workers=WORKERS, still_seconds=3.0
    )
    assert figures.spent_part >= 0.8, figures
    assert figures.calls_over <= min(figures.peak_in_flight, WORKERS * SLOTS), figures
    assert figures.calls_over == 0 or "unforeseen" in scenario, figures
    assert figures.jobs_failed == 0, figures
    assert figures.seconds_to_resume <= 10, figures
    assert (figures.answered, figures.calls) == (ITEMS, ITEMS), figures
