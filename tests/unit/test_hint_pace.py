"""How often hints leave for other processes."""

from __future__ import annotations

from headrace.hinting import CREDIT, FLOOD, FLOOD_SPACING, MANY_TOPICS, Pace


def leaving(gap: float, seconds: float) -> list[float]:
    """Return how long each hint that leaves waited, when one is given every `gap` seconds for so long."""
    pace, waits, leaves_at = Pace(), [], -1.0
    for turn in range(int(seconds / gap)):
        now = turn * gap
        wait = pace.wait("topic", now, coalesced=leaves_at > now)
        if wait is not None:
            waits.append(wait)
            leaves_at = now + wait
    return waits


def test_a_call_that_waits_for_the_answer_to_the_last_one_is_not_held_up() -> None:
    """Hints that follow one another at the pace of a round trip through a worker all leave at once."""
    assert set(leaving(0.003, 3.0)) == {0.0}
    assert set(leaving(0.05, 3.0)) == {0.0}


def test_two_hints_at_once_are_no_flood() -> None:
    """A job that ends and closes its batch gives two hints within a moment; cycle after cycle none is held up."""
    pace = Pace()
    for cycle in range(1_000):
        for offset in (0.0, 0.001):
            assert pace.wait("done", cycle * 0.006 + offset, coalesced=False) == 0.0


def test_a_flood_of_hints_is_spaced() -> None:
    """Hints that come faster than anybody can answer leave at once at first, then every 10 ms."""
    waits = leaving(0.0005, 2.0)
    at_once = FLOOD + CREDIT / FLOOD_SPACING
    assert waits[:4] == [0.0] * 4
    assert 2.0 / FLOOD_SPACING * 0.9 < len(waits) <= 2.0 / FLOOD_SPACING + at_once + 2
    assert max(waits) <= 2 * FLOOD_SPACING


def test_a_flood_is_forgotten() -> None:
    """After a pause a topic is as fresh as ever, and other topics never notice."""
    pace = Pace()
    assert any(pace.wait("busy", turn / 10_000, coalesced=False) for turn in range(100))
    assert pace.wait("other", 0.01, coalesced=False) == 0.0
    assert pace.wait("busy", 5.0, coalesced=False) == 0.0


def test_topics_without_number_cost_no_memory_without_end() -> None:
    """What was paced long ago is dropped once there are many topics."""
    pace = Pace()
    for turn in range(10 * MANY_TOPICS):
        pace.wait(f"queue:{turn}", float(turn), coalesced=False)
    assert len(pace._topics) <= MANY_TOPICS + 1


def test_a_ride_that_is_not_taken_costs_nothing() -> None:
    """In a flood `take` refuses and leaves the pace as it was, so that the hint that follows is counted once."""
    pace, other = Pace(), Pace()
    for turn in range(100):
        now = turn / 2_000
        taken = pace.take("topic", now)
        if not taken:
            pace.wait("topic", now, coalesced=False)
        assert taken == (other.wait("topic", now, coalesced=False) == 0.0)
        assert pace._topics == other._topics
