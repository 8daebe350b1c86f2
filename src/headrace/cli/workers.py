"""`headrace workers`: who works, on what, and whether it is well."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click

from headrace.cli.opening import with_stores
from headrace.cli.output import age, json_option, print_json, print_table, print_text
from headrace.cli.tables import Give
from headrace.engine.queries import to_json
from headrace.model.session import SessionView
from headrace.ports.stores import Stores

COLUMNS = (
    "STATE", "HOST", "PID", "QUEUES", "RUNNING", "HEARTBEAT", "STARTED", "BY HINT", "BY POLL", "REFUSED", "UNACKED",
    "SESSION",
)  # fmt: skip
_GIVE = Give(
    first=("SESSION", "BY HINT", "BY POLL", "UNACKED", "REFUSED", "STARTED", "PID", "RUNNING"), lists=("QUEUES",)
)  # fmt: skip
#: Their values stand in the columns BY HINT to UNACKED.
COUNTERS = ("wakeups.hint", "wakeups.poll", "jobs.refused", "jobs.unacked")


@click.command()
@click.option("--all", "everyone", is_flag=True, show_default=False, help="Show sessions that ended, too.")
@json_option
def workers(everyone: bool, as_json: bool) -> None:
    """Show the workers that are alive.

    BY HINT and BY POLL count claims that found work, by what woke them. REFUSED counts late writes of a worker whose
    job had moved on. UNACKED are jobs that ended and are not recorded yet.

    \b
    Examples:
      headrace workers
      headrace workers --all --json
    """
    now, sessions = with_stores(_read)
    # A process that only calls models has a session as well, and serves no queue.
    chosen = [session for session in sessions if session.queues and (session.alive or everyone)]
    if as_json:
        print_json([_document(session, now) for session in chosen])
    elif not chosen:
        print_text("No worker is alive. Start one with: headrace worker MODULE:app")
    else:
        print_table(COLUMNS, [_row(session, now) for session in chosen], _GIVE)


async def _read(stores: Stores) -> tuple[datetime | None, list[SessionView]]:
    # Leases are counted by the store's clock, so their ages are too.
    return (await stores.inspect.store_info()).now, await stores.inspect.list_sessions()


def heartbeat_age(session: SessionView, now: datetime | None) -> timedelta | None:
    """Return how long ago a live worker renewed its lease; None where that is not known."""
    lease = session.stats.get("headrace.sessions.lease_ms")
    if now is None or not session.alive:
        return None
    if lease is None:
        return now - session.started_at
    return max(timedelta(milliseconds=lease) - (session.expires_at - now), timedelta())


def _document(session: SessionView, now: datetime | None) -> dict[str, Any]:
    beat = heartbeat_age(session, now)
    document: dict[str, Any] = to_json(session)
    return document | {"heartbeat_age_seconds": None if beat is None else round(beat.total_seconds(), 3)}


def _row(session: SessionView, now: datetime | None) -> tuple[object, ...]:
    stats = session.stats
    started = None if now is None else now - session.started_at
    return (
        "live" if session.alive else "ended",
        session.hostname,
        session.process.pid,
        ", ".join(f"{name}:{slots}" for name, slots in session.queues.items()),
        session.running,
        _ago(heartbeat_age(session, now)),
        _ago(started),
        *(
            stats.get(f"headrace.{name}", 0)
            for name in ("wakeups.hint", "wakeups.poll", "jobs.refused", "jobs.unacked")
        ),
        str(session.id),
    )


def _ago(duration: timedelta | None) -> str:
    return "" if duration is None else f"{age(duration)} ago"
