"""What memory is kept of: topics and their sub-topics, kinds of tags, and how much each may grow."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

#: Characters of a topic's or a sub-topic's name at most.
MOST_NAME = 64
_GAPS = re.compile(r"[\s_\-/:：·]+")


@dataclass(frozen=True, slots=True)
class Term:
    """A name, and what is said of it in each language: the name is what is stored, whatever the language."""

    name: str
    #: By language: what a reader is shown; the name itself where there is none.
    label: Mapping[str, str] = field(default_factory=dict)
    #: By language: what it means.
    description: Mapping[str, str] = field(default_factory=dict)

    def called(self, language: str) -> str:
        """Return what it is called in a language.

        >>> Term("food", {"zh": "饮食"}).called("zh"), Term("food").called("zh")
        ('饮食', 'food')
        """
        return self.label.get(language) or self.name

    def line(self, language: str) -> str:
        """Return it for a prompt.

        >>> Term("food", {"zh": "饮食"}, {"zh": "爱吃什么"}).line("zh"), Term("food").line("en")
        ('food（饮食）：爱吃什么', 'food')
        """
        label, said = self.label.get(language), self.description.get(language) or self.description.get("en")
        if language == "zh":
            return self.name + (f"（{label}）" if label else "") + (f"：{said}" if said else "")
        return self.name + (f" ({label})" if label else "") + (f": {said}" if said else "")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic, and the sub-topics that are known of it."""

    term: Term
    sub_topics: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a profile may grow."""

    #: Sub-topics of one topic; more are organised, …
    sub_topics: int = 15
    #: … to at most so many.
    sub_topics_after: int = 8
    #: Tokens of one memo; a longer one is shortened, …
    memo_tokens: int = 128
    #: … to at most so many.
    memo_tokens_after: int = 64


@dataclass(frozen=True)
class Terms:
    """What is asked for. The usual topics, no tags, and other topics allowed, unless said otherwise.

    >>> terms = Terms.usual()
    >>> len(terms.topics), terms.place("Basic Info", "姓名"), terms.place("pets", "Old  Cat")
    (8, ('basic_info', 'name'), ('pets', 'old_cat'))
    """

    topics: tuple[Topic, ...]
    #: Kinds of tags that events get, such as `emotion`; none: events get no tags, and no call is made for them.
    tags: tuple[Term, ...] = ()
    #: True: facts outside the topics and the sub-topics that they name are left out; false: the model may name others.
    strict: bool = False
    limits: Limits = Limits()
    #: "en", "zh" or "auto", that of the messages
    language: str = "auto"

    @classmethod
    def usual(cls) -> Terms:
        """Return the eight usual topics."""
        return _usual()

    @classmethod
    def load(cls, path: str | Path) -> Terms:
        """Read a YAML or JSON file; what it leaves out is as usual.

        Raises ConfigError that names file, key, rule and value; YAML needs the extra `headrace[memory]`.
        """
        from headrace.apps.memory.writing.terms_file import read_terms

        return read_terms(Path(path))

    def place(self, topic: str, sub_topic: str) -> tuple[str, str] | None:
        """Return the slot that names of the model mean, however they spell it; None: there is none, or it is refused.

        Names are lower case with `_`; labels of any language mean their names.
        """
        first = self._names.get(unified(topic), unified(topic))
        second = unified(sub_topic)
        known = self._places.get(first, {})
        if second in known:
            return first, known[second]
        return (first, second) if first and second and self.may_grow(first) else None

    def called(self, topic: str, sub_topic: str, language: str) -> tuple[str, str]:
        """Return what a slot is called in a language."""
        for one in self.topics:
            if one.term.name == topic:
                subs = {sub.name: sub.called(language) for sub in one.sub_topics}
                return one.term.called(language), subs.get(sub_topic, sub_topic)
        return topic, sub_topic

    def tag(self, name: str) -> str | None:
        """Return the tag that a name of the model means; None: there is none."""
        return self._tags.get(unified(name))

    def may_grow(self, topic: str) -> bool:
        """Whether a topic may have sub-topics that no term names; a strict one without any named may have all."""
        return not self.strict or self._places.get(topic) == {}

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return _by_any_name(topic.term for topic in self.topics)

    @cached_property
    def _places(self) -> Mapping[str, Mapping[str, str]]:
        return {topic.term.name: _by_any_name(topic.sub_topics) for topic in self.topics}

    @cached_property
    def _tags(self) -> Mapping[str, str]:
        return _by_any_name(self.tags)


def unified(name: str) -> str:
    """Return a name as it is stored: lower case, `_` between its words.

    >>> unified(" Basic  Info "), unified("basic-info"), unified("工作 技能"), unified("***")
    ('basic_info', 'basic_info', '工作_技能', '')
    """
    plain = unicodedata.normalize("NFKC", name).casefold()
    words = "".join(sign if sign.isalnum() or _GAPS.match(sign) else "" for sign in plain)
    return _GAPS.sub("_", words).strip("_")[:MOST_NAME].strip("_")


def _by_any_name(terms: Iterable[Term]) -> dict[str, str]:
    found: dict[str, str] = {}
    for term in terms:
        for name in (term.name, *term.label.values()):
            found.setdefault(unified(name), term.name)
    return found


@lru_cache(maxsize=1)
def _usual() -> Terms:
    from headrace.apps.memory.writing.terms_file import read_usual

    return read_usual()
