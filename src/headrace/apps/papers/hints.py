"""Section hints: the sentences to look at first for a field, as its template says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from headrace.apps.papers.documents.model import Document
from headrace.apps.papers.documents.sections import sections_for
from headrace.apps.papers.sentences import Sentence
from headrace.apps.papers.template import TemplateField

#: What a sentence of a hinted section is worth where several hold the same value: more than an exact match beside a
#: normalised one, never as much as a real match beside a fuzzy one.
PREFERENCE = 0.5


class Hints:
    """The sections of one document, for the fields of any template. Without sections nothing is preferred."""

    def __init__(self, document: Document | None, sentences: Sequence[Sentence]) -> None:
        self._document, self._sentences = document, sentences
        self._known: dict[tuple[str, ...], frozenset[int]] = {}

    def numbers(self, field: TemplateField) -> frozenset[int]:
        """Numbers of the sentences to look at first; empty without a hint, and where no section answers to it."""
        if not field.section or self._document is None or not self._document.sections:
            return frozenset()
        if field.section not in self._known:
            self._known[field.section] = self._look_up(self._document, field.section)
        return self._known[field.section]

    def _look_up(self, document: Document, hint: tuple[str, ...]) -> frozenset[int]:
        spans = sections_for(document, hint)
        if spans == [(0, len(document.text))]:  # no section answers to it
            return frozenset()
        return frozenset(
            sentence.number
            for sentence in self._sentences
            if any(start <= sentence.char_start < end for start, end in spans)
        )

    def boosted(self, field: TemplateField, scores: Sequence[float]) -> Sequence[float]:
        """Relevance scores (0 to 1, one per sentence of the document), higher in the sections to look at first."""
        numbers = self.numbers(field)
        if not numbers:
            return scores
        bonus = [PREFERENCE if sentence.number in numbers else 0.0 for sentence in self._sentences]
        return [(score + more) / (1 + PREFERENCE) for score, more in zip(scores, bonus, strict=True)]

    def words(self, field: TemplateField, part: Sequence[Sentence]) -> str:
        """Where to look first in a part, for a model; empty where the part holds nothing of it.

        >>> Hints(None, ()).words(TemplateField(name="n", type="text", description="N", section=("methods",)), ())
        ''
        """
        wanted = self.numbers(field)
        held = [sentence.number for sentence in part if sentence.number in wanted]
        if not held or len(held) == len(part):
            return ""
        runs = [[number for _, number in run] for _, run in groupby(enumerate(held), key=lambda at: at[1] - at[0])]
        shown = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
        return f"look first at sentences {shown}"
