"""What one header says: the field it stands for, and the unit it names."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from headrace.apps.report.ingest.cells import MAX_WORD, key_of
from headrace.apps.report.ingest.words import header_key, headers, keys, unit_seconds

_BRACKETS = re.compile(r"[(\[【<{]([^()\[\]【】<>{}]*)[)\]】>}]")
_TRAILING_UNIT = re.compile(r"^(.*\S)[\s/_\-,:]+(\w+)$", re.DOTALL)
#: What words beside it add to the rank of a header.
_WORSE = 100
_AGAIN = r"复测|复验|重测|回归|二次|re-?test|re-?run|regression"
_ROUND = rf"(?:第?[\d一二三四五六七八九十]+[轮次]|最终|round ?\d+|\d(?:st|nd|rd|th)(?: round| run)?|final|{_AGAIN})"
#: "第二轮执行结果", "Retest Result", "Result 2", "Result R2".
_BEFORE = re.compile(rf"^({_ROUND})[\s_\-:]*(.+)$", re.I | re.DOTALL)
_AFTER = re.compile(rf"^(.+?)[\s_\-]*({_ROUND}|r?\d)$", re.I | re.DOTALL)


@dataclass(frozen=True)
class Meaning:
    """The field of a header, how common its word is for it, and the seconds of its unit if it names one."""

    field: str
    rank: int
    unit: float | None = None
    #: Of results: whether it names a round, and whether one for those alone that were tested again.
    is_round: bool = False
    is_retest: bool = False

    @property
    def is_beside(self) -> bool:
        """Whether it names something else in brackets, as "Result (iOS)" does."""
        return self.rank >= _WORSE and not self.is_round


def meaning_of(text: str) -> Meaning | None:
    """Return what a header means.

    >>> meaning_of("用例编号（必填）").field, meaning_of("Duration (min)").unit, meaning_of("Weather")
    ('case_id', 60, None)
    """
    return _meaning_of(text) if len(text) <= MAX_WORD else None


@lru_cache(maxsize=8192)
def _meaning_of(text: str) -> Meaning | None:
    plain = unicodedata.normalize("NFKC", text).strip()
    if not plain:
        return None
    found = headers().get(header_key(plain))
    if found:
        return Meaning(*found)
    return _with_brackets(plain) or _with_unit(plain) or _with_round(plain)


def _with_brackets(plain: str) -> Meaning | None:
    """Return the meaning of "耗时(s)", "Title (required)", "Result [round 2]"."""
    inner = _BRACKETS.findall(plain)
    if not inner:
        return None
    bare = _BRACKETS.sub(" ", plain).strip()
    found = headers().get(header_key(bare))
    if found is None:
        return None
    unit = next((seconds for one in inner if (seconds := unit_seconds(one)) is not None), None)
    said = all(key_of(one) in keys("not_headers") or unit is not None or one.strip() in ("", "*") for one in inner)
    if found[0] == "status" and not said:
        return _of_results(found[1] + _WORSE, " ".join(inner))
    # Brackets with other words make it a worse header for the field than one without.
    return Meaning(found[0], found[1] if said else found[1] + _WORSE, unit if found[0] == "duration_seconds" else None)


def _with_round(plain: str) -> Meaning | None:
    """Return the meaning of results that name a round."""
    before, after = _BEFORE.match(plain), _AFTER.match(plain)
    split = (before[2], before[1]) if before else (after[1], after[2]) if after else ("", "")
    found = headers().get(header_key(split[0]))
    return _of_results(found[1] + _WORSE, split[1], is_round=True) if found and found[0] == "status" else None


def _of_results(rank: int, beside: str, *, is_round: bool = False) -> Meaning:
    is_retest = re.search(_AGAIN, beside, re.I) is not None
    return Meaning("status", rank, None, is_round or re.search(_ROUND, beside, re.I) is not None, is_retest)


def _with_unit(plain: str) -> Meaning | None:
    """Return the meaning of "duration_ms", "耗时/秒"."""
    match = _TRAILING_UNIT.match(plain)
    if match is None:
        return None
    seconds, found = unit_seconds(match[2]), headers().get(header_key(match[1]))
    if seconds is None or found is None or found[0] != "duration_seconds":
        return None
    return Meaning(*found, seconds)
