"""A file of topics, tags and limits: read with care, and refused with the key that is wrong.

language: auto            # auto | en | zh
strict: false
topics:                   # in the place of the usual ones; `more_topics` adds to them
  - name: garden
    label: {zh: 园艺}
    description: {en: what grows there, zh: 种了什么}
    sub_topics: [trees, {name: beds, description: vegetables}]
tags:
  - {name: emotion, description: how the user felt}
limits: {sub_topics: 15, sub_topics_after: 8, memo_tokens: 128, memo_tokens_after: 64}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from headrace import ConfigError
from headrace.apps.memory.writing.language import LANGUAGES
from headrace.apps.memory.writing.terms import MOST_NAME, Limits, Term, Terms, Topic, unified

MAX_BYTES = 256 * 1024
MOST_TERMS, MOST_TEXT = 200, 500
_KEYS = ("language", "strict", "topics", "more_topics", "tags", "limits")
_TERM_KEYS = ("name", "label", "description")
_BOUNDS = {"sub_topics": 500, "sub_topics_after": 500, "memo_tokens": 4096, "memo_tokens_after": 4096}


def read_terms(path: Path) -> Terms:
    """Return what a file says. Raises ConfigError."""
    data = _json(path) if path.suffix.lower() == ".json" else _yaml(path)
    return _terms(_Place(str(path), ""), {} if data is None else data, read_usual())


def read_usual() -> Terms:
    """Return the usual terms."""
    text = (files(__package__) / "topics.json").read_text(encoding="utf-8")
    return _terms(_Place("topics.json", ""), json.loads(text), Terms(()))


@dataclass(frozen=True, slots=True)
class _Place:
    """A key of a file, for errors."""

    file: str
    key: str

    def __getitem__(self, key: str | int) -> _Place:
        inner = f"[{key}]" if isinstance(key, int) else f".{key}" if self.key else key
        return _Place(self.file, self.key + inner)

    def require(self, holds: object, rule: str, value: object) -> None:
        if not holds:
            shown = repr(value)
            shown = shown if len(shown) <= 80 else shown[:77] + "…"
            raise ConfigError(f"{self.file}: {self.key or 'the file'} {rule}, got {shown}")

    def members(self, value: Any, known: tuple[str, ...]) -> Mapping[str, Any]:
        self.require(isinstance(value, dict), "must be a mapping of keys to values", value)
        for key in value:
            self[str(key)].require(key in known, f"is not a known key ({', '.join(known)})", value[key])
        return dict(value)

    def entries(self, value: Any) -> Iterator[tuple[_Place, Any]]:
        self.require(isinstance(value, list), "must be a list", value)
        self.require(len(value) <= MOST_TERMS, f"must have at most {MOST_TERMS} entries", len(value))
        return ((self[number], entry) for number, entry in enumerate(value))


def _terms(place: _Place, data: Any, usual: Terms) -> Terms:
    told = place.members(data, _KEYS)
    topics = _topics(place["topics"], told["topics"]) if "topics" in told else usual.topics
    topics += _topics(place["more_topics"], told.get("more_topics", []))
    _check_apart(place["topics"], [topic.term for topic in topics])
    tags = tuple(_term(one, entry) for one, entry in place["tags"].entries(told.get("tags", [])))
    _check_apart(place["tags"], tags)
    language, strict = told.get("language", usual.language), told.get("strict", usual.strict)
    place["language"].require(language in ("auto", *LANGUAGES), "must be auto, en or zh", language)
    place["strict"].require(isinstance(strict, bool), "must be true or false", strict)
    limits = _limits(place["limits"], told.get("limits", {}), usual.limits)
    place["topics"].require(topics, "must name at least one topic", [])
    return Terms(topics, tags, strict, limits, language)


def _topics(place: _Place, data: Any) -> tuple[Topic, ...]:
    return tuple(_topic(one, entry) for one, entry in place.entries(data))


def _topic(place: _Place, data: Any) -> Topic:
    if isinstance(data, str):
        return Topic(_term(place, data))
    told = dict(place.members(data, (*_TERM_KEYS, "sub_topics")))
    inner = place["sub_topics"]
    subs = tuple(_term(one, entry) for one, entry in inner.entries(told.pop("sub_topics", [])))
    _check_apart(inner, subs)
    return Topic(_term(place, told), subs)


def _term(place: _Place, data: Any) -> Term:
    told = {"name": data} if isinstance(data, str) else place.members(data, _TERM_KEYS)
    place.require("name" in told, "must have a name", data)
    name = told["name"]
    rule = f"must be a text of 1 to {MOST_NAME} letters and digits, words apart by _"
    place["name"].require(isinstance(name, str) and unified(name) and len(name) <= MOST_NAME, rule, name)
    return Term(unified(name), _said(place["label"], told), _said(place["description"], told))


def _said(place: _Place, told: Mapping[str, Any]) -> Mapping[str, str]:
    said = told.get(place.key.rpartition(".")[2], {})
    by_language = {"en": said} if isinstance(said, str) else place.members(said, LANGUAGES)
    for language, text in by_language.items():
        holds = isinstance(text, str) and text.strip() and len(text) <= MOST_TEXT
        place[language].require(holds, f"must be a text of 1 to {MOST_TEXT} characters", text)
    return {language: " ".join(text.split()) for language, text in by_language.items()}


def _check_apart(place: _Place, terms: Any) -> None:
    seen: set[str] = set()
    for term in terms:
        names = {unified(name) for name in (term.name, *term.label.values())}
        place.require(not names & seen, "must have names that differ", term.name)
        seen |= names


def _limits(place: _Place, data: Any, usual: Limits) -> Limits:
    told = place.members(data, tuple(_BOUNDS))
    for key, value in told.items():
        holds = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _BOUNDS[key]
        place[key].require(holds, f"must be a whole number from 1 to {_BOUNDS[key]}", value)
    limits = replace(usual, **told)
    for key in ("sub_topics", "memo_tokens"):
        after = asdict(limits)[f"{key}_after"]
        place[f"{key}_after"].require(after <= getattr(limits, key), f"must be at most {key}", after)
    return limits


def _yaml(path: Path) -> Any:
    try:
        from headrace.apps.papers.yaml_file import read_yaml
    except ImportError:
        raise ConfigError(f"{path} is YAML, which needs PyYAML: pip install 'headrace[memory]'") from None
    return read_yaml(path).data


def _json(path: Path) -> Any:
    place = _Place(str(path), "")
    try:
        content = path.read_bytes()
        place.require(len(content) <= MAX_BYTES, f"must be at most {MAX_BYTES // 1024} KiB", len(content))
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=lambda pairs: _members_once(place, pairs))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}. Name an existing file.") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid JSON: {error}") from None


def _members_once(place: _Place, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    twice = [key for key in found if sum(key == other for other, _ in pairs) > 1]
    place.require(not twice, "must have each key once", twice)
    return found
