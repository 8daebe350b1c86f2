"""`headrace memory events`, `search` and `context`: what is remembered of a user."""

from __future__ import annotations

from typing import Any

import click

from headrace.apps.flows.commands.telling import json_option, tell, tell_json
from headrace.apps.memory.commands.opening import carry_out, user_argument
from headrace.apps.memory.documents import document_of, found_document
from headrace.apps.memory.tagging import parse_tag

MOST = 200


@click.command()
@user_argument
@click.option("--tag", metavar="NAME=VALUE", show_default=False, help="With this tag alone.")
@click.option("--limit", type=click.IntRange(1, MOST), default=20, metavar="N", help="How many.")
@json_option
def events(user_id: str, tag: str | None, limit: int, as_json: bool) -> None:
    """Show events of a user, the newest first.

    \b
    Examples:
      headrace memory events ada
      headrace memory events ada --tag emotion=happy --limit 5 --json
    """
    wanted = None if tag is None else parse_tag("--tag", tag)
    found = carry_out(lambda memory: memory.events(user_id, limit=limit, tag=wanted))
    if as_json:
        tell_json({"user_id": user_id, "events": document_of(found)})
        return
    for event in found:
        tags = ", ".join(f"{one.tag}={one.value}" for one in event.tags)
        tell(f"{event.created_at:%Y-%m-%d %H:%M:%S}  {event.id}" + (f"  {tags}" if tags else ""))
        for line in event.event_tip.splitlines():
            tell(f"  {line}")
    if not found:
        tell(f"no event of {user_id} is known" + (f" with the tag {tag}" if tag else ""))


@click.command()
@user_argument
@click.argument("query", metavar="QUERY")
@click.option("--limit", type=click.IntRange(1, MOST), default=10, metavar="N", help="How many.")
@json_option
def search(user_id: str, query: str, limit: int, as_json: bool) -> None:
    """Show lines of a user's events that fit a text, the best first; English and Chinese.

    \b
    Examples:
      headrace memory search ada "where does she live"
      headrace memory search wei 咖啡 --json
    """
    found = carry_out(lambda memory: memory.search(user_id, query, limit=limit))
    if as_json:
        tell_json({"user_id": user_id, "query": query, "gists": [found_document(one) for one in found]})
        return
    for one in found:
        tell(f"{one.score:6.3f}  {one.gist.content}")
    if not found:
        tell("nothing fits")


@click.command()
@user_argument
@click.option(
    "--budget", type=click.IntRange(1, 100_000), default=1_000, metavar="N", help="Tokens that it has at most."
)
@click.option(
    "--query", metavar="TEXT", show_default=False, help="Lines that fit this come first.  [default: the newest]"
)
@json_option
def context(user_id: str, budget: int, query: str | None, as_json: bool) -> None:
    """Write what a prompt may be told of a user, within a budget of tokens: the profile, then lines of events.

    \b
    Examples:
      headrace memory context ada --budget 500
      headrace memory context ada --budget 300 --query "what does she eat"
    """
    text = carry_out(lambda memory: memory.context(user_id, budget=budget, query=query))
    if as_json:
        from headrace.apps.memory.writing.tokens import count_tokens

        document: dict[str, Any] = {"user_id": user_id, "budget": budget, "tokens": count_tokens(text), "context": text}
        tell_json(document)
    else:
        tell(text)
