"""Results, priorities and severities."""

from __future__ import annotations

import re
import unicodedata

from headrace.apps.report.data.cases import Status
from headrace.apps.report.ingest.cells import MAX_WORD, Cell, key_of, text_of
from headrace.apps.report.ingest.words import keys, meanings

#: Headers that ask a question, so that "yes" is an answer.
_ASKS = frozenset(("是否通过", "通过与否", "是否通过测试", "ispassed", "passed", "pass"))
#: A remark in brackets behind a word: "通过(复测)".
_REMARK = re.compile(r"^([^(\[]+)[(\[]([^()\[\]]*)[)\]]$")
#: What in a remark speaks against a pass.
_DOUBT = re.compile(
    r"fail|ng\b|not|block|error|bug|defect|issue|except|partial|不|未|失败|阻|缺陷|异常|部分|问题", re.I
)
#: "P1 - High" and "High/P1": the parts are tried alone.
_MOST_PARTS = 3
_PARTS = re.compile(r"[\s\-_/:,;|()\[\]]+")


def status_of(cell: Cell, header: str) -> Status | None:
    """Return what a result means; None where no synonym explains it. Only a whole word counts.

    >>> status_of("不通过", ""), status_of("✔", ""), status_of("Y", "是否通过"), status_of("perhaps", "")
    (<Status.FAILED: 'failed'>, <Status.PASSED: 'passed'>, <Status.PASSED: 'passed'>, None)
    """
    if key_of(header) in _ASKS and key_of(text_of(cell)) in keys("yes") | keys("no"):
        return Status.PASSED if key_of(text_of(cell)) in keys("yes") else Status.FAILED
    if not isinstance(cell, str):
        return _of_truth(cell)
    found = meanings("status").get(key_of(cell)) or _with_remark(cell)
    return Status(found) if found else None


def _of_truth(cell: Cell) -> Status | None:
    """Return the result of TRUE or FALSE; a number says nothing."""
    if isinstance(cell, bool):
        return Status.PASSED if cell else Status.FAILED
    return None


def _with_remark(text: str) -> str | None:
    match = None if len(text) > MAX_WORD else _REMARK.match(unicodedata.normalize("NFKC", text).strip())
    if match is None:
        return None
    found = meanings("status").get(key_of(match[1]))
    return None if found == "passed" and _DOUBT.search(match[2]) else found


def level_of(cell: Cell, group: str) -> str | None:
    """Return the level that a cell names in a group of words, "priority" or "severity"; None for none.

    >>> level_of("高", "priority"), level_of("S2 - Major", "severity"), level_of("?", "severity")
    ('P1', 'major', None)
    """
    text, known = text_of(cell), meanings(group)
    if isinstance(cell, bool) or len(text) > MAX_WORD:
        return None
    found = known.get(key_of(text))
    if found:
        return found
    parts = [part for part in _PARTS.split(unicodedata.normalize("NFKC", text)) if part]
    # The first part decides where others say something else: "P0 (High)" is P0. More of them are a sentence.
    if len(parts) > _MOST_PARTS:
        return None
    return next((known[key] for part in parts if (key := key_of(part)) in known), None)
