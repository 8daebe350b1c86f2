"""`headrace events groups`: who reads the messages of the store's bus, and forgetting those that never will again."""

from __future__ import annotations

import click

from headrace.app import App
from headrace.cli.opening import with_app
from headrace.cli.output import json_option, print_json, print_table, print_text
from headrace.engine.queries import to_json
from headrace.model.errors import ConfigError, NotFoundError
from headrace.model.message_log import GroupView
from headrace.ports.message_log import MessageLog

_COLUMNS = ("GROUP", "MEMBERS", "BEHIND", "SEEN")


@click.group()
def groups() -> None:
    """Groups that read messages: agents, the callback service, redrives. Only where the store is the bus.

    Messages are kept until every group has handled them. One that nobody has been in for [events] keep_messages holds
    nothing back; `forget` ends that at once, for an agent that was removed or renamed.
    """


@groups.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List groups: their live members, how many messages they are behind, and when they last had a member.

    \b
    Examples:
      headrace events groups list
      headrace events groups list --json
    """

    async def read(app: App) -> list[GroupView]:
        return await _log(app).log_groups()

    found = with_app(read)
    if as_json:
        print_json(to_json(found))
    elif not found:
        print_text("No group has read messages yet.")
    else:
        print_table(_COLUMNS, [(one.name, one.members, one.backlog, one.seen_at) for one in found])


@groups.command()
@click.argument("group", metavar="GROUP")
@click.option("--yes", is_flag=True, show_default=False, help="Needed: how far the group is gets lost.")
@json_option
def forget(group: str, yes: bool, as_json: bool) -> None:
    """Forget a group that has no live members, so that no message is kept for it.

    One that joins by this name later begins at the first message that is kept.

    \b
    Example:
      headrace events groups forget headrace.agent.biller --yes
    """
    if not yes:
        raise click.UsageError("how far the group is gets lost: add --yes")

    async def settle(app: App) -> None:
        if not await _log(app).forget_group(group):
            raise NotFoundError(f"there is no group {group}; `headrace events groups list` shows those that are known")

    with_app(settle)
    if as_json:
        print_json({"forgotten": group})
    else:
        print_text(f"{group} is forgotten")


def _log(app: App) -> MessageLog:
    """Return the log of messages where it is the bus. Raises ConfigError."""
    log = app.event_stores.log
    if app.settings.events.bus != "store":
        raise ConfigError(
            "the groups of Kafka are known to Kafka alone: use its kafka-consumer-groups with --list, --describe or "
            '--delete --group GROUP; `headrace events groups` is for [events] bus = "store"'
        )
    return log
