"""`headrace details mode`: how batches are made, and changing it without losing a request."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from headrace.apps.details.commands.desks import Place, place_of
from headrace.apps.details.commands.options import token_option, url_option
from headrace.apps.flows.commands.telling import json_option, tell, tell_json


@click.command()
@click.argument("wanted", metavar="[normal|single-call]", required=False, type=click.Choice(["normal", "single-call"]))
@url_option
@token_option
@json_option
def mode(wanted: str | None, url: str | None, token_file: Path | None, as_json: bool) -> None:
    """Show how batches are made, or change it.

    normal: in parallel parts by agents. single-call: each batch by one large call, without events and agents, for when
    these are in trouble. A change lets nothing new begin, waits until everything that was begun has ended, and goes on
    in the other way; requests are accepted all the time. A change that was cut off is finished by the same command.

    \b
    Examples:
      headrace details mode
      headrace details mode single-call
      headrace details mode normal --url http://127.0.0.1:8400
    """
    found = asyncio.run(_mode(place_of(url, token_file), wanted, quiet=as_json))
    if as_json:
        tell_json(found)
    else:
        tell(str(found["mode"]))


async def _mode(place: Place, wanted: str | None, *, quiet: bool) -> Mapping[str, Any]:
    async with place.open() as desk:
        if wanted is None:
            return await desk.mode()
        return await desk.set_mode(wanted, _silent if quiet else _tell_left)


def _tell_left(left: str) -> None:
    tell(left, err=True)


def _silent(left: str) -> None:
    """Machines are told the end alone."""
