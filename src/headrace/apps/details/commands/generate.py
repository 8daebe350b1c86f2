"""`headrace details generate`: a batch of items, shown as they are written."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from headrace.apps.details.commands.desks import Place, place_of
from headrace.apps.details.commands.following import exit_code, follow
from headrace.apps.details.commands.options import token_option, url_option
from headrace.apps.details.commands.showing import new_display
from headrace.apps.details.request import parse_request
from headrace.apps.details.sessions import session_of
from headrace.apps.flows.commands.telling import json_option, tell
from headrace.model.names import check_key

GENERATE_HELP = """Generate items of a type with a model and show each as it comes.

TYPE is character_name, location_name, item, skill, organization, or a word of your own. 10 to 50 items are promised
within 5 seconds where quotas allow it; what they do not allow is said at once. Names are given once in a scope; without
--scope that is the session, and without --session each command has one of its own.

This process does all of it, on the configured store, an embedded PostgreSQL without any; with --url a service does, and
what it sends is shown. Items go to standard output, the rest to standard error. --json writes a line for each event:
submitted, accepted, item, first_response, completed, and attention when nobody works on the batch. Ends with 1 when
items are missing in the end.

Ctrl-C loses nothing, ends with 130 and says how to watch the rest; the same command with the same --key does so too.
--webhook is sent details.completed at the end, signed by a secret of [webhooks].

\b
Examples:
  headrace details generate --type location_name --count 30 --style "a drowned coast"
  headrace details generate --type character_name --count 20 --scope saga-7 --priority 9 --json
  headrace details generate --type item --count 16 --url http://127.0.0.1:8400
  headrace details generate --type skill --count 10 --webhook https://example.com/hook
"""


@click.command("generate", help=GENERATE_HELP)
@click.option("--type", "kind", required=True, metavar="TYPE", help="What kind of items.")
@click.option("--count", required=True, metavar="N", type=int, help="How many items, 1 to 1000.")
@click.option(
    "--style", default="", show_default=False, metavar="TEXT", help="How they are to be; up to 500 characters."
)
@click.option("--scope", metavar="NAME", show_default=False, help="Names are given once within it.")
@click.option("--priority", type=int, default=5, metavar="0-10", help="10 is the most urgent.")
@click.option("--session", metavar="ID", show_default=False, help="What the items belong to.")
@click.option(
    "--first", type=int, metavar="1-25",
    help="Items that make the first response.  [default: first_response of [details], 10]",
)  # fmt: skip
@click.option("--key", metavar="K", show_default=False, help="The same key and request are one batch, not two.")
@click.option("--webhook", metavar="URL", show_default=False, help="Who is told of the end.")
@url_option
@token_option
@json_option
def generate(  # noqa: PLR0913 - click hands over one per option
    kind: str, count: int, style: str, scope: str | None, priority: int, session: str | None,
    first: int | None, key: str | None, webhook: str | None, url: str | None, token_file: Path | None, as_json: bool,
) -> int:  # fmt: skip
    """Generate a batch and return the exit code."""
    chosen = str(uuid4()) if key is None else check_key("--key", key)
    # The session is said here, so that a request that is sent again with its key is the same one.
    request = {"type": kind, "count": count, "style": style, "priority": priority,
               "session_id": session or session_of(chosen)}  # fmt: skip
    left_out = {"scope": scope, "first_response": first, "webhook": webhook}
    request |= {name: value for name, value in left_out.items() if value is not None}
    place = place_of(url, token_file)
    if not place.url:
        # Before a store is opened for it.
        parse_request(request)
    return asyncio.run(_generate(place, request, chosen, as_json=as_json))


async def _generate(place: Place, request: dict[str, Any], key: str, *, as_json: bool) -> int:
    # What failed for good is in the ending of the batch.
    logging.getLogger("headrace.jobs").setLevel(logging.ERROR)
    async with place.open(worker=True) as desk:
        since = time.monotonic()
        accepted = await desk.submit(request, key)
        batch_id = str(accepted["batch_id"])
        display = new_display(as_json=as_json, count=int(request["count"]))
        try:
            display.accepted(batch_id, accepted)
            # Of a batch that was there already the times are its own.
            ending = await follow(desk, batch_id, display, since=None if accepted.get("existing") else since)
            if "webhook" in request:
                await desk.until_told(batch_id)
            return exit_code(ending)
        except asyncio.CancelledError:
            tell(f"\nbatch {batch_id} has not ended, and nothing of it is lost: {_how_on(place, batch_id)}", err=True)
            raise
        finally:
            display.close()


def _how_on(place: Place, batch_id: str) -> str:
    watch = f"`headrace details watch {batch_id}{place.option}` shows the rest"
    show = f"`headrace details show {batch_id}{place.option}` what there is"
    work = "" if place.url else "`headrace worker headrace.apps.details.worker:app` goes on with it, "
    return f"{work}{watch}, {show}"
