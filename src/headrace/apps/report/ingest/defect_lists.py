"""Lists of defects: they have titles, modules and states as test cases have, and none of their rows was a test."""

from __future__ import annotations

import re

from headrace.apps.report.ingest.cells import Grid, is_blank, key_of, text_of
from headrace.apps.report.ingest.columns import Column, Header
from headrace.apps.report.ingest.values.levels import status_of
from headrace.apps.report.ingest.words import header_key

#: Headers of states that may be a defect's as well; all others tell of a test.
_STATES = frozenset(map(header_key, ("Status", "状态")))
#: Headers of ids that may be anything's.
_IDS = frozenset(map(header_key, ("ID", "Key", "Issue Key", "Ref", "Number", "No", "#", "编号", "ID号", "序号")))
#: In the name of a sheet.
_NAMED = re.compile(r"(?<![a-z])(?:bugs?|defects?)(?![a-z])|缺陷|问题单|问题清单", re.I)
#: A list of cases has one of these beside its severities.
_OF_CASES = frozenset(
    ("preconditions", "steps", "expected", "actual", "priority", "executor", "executed_at", "duration_seconds")
)
#: Words for results that are states of defects as well: they tell nothing.
_BOTH = frozenset(
    map(
        key_of,
        (
            *("pending", "deferred", "in progress", "wip", "to do", "ignored", "on hold", "hold", "suspended"),
            *("挂起", "暂停", "延期", "进行中", "忽略", "未开始"),
        ),
    )
)


def is_defect_list(grid: Grid, header: Header) -> bool:
    """Whether the rows below a header are defects; where results of tests stand there, they are not."""
    fields = header.fields
    if _tells_of_tests(fields):
        return False
    is_named = _NAMED.search(grid.name) is not None
    has_levels = {"severity", "status"} <= set(fields) and not _OF_CASES & set(fields)
    if _names_defects(fields):
        return True
    return (is_named or has_levels) and not _has_results(grid, header)


def _tells_of_tests(fields: dict[str, Column]) -> bool:
    """Whether the header of ids or of results is one that only tests have."""
    case_id, status = fields.get("case_id"), fields.get("status")
    if case_id and header_key(case_id.label) not in _IDS:
        return True
    return status is not None and header_key(status.label) not in _STATES


def _names_defects(fields: dict[str, Column]) -> bool:
    """Whether rows are named by defects: tests have theirs behind the title."""
    defect, title = fields.get("defect_id"), fields.get("title")
    return defect is not None and (title is None or defect.index < title.index)


def _has_results(grid: Grid, header: Header) -> bool:
    """Whether at least half of the states are results that only tests have."""
    column = header.fields.get("status")
    if column is None:
        return False
    body = grid.rows[header.last + 1 :]
    states = [row[column.index] for row in body if column.index < len(row) and not is_blank(row[column.index])]
    known = sum(status_of(state, column.label) is not None and key_of(text_of(state)) not in _BOTH for state in states)
    return bool(states) and 2 * known >= len(states)
