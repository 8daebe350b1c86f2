"""`headrace schedule`: what runs by the clock, when next, and what came of it."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

import click

from headrace.cli.opening import with_stores
from headrace.cli.output import json_option, print_json, print_table, print_text
from headrace.cli.tables import Give
from headrace.cli.values import NameType, WholeType
from headrace.engine import schedules
from headrace.engine.schedules import ScheduleFacts
from headrace.model.errors import InvalidInputError
from headrace.model.schedule import FireRecord, find_zone

COLUMNS = ("SCHEDULE", "STATE", "CRON", "ZONE", "CATCH-UP", "NEXT", "LAST", "LAST JOB", "TASK", "QUEUE")
_GIVE = Give(first=("LAST JOB", "CATCH-UP", "QUEUE", "TASK", "LAST", "ZONE"))
_FIRES = ("FOR", "FIRED", "BY", "JOB")
_NAME = click.argument("name", metavar="NAME", type=NameType())


@click.group()
def schedule() -> None:
    """What runs by the clock: list, pause, run now, forget."""


@schedule.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Show every schedule: when it fires next and fired last, by the clocks of its zone.

    STATE is active, paused, or undeclared: no worker has had it in its code for ten minutes, so it does not fire.

    \b
    Examples:
      headrace schedule list
      headrace schedule list --json
    """
    found = with_stores(schedules.list_schedules)
    if as_json:
        print_json([schedules.schedule_document(facts) for facts in found])
    elif not found:
        print_text("There is no schedule yet. Write @app.cron(…) over a function and start a worker.")
    else:
        print_table(COLUMNS, [_row(facts) for facts in found], _GIVE)


def _row(facts: ScheduleFacts) -> tuple[object, ...]:
    view, rule, spec = facts.view, facts.view.declaration.rule, facts.view.declaration.spec
    zone, last = _zone(rule.tz), view.last
    return (
        view.name, facts.state, rule.expression, rule.tz, str(rule.catch_up),
        _local(facts.upcoming[0], zone) if facts.upcoming else "",
        "" if last is None else _local(last.fire_at, zone), "" if last is None else str(last.job_id),
        spec.task, spec.queue,
    )  # fmt: skip


def _zone(name: str) -> tzinfo:
    """Return the zone of a schedule, or UTC where only other machines know it."""
    try:
        return find_zone(name)
    except InvalidInputError:
        return UTC


def _local(instant: datetime, zone: tzinfo) -> str:
    return instant.astimezone(zone).isoformat(sep=" ", timespec="minutes")


@schedule.command()
@_NAME
@click.option("--limit", metavar="N", type=WholeType("limit", 1, 1_000), default=20, help="Show the last N.")
@json_option
def history(name: str, limit: int, as_json: bool) -> None:
    """Show the last fires of a schedule: the time each was for, its job, and whether somebody asked for it.

    \b
    Examples:
      headrace schedule history nightly
      headrace schedule history nightly --limit 100 --json
    """
    fires = with_stores(lambda stores: schedules.list_fires(stores, name, limit=limit))
    if as_json:
        print_json(fires)
    elif not fires:
        print_text(f"{name} has not fired yet.")
    else:
        print_table(_FIRES, [_fire(record) for record in fires], Give(first=("FIRED", "BY")))


def _fire(record: FireRecord) -> tuple[object, ...]:
    return record.fire_at, record.fired_at, "run-now" if record.manual else "schedule", str(record.job_id)


@schedule.command()
@_NAME
@json_option
def pause(name: str, as_json: bool) -> None:
    """Fire a schedule no more until it is resumed; its jobs that there are go on.

    \b
    Example:
      headrace schedule pause nightly
    """
    _set_paused(name, paused=True, as_json=as_json)


@schedule.command()
@_NAME
@json_option
def resume(name: str, as_json: bool) -> None:
    """Let a paused schedule fire again, from now on: what it missed meanwhile is not made up for.

    \b
    Example:
      headrace schedule resume nightly
    """
    _set_paused(name, paused=False, as_json=as_json)


def _set_paused(name: str, *, paused: bool, as_json: bool) -> None:
    with_stores(lambda stores: schedules.set_schedule_paused(stores, name, paused=paused))
    if as_json:
        print_json({"schedule": name, "paused": paused})
    else:
        print_text(f"{name} is {'paused' if paused else 'resumed'}")


@schedule.command("run-now")
@_NAME
@json_option
def run_now(name: str, as_json: bool) -> None:
    """Make a job of a schedule at once and print its id; the schedule itself goes on as planned, or stays paused.

    \b
    Example:
      headrace schedule run-now nightly
    """
    job_id = with_stores(lambda stores: schedules.run_schedule(stores, name))
    if as_json:
        print_json({"schedule": name, "job_id": job_id})
    else:
        print_text(str(job_id))


@schedule.command()
@_NAME
@click.option("--force", is_flag=True, show_default=False, help="Also one that a worker still declares.")
@json_option
def forget(name: str, force: bool, as_json: bool) -> None:
    """Remove a schedule that is no longer in the code, with its history; its jobs stay.

    \b
    Example:
      headrace schedule forget nightly
    """
    with_stores(lambda stores: schedules.forget_schedule(stores, name, force=force))
    if as_json:
        print_json({"schedule": name, "forgotten": True})
    else:
        print_text(f"{name} is forgotten")
