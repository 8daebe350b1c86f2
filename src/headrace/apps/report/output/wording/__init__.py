"""Words of reports in each language, by key: `en.json` and `zh.json` hold the same keys."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from headrace.apps.report.data.document import Lang


@dataclass(frozen=True)
class Wording:
    """The words of one language."""

    lang: Lang
    words: dict[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """Return the words of a key with values filled in."""
        words = self.words[key]
        return words.format(**values) if values else words

    def label(self, kind: str, name: str) -> str:
        """Return what a value is called: the word that there is for it, else the value itself; "not given" of none."""
        if not name:
            return self.words["not_given"]
        return self.words.get(f"{kind}.{name}", name)

    def seconds(self, value: float | None) -> str:
        """Return a duration for people.

        >>> wording("en").seconds(75)
        '1 min 15 s'
        """
        if value is None:
            return "–"
        if value < 60:
            return f"{value:.3g} s"
        minutes, seconds = divmod(round(value), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


@cache
def wording(lang: Lang) -> Wording:
    """Return the words of a language."""
    text = (Path(__file__).parent / f"{lang}.json").read_text(encoding="utf-8")
    return Wording(lang, json.loads(text))


def percent(value: float | None) -> str:
    """Return a percentage for people: as many digits as the figures have.

    >>> percent(92.5), percent(None)
    ('92.5 %', '–')
    """
    return "–" if value is None else f"{value:g} %"
