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
#: Signs that keep a word from being a pass, though no sign tells one word from another: "Pass?", "!OK", "1%", "-1".
_DOUBT = re.compile(r"[?¿%]|^[\s(\[]*(?:!|[-.]\d)")
#: Remarks that leave a pass what it is: how, when and in which round it was found. All others may take it back.
_HARMLESS = re.compile(
    r"(?:re-?(?:test|run|check|gression)(?:ed)?|round \d+|\d(?:st|nd|rd|th) (?:round|run)|manual(?:ly)?"
    r"|auto(?:mated|mation)?|复测|重测|回归|回归测试|第?[\d一二三四五]+[轮次]|手工|手动|自动|自动化|\d{4}[-/.]\d\d?[-/.]\d\d?)"
    r"(?:[ :,]*(?:pass(?:ed)?|ok|通过|合格))?",
    re.I,
)
#: A remark that leads elsewhere: "see attachment", "详见备注".
_ELSEWHERE = re.compile(r"(?:see|cf|ref|详见|参见|见) ?[\w\-#./]+(?: [\w\-#./]+){0,2}", re.I)
#: What must not stand there: the pass is in doubt then.
_AGAINST = re.compile(
    r"fail|ng\b|not|block|error|bug|defect|issue|except|partial|pending|tbd|waive|skip"
    r"|不|未|失败|阻|缺陷|异常|部分|问题|豁免|暂|待",
    re.I,
)
#: "P1 - High" and "High/P1": the parts are tried alone.
_MOST_PARTS = 3
_PARTS = re.compile(r"[\s\-_/:,;|()\[\]]+")


def status_of(cell: Cell, header: str) -> Status | None:
    """Return what a result means; None where no synonym explains it. Only a whole word counts.

    >>> status_of("不通过", ""), status_of("✔", ""), status_of("Y", "是否通过"), status_of("perhaps", "")
    (<Status.FAILED: 'failed'>, <Status.PASSED: 'passed'>, <Status.PASSED: 'passed'>, None)
    """
    found = _answer(cell) if key_of(header) in _ASKS else None
    if found is None and isinstance(cell, str):
        word = meanings("status").get(key_of(cell)) or _with_remark(cell)
        found = Status(word) if word else None
    if found is None:
        return _of_truth(cell)
    return None if found is Status.PASSED and _is_in_doubt(text_of(cell)) else found


def _answer(cell: Cell) -> Status | None:
    """Return what "yes" or "no" says below a header that asks."""
    key = key_of(text_of(cell))
    if key in keys("yes"):
        return Status.PASSED
    return Status.FAILED if key in keys("no") else None


def _is_in_doubt(text: str) -> bool:
    """Whether signs around a word speak against it. A share of all in brackets does not: "P (5/5)", "Pass (100%)"."""
    match = _REMARK.match(_plain(text))
    return bool(_DOUBT.search(match[1] if match and _is_whole(match[2]) else _plain(text)))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip()


def _of_truth(cell: Cell) -> Status | None:
    """Return the result of TRUE or FALSE; a number says nothing."""
    if isinstance(cell, bool):
        return Status.PASSED if cell else Status.FAILED
    return None


def _with_remark(text: str) -> str | None:
    match = None if len(text) > MAX_WORD else _REMARK.match(_plain(text))
    if match is None:
        return None
    found = meanings("status").get(key_of(match[1]))
    return None if found == "passed" and not _is_harmless(match[2].strip()) else found


def _is_harmless(remark: str) -> bool:
    """Whether a remark leaves a pass what it is.

    >>> _is_harmless("复测"), _is_harmless("see log 3"), _is_harmless("1/5 steps"), _is_harmless("waived")
    (True, True, False, False)
    """
    if _is_whole(remark) or _HARMLESS.fullmatch(remark) or meanings("status").get(key_of(remark)) == "passed":
        return True
    return bool(_ELSEWHERE.fullmatch(remark)) and not _AGAINST.search(remark)


def _is_whole(remark: str) -> bool:
    """Whether a remark says that all of something passed."""
    share = re.fullmatch(r"([1-9]\d*) ?/ ?(\d+)", remark.strip())
    return share[1] == share[2] if share else remark.strip() == "100%"


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
