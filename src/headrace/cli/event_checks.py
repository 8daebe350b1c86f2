"""What `headrace doctor` says of events: whether the bus can be reached, and whether they get there."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from headrace.cli.finding import Finding, Status
from headrace.cli.output import age
from headrace.model.event import OutboxStats
from headrace.ports.stores import Stores
from headrace.settings import Settings

#: A broker has to take a connection within this time.
SECONDS = 2.0
#: Rows that have waited longer are waiting for a relay.
LATE = timedelta(seconds=30)


async def event_findings(stores: Stores, settings: Settings) -> list[Finding]:
    """Return what there is to say of events; nothing of a store that has no outbox, unless a broker is set."""
    found = [await kafka_finding(settings)] if settings.events.bus == "kafka" else []
    if stores.events is None:
        return found
    return [*found, _outbox(await stores.events.outbox.outbox_stats())]


async def kafka_finding(settings: Settings) -> Finding:
    """Look whether somebody listens at the brokers; whether they let this user in shows with the first message."""
    servers = [server.strip() for server in settings.events.kafka.servers.split(",")]
    answers = await asyncio.gather(*map(_refusal, servers))
    away = [f"{server} ({why})" for server, why in zip(servers, answers, strict=True) if why]
    fix = "start them, or correct [events.kafka] servers; until then events wait in the outbox, and none is lost"
    if len(away) == len(servers):
        return Finding("bus", Status.FAIL, f"no Kafka broker can be reached: {', '.join(away)}", fix)
    if away:
        return Finding("bus", Status.WARN, f"some Kafka brokers cannot be reached: {', '.join(away)}", fix)
    return Finding("bus", Status.OK, f"Kafka can be reached at {', '.join(servers)}")


async def _refusal(server: str) -> str | None:
    """Return why no connection was made."""
    host, _, port = server.rpartition(":")
    try:
        async with asyncio.timeout(SECONDS):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except TimeoutError:
        return f"no answer within {SECONDS:g} s"
    except (OSError, OverflowError) as error:
        return getattr(error, "strerror", None) or str(error)
    writer.close()
    return None


def _outbox(stats: OutboxStats) -> Finding:
    if stats.parked:
        message = f"{stats.parked} rows of the outbox were refused for ever, and {stats.held} wait behind them"
        return Finding("events", Status.WARN, message, "headrace events parked")
    oldest = timedelta(seconds=stats.oldest_seconds)
    if stats.waiting and oldest > LATE:
        message = f"{stats.waiting} wait in the outbox, the oldest for {age(oldest)}"
        return Finding("events", Status.WARN, message, "headrace relay, or a worker with [worker] relay_enabled")
    return Finding("events", Status.OK, f"{stats.waiting} wait in the outbox, none is parked")
