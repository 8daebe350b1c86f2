"""Regular expressions of rules, from the subset that cannot run away.

Whoever writes rules writes patterns, and some patterns take years on a short text: `(a+)+b`. Python cannot stop one
that runs. So a pattern may hold one repetition, and only of a single character or class; of a group only `?` is
allowed, and alternatives may combine in few ways. On a text of n characters that costs n² steps for each way at most,
and no more than `MOST_TEXT` characters are looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_PATTERN = 200
MOST_TEXT = 600
#: Alternatives and optional parts multiply: (a|a)(a|a)(a|a) is tried in eight ways.
MOST_WAYS = 32
_UNIT = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class UnsafePattern(ValueError):
    """The rule that a pattern breaks, and the part of it that does."""

    rule: str
    part: str


def safe_pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern, without case. Raises `UnsafePattern`, or `re.error` for what is no pattern.

    >>> bool(safe_pattern(r"sign.?in|log\\s*on").search("Log  on"))
    True
    >>> safe_pattern("(a+)+b")
    Traceback (most recent call last):
    headrace.apps.report.tagging.patterns.UnsafePattern: ('must not repeat a group', ')+')
    """
    if len(text) > MOST_PATTERN:
        raise UnsafePattern(f"must have at most {MOST_PATTERN} characters", text[:20] + "…")
    pattern = re.compile(text, re.IGNORECASE)
    units = _UNIT.findall(text)
    _refuse_references(units, text)
    _refuse_repetitions(units)
    return pattern


def _refuse_references(units: list[str], text: str) -> None:
    for unit in units:
        if unit[0] == "\\" and unit[1:].isdigit():
            raise UnsafePattern("must not refer back to a group", unit)
    if found := re.search(r"\(\?(?:P=|\()", text):
        raise UnsafePattern("must not refer back to a group", found[0])
    if found := re.search(r"\(\?[a-zA-Z-]+[:)]", text):  # with (?x) a space could hide what is repeated
        raise UnsafePattern("must not set flags; case makes no difference anyway", found[0])


def _refuse_repetitions(units: list[str]) -> None:
    repetitions, optional = 0, 0
    for before, unit in zip(["", *units], units, strict=False):
        if unit == "?":
            optional += before not in ("(", "*", "+", "?") and not (len(before) > 1 and before[0] == "{")
        elif unit in ("*", "+") or (len(unit) > 1 and unit[0] == "{"):
            if before == ")":
                raise UnsafePattern("must not repeat a group", before + unit)
            repetitions += before not in ("*", "+", "?")
    if repetitions > 1:
        raise UnsafePattern("must have at most one repetition (* + {n,m})", "".join(units)[:40])
    if _branches(units) * 2**optional > MOST_WAYS:
        raise UnsafePattern(f"must have at most {MOST_WAYS} ways to fit (alternatives and ?)", "".join(units)[:40])


def _branches(units: list[str]) -> int:
    """In how many ways the alternatives of groups combine; those outside of groups are tried one by one."""
    ways, open_groups = 1, [0]
    for unit in units:
        if unit == "(":
            open_groups.append(1)
        elif unit == ")":
            ways *= open_groups.pop()
        elif unit == "|":
            open_groups[-1] += 1
    return ways
