"""The spellings of messy.xlsx: for each field what is written, and what it is known to mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.apps.report.samples.drawing import Draw
from headrace.apps.report.samples.truth import Known

STATUSES = {"passed": 1430, "failed": 270, "blocked": 60, "skipped": 170, "unknown": 50}
WORDS = {
    "passed": ("通过", "PASS", "Passed", "OK", "√", "✔", "成功", "ｐａｓｓ", " 通过 ", "通过（复测）"),
    "failed": ("不通过", "FAIL", "Failed", "NG", "×", "✗", "失败", "未通过"),
    "blocked": ("阻塞", "Blocked", "受阻", "挂起"),
    "skipped": ("未执行", "N/A", "跳过", "不适用", "Not Run", "待测"),
    "unknown": ("待确认", "再看看", "通过？失败？", "70%"),
}
_PRIORITIES = {
    "P0": ("P0", "紧急", "最高"),
    "P1": ("高", "High", "P1", 1),
    "P2": ("中", "Medium", "p2", 2),
    "P3": ("低", "Low", "P3", "３"),
}
_SEVERITIES = {
    "critical": ("致命", "S1", "Critical"),
    "major": ("严重", "S2", "Major"),
    "minor": ("一般", "S3", "minor"),
    "trivial": ("轻微", "S4", "Trivial"),
}


@dataclass(frozen=True)
class Formula:
    """A formula with the result that is stored for it."""

    text: str
    result: str


Cell = str | int | float | datetime | timedelta | Formula | None


def status(draw: Draw, known: Known) -> Cell:
    """Return how the status of a case is written: a word, or a formula that gives it."""
    if known.status == "unknown":
        known.missing.add("status")
        if draw.chance(0.3):
            return None
        known.issues.append("unknown_status")
    word = draw.one(WORDS[known.status])
    if draw.chance(0.05):
        return Formula('=IF(1=1,"' + word + '","")', word)
    return word


def priority(draw: Draw, known: Known) -> Cell:
    """Return how a priority is written; few are missing, or no such."""
    if draw.chance(0.03):
        known.missing.add("priority")
        return None
    if draw.chance(0.01):
        known.missing.add("priority")
        known.issues.append("unknown_priority")
        return "看情况"
    known.priority = draw.weighted({"P0": 1, "P1": 3, "P2": 5, "P3": 2})
    return draw.one(_PRIORITIES[known.priority])


def severity(draw: Draw, known: Known, meant: str) -> Cell:
    """Return how the severity of a failure is written."""
    if draw.chance(0.1):
        known.missing.add("severity")
        return None
    if draw.chance(0.02):
        known.missing.add("severity")
        known.issues.append("unknown_severity")
        return "不好说"
    known.severity = meant
    return draw.one(_SEVERITIES[meant])


def date(draw: Draw, known: Known) -> Cell:
    """Return how the time of an execution is written."""
    if draw.chance(0.06):
        known.missing.add("executed_at")
        return None
    if draw.chance(0.02):
        known.missing.add("executed_at")
        known.issues.append("bad_date")
        return draw.one(("2026-02-30", "昨天", "2026/13/01", "1899-12-31"))
    moment = draw.moment()
    if draw.chance(0.03):
        known.issues.append("ambiguous_date")
        return f"03/{draw.one((4, 5, 6, 7, 8, 9)):02}/2026"
    forms: tuple[Callable[[datetime], Cell], ...] = (
        lambda at: at,
        lambda at: at,
        lambda at: f"{at.year}/{at.month}/{at.day}",
        lambda at: f"{at.year}年{at.month}月{at.day}日",
        lambda at: f"{at.day:02}.{at.month:02}.{at.year}",
        lambda at: at.isoformat(sep=" "),
        lambda at: 46_083 + (at - datetime(2026, 3, 2)).days,
    )
    return draw.one(forms)(moment)


def duration(draw: Draw, known: Known) -> Cell:
    """Return how a duration is written; some are formulas with an error, or without a result."""
    if draw.chance(0.05):
        known.missing.add("duration_seconds")
        return None
    broken = draw.weighted({"": 955, "bad_duration": 25, "broken_cell": 12, "formula_without_value": 8})
    if broken:
        known.missing.add("duration_seconds")
        known.issues.append(broken)
        cells: dict[str, Cell] = {
            "bad_duration": draw.one(("很快", "-5", "1m30x")),
            "broken_cell": Formula("=Q5-#REF!", draw.one(("#REF!", "#VALUE!", "#DIV/0!"))),
            "formula_without_value": Formula("=NOW()-P5", ""),
        }
        return cells[broken]
    seconds = draw.number(3, 300)
    minutes, rest = divmod(seconds, 60)
    forms: tuple[Cell, ...] = (
        *(seconds, seconds + 0.5, f"{minutes}m{rest}s", f"00:{minutes:02}:{rest:02}", f"{seconds}秒"),
        *(f"{minutes}分{rest}秒", f"{seconds / 60:.2f} min", timedelta(seconds=seconds)),
    )
    return draw.one(forms)


def person(draw: Draw, known: Known, people: tuple[str, ...]) -> Cell:
    """Return who tested; some rows do not say."""
    if draw.chance(0.04):
        known.missing.add("executor")
        return None
    return draw.one(people)
