"""The cases of messy.xlsx, in the order of its columns."""

from __future__ import annotations

from headrace.apps.report.samples import messy_values
from headrace.apps.report.samples.drawing import Draw
from headrace.apps.report.samples.messy_values import Cell
from headrace.apps.report.samples.subjects import PEOPLE_ZH, SUBJECTS, VAGUE_ZH
from headrace.apps.report.samples.truth import Known

#: Names as text that a report must neither run nor lose.
HOSTILE = ("<script>alert(1)</script>", "=cmd|' /C calc'!A0")


class Cases:
    """Makes cases, one after another."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._number = 0
        self._ids: list[str] = []

    def case(self, subject: int, is_vague: bool, module: str) -> tuple[Known, list[Cell]]:
        """Return a case of a module with what its row says, from the number on; `module` is what the sheet gives."""
        draw = self._draw
        self._number += 1
        known = Known(draw.weighted(messy_values.STATUSES), module)
        if not module:
            known.missing.add("module")
        title = self._title(subject, is_vague)
        row: list[Cell] = [self._number, self._id(subject, is_vague, known), module or None, title]
        row.append(messy_values.priority(draw, known))
        row += [None if draw.chance(0.3) else "已注册客户账号", f"1、打开页面\n2、{title}", self._expected(known)]
        actual, error, severity = self._outcome(subject, known)
        row += [actual, messy_values.status(draw, known), messy_values.person(draw, known, PEOPLE_ZH)]
        row += [messy_values.date(draw, known), messy_values.duration(draw, known)]
        row += [severity, f"BUG-{draw.number(1_000, 9_999)}" if known.status == "failed" else None, error]
        row.append("请复核" if draw.chance(0.05) else None)
        return known, row

    def _id(self, subject: int, is_vague: bool, known: Known) -> Cell:
        draw = self._draw
        if draw.chance(0.01):
            known.issues.append("missing_id")
            return None
        if self._ids and draw.chance(0.015):
            known.issues.append("duplicate_id")
            return draw.one(self._ids)
        if is_vague:
            # Numbers, which Excel stores as such: 9001.0 is the id "9001".
            return 9_000 + self._number
        self._ids.append(f"TC-{SUBJECTS[subject].prefix}-{self._number:04}")
        return self._ids[-1]

    def _title(self, subject: int, is_vague: bool) -> str:
        if self._number in (100, 200):
            return HOSTILE[self._number // 100 - 1]
        draw = self._draw
        return f"{draw.one(VAGUE_ZH if is_vague else SUBJECTS[subject].points_zh)}_{self._number:04}"

    def _expected(self, known: Known) -> Cell:
        if self._draw.chance(0.02):
            known.missing.add("expected")
            return None
        return "操作成功，页面提示正确"

    def _outcome(self, subject: int, known: Known) -> tuple[Cell, Cell, Cell]:
        """Return actual result, error and severity of a case; a case that did not fail has only the first."""
        draw = self._draw
        if known.status not in ("failed", "blocked"):
            return "与预期一致" if known.status == "passed" else None, None, None
        failure, filling = draw.failure(subject), draw.filling()
        severity = messy_values.severity(draw, known, failure.severity)
        if draw.chance(0.03):
            known.missing.add("actual")
            return None, None, severity
        return failure.zh.format(**filling), failure.error.format(**filling) or None, severity
