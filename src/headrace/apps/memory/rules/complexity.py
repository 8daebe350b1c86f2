"""How hard a flush is to summarise, by an estimate: flushes of one class are asked for together."""

from __future__ import annotations

from enum import StrEnum

from headrace import InvalidInputError


class Complexity(StrEnum):
    """A class of flushes."""

    SIMPLE = "simple"
    MEDIUM = "medium"
    COMPLEX = "complex"


#: What a change of the speaker adds, in tokens: a talk of many turns holds more facts than one long text.
TOKENS_PER_MESSAGE = 16
#: Facts per token: Chinese says about as much in two tokens as English in three.
DENSITY = {"en": 1.0, "zh": 1.5}
#: Up to these weights a flush is simple, and medium.
SIMPLE_MOST, MEDIUM_MOST = 512, 2_048


def complexity_of(tokens: int, messages: int, language: str) -> Complexity:
    """Return the class of a flush of so many tokens and messages in a language, "en" or "zh".

    Its weight is tokens · density + 16 · messages; up to 512 it is simple, up to 2,048 medium. Raises
    InvalidInputError for negative numbers and other languages.

    >>> complexity_of(300, 4, "en"), complexity_of(400, 4, "zh"), complexity_of(4_000, 9, "en")
    (<Complexity.SIMPLE: 'simple'>, <Complexity.MEDIUM: 'medium'>, <Complexity.COMPLEX: 'complex'>)
    """
    density = DENSITY.get(language)
    if density is None:
        raise InvalidInputError("language", "must be one of " + ", ".join(DENSITY), language)
    if tokens < 0 or messages < 0:
        raise InvalidInputError("tokens and messages", "must not be negative", (tokens, messages))
    weight = tokens * density + TOKENS_PER_MESSAGE * messages
    if weight <= SIMPLE_MOST:
        return Complexity.SIMPLE
    return Complexity.MEDIUM if weight <= MEDIUM_MOST else Complexity.COMPLEX
