"""The ladder against a provider a fifth of whose answers are wrong: `benchmarks/ladder.py` in short."""

from __future__ import annotations

from benchmarks.ladder import every_fifth, figures_of, run
from headrace.model.llm import AnswerStyle

CALLS, ITEMS = 90, 10


async def test_items_are_valid_cheaply_and_valid_ones_stay_untouched() -> None:
    """At least 99.5 % after two repairs, at most 10 % of the cost for asking again, and no valid item said again."""
    twin = await run(calls=CALLS, items=ITEMS, faults=(), style=AnswerStyle.STRICT_SCHEMA, streams=False)
    for style, streams in ((AnswerStyle.STRICT_SCHEMA, False), (AnswerStyle.JSON, True)):
        faults = every_fifth(CALLS)
        outcome = await run(calls=CALLS, items=ITEMS, faults=faults, style=style, streams=streams, in_flight=1)
        figures = figures_of(outcome, twin, {})

        assert figures["items_in_all"] == CALLS * ITEMS
        assert figures["valid"] >= 0.995
        assert figures["right"] == figures["valid"]
        assert figures["first_answers_untouched"] == 1
        assert figures["repair_cost"] <= 0.10
        # The faults did strike, and were met in more than one way.
        assert figures["share_wrong"] > 0.19
        assert figures["calls_by_purpose"]["reask"] >= 10
        assert figures["provenance"]["repaired"] >= 10
