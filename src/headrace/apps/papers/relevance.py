"""Which sentences speak of a field: shared word stems, the rare ones weighing more. No model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from headrace.apps.papers.quantities import numbers_in
from headrace.apps.papers.sentences import Sentence
from headrace.apps.papers.template import TemplateField
from headrace.apps.papers.units import measure
from headrace.apps.papers.wording import stems


class Relevance:
    """Scores sentences against fields. Build one per document; the stems are counted once."""

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        self._sentences = sentences
        self._stems = [frozenset(stems(sentence.text)) for sentence in sentences]
        self._holders = Counter(word for words in self._stems for word in words)

    def scores(self, field: TemplateField) -> list[float]:
        """One score per sentence, 0 (shares no word) to 1 (the most relevant sentence)."""
        wanted = frozenset(stems(_wording(field)))
        raw = [sum(self._weight(word) for word in words & wanted) for words in self._stems]
        if field.unit is not None:
            raw = [score + self._unit_bonus(field.unit, at) for at, score in enumerate(raw)]
        highest = max(raw, default=0.0)
        return [score / highest for score in raw] if highest else [0.0] * len(raw)

    def shares(self, words: Sequence[str]) -> list[float]:
        """How much of these words' weight each sentence holds, 0 to 1; words that occur nowhere weigh most."""
        wanted = frozenset(stems(" ".join(words)))
        whole = sum(self._weight(word) for word in wanted)
        return [sum(self._weight(word) for word in held & wanted) / whole if whole else 0.0 for held in self._stems]

    def _weight(self, word: str) -> float:
        return math.log(1 + len(self._stems) / max(1, self._holders[word]))

    def _unit_bonus(self, unit: str, at: int) -> float:
        wanted = measure(unit)
        if wanted is None:
            return 0.0
        kinds = {kind[0] for number in numbers_in(self._sentences[at].text) if (kind := measure(number.unit))}
        return 1.5 if wanted[0] in kinds else 0.0


def _wording(field: TemplateField) -> str:
    examples = [str(example) for example in field.examples if isinstance(example, str)]
    return " ".join([field.name.replace("_", " "), field.description, field.unit or "", *field.enum, *examples])
