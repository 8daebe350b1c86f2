"""From a log to facts for the profile and tags for the event: what the model named, made what the terms know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from headrace import BadOutputError
from headrace.apps.memory.data.events import Tag
from headrace.apps.memory.data.profiles import Fact, Slot
from headrace.apps.memory.writing.asking import USELESS, Answered, Ask, Asking, ask_for, reminded
from headrace.apps.memory.writing.facts import joined_facts
from headrace.apps.memory.writing.language import SEPARATOR, Language, is_written_in
from headrace.apps.memory.writing.shapes import FoundFact, FoundTag
from headrace.apps.memory.writing.terms import Terms

T = TypeVar("T")
#: Tokens of an answer, at most.
EXTRACT_ROOM, TAGS_ROOM = 1_500, 300
#: Slots of a profile whose names the model is shown.
_MOST_NAMES = 200


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What was found, and what is to be said of how."""

    values: tuple[T, ...] = ()
    warnings: tuple[str, ...] = ()


async def find_facts(
    asking: Asking, terms: Terms, summary: str, profile: Sequence[Slot], lang: Language
) -> Found[Fact]:
    """Return what a log says for the profile, a fact for each slot, in the order of slots.

    Raises BadOutputError where nothing of the answer can be read, RefusedError, other ProviderErrors.
    """
    found, warnings = await _named(
        asking, ask_for(terms, "extract", lang, EXTRACT_ROOM, _names(profile), _log(summary)), lang
    )
    if found.is_empty_handed:
        raise BadOutputError("Nothing of the facts could be read. The flush is tried again later.")
    told = (Fact(one.topic, one.sub_topic, one.memo) for one in found.values)
    return Found(joined_facts(told, terms, SEPARATOR[lang]), (*_losses("facts", found), *warnings))


async def find_tags(asking: Asking, terms: Terms, summary: str, lang: Language) -> Found[Tag]:
    """Return the tags of a log: only those that the terms define. Without terms for them no call is made."""
    if not terms.tags:
        return Found()
    try:
        found = await asking.items(ask_for(terms, "tags", lang, TAGS_ROOM, _log(summary)), FoundTag)
    except USELESS as error:
        return Found((), (f"tags: no answer of use ({error.code})",))
    named = ((terms.tag(one.tag), one.value) for one in found.values)
    tags = {Tag(name, value) for name, value in named if name is not None}
    return Found(tuple(sorted(tags, key=lambda tag: (tag.tag, tag.value))), tuple(_losses("tags", found)))


async def _named(asking: Asking, ask: Ask, lang: Language) -> tuple[Answered[FoundFact], list[str]]:
    """Return what the model named; where that is in another language, what it names when it is told so."""
    first = await asking.items(ask, FoundFact)
    if _are_in(first, lang):
        return first, []
    second = await asking.items(reminded(ask, lang), FoundFact)
    if second.values and _are_in(second, lang):
        return second, []
    return first, ["facts: not in the language asked for"]


def _names(profile: Iterable[Slot]) -> list[dict[str, Any]]:
    """Return the names of slots, those that were changed most often where there are too many."""
    slots = sorted(profile, key=lambda slot: (-slot.update_hits, slot.place))[:_MOST_NAMES]
    return [{"topic": topic, "sub_topic": sub} for topic, sub in sorted(slot.place for slot in slots)]


def _log(summary: str) -> list[dict[str, Any]]:
    return [{"log": line} for line in summary.splitlines() if line.strip()]


def _are_in(found: Answered[FoundFact], lang: Language) -> bool:
    return is_written_in([fact.memo for fact in found.values], lang)


def _losses(what: str, found: Answered[Any]) -> Iterable[str]:
    if found.lost:
        yield f"{what}: {found.lost} of the answer could not be read"
    if not found.is_complete:
        yield f"{what}: the answer was cut, and its rest could not be had"
