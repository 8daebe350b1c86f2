"""What the campaign over details calls a fault: each of them is found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.faults.details_client import Journey
from tests.faults.details_ledger import feed_faults
from tests.faults.details_load import Outcome

ASKED: Mapping[str, Any] = {"type": "skill", "count": 2, "session_id": "s"}
WHOLE = ["accepted", "item", "item", "first_response", "completed"]


def _journey(
    names: tuple[str, ...] = ("Ember Step", "Frost Keep"), numbers: tuple[int, ...] = (1, 2, 3, 4, 5)
) -> Journey:
    items = [{"name": name} for name in names]
    return Journey(ASKED, "b", completed=1.0, status="completed", items=items, numbers=list(numbers))


@pytest.mark.parametrize(
    ("types", "numbers", "fault"),
    [
        (WHOLE, [1, 2, 3, 4, 5], None),
        (["accepted", "item", "first_response", "completed"], [1, 2, 3, 4], "1 entries item, not 2"),
        ([*WHOLE, "completed"], [1, 2, 3, 4, 5, 6], "2 entries completed, not 1"),
        (WHOLE, [1, 2, 3, 4, 6], "the feed has the numbers"),
    ],
)
def test_a_feed_that_is_not_as_promised_is_found(types: list[str], numbers: list[int], fault: str | None) -> None:
    """Items, the first response and the end come as often as they have to, under numbers without a gap."""
    found = feed_faults(_journey(numbers=tuple(numbers)), list(zip(numbers, types, strict=True)))
    assert any(fault in each for each in found) if fault else not found


@pytest.mark.parametrize("numbers", [(1, 2, 3, 5), (1, 2, 3, 4), (1, 2, 2, 3, 4, 5)])
def test_a_client_that_missed_or_repeated_an_entry_is_found(numbers: tuple[int, ...]) -> None:
    """What a client had is compared with the feed, entry by entry."""
    found = feed_faults(_journey(numbers=numbers), list(enumerate(WHOLE, 1)))
    assert any("the client had" in each for each in found)


def test_doubled_names_and_batches_that_are_not_whole_are_found() -> None:
    """A name counts over all batches of a session and type, whatever its case."""
    outcome = Outcome([_journey(), _journey(("EMBER STEP",))])
    assert outcome.doubled == ["s/skill/ember step: 2"]
    assert outcome.faults == ["b: completed, 1 of 2 items"]
