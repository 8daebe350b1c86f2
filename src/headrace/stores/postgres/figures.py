"""Figures of queues at a bounded cost: counts while the tables are small, estimates that say so beyond.

A big table is read by a share of its pages, evenly spread, and what was found is scaled. That is good to a few percent
for what there is much of and says nothing of what is rare, so indexes tell that: exactly up to `BOUND` entries.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.model.stats import QueueStats
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.rows import HEAD_STARTS, RATE_WINDOW

#: A table of up to this many pages is counted (45,000 jobs, 10 ms) ...
COUNTED_PAGES = 1_000
#: ... and of a bigger one this many are read.
SAMPLED_PAGES = 500
#: Entries that are read of an index, for each queue.
BOUND = 2_000

_COUNTS = ("scheduled", "ready", "running", "parked", "succeeded", "failed", "cancelled")
_LIVE = ("scheduled", "ready", "capped", "running", "parked", "live_came")
_PAST = ("succeeded", "failed", "cancelled", "past_came", "went")
_SHORTEST = timedelta(milliseconds=1)


async def queue_stats(database: Database) -> list[QueueStats]:
    """Do what `Inspect.queue_stats` promises."""
    pages = await database.fetch_one("count_pages")
    assert pages is not None
    live, past = (_percent(pages[table]) for table in ("jobs", "finished"))
    queues = {
        row["queue"]: _Figures(dict(row), live, past)
        for row in await database.fetch(
            "queue_stats", window=RATE_WINDOW, head_starts=HEAD_STARTS, live_percent=live, past_percent=past
        )
    }
    if live < 100:
        sound = {row["queue"]: row for row in await database.fetch("sound_live", head_starts=HEAD_STARTS, bound=BOUND)}
        for name in queues.keys() | sound.keys():
            queues.setdefault(name, _Figures({}, live, past)).hear_live(sound.get(name))
    if past < 100:
        sound = {row["queue"]: row for row in await database.fetch("sound_past", window=RATE_WINDOW, bound=BOUND)}
        for name in queues.keys() | sound.keys():
            queues.setdefault(name, _Figures({}, live, past)).hear_past(sound.get(name))
    return [queues[name].view(name) for name in sorted(queues)]


def _percent(pages: int) -> float:
    return 100 if pages <= COUNTED_PAGES else 100 * SAMPLED_PAGES / pages


class _Figures:
    """What is known of one queue, corrected step by step."""

    def __init__(self, row: dict[str, Any], live: float, past: float) -> None:
        self._row = row
        self._counts = {name: round(row.get(name, 0) * 100 / live) for name in _LIVE}
        self._counts |= {name: round(row.get(name, 0) * 100 / past) for name in _PAST}
        self._guessed = set(_LIVE if live < 100 else ()) | set(_PAST if past < 100 else ())
        self._age: timedelta | None = None
        if row.get("ready_since") is not None:
            self._age = row["now"] - row["ready_since"]
        seconds = RATE_WINDOW.total_seconds()
        self._rate_in = (self._counts["live_came"] + self._counts["past_came"]) / seconds
        self._rate_out = self._counts["went"] / seconds

    def hear_live(self, sound: Any) -> None:
        """Take what the indexes of the hot table say; None: nothing of this queue."""
        known = dict(sound) if sound is not None else {}
        capped, sampled = self._counts["capped"], self._counts["ready"]
        self._settle("ready", known.get("ready", 0), sampled - capped)
        if capped:
            self._counts["ready"] += capped
            self._guessed.add("ready")
        self._settle("scheduled", known.get("scheduled", 0), self._counts["scheduled"], known.get("all_scheduled"))
        self._counts["running"] = known.get("running") or self._counts["running"]
        age = known.get("ready_age")
        self._age = max(filter(None, (age, self._age)), default=None)

    def hear_past(self, sound: Any) -> None:
        """Take what the indexes of the history say; None: nothing of this queue."""
        known = dict(sound) if sound is not None else {}
        for name in ("failed", "cancelled"):
            self._settle(name, known.get(name, 0), self._counts[name])
        span, came_span = (max(known.get(name, RATE_WINDOW), _SHORTEST) for name in ("span", "came_span"))
        live_in = self._counts["live_came"] / RATE_WINDOW.total_seconds()
        self._rate_in = live_in + known.get("came", 0) / came_span.total_seconds()
        others = known.get("others_lately", 0) / RATE_WINDOW.total_seconds()
        self._rate_out = others + known.get("succeeded_lately", 0) / span.total_seconds()

    def _settle(self, name: str, counted: int, sampled: int, reach: int | None = None) -> None:
        """Believe a count that stayed below the bound; `reach` is what the bound applied to, when not the count."""
        if (counted if reach is None else reach) < BOUND:
            self._counts[name] = counted
            self._guessed.discard(name)
        else:
            self._counts[name] = max(counted, sampled)

    def view(self, name: str) -> QueueStats:
        """Return the figures, with the names of those that are estimates."""
        guessed = [count for count in _COUNTS if count in self._guessed]
        guessed += ["rate_in"] if self._guessed & {"live_came", "past_came"} else []
        guessed += ["rate_out"] if "went" in self._guessed else []
        return QueueStats(
            name=name,
            oldest_ready_age=None if self._age is None else max(self._age, timedelta()),
            rate_in=self._rate_in,
            rate_out=self._rate_out,
            live_workers=self._row.get("live_workers", 0),
            paused=self._row.get("paused", False),
            paused_reason=self._row.get("paused_reason"),
            closed=self._row.get("closed", False),
            alarm_size=self._row.get("alarm_size"),
            alarm_age=self._row.get("alarm_age"),
            estimated=tuple(guessed),
            **{count: self._counts[count] for count in _COUNTS},
        )
