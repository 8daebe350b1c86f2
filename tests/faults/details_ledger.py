"""What store and provider tell of details: what is at work, whether each batch has its records, what was retried."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import asyncpg

from headrace.apps.details.names import COMPLETED, CREATED, ENDED, FIRST_RESPONSE, FLOW_TASK, INTAKE_TASK, ITEM
from headrace.testing.provider import ProviderProcess
from tests.faults.details_client import Journey

#: Parts of which one item has come, and no event: an agent is in the midst of them, with more to write.
_MIDSTREAM = """
SELECT count(*) FROM (
  SELECT item.data ->> 'subtask_id' AS part FROM headrace.feed_entries AS item WHERE item.type = $1
  GROUP BY part HAVING count(*) = 1 AND max(item.appended_at) > now() - interval '5 seconds') AS begun
WHERE NOT EXISTS (SELECT FROM headrace.events AS made WHERE made.type = $2 AND made.payload ->> 'task_id' = part)
"""
_RUNNING = "SELECT count(*) FROM headrace.jobs WHERE task = $1 AND state = 'running'"
_ENTRIES = """
SELECT substr(feed.name, 9) AS batch, entry.seq, entry.type FROM headrace.feed_entries AS entry
JOIN headrace.feeds AS feed ON feed.id = entry.feed_id WHERE feed.name LIKE 'details:%' ORDER BY entry.seq
"""
_EVENTS = """
SELECT type, CASE type WHEN $1 THEN payload ->> 'task_id' ELSE payload ->> 'batch_id' END AS about
FROM headrace.events WHERE type IN ($1, $2)
"""
_ASKED = "SELECT id::text FROM headrace.finished_jobs WHERE task = $1 AND state = 'succeeded'"
_DEAD = """
SELECT DISTINCT asked.payload ->> 'task_id' AS part FROM headrace.resume_events AS noted
JOIN headrace.events AS asked ON asked.id::text = noted.event_id WHERE noted.dead
"""
#: Before the id of a part, and the number of the ask, in a prompt.
_MARK = "\nRequest "


async def midstream(connection: asyncpg.Connection) -> int:
    """Count parts whose first item has just been delivered."""
    return int(await connection.fetchval(_MIDSTREAM, ITEM, CREATED))


async def running_flows(connection: asyncpg.Connection) -> int:
    """Count coordinators that a worker runs, not those that wait."""
    return int(await connection.fetchval(_RUNNING, FLOW_TASK))


async def faults_of(dsn: str, journeys: Sequence[Journey]) -> list[str]:
    """Return what is wrong with the records of these batches, which are all that were asked for."""
    connection = await asyncpg.connect(dsn)
    try:
        entries = await connection.fetch(_ENTRIES)
        events = await connection.fetch(_EVENTS, CREATED, COMPLETED)
        asked = {row["id"] for row in await connection.fetch(_ASKED, INTAKE_TASK)}
    finally:
        await connection.close()
    mine = {journey.batch_id for journey in journeys}
    found = [f"batch {batch} was begun, and nobody asked for it" for batch in asked - mine]
    found += [f"batch {batch} was not begun" for batch in mine - asked]
    feeds: dict[str, list[tuple[int, str]]] = {batch: [] for batch in mine}
    for row in entries:
        feeds.setdefault(row["batch"], []).append((row["seq"], row["type"]))
    for journey in journeys:
        found += feed_faults(journey, feeds[journey.batch_id])
    times = Counter((row["type"], row["about"]) for row in events)
    found += [f"{count} events {type_} of {about}" for (type_, about), count in times.items() if count > 1]
    return found + [f"batch {batch} has no event of its end" for batch in mine if not times[COMPLETED, batch]]


def feed_faults(journey: Journey, entries: Sequence[tuple[int, str]]) -> list[str]:
    """Return what is wrong with the entries of a feed, numbers and types, and with what its client had of them."""
    numbers, types = [seq for seq, _ in entries], Counter(type_ for _, type_ in entries)
    wanted = {ITEM: journey.request["count"], FIRST_RESPONSE: 1, ENDED: 1}
    found = [f"{types[type_]} entries {type_}, not {count}" for type_, count in wanted.items() if types[type_] != count]
    if numbers != list(range(1, len(numbers) + 1)):
        found.append(f"the feed has the numbers {numbers}")
    if journey.numbers != numbers:
        found.append(f"the client had {journey.numbers} of {len(numbers)} entries")
    return [f"{journey.batch_id}: {fault}" for fault in found]


def asks_of(provider: ProviderProcess) -> list[tuple[str, dict[str, Any]]]:
    """Return what the provider was asked: the part's id with the number of the ask, and the counts of one wording."""
    return [(told["excerpt"].rpartition(_MARK)[2], told) for told in provider.calls(_MARK)]


def continued_parts(provider: ProviderProcess) -> int:
    """Count parts whose first ask was sent more than once: whoever writes a part again asks the same."""
    calls = Counter[str]()
    for ask, told in asks_of(provider):
        if ask.endswith("/0"):
            calls[ask] += told["calls"]
    return sum(count > 1 for count in calls.values())


async def retry_figures(dsn: str, provider: ProviderProcess) -> dict[str, Any]:
    """Return how many calls failed, and the share of them whose part succeeded in the end, without a dead letter."""
    connection = await asyncpg.connect(dsn)
    try:
        dead = {row["part"] for row in await connection.fetch(_DEAD)}
    finally:
        await connection.close()
    failed: dict[str, int] = defaultdict(int)
    for ask, told in asks_of(provider):
        # A call of a part that has several has a number behind a dot.
        failed[ask.rpartition("/")[0].partition(".")[0]] += told["calls"] - told["answered"]
    all_, lost = sum(failed.values()), sum(count for part, count in failed.items() if part in dead)
    return {
        "failed_calls": all_, "failed_parts": sum(count > 0 for count in failed.values()), "dead_parts": len(dead),
        "retry_success": round(1 - lost / all_, 4) if all_ else None,
    }  # fmt: skip
