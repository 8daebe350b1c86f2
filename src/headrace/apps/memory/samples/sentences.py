"""Sentences that the scripted model understands: how users say them, and how a log says them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_EN, _ZH = (
    r"([^.,!?;\n]+?)(?=[.,!?;\n]|$| and )",
    r"([^，。！？；、,.!?;\s]{1,20}?)(?=[了吧呢]?[，。！？；、,.!?;\s]|$)",
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One kind of sentence."""

    #: as users say it
    said: re.Pattern[str]
    #: as the log says it, with a place for each group of `said`
    log: str
    #: slot of the profile; "" of what belongs into none, "*" as sub-topic: the first group
    topic: str = ""
    sub_topic: str = ""
    kind: str = "info"
    #: whether a newer one takes the place of an older one
    is_single: bool = False

    @property
    def logged(self) -> re.Pattern[str]:
        """The sentence in a log."""
        return re.compile("(.+)".join(re.escape(part) for part in re.split(r"\{\d\}", self.log)) + "$")

    def fact(self, log: str) -> Mapping[str, str] | None:
        """Return what a line of a log says for the profile."""
        found = self.logged.fullmatch(log)
        if found is None or not self.topic:
            return None
        sub = found.group(1) if self.sub_topic == "*" else self.sub_topic
        return {"topic": self.topic, "sub_topic": sub, "memo": found.groups()[-1]}


def _en(said: str, log: str, place: str = "/", kind: str = "info", *, is_single: bool = False) -> Sentence:
    topic, sub = place.split("/")
    return Sentence(re.compile(r"\b" + said.replace("…", _EN), re.IGNORECASE), log, topic, sub, kind, is_single)


def _zh(said: str, log: str, place: str = "/", kind: str = "info", *, is_single: bool = False) -> Sentence:
    topic, sub = place.split("/")
    return Sentence(re.compile(said.replace("…", _ZH)), log, topic, sub, kind, is_single)


SENTENCES: Mapping[str, tuple[Sentence, ...]] = {
    "en": (
        _en("(?:my name is|I am called) …", "The user is called {0}", "basic_info/name", is_single=True),
        _en(r"I am (\d{1,3}) years old", "The user's age is {0}", "basic_info/age", is_single=True),
        _en("I speak …", "The user speaks {0}", "basic_info/languages"),
        _en("I live in …", "The user lives in {0}", "contact_info/city", is_single=True),
        _en("I work as an? ((?:(?! at )[^.,!?;\n])+)", "The user works as {0}", "work/title", is_single=True),
        _en("I work (?:as [^.,!?;\n]+ )?(?:at|for) …", "The user works at {0}", "work/company", is_single=True),
        _en("I (?:study|studied) …", "The user studied {0}", "education/major"),
        _en("I am married to …", "The user is married to {0}", "demographics/marital_status", is_single=True),
        _en("I (?:like|love) …", "The user likes {0}", "interest/likes"),
        _en(r"my favou?rite (\w+) is …", "The user's favourite {0} is {1}", "interest/*"),
        _en("I (?:have )?moved to …", "The user moved to {0}", "life_event/relocation", "event"),
        _en("I feel …", "The user feels {0}", kind="event"),
        _en("(?:tomorrow I will|I will) …", "The user will {0}", kind="schedule"),
    ),
    "zh": (
        _zh("我(?:叫|的名字是)…", "用户叫{0}", "basic_info/name", is_single=True),
        _zh(r"我今年(\d{1,3})岁", "用户的年龄是{0}", "basic_info/age", is_single=True),
        _zh("我会说…", "用户会说{0}", "basic_info/languages"),
        _zh("我住在…", "用户住在{0}", "contact_info/city", is_single=True),
        _zh("我的职业是…", "用户的职业是{0}", "work/title", is_single=True),
        _zh("我在([^，。！？；\\s]{1,20}?)工作", "用户在{0}工作", "work/company", is_single=True),
        _zh("我学的是…", "用户学过{0}", "education/major"),
        _zh("我和([^，。！？；\\s]{1,20}?)结婚", "用户的配偶是{0}", "demographics/marital_status", is_single=True),
        _zh("我喜欢…", "用户喜欢{0}", "interest/likes"),
        _zh("我最喜欢的([^，。！？；\\s]{1,10}?)是…", "用户最爱的{0}是{1}", "interest/*"),
        _zh("我搬到…", "用户搬到{0}", "life_event/relocation", "event"),
        _zh("我觉得…", "用户感到{0}", kind="event"),
        _zh("我明天要…", "用户要{0}", kind="schedule"),
    ),
}
#: Slots of which the newest holds alone.
SINGLE = {(one.topic, one.sub_topic) for group in SENTENCES.values() for one in group if one.is_single}
#: How a log says what is felt: the tag `emotion`.
FEELINGS = {"en": re.compile(r"The user feels ([^\[/]+)"), "zh": re.compile(r"用户感到([^\[/]+)")}


def logged(text: str, language: str) -> Iterator[tuple[str, str]]:
    """Yield what a message says, as a log says it, with its kind, in the order of the message.

    >>> list(logged("Hello! My name is Anna, and I live in Lyon.", "en"))
    [('The user is called Anna', 'info'), ('The user lives in Lyon', 'info')]
    >>> list(logged("我叫王小明，我住在北京。", "zh"))
    [('用户叫王小明', 'info'), ('用户住在北京', 'info')]
    """
    found = [(match.start(), one, match.groups()) for one in SENTENCES[language] for match in one.said.finditer(text)]
    for _, sentence, groups in sorted(found, key=lambda each: (each[0], each[1].log)):
        yield sentence.log.format(*(group.strip() for group in groups)), sentence.kind
    yield from ((one.group().strip(), "info") for line in text.splitlines() for one in [_told(line, language)] if one)


def fact_of(log: str, language: str) -> Mapping[str, str] | None:
    """Return what a line of a log says for the profile.

    >>> fact_of("The user's favourite tea is Assam", "en")
    {'topic': 'interest', 'sub_topic': 'tea', 'memo': 'Assam'}
    """
    return next((fact for one in SENTENCES[language] if (fact := one.fact(log)) is not None), None)


def _told(line: str, language: str) -> re.Match[str] | None:
    """A line that is one of a log already, as summaries have them."""
    text = line.strip().lstrip("- ").rstrip(".。")
    return next((found for one in SENTENCES[language] if (found := one.logged.fullmatch(text))), None)
