"""What data that code counted allow a sentence to say: which numbers, and of which names.

A number may be said if it is one of those that were counted. Digits in texts of the data (a status of HTTP, a limit of
seconds, a name) may be repeated as what they are there, and not as a count, a share or a sum of money: "HTTP 500" may
stand where "500 of 600 cases" may not. Where the data are one failure, its own words may be quoted, counts and all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from headrace.apps.report.prompts.prose_numbers import Said, normal, numbers_in

_THINGS = (
    r"(?:cases?|tests?|failures?|failing|failed|fails?|pass(?:es|ed)?|blocked|skipped|defects?|bugs?|errors?|users?|"
    r"customers?|people|orders?|modules?|clusters?|times|dollars?|euros?|pounds?|yuan|usd|eur|gbp|rmb|cny)\b"
)
#: What makes a number a count, a share or a sum.
_COUNT_BEFORE = re.compile(r"(?:[$€£¥]|\b(?:usd|eur|gbp|rmb|cny)|通过|失败|阻塞|跳过|共有?)\s*$")
_COUNT_BEHIND = re.compile(
    rf"\s*(?:of\b|out of\b|(?:[a-z]+\s+){{0,2}}?{_THINGS}|[个例条名位人元块]|用例|模块|缺陷|用户|通过|失败|阻塞|美元"
    r"|欧元)"
)
#: A name that ends in digits or has some: TC-99, P0, UTF-8, USD9000.
_NAME = re.compile(r"(?<![A-Za-z0-9_])(?=[A-Za-z_./-]*\d)[A-Za-z][A-Za-z0-9_]*(?:[-./][A-Za-z0-9_]+)*")
_DIGIT = re.compile(r"\d")
#: A word, or a sign of Chinese.
_WORD = re.compile(r"[a-z0-9_]+|[^\W\d_]")
#: Digits of an id by themselves, where the words before say that they are one.
_CASE = r"\b(?:cases?|tests?|ids?|no\.)[\s:#]*|#|用例|编号"


@dataclass(frozen=True)
class Grounds:
    """What may be said."""

    counted: frozenset[Decimal]
    #: Counted as shares of a hundred.
    percents: frozenset[Decimal]
    #: Digits and names in texts of the data.
    digits: frozenset[Decimal]
    names: frozenset[str]
    #: Numbers with the words beside them that may be quoted.
    quotes: frozenset[tuple[str, str, str]]

    @classmethod
    def of(cls, data: Any, *, may_quote: bool = False) -> Grounds:
        """Return what data allow: those that the model was shown. `may_quote`: also counts that their texts tell of."""
        counted, percents, texts = set[Decimal](), set[Decimal](), list[str]()
        for name, value in _leaves(data):
            if isinstance(value, str):
                texts.append(normal(value))
            elif name.endswith(("percent", "%")):
                percents.add(_exact(value))
            else:
                counted.add(_exact(value))
        names = {part for text in texts for name in _NAME.findall(text) for part in (name, *re.split("[./]", name))}
        # The digits of a name are no number.
        said = [(one, text) for text in (_NAME.sub(" ", text) for text in texts) for one in numbers_in(text)]
        digits = frozenset(one.value for one, _ in said if one.value is not None)
        quotes = frozenset(_in_context(one, text) for one, text in said if may_quote)
        return cls(frozenset(counted), frozenset(percents), digits, frozenset(names), quotes)

    def allow(self, text: str, ids: Collection[str] = (), cites: Sequence[str] = ()) -> bool:
        """Whether a text has only numbers and names with digits that may be said.

        `ids`: of all that may be named, `cites`: those that the text rests on.
        """
        told = unicodedata.normalize("NFKC", _without(cites, text))
        if not all(self._may_name(name, ids) for name in _NAME.findall(told)):
            return False
        rest = normal(_NAME.sub(" ", told))
        return all(self._allows(said, rest) for said in numbers_in(rest))

    def _may_name(self, name: str, ids: Collection[str]) -> bool:
        if name in ids or normal(name) in self.names or not _DIGIT.search(name):
            return True
        return "/" in name and all(self._may_name(part, ids) for part in name.split("/"))

    def _allows(self, said: Said, text: str) -> bool:
        if _in_context(said, text) in self.quotes:
            return True
        if said.value is None:
            return False
        if said.is_percent:
            return any(_is_rounded(said.value, exact) for exact in self.percents)
        if said.value in self.counted or said.value in self.percents:
            return True
        is_count = _COUNT_BEFORE.search(text[: said.start]) or _COUNT_BEHIND.match(text, said.end)
        return said.value in self.digits and not is_count


def _leaves(data: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield numbers and texts, each with the name that says what it is."""
    if isinstance(data, Mapping):
        unit = data.get("unit", "")
        for key, value in data.items():
            yield from _leaves(value, f"{key} {unit}".strip())
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _leaves(value, name)
    elif isinstance(data, str | int | float) and not isinstance(data, bool):
        yield name, data


def _in_context(said: Said, text: str) -> tuple[str, str, str]:
    """Return a number with the words before and behind it; signs between them are no words."""
    before, behind = _WORD.findall(text[: said.start][-40:]), _WORD.search(text, said.end)
    return before[-1] if before else "", text[said.start : said.end], behind.group() if behind else ""


def _exact(value: float) -> Decimal:
    return Decimal(str(value))


def _is_rounded(told: Decimal, exact: Decimal) -> bool:
    """Whether a share is told as it is, or rounded; 99.6 is not all, and 0.4 is not nothing.

    >>> [_is_rounded(Decimal(told), Decimal("97.53")) for told in ("97.53", "97.5", "98", "97.530", "97")]
    [True, True, True, True, False]
    >>> _is_rounded(Decimal(100), Decimal("99.6"))
    False
    """
    if told == exact:
        return True
    places = Decimal(1).scaleb(int(told.normalize().as_tuple().exponent)) if told else Decimal(1)
    return 0 < told < 100 and told == exact.quantize(min(places, Decimal(1)), ROUND_HALF_UP)


def _without(ids: Sequence[str], text: str) -> str:
    """Return a text without ids, where they stand by themselves; one of digits alone only where it is called a case.

    >>> _without(["TC-1", "1"], "TC-1, TC-12 and 15 others; case 1; only 1 failed")
    ', TC-12 and 15 others; ; only 1 failed'
    """
    names = "|".join(re.escape(one) for one in sorted(ids, key=len, reverse=True) if not one.isdecimal())
    numbers = "|".join(re.escape(one) for one in sorted(ids, key=len, reverse=True) if one.isdecimal())
    edge = r"(?![A-Za-z0-9_-]|[.,]\d|\s*[%％])"
    if names:
        text = re.sub(rf"(?<![A-Za-z0-9_.-])(?:{names}){edge}", "", text)
    if numbers:
        more = rf"(?:\s*(?:,|、|and|和|与)\s*(?:{numbers}){edge})*"
        text = re.sub(rf"(?:{_CASE})\s*(?:{numbers}){edge}(?!\s*[个条例]){more}", "", text, flags=re.IGNORECASE)
    return text
