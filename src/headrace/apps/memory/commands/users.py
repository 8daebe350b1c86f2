"""`headrace memory user` and `forget`: what is noted of a user, and the end of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from headrace.apps.flows.commands.telling import json_option, tell, tell_json
from headrace.apps.memory.commands.opening import carry_out, user_argument
from headrace.apps.memory.documents import document_of
from headrace.apps.noting import noted

if TYPE_CHECKING:
    from headrace.apps.memory.memory import Memory
    from headrace.apps.memory.tables.values import User


@click.command()
@user_argument
@click.option(
    "--level", type=click.IntRange(0, 10), metavar="N", show_default=False,
    help="How urgent their memory is, 0 to 10: each raises the priority by a tenth.",
)  # fmt: skip
@click.option("--language", type=click.Choice(["en", "zh"]), show_default=False, help="What they speak.")
@json_option
def user(user_id: str, level: int | None, language: str | None, as_json: bool) -> None:
    """Show what is noted of a user, or note it; what is not given stays as it is.

    \b
    Examples:
      headrace memory user ada
      headrace memory user ada --level 5 --language en
    """
    changes = level is not None or language is not None
    found = carry_out(lambda memory: _user(memory, user_id, level, language), makes=changes)
    document: dict[str, Any] = document_of(found)
    if as_json:
        tell_json(document)
        return
    for name, value in document.items():
        if value is not None:
            tell(f"{name}: {value}")


async def _user(memory: Memory, user_id: str, level: int | None, language: str | None) -> User:
    from headrace.apps.memory.intake import parse_user_id
    from headrace.apps.memory.means import TABLES

    if level is None and language is None:
        return await memory.user(user_id)
    known = await TABLES.get_user(parse_user_id(user_id))
    level = level if level is not None else known.level if known else 0
    async with noted(memory.app):
        await memory.put_user(user_id, level=level, language=language or (known.language if known else None))
    return await memory.user(user_id)


@click.command()
@user_argument
@click.option("--yes", is_flag=True, show_default=False, help="Do not ask.")
@json_option
def forget(user_id: str, yes: bool, as_json: bool) -> None:
    """Delete a user and all that belongs to them: messages, buffer, flushes, profile, events.

    \b
    Example:
      headrace memory forget ada --yes
    """
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise click.UsageError("this cannot be undone: say --yes")
        click.confirm(f"Delete all that is known of {user_id!r}?", abort=True, err=True)
    carry_out(lambda memory: _forget(memory, user_id))
    if as_json:
        tell_json({"user_id": user_id, "forgotten": True})
    else:
        tell(f"{user_id} is forgotten")


async def _forget(memory: Memory, user_id: str) -> None:
    async with noted(memory.app):
        await memory.delete_user(user_id)
