"""Many batches of details at once, and what became of them."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import asyncpg

from tests.faults.details_client import DetailsClient, Journey

TYPES = ("character_name", "location_name", "item", "skill", "organization")
STYLES = ("xianxia", "grim northern saga", "clockwork city", "desert trade road")


@dataclass(frozen=True)
class Load:
    """How much is asked for."""

    #: Batches at once.
    clients: int = 20
    seconds: float = 300.0
    least: int = 10
    most: int = 50
    #: Clients begin within so many seconds: users do not come in step.
    spread: float = 2.0
    seed: int = 7


@dataclass
class Outcome:
    """Every batch that was asked for."""

    journeys: list[Journey] = field(default_factory=list)
    seconds: float = 0.0

    def percentile(self, name: str, share: float) -> float:
        """Return a percentile of a time of those that have it."""
        return percentile([value for journey in self.journeys if (value := getattr(journey, name)) is not None], share)

    @property
    def doubled(self) -> list[str]:
        """Names that were delivered twice in one scope."""
        times: Counter[tuple[str, str, str]] = Counter()
        for journey in self.journeys:
            scope = (str(journey.request["session_id"]), str(journey.request["type"]))
            times.update((*scope, name.casefold()) for name in journey.names)
        return [f"{'/'.join(name)}: {count}" for name, count in times.items() if count > 1]

    @property
    def faults(self) -> list[str]:
        """What was wrong with the streams, and batches that were not delivered whole."""
        found = [f"{one.batch_id}: {fault}" for one in self.journeys for fault in one.faults]
        found += [
            f"{one.batch_id}: {one.status}, {len(one.items)} of {one.request['count']} items"
            for one in self.journeys
            if not one.whole
        ]
        return found

    def summary(self) -> dict[str, Any]:
        """Return the figures."""
        times = {
            name: {f"p{share}": round(self.percentile(name, share / 100), 3) for share in (50, 95, 99)}
            | {"max": round(self.percentile(name, 1.0), 3)}
            for name in ("first_item", "first_response", "completed")
        }
        return times | {
            "batches": len(self.journeys),
            "whole": sum(one.whole for one in self.journeys),
            "success": round(sum(one.whole for one in self.journeys) / max(len(self.journeys), 1), 4),
            "items": sum(len(one.items) for one in self.journeys),
            "seconds": round(self.seconds, 1),
            "doubled": len(self.doubled),
            "streams": sum(one.streams for one in self.journeys),
            "resumed": sum(one.resumed for one in self.journeys),
            "asks": sum(one.asks for one in self.journeys),
            "faults": self.faults[:5],
        }


async def generate(
    client: DetailsClient, load: Load, stop: asyncio.Event | None = None, outcome: Outcome | None = None
) -> Outcome:
    """Keep so many batches going for the time of the load, or until `stop`, and let each come to its end.

    `outcome`: where each is noted as soon as it has ended.
    """
    outcome = Outcome() if outcome is None else outcome
    chance, began = Random(load.seed), time.monotonic()

    async def one(number: int) -> None:
        session = f"session-{load.seed}-{number}"
        await asyncio.sleep(chance.random() * load.spread)
        while time.monotonic() - began < load.seconds and not (stop is not None and stop.is_set()):
            request = {
                "type": chance.choice(TYPES), "count": chance.randint(load.least, load.most),
                "style": chance.choice(STYLES), "priority": chance.randint(4, 10), "session_id": session,
            }  # fmt: skip
            outcome.journeys.append(await client.travel(request))

    await asyncio.gather(*(one(number) for number in range(load.clients)))
    outcome.seconds = time.monotonic() - began
    return outcome


async def store_figures(dsn: str) -> dict[str, Any]:
    """Return what the store knows: waits of subtasks, how soon their requests were in the outbox, and retries."""
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch(
            "SELECT j.created_at, j.started_at, e.occurred_at, j.result FROM headrace.finished_jobs AS j "
            "LEFT JOIN headrace.events AS e ON e.causation_id = j.id::text "
            "WHERE j.task = 'details_subtask' AND j.started_at IS NOT NULL"
        )
        letters = await connection.fetchval("SELECT count(*) FROM headrace.resume_events WHERE dead")
        failed = await connection.fetchval("SELECT count(*) FROM headrace.finished_jobs WHERE state = 'failed'")
        done = await connection.fetch(
            "SELECT e.data FROM headrace.feed_entries AS e JOIN headrace.feeds AS f ON f.id = e.feed_id "
            "WHERE f.name = 'details.done'"
        )
    finally:
        await connection.close()
    waits = [(row["started_at"] - row["created_at"]).total_seconds() for row in rows]
    outs = [(row["occurred_at"] - row["started_at"]).total_seconds() for row in rows if row["occurred_at"]]
    ends = [json.loads(row["data"]) for row in done]
    return {
        "subtasks": len(rows), "dead_letters": letters, "failed_jobs": failed,
        "dead_letter_share": round(letters / max(len(rows), 1), 5),
        "queue_wait": _spread(waits), "claim_to_outbox": _spread(outs),
        **{name: sum(end[name] for end in ends) for name in ("calls", "rejected", "duplicates")},
    }  # fmt: skip


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that so great a share of the values does not exceed; NaN of none."""
    if not values:
        return float("nan")
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {f"p{share}": round(percentile(values, share / 100), 4) for share in (50, 95, 99)}
