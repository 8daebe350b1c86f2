"""Facts as the model named them, made facts of slots."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.apps.memory.data.profiles import Fact
from headrace.apps.memory.writing.terms import Terms


def joined_facts(facts: Iterable[Fact], terms: Terms, separator: str) -> tuple[Fact, ...]:
    """Return facts under unified names, those of one slot as one, in the order of their slots; refused ones left out.

    >>> said = [Fact("Work", "Title", "smith"), Fact("work", "title", "Smith"), Fact("工作", "职位", "farrier")]
    >>> joined_facts(said, Terms.usual(), "; ")
    (Fact(topic='work', sub_topic='title', memo='smith; farrier'),)
    """
    memos: dict[tuple[str, str], list[str]] = {}
    for fact in facts:
        place, memo = terms.place(fact.topic, fact.sub_topic), " ".join(fact.memo.split())
        if place is not None and memo:
            told = memos.setdefault(place, [])
            if memo.casefold() not in map(str.casefold, told):
                told.append(memo)
    return tuple(Fact(*place, separator.join(told)) for place, told in sorted(memos.items()))
