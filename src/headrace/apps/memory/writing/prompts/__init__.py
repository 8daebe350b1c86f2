"""What the model is asked: for each language and task a text file, and short words that they share.

What many questions have in common stands first, so that providers can keep it; data come last, fenced.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from string import Template
from typing import Any, Literal

from headrace.apps.memory.writing.language import Language
from headrace.apps.memory.writing.quoting import fenced
from headrace.apps.memory.writing.terms import Terms

#: Raised with every change of the words: answers are bought anew, and what is kept says which words it came of.
PROMPT_VERSION = "memory-1"

Name = Literal["summary", "shared", "extract", "tags", "merge", "organise", "shorten"]


def system_of(name: Name, language: Language, terms: Terms, **told: object) -> str:
    """Return what all questions of a task begin with."""
    words = common(language)
    filled = {
        "version": PROMPT_VERSION,
        "topics": _topics(terms, language),
        "tags": _tags(terms, language, words["tags_intro"] if name in ("summary", "shared") else ""),
        "others": words["others_strict" if terms.strict else "others_open"],
        "data_rule": words["data_rule"],
    }
    return _template(name, language).substitute({**filled, **told}).strip()


def question(name: Name, language: Language, *data: Iterable[Mapping[str, Any]]) -> str:
    """Return one question: its data, each in a fence of its own unless there are none, and what is asked."""
    return "\n".join([*map(fenced, filter(None, map(list, data))), common(language)["ask"][name]])


@lru_cache(maxsize=4)
def common(language: Language) -> Mapping[str, Any]:
    """Return the words that tasks share."""
    return dict(json.loads(_read(language, "common.json")))


def _topics(terms: Terms, language: Language) -> str:
    lines: list[str] = []
    for topic in terms.topics:
        lines.append(f"- {topic.term.line(language)}")
        lines += [f"  - {sub.line(language)}" for sub in topic.sub_topics]
    return "\n".join(lines)


def _tags(terms: Terms, language: Language, intro: str) -> str:
    lines = [f"- {tag.line(language)}" for tag in terms.tags]
    return "\n".join([intro, *lines] if intro and lines else lines)


@lru_cache(maxsize=16)
def _template(name: Name, language: Language) -> Template:
    return Template(_read(language, f"{name}.txt"))


def _read(language: Language, name: str) -> str:
    return (files(__package__) / language / name).read_text(encoding="utf-8")
