"""`headrace details list`, `show` and `watch`: what batches there are, and what became of one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from headrace.apps.details.commands.desks import Desk, Place, place_of
from headrace.apps.details.commands.following import exit_code, follow
from headrace.apps.details.commands.options import token_option, url_option
from headrace.apps.details.commands.showing import item_line, new_display
from headrace.apps.flows.commands.telling import json_option, tell, tell_json, tell_table

COLUMNS = ("BATCH", "TYPE", "ITEMS", "STATUS", "PRIORITY", "SECONDS", "SUBMITTED")
_BATCH = click.argument("batch_id", metavar="ID")


@click.command("list")
@click.option("--limit", type=click.IntRange(1, 200), default=20, metavar="N", help="How many.")
@url_option
@token_option
@json_option
def list_(limit: int, url: str | None, token_file: Path | None, as_json: bool) -> None:
    """List batches of details, the newest first.

    \b
    Examples:
      headrace details list
      headrace details list --limit 100 --json
    """
    found = asyncio.run(_latest(place_of(url, token_file), limit))
    if as_json:
        tell_json(found)
    elif not found:
        tell("There are no batches yet; `headrace details generate` makes one.")
    else:
        tell_table(COLUMNS, [_row(one) for one in found])
        for text in sorted({str(one.get("attention") or "") for one in found} - {""}):
            tell(text, err=True)


async def _latest(place: Place, limit: int) -> list[Mapping[str, Any]]:
    async with place.open() as desk:
        return await desk.latest(limit)


def _row(one: Mapping[str, Any]) -> tuple[object, ...]:
    submitted = str(one.get("submitted_at") or "")[:19].replace("T", " ")
    items = f"{one.get('delivered', 0)} of {one.get('count', 0)}"
    return (
        one["batch_id"],
        one.get("type"),
        items,
        one.get("status"),
        one.get("priority"),
        one.get("seconds"),
        submitted,
    )


@click.command()
@_BATCH
@url_option
@token_option
@json_option
def show(batch_id: str, url: str | None, token_file: Path | None, as_json: bool) -> None:
    """Show a batch with its items.

    \b
    Example:
      headrace details show 01980000-0000-7000-8000-000000000000 --json
    """
    found = asyncio.run(_view(place_of(url, token_file), batch_id))
    if as_json:
        tell_json(found)
        return
    for name, value in found.items():
        if name not in ("items", "links") and value not in (None, "") and not isinstance(value, dict | list):
            tell(f"{name}: {value}")
    for item in found.get("items") or []:
        tell(f"  {item_line(item)}")


async def _view(place: Place, batch_id: str) -> Mapping[str, Any]:
    async with place.open() as desk:
        return await desk.view(batch_id)


@click.command()
@_BATCH
@url_option
@token_option
@json_option
def watch(batch_id: str, url: str | None, token_file: Path | None, as_json: bool) -> int:
    """Show the items of a batch, those there are and those that come, until it has ended.

    It is worked by others: a service, `headrace worker headrace.apps.details.worker:app`, or the command that made it.
    Ends with 1 when items are missing in the end.

    \b
    Example:
      headrace details watch 01980000-0000-7000-8000-000000000000 --url http://127.0.0.1:8400
    """
    return asyncio.run(_watch(place_of(url, token_file), batch_id, as_json=as_json))


async def _watch(place: Place, batch_id: str, *, as_json: bool) -> int:
    async with place.open() as desk:
        await _check_known(desk, batch_id)
        display = new_display(as_json=as_json)
        try:
            return exit_code(await follow(desk, batch_id, display))
        finally:
            display.close()


async def _check_known(desk: Desk, batch_id: str) -> None:
    """Raise NotFoundError for a batch that there is not: its feed would never say anything."""
    await desk.view(batch_id)
