"""Logging to standard error: lines for people, or JSON lines."""

from __future__ import annotations

import contextlib
import json
import logging
from datetime import UTC, datetime
from typing import Any, ClassVar

import click

from headrace.cli.plain import plain

LEVELS = ("debug", "info", "warning", "error")


#: What a record of a job carries (`engine.job_log`, `ctx.log`).
JOB_FACTS = ("task", "job_id", "attempt")
#: Libraries that tell of every request; heard with `--log-level debug` only.
TALKATIVE = ("asyncio", "httpx", "httpx2", "httpcore", "openai")


class _PlainFormatter(logging.Formatter):
    """Lets no message command the terminal: it may repeat what a handler or a server said."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        record = logging.makeLogRecord(record.__dict__ | {"msg": plain(record.getMessage()), "args": None})
        return super().format(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - named by logging
        """Return a trace as text."""
        return plain(super().formatException(ei))


class LineFormatter(_PlainFormatter):
    """`2026-01-31 12:00:00.123 INFO    headrace.worker  message`, with the job in brackets where there is one."""

    default_msec_format = "%s.%03d"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s  %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - named by logging
        """Return the line before any trace."""
        line = super().formatMessage(record)
        return f"{line} [{_job(record)}]" if hasattr(record, "job_id") else line


class DevFormatter(_PlainFormatter):
    """`12:00:00 summarise 0198… succeeded in 1.20 s`: what happens to each job, in colour on a terminal."""

    COLOURS: ClassVar = {"succeeded": "green", "failed": "red", "cancelled": "yellow", "started": "cyan"}

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(message)s", datefmt="%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - named by logging
        """Return the line before any trace."""
        time = click.style(record.asctime, dim=True)
        if hasattr(record, "job_id"):
            word = record.message.partition(" ")[0].strip(":,")
            return f"{time} {_job(record)} {click.style(record.message, fg=self.COLOURS.get(word))}"
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        return f"{time} {level}{record.message}"


class JsonFormatter(logging.Formatter):
    """One JSON document per record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        document = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        document |= {name: getattr(record, name) for name in JOB_FACTS if hasattr(record, name)}
        if record.exc_info:
            document["trace"] = self.formatException(record.exc_info)
        return json.dumps(document, default=str)


def _job(record: logging.LogRecord) -> str:
    facts = [str(getattr(record, name, "")) for name in JOB_FACTS]
    return f"{facts[0]} {facts[1]}" + (f" #{facts[2]}" if facts[2] not in ("", "1") else "")


def log_to_stderr(level: str, *, as_json: bool, formatter: logging.Formatter | None = None) -> None:
    """Send records of `level` and above to standard error, instead of where they went before."""
    handler = TerminalHandler()
    handler.setFormatter(JsonFormatter() if as_json else formatter or LineFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.NOTSET if level == "debug" else logging.WARNING)


class TerminalHandler(logging.Handler):
    """Writes to standard error as it is at the time, without colour where it is no terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; standard error that is gone is no reason to fail."""
        with contextlib.suppress(OSError, ValueError):
            click.echo(self.format(record), err=True)
