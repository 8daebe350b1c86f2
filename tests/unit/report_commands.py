"""`headrace report` in this process, on a memory store, for what ends before a child process would be needed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headrace.apps.report.opening import app
from tests.unit.cli_runner import CommandLine, command_line
from tests.unit.engine_app import QUICK


@contextmanager
def reports_on_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """Run commands of reports on stores of their own; the app of reports has its own settings again afterwards."""
    jobs = logging.getLogger("headrace.jobs")
    level = jobs.level
    with command_line(monkeypatch) as line:
        monkeypatch.setitem(app.__dict__, "settings", QUICK)
        try:
            yield line
        finally:
            jobs.setLevel(level)
