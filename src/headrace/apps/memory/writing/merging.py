"""Facts into a profile: what is new, what the model says of the rest, and the changes that come of it.

Pure rules: a draft is the profile as it is to be, by slot; the changes are how it differs from the profile as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.apps.memory.data.profiles import Fact, ProfileChange, Slot
from headrace.apps.memory.writing.shapes import Decision
from headrace.apps.memory.writing.terms import unified

Place = tuple[str, str]
Draft = dict[Place, str]


@dataclass(frozen=True, slots=True)
class Open:
    """A fact for a slot that has a memo already."""

    slot: Slot
    memo: str


@dataclass(slots=True)
class Work:
    """A profile under change."""

    draft: Draft
    #: what the model is asked about, in the order of slots
    open: list[Open] = field(default_factory=list)


def begin(facts: Iterable[Fact], profile: Sequence[Slot]) -> Work:
    """Put facts of new slots into the draft, leave out what the profile says already, and keep the rest open.

    >>> work = begin([Fact("work", "title", "smith"), Fact("work", "company", "Acme")], [Slot("work", "title", "cook")])
    >>> work.draft[("work", "company")], [(one.slot.content, one.memo) for one in work.open]
    ('Acme', [('cook', 'smith')])
    """
    slots = {slot.place: slot for slot in profile}
    spelt = {(unified(topic), unified(sub)): (topic, sub) for topic, sub in sorted(slots, reverse=True)}
    work = Work({place: slot.content for place, slot in slots.items()})
    for fact in facts:
        place = (fact.topic, fact.sub_topic)
        slot = slots.get(place) or slots.get(spelt.get(place, place))
        if slot is None:
            work.draft[place] = fact.memo
        elif not _says(slot.content, fact.memo):
            work.open.append(Open(slot, fact.memo))
    return work


def decide(work: Work, decisions: Iterable[Decision], separator: str) -> list[str]:
    """Do to the draft what was decided; what nobody decided is appended. Return a warning for each such slot.

    Of two decisions on one slot the first stands.
    """
    said: dict[int, Decision] = {}
    for each in decisions:
        said.setdefault(each.number, each)
    warnings = []
    for number, one in enumerate(work.open, start=1):
        if (decision := said.get(number)) is None:
            warnings.append(f"merge: no answer on {one.slot.topic}/{one.slot.sub_topic}; appended by rule")
        work.draft[one.slot.place] = _decided(one, decision, separator)
    return warnings


def changes_of(draft: Mapping[Place, str], profile: Iterable[Slot]) -> tuple[ProfileChange, ...]:
    """Return how a draft differs from the profile, in the order of slots: at most one change each.

    >>> slot = Slot("work", "title", "cook", version=3)
    >>> [(one.op, one.content, one.expected_version) for one in changes_of({("work", "company"): "Acme"}, [slot])]
    [('add', 'Acme', 0), ('delete', None, 3)]
    """
    slots = {slot.place: slot for slot in profile}
    found = []
    for place in sorted(draft.keys() | slots.keys()):
        content, slot = draft.get(place), slots.get(place)
        if slot is None:
            found.append(ProfileChange("add", *place, content, 0))
        elif content is None:
            found.append(ProfileChange("delete", *place, None, slot.version))
        elif content != slot.content:
            found.append(ProfileChange("update", *place, content, slot.version))
    return tuple(found)


def _decided(one: Open, decision: Decision | None, separator: str) -> str:
    if decision is not None and decision.action == "abort":
        return one.slot.content
    if decision is not None and decision.action == "update" and decision.memo:
        return " ".join(decision.memo.split())
    return f"{one.slot.content.rstrip()}{separator}{one.memo}" if one.slot.content.strip() else one.memo


def _says(content: str, memo: str) -> bool:
    """Whether a memo, or each of its parts, stands in a content already, as a part of it."""
    return _parts(memo) <= _parts(content)


def _parts(text: str) -> set[str]:
    plain = " ".join(text.casefold().split()).replace("；", ";")
    return {part.strip(" .。") for part in plain.split(";")} - {""}
