"""Why items of a batch failed, as the engine groups it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from headrace.engine.batch_faults import BatchFaults, batch_faults
from headrace.model.dead_letter import DeadLetter
from headrace.model.job import JobError

NOW, BATCH = datetime(2031, 1, 31, tzinfo=UTC), UUID(int=7)


class Letters:
    """A batch of which so many items failed, with three messages in turn, the newest first."""

    def __init__(self, count: int) -> None:
        errors = [JobError("ValueError", f"{word} {number}") for number in range(count) for word in ("a", "b", "b")]
        self._letters = [
            DeadLetter(UUID(int=place), "work", "default", NOW - timedelta(seconds=place), error, BATCH)
            for place, error in enumerate(errors[:count])
        ]

    async def batch_dead_letters(self, batch_id: UUID, *, limit: int) -> list[DeadLetter]:
        """Return the newest."""
        return self._letters[:limit]


async def found(count: int, *, limit: int = 10, look: int = 1_000) -> BatchFaults:
    """Return what is found of so many failures."""
    return await batch_faults(Letters(count), BATCH, limit=limit, look=look)  # type: ignore[arg-type]


async def test_failures_are_counted_by_fingerprint() -> None:
    """Each group has its count, first and last instants, and the newest three jobs and message."""
    faults = await found(600)
    assert (faults.looked_at, faults.sampled, faults.left_out) == (600, False, 0)
    many, few = faults.faults
    assert (many.count, few.count) == (400, 200)
    assert (many.first_at, many.last_at) == (NOW - timedelta(seconds=599), NOW - timedelta(seconds=1))
    assert (many.message, many.examples) == ("b 0", (UUID(int=1), UUID(int=2), UUID(int=4)))


async def test_a_bounded_number_is_looked_at() -> None:
    """Exactly so many as may be are no sample; one more is."""
    assert (await found(30, look=30)).sampled is False
    faults = await found(31, look=30)
    assert (faults.looked_at, faults.sampled, sum(fault.count for fault in faults.faults)) == (30, True, 30)


async def test_small_faults_are_left_out() -> None:
    """They are counted."""
    faults = await found(30, limit=1)
    assert ([fault.count for fault in faults.faults], faults.left_out) == ([20], 1)
