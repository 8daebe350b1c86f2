"""`headrace details cancel`: a batch that is not wanted any more."""

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
@click.argument("batch_id", metavar="ID")
@url_option
@token_option
@json_option
def cancel(batch_id: str, url: str | None, token_file: Path | None, as_json: bool) -> None:
    """Cancel a batch: no more of it is made. The items that it has stay; one that has ended stays as it is.

    \b
    Example:
      headrace details cancel 01980000-0000-7000-8000-000000000000
    """
    found = asyncio.run(_cancel(place_of(url, token_file), batch_id))
    if as_json:
        tell_json(found)
    else:
        tell(f"batch {batch_id}: {found['status']}, {found['delivered']} of {found['count']} items")


async def _cancel(place: Place, batch_id: str) -> Mapping[str, Any]:
    async with place.open() as desk:
        return await desk.cancel(batch_id)
