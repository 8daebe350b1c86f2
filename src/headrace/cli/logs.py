"""Logging to standard error: lines for people, or JSON lines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

LEVELS = ("debug", "info", "warning", "error")


class LineFormatter(logging.Formatter):
    """`2026-01-31 12:00:00.123 INFO    headrace.worker  message`."""

    default_msec_format = "%s.%03d"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s  %(message)s")


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
        if record.exc_info:
            document["trace"] = self.formatException(record.exc_info)
        return json.dumps(document)


def log_to_stderr(level: str, *, as_json: bool, formatter: logging.Formatter | None = None) -> None:
    """Send records of `level` and above to standard error, instead of where they went before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter or (JsonFormatter() if as_json else LineFormatter()))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
