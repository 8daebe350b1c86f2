"""`headrace memory profile`: what is known of a user, and changes of it by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from headrace import InvalidInputError, NotFoundError
from headrace.apps.flows.commands.telling import json_option, tell, tell_json, tell_table
from headrace.apps.memory.commands.opening import carry_out, user_argument
from headrace.apps.memory.documents import document_of
from headrace.apps.noting import noted

if TYPE_CHECKING:
    from headrace.apps.memory.data.profiles import Slot
    from headrace.apps.memory.memory import Memory

#: Topic, sub-topic, and what it is to say; None: it is to go.
Asked = tuple[str, str, str | None]


@click.command()
@user_argument
@click.option(
    "--set", "texts", metavar="TOPIC/SUB=TEXT", multiple=True, show_default=False,
    help="Let an entry say this; it is made if there is none. Repeatable.",
)  # fmt: skip
@click.option(
    "--delete", "gone", metavar="TOPIC/SUB", multiple=True, show_default=False, help="Delete an entry. Repeatable."
)
@json_option
def profile(user_id: str, texts: tuple[str, ...], gone: tuple[str, ...], as_json: bool) -> None:
    """Show what is known of a user, or change it by hand: all changes, or none where one cannot be made.

    \b
    Examples:
      headrace memory profile ada
      headrace memory profile ada --set "work/title=baker" --delete interest/sport --json
    """
    asked: list[Asked] = [(*_place("--set", text), _content(text)) for text in texts]
    asked += [(*_place("--delete", text), None) for text in gone]
    found = carry_out(lambda memory: _changed(memory, user_id, asked), makes=bool(asked))
    if as_json:
        tell_json({"user_id": user_id, "profile": document_of(found)})
    elif not found:
        tell(f"nothing is known of {user_id}")
    else:
        rows = [(f"{slot.topic}/{slot.sub_topic}", slot.version, slot.content) for slot in found]
        tell_table(("ENTRY", "VERSION", "CONTENT"), rows)


def _place(option: str, text: str) -> tuple[str, str]:
    place, given, _ = text.partition("=")
    topic, sign, sub_topic = place.partition("/")
    if not sign or not topic.strip() or not sub_topic.strip() or (given and option == "--delete"):
        shape = "TOPIC/SUB=TEXT" if option == "--set" else "TOPIC/SUB"
        raise InvalidInputError(option, f"must be {shape}", text)
    return topic.strip(), sub_topic.strip()


def _content(text: str) -> str:
    _, sign, content = text.partition("=")
    if not sign or not content.strip():
        raise InvalidInputError("--set", "must be TOPIC/SUB=TEXT", text)
    return content


async def _changed(memory: Memory, user_id: str, asked: Sequence[Asked]) -> list[Slot]:
    from headrace.apps.memory.editing import parse_changes

    known = {slot.place: slot for slot in await memory.profile(user_id)}
    if not asked:
        return list(known.values())
    changes: list[dict[str, Any]] = []
    for topic, sub_topic, content in asked:
        slot = known.get((topic, sub_topic))
        if slot is None and content is None:
            raise NotFoundError(f"the profile of {user_id} has no entry {topic}/{sub_topic}")
        op = "delete" if content is None else "add" if slot is None else "update"
        given = {} if content is None else {"content": content}
        version = 0 if slot is None else slot.version
        changes.append({"op": op, "topic": topic, "sub_topic": sub_topic, "expected_version": version} | given)
    async with noted(memory.app):
        return await memory.change_profile(user_id, parse_changes(changes))
