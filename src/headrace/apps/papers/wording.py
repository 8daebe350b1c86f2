"""Words compared: the normal form of a text, its tokens, and stems for "randomised" against "randomly"."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

_DASHES = re.compile(r"[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]")
_QUOTES = str.maketrans({"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})
_MARKUP = re.compile(r"[*_`\\]+")
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+", re.UNICODE)
_ENDINGS = (  # the longer before the shorter that end them
    *("isations", "izations", "isation", "ization", "ational", "ations", "ation", "ising", "izing", "ised", "ized"),
    *("ises", "izes", "ments", "ment", "ings", "ing", "ions", "ion", "ers", "ies", "ise", "ize", "ed", "es", "er"),
    *("al", "ly", "s", "e", "y"),
)
_SAY_NOTHING = """a about after all also an and any are as at be been before being between both but by can could did do
    does done each either every few for from had has have he her his how i if in into is it its may me more most much no
    nor not of on one only or other our out over own per she should so some such than that the their them then there
    these they this those through to too under until up very was we were what when where which while who whom whose why
    will with within without would you your"""
#: Words that say nothing about which sentence is meant.
STOP_WORDS = frozenset(_SAY_NOTHING.split())
_NEGATIONS = frozenset({"no", "not", "non", "nor", "never", "neither", "none", "without", "un"})


def normal_form(text: str) -> str:
    """NFKC, case folded, one kind of dash and quote, no Markdown marks, single spaces.

    >>> normal_form("The  *Balance*–Training\\nin “care” homes")
    'the balance-training in "care" homes'
    """
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    return " ".join(_MARKUP.sub("", _DASHES.sub("-", text)).casefold().split())


def storable(text: str) -> str:
    """A model's words without controls and half characters, on one line: databases and spreadsheets refuse those.

    >>> storable("a\\x00b\\n  c\\ud800")
    'ab c'
    """
    kept = (char for char in text if char.isspace() or unicodedata.category(char) not in ("Cc", "Cs"))
    return " ".join("".join(kept).split())


def tokens(text: str) -> list[str]:
    """Words and numbers in normal form, without punctuation; "1,200" is one token and reads 1200.

    >>> tokens("Double-blind, 1,200 people")
    ['double', 'blind', '1200', 'people']
    """
    return [re.sub(r",(?=\d{3})", "", token) for token in _TOKEN.findall(normal_form(text))]


@lru_cache(maxsize=50_000)
def stem(token: str) -> str:
    """A word without its ending, roughly.

    >>> stem("funded") == stem("funding") == stem("funder"), stem("randomised"), stem("randomly")
    (True, 'random', 'random')
    """
    for ending in _ENDINGS:
        if token.endswith(ending) and len(token) - len(ending) >= 3:
            return token[: -len(ending)]
    return token


def stems(text: str) -> list[str]:
    """The stems of the words of a text that carry meaning.

    >>> stems("Who paid for the trials")
    ['paid', 'trial']
    """
    return [stem(token) for token in tokens(text) if token not in STOP_WORDS]


def is_negation(token: str) -> bool:
    """Whether a word turns a statement round."""
    return token in _NEGATIONS


def common_subsequence(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """Index pairs of a longest common subsequence; of several the one that ends earliest in `right`.

    >>> common_subsequence(["a", "b", "c"], ["x", "a", "c"])
    [(0, 1), (2, 2)]
    """
    lengths = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            lengths[i + 1][j + 1] = lengths[i][j] + 1 if one == other else max(lengths[i][j + 1], lengths[i + 1][j])
    pairs, i, j = [], len(left), len(right)
    while i and j:
        if lengths[i][j] == lengths[i][j - 1]:
            j -= 1
        elif lengths[i][j] == lengths[i - 1][j]:
            i -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    return pairs[::-1]
