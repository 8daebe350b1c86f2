"""messy.xlsx: two thousand rows in Chinese with everything that sheets of test cases suffer from."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from headrace.apps.report.samples.drawing import Draw
from headrace.apps.report.samples.messy_cases import Cases
from headrace.apps.report.samples.messy_values import Cell, Formula
from headrace.apps.report.samples.subjects import SUBJECTS
from headrace.apps.report.samples.truth import Truth
from headrace.apps.report.samples.workbook import new_workbook

SHEET, HIDDEN = "测试用例", "历史数据"
#: Rows below the header: cases, and what is none.
ROWS = 2_000
_TITLE, _NOTE = "商城系统 V4.2 功能测试用例及执行记录", "编制：测试部　　日期：2026年3月"
#: Header of two rows: columns without a group are merged over both.
_HEADER = (
    *(("", "序号"), ("", "用例编号 *"), ("", "所属模块"), ("", "用例标题（必填）"), ("", "优先级")),
    *(("用例内容", "前置条件"), ("用例内容", "操作步骤"), ("用例内容", "预期结果")),
    *(("执行信息", "实际结果"), ("执行信息", "执行结果"), ("执行信息", "执行人"), ("执行信息", "执行时间")),
    *(("执行信息", "耗时(s)"), ("缺陷", "严重程度"), ("缺陷", "BUG ID"), ("缺陷", "错误信息"), ("", "备注")),
)
_FIRST_ROW, _MODULE = 4, 2
_SHARE_WITHOUT_MODULE, _SHARE_VAGUE = 0.12, 0.5


class _Writer:
    """Writes the main sheet from the top down."""

    def __init__(self, book: Any, draw: Draw, truth: Truth) -> None:
        self._sheet = book.add_worksheet(SHEET)
        self._day = book.add_format({"num_format": "yyyy-mm-dd hh:mm"})
        self._time = book.add_format({"num_format": "[h]:mm:ss"})
        self._bold = book.add_format({"bold": True, "align": "center", "valign": "vcenter"})
        self._draw, self._truth = draw, truth
        self._cases = Cases(draw)
        self._row = _FIRST_ROW

    def write(self) -> None:
        """Write everything."""
        self._head()
        last = _FIRST_ROW + ROWS - 2
        turn = 0
        while self._row < last:
            if turn and turn % 20 == 0:
                self._repeated_header()
            self._run(turn % len(SUBJECTS), min(self._draw.number(6, 18), last - self._row))
            turn += 1
            if turn % 25 == 0 and self._row < last:
                self._other("小计", "total_row")
        self._other("合计", "total_row")
        self._other("通过率：72%", "total_row")

    def _head(self) -> None:
        last = len(_HEADER) - 1
        self._sheet.merge_range(0, 0, 0, last, _TITLE, self._bold)
        self._sheet.merge_range(1, 0, 1, last, _NOTE)
        groups: dict[str, list[int]] = {}
        for column, (group, name) in enumerate(_HEADER):
            if not group:
                self._sheet.merge_range(2, column, 3, column, name, self._bold)
                continue
            groups.setdefault(group, []).append(column)
            self._sheet.write_string(3, column, name, self._bold)
        for group, columns in groups.items():
            self._sheet.merge_range(2, columns[0], 2, columns[-1], group, self._bold)

    def _run(self, subject: int, count: int) -> None:
        """Write cases of one module: its name stands in a merged cell, or nowhere."""
        has_module = not self._draw.chance(_SHARE_WITHOUT_MODULE)
        module = SUBJECTS[subject].zh if has_module else ""
        first = self._row
        for _ in range(count):
            is_vague = not has_module and self._draw.chance(_SHARE_VAGUE)
            known, cells = self._cases.case(subject, is_vague, module)
            self._truth.cases.append(known)
            for column, cell in enumerate(cells):
                if column != _MODULE:
                    self._cell(column, cell)
            self._row += 1
        if module and count > 1:
            self._sheet.merge_range(first, _MODULE, self._row - 1, _MODULE, module)
        elif module:
            self._sheet.write_string(first, _MODULE, module)

    def _repeated_header(self) -> None:
        for column, (_, name) in enumerate(_HEADER):
            self._sheet.write_string(self._row, column, name, self._bold)
        self._truth.others.append("repeated_header")
        self._row += 1

    def _other(self, text: str, rule: str) -> None:
        self._sheet.write_string(self._row, 0, text, self._bold)
        self._sheet.write_formula(self._row, 3, f"=COUNTA(D5:D{self._row})", None, self._row - _FIRST_ROW)
        self._truth.others.append(rule)
        self._row += 1

    def _cell(self, column: int, cell: Cell) -> None:
        match cell:
            case Formula():
                self._sheet.write_formula(self._row, column, cell.text, None, cell.result)
            case timedelta():
                self._sheet.write_number(self._row, column, cell.total_seconds() / 86_400, self._time)
            case datetime():
                self._sheet.write_datetime(self._row, column, cell, self._day)
            case int() | float():
                self._sheet.write_number(self._row, column, cell)
            case str():
                self._sheet.write_string(self._row, column, cell)


def write_messy(path: Path, seed: int = 2) -> Truth:
    """Write the workbook: the cases, a sheet of figures, a hidden one of older cases. Return what is in it."""
    draw, truth = Draw(seed), Truth()
    with new_workbook(path) as book:
        _Writer(book, draw, truth).write()
        figures = book.add_worksheet("统计")
        figures.write_column(0, 0, ["版本", "V4.2", "轮次", "2"])
        old = book.add_worksheet(HIDDEN)
        old.write_row(0, 0, ["用例编号", "用例标题", "执行结果"])
        for number in range(1, 31):
            old.write_row(number, 0, [f"OLD-{number}", "旧用例", "失败"])
        old.hide()
    return truth
