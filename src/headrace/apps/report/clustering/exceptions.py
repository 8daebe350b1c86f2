"""What a text of an error says: the type of the exception, its message, and the part of the text about its cause."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.apps.report.clustering.frames import is_frame

MOST_LINES = 400
#: A cell may hold anything: no longer line is looked at, so that no pattern is slow on it.
MOST_IN_LINE = 1_000
#: So many lines of a message count: the rest of it is a dump.
MESSAGE_LINES = 8

#: The message of these says how a program broke, not why: only the very same frame makes two of them one.
CRASHES = frozenset(
    {
        "ArgumentException",
        "ArgumentNullException",
        "ArrayIndexOutOfBoundsException",
        "AttributeError",
        "ClassCastException",
        "IllegalArgumentException",
        "IllegalStateException",
        "IndexError",
        "IndexOutOfBoundsException",
        "InvalidOperationException",
        "KeyError",
        "KeyNotFoundException",
        "NoSuchElementException",
        "NullPointerException",
        "NullReferenceException",
        "RangeError",
        "RecursionError",
        "ReferenceError",
        "StackOverflowError",
        "StringIndexOutOfBoundsException",
        "TypeError",
        "ValueError",
        "panic",
    }
)

_NAMED = r"(?:[A-Za-z_$][\w$]*\.)*[\w$]*(?:Exception|Error|Failure|Fault|Timeout|Interrupt|Violation|Warning|Exit)"
#: Packages before a name of any kind: psycopg2.errors.UniqueViolation, smtplib.SMTPSenderRefused.
_DOTTED = r"(?:[a-z_]\w*\.)+[A-Z]\w+"
_PREFIX = (
    r"(?:E {2,}|Uncaught (?:\(in promise\) )?|Unhandled exception[.:]\s*|\[?ERROR\]?:?\s+|FAILED\s+\S+ - "
    r"|Exception in thread \"[^\"]*\" )*"
)
_LINE = re.compile(
    rf"\s*{_PREFIX}(?P<type>{_NAMED}|{_DOTTED}|panic|fatal error|Error)\s*(?:\([^)]*\))?(?::\s*(?P<message>.*)|$)"
)
_INLINE = re.compile(r"(?<![\w.])(?P<type>(?:\w+\.)*[A-Z]\w*[a-z](?:Exception|Error))(?!\w)\s*:?\s*(?P<message>.*)")
_CAUSE = re.compile(r"(?:Caused by:|--->|nested exception is)\s*(?=(?:[\w$]+\.)*[A-Z][\w$]*\s*:|(?:[\w$]+\.)+[A-Z])")
_PYTHON_CAUSE = "The above exception was the direct cause of the following exception"
_TRACEBACK = "Traceback (most recent call last)"
#: Lines beside a message that say how it was run, or repeat the row it was run with.
_NOISE = re.compile(
    r"\s*(?:\(Session info|Session info|Build info|System info|Driver info|Capabilities|DETAIL:|LINE \d|Stacktrace:"
    r"|For documentation|goroutine \d|\[signal |HINT:|CONTEXT:|\+\s+where|\^+\s*$|[-=_~*]{3,}|@@|Message:\s*$|#\d+ 0x"
    r"|\.\.\. \d+ more|Traceback|Screenshot|--- End)"
)
_WORDS_BEFORE = re.compile(r"^(?:Message:|error:|java\.lang\.\w+:)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Said:
    """Exception type without its packages, message, and the text in which its frames stand; any may be empty."""

    exception: str
    message: str
    trace: str


def trimmed(text: str) -> str:
    """The text without what is too long to look at: the middle of many lines, and the ends of long ones.

    >>> len(trimmed("x" * 5_000)), len(trimmed("x\\n" * 5_000).splitlines())
    (1000, 400)
    """
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        lines = lines[: MOST_LINES // 2] + lines[-MOST_LINES // 2 :]
    return "\n".join(line[:MOST_IN_LINE] for line in lines)


def read(text: str) -> Said:
    """Read a trimmed text of an error. Of exceptions with causes the innermost cause counts.

    >>> said = read("a.OrderFailed: no\\nCaused by: java.sql.SQLException: gone\\n  at a.Dao.get(Dao.java:7)")
    >>> said.exception, said.message
    ('SQLException', 'gone')
    """
    lines = _innermost(text).splitlines()
    if (place := _place_of_type(lines)) is None:
        return _inline(lines)
    found = _LINE.match(lines[place])
    assert found is not None
    message = [found["message"] or "", *_message_lines(lines[place + 1 :])]
    return Said(_short(found["type"]), _joined(message), "\n".join(lines))


def _innermost(text: str) -> str:
    text = text.split(_PYTHON_CAUSE)[0]
    causes = list(_CAUSE.finditer(text))
    return text[causes[-1].end() :] if causes else text


def _place_of_type(lines: list[str]) -> int | None:
    """The line that names the exception: the first, but behind the frames where Python wrote the text."""
    places = [at for at, line in enumerate(lines) if not is_frame(line) and _LINE.match(line)]
    if not places:
        return None
    frames = [at for at, line in enumerate(lines) if line.lstrip().startswith('File "')]
    if any(_TRACEBACK in line for line in lines) and frames:
        return next((at for at in places if at > frames[-1]), places[-1])
    return places[0]


def _message_lines(lines: list[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        if is_frame(line) or _CAUSE.search(line):
            break
        if line.strip() and not _NOISE.match(line):
            kept.append(re.sub(r"^E {2,}", "", line))
    return kept[: MESSAGE_LINES - 1]


def _inline(lines: list[str]) -> Said:
    """A text that names its exception in a sentence, or not at all."""
    text = _joined(_message_lines(lines[:1]) + _message_lines(lines[1:]))
    found = _INLINE.search(text)
    exception = _short(found["type"]) if found else ""
    return Said(exception, (found["message"] if found else "") or text, "\n".join(lines))


def _joined(lines: list[str]) -> str:
    return _WORDS_BEFORE.sub("", "\n".join(line.strip() for line in lines if line.strip()))


def _short(name: str) -> str:
    return re.split(r"[.$]", name)[-1] or name
