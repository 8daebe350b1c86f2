"""`headrace memory insert` and `submit`: what a user said goes in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from headrace.apps.flows.commands.telling import json_option, tell, tell_json
from headrace.apps.memory.commands.messages import messages_of, messages_options
from headrace.apps.memory.commands.opening import carry_out, user_argument

if TYPE_CHECKING:
    from headrace.apps.memory.memory import Memory


@click.command()
@user_argument
@messages_options
@click.option(
    "--id", "blob_id", metavar="UUID", type=click.UUID, show_default=False,
    help="Id of the blob: an insert that is repeated with it is one.  [default: a new one]",
)  # fmt: skip
@json_option
def insert(user_id: str, texts: tuple[str, ...], file: str | None, blob_id: UUID | None, as_json: bool) -> None:
    """Put messages into a user's buffer; they become memory when it is full, idle, or flushed.

    A message is `{"role": "user" | "assistant" | "system", "content": TEXT, "alias"?: NAME, "created_at"?: TIME}`. All
    messages of one call are one blob, whose id is written.

    \b
    Examples:
      headrace memory insert ada --message "I moved to Lyon in May"
      headrace memory insert ada --file chat.json
      tail -n 20 chat.jsonl | headrace memory insert ada --file - --json
    """
    said = messages_of(texts, file)

    async def work(memory: Memory) -> dict[str, Any]:
        stored = await memory.insert(user_id, said, blob_id=blob_id)
        buffer = await memory.buffer(user_id)
        return {"user_id": user_id, "blob_id": str(stored), "waiting": buffer.rows, "tokens": buffer.tokens}

    found = carry_out(work, makes=True)
    if as_json:
        tell_json(found)
        return
    tell(found["blob_id"])
    tell(f"{found['waiting']} blobs of {found['tokens']:,} tokens wait in the buffer of {user_id}", err=True)


@click.command()
@user_argument
@messages_options
@click.option(
    "--key", metavar="KEY", show_default=False, help="Idempotency key: the same messages again under it are one run."
)
@click.option(
    "--workers-elsewhere", "elsewhere", is_flag=True, show_default=False,
    help="Leave the work to `headrace memory run`, and wait for it.",
)  # fmt: skip
@json_option
def submit(  # noqa: PLR0913 - click hands over one per option
    user_id: str, texts: tuple[str, ...], file: str | None, key: str | None, elsewhere: bool, as_json: bool
) -> int:  # fmt: skip
    """Make memory of messages at once, wait for it, and show what was learnt.

    What waited in the user's buffer before becomes memory too. This process does the work; where others work, too, it
    may be theirs. After Ctrl-C `headrace memory run` goes on with it.

    \b
    Examples:
      headrace memory submit ada --message "I moved to Lyon in May" --message "I work as a baker"
      headrace memory submit ada --file chat.json --key chat-17 --json
    """
    from headrace.apps.memory.commands.following import submitted

    said = messages_of(texts, file)
    found = carry_out(
        lambda memory: submitted(memory, user_id, said, key, quiet=as_json), makes=True, works=not elsewhere
    )
    if as_json:
        tell_json(found)
    else:
        _tell_learnt(found)
    return 0 if found["success"] else 1


def _tell_learnt(found: dict[str, Any]) -> None:
    for event in found["events"]:
        tell(f"event {event['id']}")
        for line in event["event_tip"].splitlines():
            tell(f"  {line}")
        for tag in event["tags"]:
            tell(f"  {tag['tag']}: {tag['value']}")
        for change in event["profile_delta"]:
            where = change.get("attributes", {})
            tell(f"  profile: {where.get('topic')}/{where.get('sub_topic')}: {change.get('content') or '(deleted)'}")
    for one in found["flushes"]:
        if one["error"]:
            tell(f"flush {one['flush_id']} has failed for now: {one['error']}")
    if found["success"] and not found["events"]:
        tell("nothing in it was worth keeping")
