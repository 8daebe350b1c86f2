"""How alike two names have to be to count as one, by their letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA, JaroWinkler

from headrace.llm.dedupe.edits import MOST_EDITS, few_edits, is_typo
from headrace.llm.dedupe.normalising import Normalisation
from headrace.llm.dedupe.numerals import form_of
from headrace.model.errors import InvalidInputError

#: The first two count edits; the others give a part of 1. What each finds and mistakes is measured in
#: docs/explanation/duplicates.md.
Scorer = Literal["typos", "edits", "ratio", "jaro_winkler", "token_sort"]

#: What a threshold may be: below the first too many different names are alike, above the second hardly any typo is.
LEAST_THRESHOLD, MOST_THRESHOLD = 0.92, 0.97

_RULES: Mapping[str, Callable[[str, str, int], bool]] = {"typos": is_typo, "edits": few_edits}
#: The library's own cut is inexact: it loses a score of 93.0 at a cut of 93.
_BELOW = 0.9999
#: Function of the library, and what it returns for equal texts.
_SCORERS: Mapping[str, tuple[Callable[..., float], float]] = {
    "ratio": (fuzz.ratio, 100.0),
    "jaro_winkler": (JaroWinkler.similarity, 1.0),
    "token_sort": (fuzz.token_sort_ratio, 100.0),
}


@dataclass(frozen=True, slots=True)
class Similarity:
    """When two names are too alike.

    `scorer`: "edits" takes two names for one that are one edit apart and have 5 to 12 characters (the longer), or
    two edits and more characters. An edit inserts, drops or changes a character, or swaps two neighbours. "typos" (the
    default) does the same, but a changed first letter tells names of up to 6 characters apart, and those of 4 may have
    a letter more or two swapped. "ratio", "jaro_winkler" and "token_sort" (words in any order) have a `threshold` from
    0.92 to 0.97 (default 0.92), which means another thing with each: see docs/explanation/duplicates.md. Names whose
    numerals differ are never alike. Raises InvalidInputError for another scorer or threshold.

    >>> Similarity().are_similar("Frostkeep", "Frostkeap"), Similarity().are_similar("Budapest II", "Budapest III")
    (True, False)
    >>> Similarity("ratio", 0.95).are_similar("Frostkeep", "Frostkeap")
    False
    """

    scorer: Scorer = "typos"
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.scorer not in get_args(Scorer):
            raise InvalidInputError("scorer", f"must be one of {', '.join(get_args(Scorer))}", self.scorer)
        if self.scorer in _RULES:
            if self.threshold is not None:
                raise InvalidInputError("threshold", f"goes with other scorers than {self.scorer}", self.threshold)
        elif self.threshold is None:
            object.__setattr__(self, "threshold", LEAST_THRESHOLD)
        elif not _is_threshold(self.threshold):
            bounds = f"from {LEAST_THRESHOLD} to {MOST_THRESHOLD}"
            fix = "set another scorer to find more or fewer" if isinstance(self.threshold, float) else "as 0.95"
            raise InvalidInputError("threshold", f"must be a number {bounds} ({fix})", self.threshold)

    def are_similar(self, first: str, second: str, *, normalisation: Normalisation | None = None) -> bool:
        """Whether two names, normalised, are the same or too alike."""
        key_of = normalisation or Normalisation()
        one, other = form_of(key_of(first)), form_of(key_of(second))
        return one.numerals == other.numerals and bool(self.matches(one.text, [other.text]))

    def matches(self, text: str, others: Sequence[str]) -> list[int]:
        """Return the places of the texts that are too alike, in order. All are texts of forms with equal numerals."""
        if not others:
            return []
        if is_one := _RULES.get(self.scorer):
            found = _extract(text, others, OSA.distance, MOST_EDITS)
            return sorted(place for other, edits, place in found if is_one(text, other, int(edits)))
        function, whole = _SCORERS[self.scorer]
        assert self.threshold is not None
        least = self.threshold * whole
        found = _extract(text, others, function, least * _BELOW)
        return sorted(place for _, score, place in found if score >= least - 1e-9)


def nearest(text: str, others: Sequence[str], *, count: int) -> list[int]:
    """Return the places of the texts most like `text`, nearest first, of equals the first."""
    return [place for _, _, place in process.extract(text, others, scorer=fuzz.ratio, limit=count)]


def _extract(text: str, others: Sequence[str], scorer: Any, cutoff: float) -> list[tuple[str, float, int]]:
    return process.extract(text, others, scorer=scorer, score_cutoff=cutoff, limit=None)


def _is_threshold(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and LEAST_THRESHOLD <= value <= MOST_THRESHOLD
