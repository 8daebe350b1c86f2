"""Plugin of the children that run tests against a copy of the package: where it came from, and how tests failed.

`pytest -p tests.mutants.child` writes JSON to the file that MUTANT_REPORT names.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPORT = "MUTANT_REPORT"
FOUND: dict[str, list[str]] = {"passed": []}
#: By test: the errors that ended it, from the one that was raised to the first one that caused it.
FAILED: dict[str, list[str]] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[None]:
    """Remember how a test ended."""
    report = yield
    if call.excinfo is not None:
        FAILED[item.nodeid] = list(_chain(call.excinfo.value))
    elif call.when == "call":
        FOUND["passed"].append(item.nodeid)
    return report


def _chain(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield f"{type(error).__module__}.{type(error).__qualname__}: {error}"
        error = error.__cause__ or error.__context__


def pytest_sessionfinish() -> None:
    """Write the report."""
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    used = sorted({str(file) for name, file in files.items() if file and name.partition(".")[0] == "headrace"})
    Path(os.environ[REPORT]).write_text(json.dumps({**FOUND, "failed": FAILED, "used": used}))
