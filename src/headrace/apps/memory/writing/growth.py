"""What grew too large: topics of too many sub-topics put in order, and memos made short."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace.apps.memory.writing.merging import Draft, Place
from headrace.apps.memory.writing.shapes import Group
from headrace.apps.memory.writing.terms import unified
from headrace.apps.memory.writing.tokens import count_tokens

#: The sub-topic of what no group took.
OTHER = "other"


def crowded(draft: Mapping[Place, str], before: Mapping[Place, str], most: int) -> list[str]:
    """Return the topics that have more than `most` sub-topics, and were changed."""
    counts: dict[str, int] = {}
    for topic, _ in draft:
        counts[topic] = counts.get(topic, 0) + 1
    touched = {place[0] for place, content in draft.items() if before.get(place) != content}
    return sorted(topic for topic, count in counts.items() if count > most and topic in touched)


def overlong(draft: Mapping[Place, str], before: Mapping[Place, str], most: int) -> list[Place]:
    """Return the slots whose memos were changed and have more than `most` tokens."""
    changed = (place for place, content in draft.items() if before.get(place) != content)
    return sorted(place for place in changed if count_tokens(draft[place]) > most)


def memos_of(draft: Mapping[Place, str], topic: str) -> list[tuple[str, str]]:
    """Return sub-topics and memos of a topic, in order: the numbers that the model is shown are 1, 2, …"""
    return sorted((sub, content) for (of, sub), content in draft.items() if of == topic)


def regrouped(
    memos: Sequence[tuple[str, str]], groups: Iterable[Group], *, most: int, separator: str
) -> dict[str, str] | None:
    """Return the memos of a topic under at most `most` sub-topics; None where the answer put nothing together.

    A memo that no group took is kept as it is, under "other": nothing is lost. Of a memo that stands in two groups
    the first has it.

    >>> memos = [("cats", "two cats"), ("dogs", "a dog"), ("tea", "green tea")]
    >>> groups = [Group(sub_topic="Pets", memo="two cats and a dog", numbers=[1, 2])]
    >>> regrouped(memos, groups, most=2, separator="; ")
    {'pets': 'two cats and a dog', 'other': 'green tea'}
    """
    left = dict(enumerate(memos, start=1))
    found: dict[str, list[str]] = {}
    for group in groups:
        name, taken = unified(group.sub_topic), [number for number in group.numbers if number in left]
        if taken and name and (name in found or len(found) < most):
            found.setdefault(name, []).append(" ".join(group.memo.split()))
            for number in set(taken):
                del left[number]
    if not found:
        return None
    if left:
        home = OTHER if len(found) < most or OTHER in found else list(found)[-1]
        found.setdefault(home, []).extend(memo for _, memo in left.values())
    return {name: separator.join(texts) for name, texts in found.items()}


def replace_topic(draft: Draft, topic: str, memos: Mapping[str, str]) -> None:
    """Put these memos in the place of all that a topic has."""
    for place in [place for place in draft if place[0] == topic]:
        del draft[place]
    draft.update({(topic, sub): memo for sub, memo in memos.items()})
