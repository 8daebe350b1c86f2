"""Signatures that are one failure, gathered into families without comparing each with each."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from headrace.apps.report.clustering.alike import LEAST_LIKENESS, are_one
from headrace.apps.report.clustering.signature import Signature

#: At most so many families are looked at for one signature, those with most rare words in common first.
MOST_CANDIDATES = 20
#: Of a word that more families have, only the first are looked at: it is a word of a template.
MOST_FAMILIES = 500
#: A word of a signature and which of its repetitions it is.
Word = tuple[str, int]


def gather(signatures: Iterable[Signature]) -> list[tuple[Signature, ...]]:
    """Return families of signatures, each sorted, the shortest signature first.

    A signature joins a family only where it is one with *each* member, so that no chain of small steps joins two
    failures. The outcome rests on the set of signatures alone, not on their order or their numbers.
    """
    blocks: defaultdict[tuple[str, tuple[str, ...]], list[Signature]] = defaultdict(list)
    for signature in sorted(set(signatures), key=lambda signature: signature.key):
        blocks[signature.exception, tuple(sorted(signature.codes))].append(signature)
    families = [family for block in blocks.values() for family in _Block(block).families()]
    return sorted(families, key=lambda family: family[0].key)


class _Block:
    """Signatures with one exception type and the same codes."""

    def __init__(self, signatures: Sequence[Signature]) -> None:
        self._signatures = signatures
        self._words = [_numbered(signature.tokens) for signature in signatures]
        self._counts = Counter(word for words in self._words for word in words)
        self._families: list[list[Signature]] = []
        self._by_word: defaultdict[Word, list[int]] = defaultdict(list)

    def families(self) -> list[tuple[Signature, ...]]:
        for signature, words in zip(self._signatures, self._words, strict=True):
            rare = self._rarest(words)
            place = self._place_for(signature, rare)
            for word in rare:
                if self._by_word[word][-1:] != [place]:
                    self._by_word[word].append(place)
        return [tuple(family) for family in self._families]

    def _rarest(self, words: Sequence[Word]) -> Sequence[Word]:
        """So many of its rarest words that each signature alike has one of them.

        Of two alike texts with a and b words at least t(a + b)/2 are common, and b is at least at/(2 - t). Without the
        rarest a - c + 1 of c common ones too few are left.
        """
        ordered = sorted(words, key=lambda word: (self._counts[word], word))
        common = math.ceil(len(words) * LEAST_LIKENESS / (2 - LEAST_LIKENESS) - 1e-9)
        return ordered[: len(words) - common + 1]

    def _place_for(self, signature: Signature, rare: Sequence[Word]) -> int:
        """The family it joins; a new one where none fits."""
        shared = Counter(place for word in rare for place in self._by_word.get(word, [])[:MOST_FAMILIES])
        nearest = sorted(shared, key=lambda place: (-shared[place], place))[:MOST_CANDIDATES]
        for place in nearest:
            if all(are_one(member, signature) for member in self._families[place]):
                self._families[place].append(signature)
                return place
        self._families.append([signature])
        return len(self._families) - 1


def _numbered(tokens: Sequence[str]) -> list[Word]:
    ordered = sorted(tokens)
    numbers = [0]
    for before, token in pairwise(ordered):
        numbers.append(numbers[-1] + 1 if before == token else 0)
    return list(zip(ordered, numbers, strict=False))
