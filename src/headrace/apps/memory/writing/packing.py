"""What is known of a user as context for a prompt, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.apps.memory.data.events import Gist
from headrace.apps.memory.data.profiles import Slot
from headrace.apps.memory.writing.language import Language, language_of
from headrace.apps.memory.writing.prompts import common
from headrace.apps.memory.writing.terms import Terms
from headrace.apps.memory.writing.tokens import count_tokens

#: What the profile may take of the budget while there are gists to show; what it leaves is theirs, and the other way.
PROFILE_SHARE = 0.6


def pack_context(
    profile: Sequence[Slot],
    gists: Sequence[Gist],
    *,
    budget: int,
    language: str = "auto",
    terms: Terms | None = None,
) -> str:
    """Return what is known as lines of text, of at most `budget` tokens by `count_tokens`; "" where nothing fits.

    Of the profile what was changed most often and lately comes first; gists keep their order, the most wanted first. A
    line that does not fit is left out whole, and shorter ones behind it may stand. `terms`: whose labels are shown.

    >>> slots = [Slot("work", "title", "smith", update_hits=1), Slot("interest", "food", "rye bread")]
    >>> print(pack_context(slots, [], budget=20))
    # Known about the user
    - work/title: smith
    - interest/food: rye bread
    >>> pack_context(slots, [], budget=13).splitlines()[-1]
    '- work/title: smith'
    """
    slots = sorted(profile, key=_weight)
    lang = language_of("\n".join([*(slot.content for slot in slots), *(gist.content for gist in gists)]), language)
    known = _Section(common(lang)["known"], [_line(slot, lang, terms or Terms.usual()) for slot in slots])
    happened = _Section(common(lang)["happened"], [f"- {' '.join(gist.content.split())}" for gist in gists])
    share = int(budget * PROFILE_SHARE) if gists else budget
    left = budget - known.fill(share)
    left -= happened.fill(left)
    known.fill(left)
    return "\n".join(filter(None, (known.text, happened.text)))


class _Section:
    """Lines under a heading."""

    def __init__(self, heading: str, lines: Iterable[str]) -> None:
        self._heading, self._lines = f"# {heading}", list(lines)
        self._taken: set[int] = set()

    def fill(self, room: int) -> int:
        """Take the lines that fit, and return the tokens that they need."""
        used = 0
        for number, line in enumerate(self._lines):
            if number not in self._taken:
                needed = count_tokens(line + "\n") + (0 if self._taken else count_tokens(self._heading + "\n"))
                if needed <= room - used:
                    self._taken.add(number)
                    used += needed
        return used

    @property
    def text(self) -> str:
        """The heading and the lines taken; "" without one."""
        return "\n".join([self._heading, *(self._lines[at] for at in sorted(self._taken))]) if self._taken else ""


def _weight(slot: Slot) -> tuple[int, float, tuple[str, str]]:
    return -slot.update_hits, -slot.updated_at.timestamp() if slot.updated_at else 0.0, slot.place


def _line(slot: Slot, language: Language, terms: Terms) -> str:
    topic, sub = terms.called(slot.topic, slot.sub_topic, language)
    return f"- {topic}/{sub}{'：' if language == 'zh' else ': '}{' '.join(slot.content.split())}"
