"""`headrace events dead-letters`: messages that agents gave up, and putting them back."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any

import click

from headrace.app import App
from headrace.cli.opening import with_app
from headrace.cli.output import json_option, one_line, print_json, print_table, print_text
from headrace.cli.tables import Give
from headrace.cli.values import DurationType, WholeType
from headrace.engine.events.redriving import GROUP, Found, Letter, Patience, Redriving
from headrace.engine.queries import to_json
from headrace.wiring.events import open_bus

LOG = logging.getLogger("headrace.events")

_COLUMNS = ("AT", "KEY", "TYPE", "EVENT", "AGENT", "KIND", "ATTEMPTS", "REDRIVES", "ERROR")
_GIVE = Give(first=("EVENT", "KEY", "REDRIVES", "ATTEMPTS", "KIND"), prose=("ERROR",))
#: A member of the store's bus that died holds its partitions for its lease.
_MARGIN = 2.0
_TOPIC = click.argument("topic", metavar="TOPIC")
_WAIT = click.option(
    "--wait", metavar="TIME", type=DurationType(), show_default=False,
    help="How long to wait for the first.  [default: 15s with Kafka, with the store [events] member_lease and 2s]",
)  # fmt: skip


@click.group("dead-letters")
def dead_letters() -> None:
    """Dead letters of events: messages that agents gave up, and putting them back.

    TOPIC is the one that the messages came from, such as outbox.event.ShopOrder; their dead letters are in TOPIC.dlt,
    or what [events] dead_letter_suffix makes of it. Of two commands at once each sees a part. Kafka does not say how
    many there are: there a command ends when none has come for 3 s, and the next one goes on behind it.
    """


@dead_letters.command("list")
@_TOPIC
@click.option("--limit", metavar="N", type=WholeType("limit", 1, 10_000), default=50, help="At most N.")
@_WAIT
@json_option
def list_(topic: str, limit: int, wait: timedelta | None, as_json: bool) -> None:
    """List dead letters of a topic that were not put back yet, by partition and offset.

    \b
    Examples:
      headrace events dead-letters list outbox.event.ShopOrder
      headrace events dead-letters list outbox.event.ShopOrder --limit 500 --json
    """
    found = _with_redriving(lambda redriving: redriving.look(topic, limit=limit), wait, looks=True)
    _print(found, topic, as_json=as_json, done=None)


@dead_letters.command()
@_TOPIC
@click.option("--dry-run", is_flag=True, show_default=False, help="Only show what would be put back.")
@click.option("--limit", metavar="N", type=WholeType("limit", 1, 1_000_000), default=10_000, help="At most N.")
@_WAIT
@json_option
def redrive(topic: str, dry_run: bool, limit: int, wait: timedelta | None, as_json: bool) -> None:
    """Put dead letters of a topic back, each once, those of a key in their order.

    They go through the outbox to where they came from, with the header `redrives` one higher, and the agent handles
    them anew. One that comes back as a dead letter meanwhile is left for the next redrive.

    \b
    Examples:
      headrace events dead-letters redrive outbox.event.ShopOrder --dry-run
      headrace events dead-letters redrive outbox.event.ShopOrder --limit 100
    """
    if dry_run:
        found = _with_redriving(lambda redriving: redriving.look(topic, limit=limit), wait, looks=True)
    else:
        found = _with_redriving(lambda redriving: redriving.redrive(topic, limit=limit), wait)
    _print(found, topic, as_json=as_json, done=0 if dry_run else len(found.letters))


def _with_redriving(
    work: Callable[[Redriving], Awaitable[Found]], wait: timedelta | None, *, looks: bool = False
) -> Found:  # fmt: skip
    async def run(app: App) -> Found:
        events, stores = app.settings.events, app.event_stores
        async with AsyncExitStack() as stack:
            bus = open_bus(app.settings, stores, app.runtime.stores.notifier)
            stack.push_async_callback(bus.close)
            kafka = events.bus == "kafka"

            async def backlog(topic: str) -> int | None:
                if kafka:
                    return None
                behind = await stores.log.log_backlog(GROUP)
                return sum(count for (name, _), count in behind.items() if name == topic)

            lease = events.member_lease.total_seconds() + _MARGIN
            patience = Patience() if kafka else Patience(lease, lease)
            if wait is not None:
                patience = replace(patience, first=wait.total_seconds())
            return await work(Redriving(bus, stores.outbox, events.dead_letter_suffix, patience, backlog))

    return with_app(run, looks=looks)


def _print(found: Found, topic: str, *, as_json: bool, done: int | None) -> None:
    """Show dead letters; `done`: how many were put back, None where that was not asked for."""
    if as_json:
        facts: dict[str, Any] = {"letters": to_json(found.letters), "foreign": found.foreign}
        print_json(facts if done is None else facts | {"redriven": done, "returned": found.returned})
        return
    if not found.letters:
        print_text(f"There are no dead letters of {topic} that were not put back.")
    elif not done:
        print_table(_COLUMNS, [_row(letter) for letter in found.letters], _GIVE)
    if done:
        print_text(f"{done} {'message goes' if done == 1 else 'messages go'} back to {topic}, through the outbox")
    if found.foreign:
        print_text(f"{found.foreign} messages beside them were put there by no agent, and are passed over")
    if found.returned:
        print_text("Some came back as dead letters already, so the rest was left: see `dead-letters list`")


def _row(letter: Letter) -> tuple[object, ...]:
    place = f"{letter.partition}/{letter.offset}"
    return (
        place, letter.key, letter.type, letter.event_id, letter.agent, letter.kind, letter.attempts, letter.redrives,
        one_line(letter.error, 200),
    )  # fmt: skip
