"""In which language memory is written: that of the messages, or the one that was set."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from headrace import InvalidInputError

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
#: What stands between two texts that are one memo.
SEPARATOR: dict[Language, str] = {"en": "; ", "zh": "；"}

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003134f]")
_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")


def language_of(text: str, wanted: str = "auto") -> Language:
    """Return the language to write in: `wanted`, or with "auto" that of the text, by its Chinese characters and words.

    Raises InvalidInputError for another word.

    >>> language_of("我在 Google 用 Python"), language_of("王小明 lives in Berlin and likes tea"), language_of("12:30")
    ('zh', 'en', 'en')
    >>> language_of("hello", "zh")
    'zh'
    """
    if wanted in LANGUAGES:
        return wanted
    if wanted != "auto":
        raise InvalidInputError("language", "must be auto, en or zh", wanted)
    han = len(_HAN.findall(text))
    return "zh" if han and han >= len(_WORD.findall(text)) else "en"


def is_written_in(texts: Iterable[str], language: str) -> bool:
    """Whether texts are in a language, taken together; what has no words is in every one.

    >>> is_written_in(["住在里昂"], "en"), is_written_in(["now lives in", "里昂"], "en"), is_written_in(["42"], "zh")
    (False, True, True)
    """
    text = " ".join(texts)
    return language_of(text) == language or not (_HAN.search(text) or _WORD.search(text))
