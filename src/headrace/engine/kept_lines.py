"""Lines that a handler writes with the logger of its context, kept for the end of its attempt.

An attempt whose handler writes none pays one look. Handlers may write from threads, also after their attempt ended.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from headrace.model.attempt_log import MAX_BYTES, MAX_LINE, LogLine, decode_log, encode_line, encode_log
from headrace.model.payload import storable
from headrace.model.redaction import Redaction

#: What is looked at of a message: secrets are taken out before it is cut, and a long one must not cost much.
_LOOKED_AT = 8 * MAX_LINE

Logger = logging.LoggerAdapter[logging.Logger]


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class LineKeeping:
    """How lines are kept: how many of an attempt (0: none), by which clock, and without which secrets."""

    most: int = 0
    now: Callable[[], datetime] = _utc_now
    redaction: Redaction = field(default_factory=Redaction)

    def line(self, level: int, message: object, args: tuple[Any, ...]) -> str:
        """Return a line as it is kept."""
        text = self.redaction.clean(storable(_text(message, args)[:_LOOKED_AT]))
        return encode_line(LogLine(self.now(), logging.getLevelName(level).lower(), text))


NOTHING_KEPT = LineKeeping()


class KeptLines:
    """The last lines of one attempt: at most `most`, and `MAX_BYTES` together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._lines: deque[tuple[str, int]] = deque()
        self._bytes = 0
        self._dropped = 0

    def add(self, line: str) -> None:
        """Keep a line of `LineKeeping.line`, and drop the oldest ones that have no more room."""
        size = len(line.encode())
        with self._lock:
            self._lines.append((line, size))
            self._bytes += size
            while len(self._lines) > self._most or self._bytes > MAX_BYTES:
                self._bytes -= self._lines.popleft()[1]
                self._dropped += 1

    def add_log(self, text: str, of: str) -> None:
        """Keep what was kept of a node in the log of its run, each line with the node's path before it."""
        log = decode_log(0, text)
        with self._lock:
            self._dropped += log.dropped
        for line in log.lines:
            self.add(encode_line(replace(line, message=f"{of}: {line.message}")))

    @property
    def text(self) -> str:
        """What is stored of them."""
        with self._lock:
            return encode_log((line for line, _ in self._lines), self._dropped)


class KeepingLogger(Logger):
    """A logger that gives its lines to `keep` as well: those from `info` on, and others that are logged here."""

    def __init__(self, logger: logging.Logger, facts: Mapping[str, object], keeping: LineKeeping,
                 keep: Callable[[str], None]) -> None:  # fmt: skip
        super().__init__(logger, facts)
        self._keeping, self._keep = keeping, keep

    def log(self, level: int, msg: object, *args: Any, **kwargs: Any) -> None:
        """Log a message and keep its line."""
        if self._keeping.most and (level >= logging.INFO or self.isEnabledFor(level)):
            self._keep(self._keeping.line(level, msg, args))
        # Said of the caller, not of this line.
        super().log(level, msg, *args, **{**kwargs, "stacklevel": kwargs.get("stacklevel", 1) + 1})


def _text(message: object, args: tuple[Any, ...]) -> str:
    """Return a message with its arguments; one that does not fit them is kept without."""
    try:
        return logging.LogRecord("", logging.INFO, "", 0, message, args, None).getMessage()
    except Exception:
        return message if isinstance(message, str) else "a message that cannot be written"
