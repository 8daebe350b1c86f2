"""`headrace events`: the outbox, the log of events, dead letters, and what waits for events."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import click

from headrace.app import App
from headrace.cli.event_checks import kafka_finding
from headrace.cli.event_groups import groups
from headrace.cli.event_handles import handles
from headrace.cli.event_hosting import bus_words
from headrace.cli.event_letters import dead_letters
from headrace.cli.loading import load_app
from headrace.cli.opening import on_app, refuse_memory, with_app
from headrace.cli.output import age, json_option, print_facts, print_json, print_table, print_text
from headrace.cli.tables import Give
from headrace.cli.values import IdType, JsonType, WholeType
from headrace.engine.events.documents import event_document, parked_document, stats_document
from headrace.model.emitting import EventOptions
from headrace.model.errors import NotFoundError
from headrace.model.event import Event, OutboxStats, ParkedEvent
from headrace.ports.outbox import Outbox
from headrace.wiring.events import CALLBACK_GROUP

#: A row that has waited so long waits for a relay.
LATE = timedelta(seconds=10)
_LOG = ("TIME", "TYPE", "AGGREGATE", "CORRELATION", "ID")
_PARKED = ("POSITION", "TOPIC", "KEY", "TYPE", "PARKED", "HELD", "ERROR")
_POSITIONS = click.argument(
    "positions", metavar="POSITION...", type=WholeType("position", 1, 2**63 - 1), nargs=-1, required=True
)  # fmt: skip


@click.group()
def events() -> None:
    """Events: the outbox, their log, dead letters, and what waits for events.

    An event is stored with the change it tells of, waits in the outbox, and leaves through the relay. A row that the
    bus will never take is parked, and later ones of its key are held behind it.
    """


events.add_command(dead_letters)
events.add_command(groups)
events.add_command(handles)


@events.command()
@click.argument("app", metavar="[MODULE:app]", required=False)
@json_option
def status(app: str | None, as_json: bool) -> None:
    """Show how full the outbox is, and with the store as the bus how far groups are behind.

    Groups are the callback service, and the agents of MODULE:app where it is given. Those of Kafka are known to Kafka:
    kafka-consumer-groups --describe shows them.

    \b
    Examples:
      headrace events status
      headrace events status shop.events:app --json
    """
    found = App() if app is None else load_app(app)
    stats, backlog = on_app(found, _read_status)
    if as_json:
        print_json(stats_document(stats) | {"bus": found.settings.events.bus, "backlog": backlog})
        return
    oldest = timedelta(seconds=stats.oldest_seconds)
    facts = {"bus": bus_words(found.settings), "waiting": stats.waiting, "oldest": age(oldest) if stats.waiting else ""}
    print_facts(facts | {"held": stats.held, "parked": stats.parked})
    if backlog:
        print_text("")
        rows = [(group, topic, count) for group, topics in backlog.items() for topic, count in topics.items()]
        print_table(("GROUP", "TOPIC", "BEHIND"), rows)
    away = asyncio.run(kafka_finding(found.settings)) if found.settings.events.bus == "kafka" else None
    if away is not None and away.fix is not None:
        print_text(f"\n{away.message}: {away.fix}.")
    _advise(stats, oldest)


async def _read_status(app: App) -> tuple[OutboxStats, dict[str, dict[str, int]] | None]:
    stores = app.event_stores
    stats = await stores.outbox.outbox_stats()
    if app.settings.events.bus != "store":
        return stats, None
    groups = [CALLBACK_GROUP, *(agent.definition.group for agent in app.agents.values())]
    backlog: dict[str, dict[str, int]] = {}
    for group in dict.fromkeys(groups):
        topics: dict[str, int] = {}
        for (topic, _), count in sorted((await stores.log.log_backlog(group)).items()):
            topics[topic] = topics.get(topic, 0) + count
        backlog[group] = topics
    return stats, backlog


def _advise(stats: OutboxStats, oldest: timedelta) -> None:
    if stats.parked:
        print_text("\nThe bus refused some for ever: `headrace events parked` says why.")
    if stats.waiting and oldest > LATE:
        print_text(
            "\nNo relay runs, it cannot keep up, or the bus does not answer: start a worker or `headrace relay`; the "
            "log of\none that runs, and `headrace doctor`, say what holds it up."
        )


@events.command("list")
@click.option("--correlation", "correlation_id", metavar="ID", show_default=False, help="Only with this correlation.")
@click.option("--aggregate", "aggregate_id", metavar="ID", show_default=False, help="Only of this aggregate.")
@click.option("--after", metavar="ID", type=IdType(), show_default=False, help="Those behind this event.")
@click.option("--limit", metavar="N", type=WholeType("limit", 1, 10_000), default=50, help="At most N.")
@json_option
def list_(
    correlation_id: str | None, aggregate_id: str | None, after: UUID | None, limit: int, as_json: bool
) -> None:  # fmt: skip
    """List events of the log, also those that have left; they are kept for [events] keep_events.

    They stand as they were inserted: --after the last id of one page gives the next.

    \b
    Examples:
      headrace events list --correlation c-1
      headrace events list --aggregate o-7 --limit 200 --json
    """

    async def read(app: App) -> list[Event]:
        return await app.event_stores.outbox.list_events(
            correlation_id=correlation_id, aggregate_id=aggregate_id, after="" if after is None else str(after),
            limit=limit,
        )  # fmt: skip

    found = with_app(read)
    if as_json:
        print_json([event_document(event) for event in found])
        return
    if not found:
        print_text("There is no such event.")
        return
    rows = [(one.time, one.type, one.aggregate_id, one.correlation_id, one.id) for one in found]
    print_table(_LOG, rows, Give(first=("CORRELATION", "AGGREGATE")))
    if len(found) == limit:
        print_text(f"There may be more: --after {found[-1].id}")


@events.command()
@click.argument("type_", metavar="TYPE")
@click.argument("payload", metavar="[JSON]", type=JsonType(), default="null")
@click.option("--aggregate-id", metavar="ID", required=True, help="What it happened to; those of one stay in order.")
@click.option("--aggregate-type", metavar="NAME", show_default=False, help="Its kind.  [default: as TYPE says]")
@click.option("--correlation-id", metavar="ID", show_default=False, help="What belongs together.")
@click.option("--causation-id", metavar="ID", show_default=False, help="The event or job that caused it.")
@json_option
def emit(type_: str, payload: Any, as_json: bool, **given: str | None) -> None:
    """Put an event into the outbox and print its id. `-` reads JSON from standard input.

    \b
    Examples:
      headrace events emit Shop.Order.Paid '{"cents": 1200}' --aggregate-id o-7
      headrace events emit Shop.Order.Paid --aggregate-id o-7 --correlation-id c-1 --json
    """
    app = App()
    refuse_memory(app.settings, "event")
    options: EventOptions = {name: value for name, value in given.items() if value is not None}  # type: ignore[assignment]
    event = on_app(app, lambda app: app.emit(type_, payload, **options))
    if as_json:
        print_json(event_document(event))
    else:
        print_text(event.id)


@events.command()
@click.option("--limit", metavar="N", type=WholeType("limit", 1, 10_000), default=50, help="At most N.")
@json_option
def parked(limit: int, as_json: bool) -> None:
    """List rows of the outbox that the bus will never take, with the reason, the oldest first.

    HELD is how many of the same topic and key wait behind each.

    \b
    Examples:
      headrace events parked
      headrace events parked --json
    """

    async def read(app: App) -> list[ParkedEvent]:
        return await app.event_stores.outbox.list_parked(limit=limit)

    found = with_app(read)
    if as_json:
        print_json([parked_document(one) for one in found])
    elif not found:
        print_text("Nothing is parked.")
    else:
        rows = [(one.position, one.topic, one.key, one.type, one.parked_at, one.held, one.error) for one in found]
        print_table(_PARKED, rows, Give(first=("PARKED", "KEY", "TYPE"), prose=("ERROR",)))


@events.command()
@_POSITIONS
@json_option
def release(positions: tuple[int, ...], as_json: bool) -> None:
    """Let parked rows be tried again, at their place; those behind them follow.

    \b
    Example:
      headrace events release 17 23
    """
    _settle(positions, drop=False, as_json=as_json)


@events.command()
@_POSITIONS
@click.option("--yes", is_flag=True, show_default=False, help="Needed: what is dropped never leaves.")
@json_option
def drop(positions: tuple[int, ...], yes: bool, as_json: bool) -> None:
    """Take parked rows out of the outbox, so that they never leave; those behind them go on.

    An event stays in the log of events.

    \b
    Example:
      headrace events drop 17 --yes
    """
    if not yes:
        raise click.UsageError("what is dropped never leaves: add --yes, or let it be tried again with `release`")
    _settle(positions, drop=True, as_json=as_json)


def _settle(positions: tuple[int, ...], *, drop: bool, as_json: bool) -> None:
    async def settle(app: App) -> list[int]:
        outbox: Outbox = app.event_stores.outbox
        return await outbox.release_parked(positions, drop=drop)

    done, word = with_app(settle), "dropped" if drop else "released"
    if as_json and done:
        print_json({word: done})
    elif done:
        print_text(f"{', '.join(map(str, done))} {'is' if len(done) == 1 else 'are'} {word}")
    missing = sorted(set(positions) - set(done))
    if missing:
        shown = ", ".join(map(str, missing))
        raise NotFoundError(f"nothing is parked at {shown}; `headrace events parked` shows what is")
