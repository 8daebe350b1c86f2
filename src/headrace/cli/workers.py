"""`headrace workers`: who works, on what, and whether it is well."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import click

from headrace.cli.opening import with_stores
from headrace.cli.output import age, json_option, print_json, print_table, print_text
from headrace.cli.tables import Give
from headrace.engine.slot_exposition import slots_of
from headrace.engine.worker_queries import heartbeat_age, list_workers, worker_document
from headrace.model.session import SessionView

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
    job had moved on. UNACKED are jobs that ended and are not recorded yet. QUEUES shows the slots of each queue, and in
    parentheses the bounds of those that are elastic.

    \b
    Examples:
      headrace workers
      headrace workers --all --json
    """
    now, chosen = with_stores(lambda stores: list_workers(stores, everyone=everyone))
    if as_json:
        print_json([worker_document(session, now) for session in chosen])
    elif not chosen:
        print_text("No worker is alive. Start one with: headrace worker MODULE:app")
    else:
        print_table(COLUMNS, [_row(session, now) for session in chosen], _GIVE)


def _row(session: SessionView, now: datetime | None) -> tuple[object, ...]:
    stats = session.stats
    started = None if now is None else now - session.started_at
    return (
        "live" if session.alive else "ended",
        session.hostname,
        session.process.pid,
        ", ".join(f"{name}:{_slots(row)}" for name, row in slots_of(session).items()),
        session.running,
        _ago(heartbeat_age(session, now)),
        _ago(started),
        *(
            stats.get(f"headrace.{name}", 0)
            for name in ("wakeups.hint", "wakeups.poll", "jobs.refused", "jobs.unacked")
        ),
        str(session.id),
    )


def _slots(row: Mapping[str, Any]) -> str:
    return str(row["size"]) if row["min"] == row["max"] else f"{row['size']} ({row['min']}-{row['max']})"


def _ago(duration: timedelta | None) -> str:
    return "" if duration is None else f"{age(duration)} ago"
