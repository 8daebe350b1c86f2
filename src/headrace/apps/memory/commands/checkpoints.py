"""`headrace memory checkpoint` and `restore`: what stands, and what is submitted again after a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from headrace.apps.flows.commands.telling import json_option, tell, tell_json
from headrace.apps.memory.commands.opening import carry_out
from headrace.apps.memory.documents import document_of
from headrace.apps.noting import noted

if TYPE_CHECKING:
    from headrace.apps.memory.memory import Memory
    from headrace.apps.memory.restoring import Unfinished

#: Leases that are taken back at once.
MOST_EXPIRED = 10_000


@click.command()
@json_option
def checkpoint(as_json: bool) -> None:
    """Show what is done, what is to be done and what waits, and keep that in the feed memory:checkpoints.

    The tables are the truth: nothing rests on a checkpoint.

    \b
    Example:
      headrace memory checkpoint --json
    """
    found = carry_out(_checkpoint)
    if as_json:
        tell_json(found)
        return
    pending, done = len(found["pending_tasks"]) + found["left_out"], len(found["completed_tasks"])
    tell(f"{found['state']}: {pending:,} flushes are to be done, {done:,} were done lately")
    tell(f"{sum(found['user_buffers'].values()):,} tokens wait in the buffers of {len(found['user_buffers']):,} users")


async def _checkpoint(memory: Memory) -> dict[str, Any]:
    from headrace.apps.memory.checkpoints import checkpoint as look
    from headrace.apps.memory.means import TABLES

    return (await look(memory.app, TABLES)).to_json()


@click.command()
@click.option("--dry-run", is_flag=True, show_default=False, help="Only show what would be submitted.")
@json_option
def restore(dry_run: bool, as_json: bool) -> None:
    """Submit again what is unfinished by the tables, and nothing else: after the loss of all but the database.

    What goes on already goes on: runs of flushes are keyed. Who works does this by itself within [memory]
    sweep_interval; this is for whoever will not wait.

    \b
    Examples:
      headrace memory restore --dry-run
      headrace memory restore --json
    """
    found = carry_out(_look if dry_run else _restore)
    document = document_of(found)
    if as_json:
        tell_json({name: document[name] for name in ("first", "later", "users", "more")} | {"dry_run": dry_run})
        return
    verb = "would be submitted" if dry_run else "are submitted"
    tell(f"{len(found.first):,} flushes {verb}, {len(found.later):,} come after them")
    tell(f"the buffers of {len(found.users):,} users {'would be' if dry_run else 'are'} looked at")
    if found.more:
        tell("there are more: ask again when these are done")


async def _look(_: Memory) -> Unfinished:
    from headrace.apps.memory.means import TABLES
    from headrace.apps.memory.restoring import restore as look

    return await look(TABLES)


async def _restore(memory: Memory) -> Unfinished:
    from headrace.apps.memory.means import TABLES
    from headrace.apps.memory.stages.turns import start_next

    async with noted(memory.app):
        await TABLES.release_expired(MOST_EXPIRED)
        found = await _look(memory)
        for flush in found.first:
            await start_next(flush.user_id)
        for user_id in found.users:
            await memory.check(user_id)
        return found
