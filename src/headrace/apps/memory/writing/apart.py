"""Keeping users apart: whether a line of one part of a shared answer tells of another part.

By words alone, and rather too strict: a part that is refused wrongly costs one more question, one that is let through
wrongly shows a user's life to another. A line leaks that names a name or a number of another part that its own part
never said, or that has more of the other's words than of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]+")
#: Latin words with fewer letters tell nothing.
_SHORT = 3
#: What the model says of everybody.
_COMMON = frozenset(
    (
        *("user", "users", "user's", "users'", "the", "and", "has", "have", "had", "was", "were", "are", "not", "but"),
        *("name", "named", "called", "lives", "live", "works", "work", "working", "likes", "like", "plans", "plan"),
        *("with", "from", "for", "that", "this", "their", "they", "them", "his", "her", "she", "about", "wants"),
        *("want", "will", "would", "been", "being", "who", "when", "where", "what", "which", "into", "than", "then"),
        *("year", "years", "day", "today", "用户"),
    )
)


@dataclass(frozen=True, slots=True)
class Words:
    """What a text says, in words that can tell it from others."""

    #: Words in lower case, and pairs of Chinese characters.
    all: frozenset[str]
    #: Those of them that are names by their look, or numbers.
    names: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Words:
        """Return the words of a text.

        >>> words = Words.of("Anna moved to Lyon in 2024, 住在里昂")
        >>> sorted(words.all), sorted(words.names)
        (['2024', 'anna', 'lyon', 'moved', '住在', '在里', '里昂'], ['2024', 'anna', 'lyon'])
        """
        latin = _WORD.findall(_HAN.sub(" ", text))
        told = [word for word in latin if word.isdecimal() or len(word) >= _SHORT]
        pairs = {run[at : at + 2] for run in _HAN.findall(text) for at in range(len(run) - 1)}
        words = {word.casefold() for word in told} | pairs
        names = {word.casefold() for word in told if word.isdecimal() or word[0].isupper()}
        return cls(frozenset(words - _COMMON), frozenset(names - _COMMON))


def leaking(lines: Sequence[str], own: str, others: Iterable[str]) -> list[str]:
    """Return the lines that tell of another part.

    >>> leaking(["User is called Anna", "User likes rye"], "I like rye", ["I am Anna"])
    ['User is called Anna']
    """
    mine, theirs = Words.of(own), [Words.of(text) for text in others]
    return [line for line in lines if _leaks(Words.of(line), mine, theirs)]


def _leaks(line: Words, mine: Words, theirs: Sequence[Words]) -> bool:
    shared = mine.all & frozenset().union(*(other.all for other in theirs)) if theirs else frozenset()
    own = (line.all & mine.all) - shared
    for other in theirs:
        foreign = (line.all & other.all) - mine.all
        if foreign & line.names & other.names or len(foreign) > len(own):
            return True
    return False
