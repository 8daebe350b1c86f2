"""What Ray says in the process of a worker becomes records of logging, as all else that is said there.

By itself Ray prints some of it to standard output, and logs the rest past the logging of the program. What its core
says, which is not Python, goes to standard error as plain lines: it says little there, of errors alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ray._private import worker

LOG = logging.getLogger("ray")


def log_as_others_do() -> None:
    """Let Ray log by way of the program's logging, from warnings on, and print nothing."""
    LOG.propagate = True
    LOG.setLevel(logging.WARNING)
    told = logging.getLogger(worker.__name__)
    if _is_news not in told.filters:
        told.addFilter(_is_news)
    # Called by its name, with what nodes have to say to a driver.
    worker.print_worker_logs = _log_lines


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record is worth its line: a worker connects in a thread, and has seen to its signals itself."""
    return "SIGTERM handler is not set" not in record.getMessage()


def _log_lines(data: Mapping[str, Any], *_where: Any, **_how: Any) -> None:
    if text := "\n".join(data["lines"]).strip():
        LOG.warning("%s: %s", data.get("pid", "ray"), text)
