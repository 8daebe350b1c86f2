"""Sentences for people that can be said in other languages: an English text with places, and the values for these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text with places for values; a value may be a sentence itself, and is put into words with the whole."""

    text: str
    values: Mapping[str, Any]

    def __str__(self) -> str:
        return self.text.format_map(self.values)

    def in_words(self, translate: Callable[..., str]) -> str:
        """Return it in another language; `translate` is given each English text with its values by name.

        >>> words = {"{jobs} wait": "{jobs}等待中", "{count} jobs": "{count} 个作业"}
        >>> said = say("{jobs} wait", jobs=counted(2, "{count} job", "{count} jobs"))
        >>> str(said), said.in_words(lambda text, **values: words[text].format_map(values))
        ('2 jobs wait', '2 个作业等待中')
        """
        known = self.values.items()
        values = {name: each.in_words(translate) if isinstance(each, Sentence) else each for name, each in known}
        return translate(self.text, **values)


def say(text: str, /, **values: Any) -> Sentence:
    """Return a sentence. Texts stand in the call itself: by that a test finds those without words of a language.

    >>> str(say("it is behind {jobs}", jobs="12 jobs"))
    'it is behind 12 jobs'
    """
    return Sentence(text, values)


def counted(number: int, one: str, many: str) -> Sentence:
    """Return `one` for one and `many` for any other number, which is `{count}` in them."""
    return say(one if number == 1 else many, count=f"{number:,}")
