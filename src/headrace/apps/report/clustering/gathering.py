"""Signatures that are one failure, gathered into families without comparing each with each."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headrace.apps.report.clustering.alike import LEAST_LIKENESS, are_one
from headrace.apps.report.clustering.signature import Signature

#: At most so many families are looked at for one signature, those with most rare words in common first.
MOST_CANDIDATES = 20
#: Of a word that more families have, only the first are looked at: it is a word of a template.
MOST_FAMILIES = 500
#: A word of a signature and which of its repetitions it is.
Word = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Family:
    """Signatures of one failure, each of which is one with the seed."""

    seed: Signature
    #: Sorted. An old seed is none of them, unless it was met again.
    members: tuple[Signature, ...]


def gather(signatures: Iterable[Signature], old_seeds: Iterable[Signature] = ()) -> list[Family]:
    """Return the families of signatures, in the order of their seeds.

    The first signature that no seed is one with becomes a seed, the short before the long. A signature joins the first
    seed that it is one with. It is compared with the seed, never with other members: no chain of small steps joins two
    failures. The outcome rests on the set of signatures alone, not on their order or their numbers. `old_seeds`, those
    of the previous report, come first, so that what was together stays together, whichever members are gone.
    """
    olds, news = set(old_seeds), set(signatures)
    blocks: defaultdict[tuple[str, tuple[str, ...]], list[Signature]] = defaultdict(list)
    for signature in sorted(olds | news, key=lambda signature: (signature not in olds, signature.key)):
        blocks[signature.exception, tuple(sorted(signature.codes))].append(signature)
    families = [family for block in blocks.values() for family in _Block(block).families(olds)]
    met = [Family(seed, tuple(one for one in members if one in news)) for seed, members in families]
    return sorted((family for family in met if family.members), key=lambda family: family.seed.key)


class _Block:
    """Signatures with one exception type and the same codes, old seeds first."""

    def __init__(self, signatures: Sequence[Signature]) -> None:
        self._signatures = signatures
        self._words = [_numbered(signature.tokens) for signature in signatures]
        self._counts = Counter(word for words in self._words for word in words)
        self._families: list[tuple[Signature, list[Signature]]] = []
        self._by_word: defaultdict[Word, list[int]] = defaultdict(list)

    def families(self, olds: Collection[Signature]) -> list[tuple[Signature, list[Signature]]]:
        for signature, words in zip(self._signatures, self._words, strict=True):
            rare = self._rarest(words)
            place = None if signature in olds else self._place_for(signature, rare)
            if place is not None:
                self._families[place][1].append(signature)
                continue
            for word in rare:
                self._by_word[word].append(len(self._families))
            self._families.append((signature, [signature]))
        return self._families

    def _rarest(self, words: Sequence[Word]) -> Sequence[Word]:
        """So many of its rarest words that each signature alike has one of them.

        Of two alike texts with a and b words at least t(a + b)/2 are common, and b is at least at/(2 - t). Without the
        rarest a - c + 1 of c common ones too few are left.
        """
        ordered = sorted(words, key=lambda word: (self._counts[word], word))
        common = math.ceil(len(words) * LEAST_LIKENESS / (2 - LEAST_LIKENESS) - 1e-9)
        return ordered[: len(words) - common + 1]

    def _place_for(self, signature: Signature, rare: Sequence[Word]) -> int | None:
        """The family it joins, if any."""
        shared = Counter(place for word in rare for place in self._by_word.get(word, [])[:MOST_FAMILIES])
        nearest = sorted(shared, key=lambda place: (-shared[place], place))[:MOST_CANDIDATES]
        return next((place for place in sorted(nearest) if are_one(self._families[place][0], signature)), None)


def _numbered(tokens: Sequence[str]) -> list[Word]:
    ordered = sorted(tokens)
    numbers = [0]
    for before, token in pairwise(ordered):
        numbers.append(numbers[-1] + 1 if before == token else 0)
    return list(zip(ordered, numbers, strict=False))
