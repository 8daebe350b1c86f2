"""The words of the pages in other languages: a folder for each, with a file per page and one of whole sentences."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

#: Languages by what people call their own.
LOCALES = {"en": "English", "zh": "中文"}
_FOLDER = Path(__file__).parent / "locale"


@cache
def words_of(locale: str) -> dict[str, str]:
    """Return the texts of a language by their English ones; English has none of its own."""
    words: dict[str, str] = {}
    for path in sorted((_FOLDER / locale).glob("*.toml")):
        words |= tomllib.loads(path.read_text(encoding="utf-8"))
    return words


def word(text: str) -> str:
    """Return a text as it is; it marks in code what a template translates later."""
    return text


def translator(locale: str) -> Callable[..., str]:
    """Return what turns an English text into one of a language, with values put in by name.

    >>> translator("en")("{count} jobs", count=3)
    '3 jobs'
    """
    words = words_of(locale)

    def translate(text: str, /, **values: Any) -> str:
        found = words.get(text, text)
        return found.format_map(values) if values else found

    return translate


def choose_locale(wanted: str | None, accepted: str) -> str:
    """Return the language of a page: what was chosen, else what the browser asks for first of those there are.

    >>> choose_locale(None, "zh-CN,zh;q=0.9,en;q=0.8"), choose_locale("en", "zh"), choose_locale("tlh", "")
    ('zh', 'en', 'en')
    """
    if wanted in LOCALES:
        return str(wanted)
    named = [part.partition(";")[0].strip().lower().partition("-")[0] for part in accepted.split(",")]
    return next((name for name in named if name in LOCALES), "en")
