"""Whether a run's figures may be quoted: a busy or slow machine makes them worthless, and the report says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.bench.figures import Spread
from headrace.bench.machine import Quiet


@dataclass(frozen=True, slots=True)
class Reference:
    """What the raw delete-only loop does on a quiet machine of this kind; the same is in benchmarks/reference.json."""

    per_second: float = 41_000.0
    #: A run whose loop is below this share of it is invalid.
    share: float = 0.8
    conditions: str = "PostgreSQL 18, fsync and synchronous_commit on, asyncpg, one connection, batches of 100, 2 cores"

    def to_json(self) -> dict[str, Any]:
        """Return it as the report holds it."""
        return {"raw_delete_per_second": self.per_second, "share": self.share, "conditions": self.conditions}


#: Other programs may use so much of one core before a run counts as disturbed.
BUSY_CORES = 0.25
STEAL = 0.05
#: A machine whose slowest look took so much longer than its fastest has changed its own speed. That is said beside the
#: figures and makes no run invalid: on a machine shared with others all would be (benchmarks/README.md, caveats).
LOOP_SPREAD = 1.5


def objections(raw: Spread | None, quiet: Sequence[Quiet], reference: Reference) -> list[str]:
    """Return why the figures of a run are worthless; an empty list makes it valid."""
    found = []
    if raw is not None and raw.median < reference.share * reference.per_second:
        found.append(
            f"the raw delete-only loop reached {raw.median:,.0f} jobs/s, below {reference.share:.0%} of the "
            f"{reference.per_second:,.0f} of a quiet machine ({reference.conditions})"
        )
    if raw is None:
        found.append("the raw delete-only loop was not measured, so the machine's speed is unknown")
    return [*found, *_disturbances(quiet)]


def _disturbances(quiet: Sequence[Quiet]) -> list[str]:
    if not quiet:
        return []
    found = []
    # The middle one: a short burst between two measurements spoils neither.
    busy = Spread.of([look.busy_cores for look in quiet])
    if busy is not None and busy.median > BUSY_CORES:
        found.append(f"other programs used {busy.median:.1f} cores while the benchmark paused")
    steal = max(look.steal for look in quiet)
    if steal > STEAL:
        found.append(f"the hypervisor took {steal:.0%} of the processor time")
    return found


def speed_of_machine(loops_ms: Sequence[float]) -> str:
    """Return what a fixed loop took before each round, in words.

    >>> speed_of_machine([12.0, 13.1]), speed_of_machine([12.0, 24.0])
    ('12–13 ms', '12–24 ms: its own speed changed by 2.0, so trust ratios, not speeds')
    """
    if not loops_ms:
        return "not measured"
    least, most = min(loops_ms), max(loops_ms)
    change = f": its own speed changed by {most / least:.1f}, so trust ratios, not speeds"
    return f"{least:.0f}–{most:.0f} ms" + (change if most > LOOP_SPREAD * least else "")
