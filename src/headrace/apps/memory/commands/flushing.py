"""`headrace memory flush`, `retry`, `check` and `flushes`: buffers that become memory, and what became of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from headrace.apps.flows.commands.telling import json_option, shorten, tell, tell_json, tell_table
from headrace.apps.memory.commands.opening import carry_out, user_argument
from headrace.apps.memory.data.flushes import Flush, FlushState
from headrace.apps.memory.documents import document_of
from headrace.apps.noting import noted

if TYPE_CHECKING:
    from headrace.apps.memory.memory import Memory

COLUMNS = ("FLUSH", "USER", "NUMBER", "STATE", "REASON", "BLOBS", "TOKENS", "ROUND", "CREATED", "ERROR")
#: Characters of an error in a table.
MOST_ERROR = 80

wait_option = click.option(
    "--wait", is_flag=True, show_default=False, help="Do the work here, with whoever works elsewhere, until its end."
)


@click.command()
@user_argument
@wait_option
@json_option
def flush(user_id: str, wait: bool, as_json: bool) -> int:
    """Make memory of what waits in a user's buffer, whether it is full or not.

    Shows what is to be worked on, which may be under way already. `headrace memory run` does it, or this process with
    --wait; then the exit code is 1 where one has failed for now.

    \b
    Examples:
      headrace memory flush ada
      headrace memory flush ada --wait --json
    """
    none = f"nothing waits in the buffer of {user_id}"
    return _begin(lambda memory: memory.flush(user_id), wait=wait, as_json=as_json, none=none)


@click.command()
@user_argument
@wait_option
@json_option
def retry(user_id: str, wait: bool, as_json: bool) -> int:
    """Take up again what failed for good of a user, however often it did.

    Shows what is to be worked on. `headrace memory run` does it, or this process with --wait; then the exit code is 1
    where one has failed again.

    \b
    Examples:
      headrace memory retry ada
      headrace memory retry ada --wait --json
    """
    none = f"nothing of {user_id} has failed or waits"
    return _begin(lambda memory: memory.retry(user_id), wait=wait, as_json=as_json, none=none)


def _begin(begin: Callable[[Memory], Awaitable[list[Flush]]], *, wait: bool, as_json: bool, none: str) -> int:
    """Begin flushes, perhaps until their end, and tell of them; return the exit code."""
    from headrace.apps.memory.commands.following import until_ended

    async def work(memory: Memory) -> list[Flush]:
        async with noted(memory.app):
            begun = await begin(memory)
        return await until_ended(memory, begun, quiet=as_json) if wait else begun

    found = carry_out(work, makes=True, works=wait)
    _tell_flushes(found, as_json=as_json, none=none)
    return 1 if any(one.state is FlushState.FAILED for one in found) else 0


@click.command()
@user_argument
@json_option
def check(user_id: str, as_json: bool) -> None:
    """Have a user's buffer looked at: it is flushed if it is full.

    Changes of the buffer lead to that by themselves; this is for whoever changed its table in other ways.

    \b
    Example:
      headrace memory check ada
    """

    async def work(memory: Memory) -> dict[str, object]:
        await memory.check(user_id)
        buffer = await memory.buffer(user_id)
        return {"user_id": user_id, "waiting": buffer.rows, "tokens": buffer.tokens}

    found = carry_out(work, makes=True)
    if as_json:
        tell_json(found)
    else:
        tell(f"{found['waiting']} blobs of {found['tokens']:,} tokens wait; they are looked at by who works")


@click.command()
@click.option("--user", "user_id", metavar="USER", show_default=False, help="Of this user alone.")
@click.option(
    "--state", type=click.Choice([state.value for state in FlushState]), show_default=False, help="In this state alone."
)
@click.option("--limit", type=click.IntRange(1, 1000), default=50, metavar="N", help="How many.")
@json_option
def flushes(user_id: str | None, state: str | None, limit: int, as_json: bool) -> None:
    """List flushes, the newest first.

    \b
    Examples:
      headrace memory flushes --state failed
      headrace memory flushes --user ada --limit 5 --json
    """
    found = carry_out(lambda memory: memory.flushes(user_id, state=state, limit=limit))
    _tell_flushes(found, as_json=as_json, none="there are no such flushes")


def _tell_flushes(found: list[Flush], *, as_json: bool, none: str) -> None:
    if as_json:
        tell_json({"flushes": document_of(found)})
    elif not found:
        tell(none)
    else:
        tell_table(COLUMNS, [_row(one) for one in found])


def _row(one: Flush) -> tuple[object, ...]:
    created = f"{one.created_at:%Y-%m-%d %H:%M:%S}"
    return (
        one.id, one.user_id, one.number, one.state.value, one.reason.value, len(one.blob_ids), one.tokens, one.round,
        created, shorten(" ".join((one.error or "").split()), MOST_ERROR),
    )  # fmt: skip
