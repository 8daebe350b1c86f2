"""Children that run tests on a store against a copy of the package, on the server of this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.backends import server, valkey
from tests.mutants.child import REPORT
from tests.mutants.mutated import Edit, mutated_package

CHECKOUT = Path(__file__).parents[2]
BACKENDS: dict[str, Any] = {"postgres": server, "redis": valkey}


@dataclass(frozen=True, slots=True)
class Child:
    """How the tests went in a child."""

    passed: list[str]
    #: By test: its error and what caused it.
    failed: dict[str, list[str]]
    output: str


def run_tests(folder: Path, edits: tuple[Edit, ...], tests: tuple[str, ...], *, store: str = "postgres") -> Child:
    """Run tests on a store against a copy of the package with `edits`, up to the first failure."""
    backend = BACKENDS[store]
    root, report = mutated_package(folder, edits), folder / "report.json"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "tests.mutants.child"]
    command += ["-p", "pytest_asyncio.plugin", "-p", "pytest_timeout", "-k", store, "-o", f"pythonpath={root} ."]
    own = {backend.LENT: str(backend.shared_server().root), REPORT: str(report), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {**os.environ, **own, "PYTHONPATH": str(root)}
    ended = subprocess.run(
        [*command, *tests], cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
    )
    assert report.exists(), ended.stdout + ended.stderr
    told = json.loads(report.read_text())
    assert told["used"], ended.stdout
    strays = [file for file in told["used"] if not file.startswith(f"{root}{os.sep}")]
    assert strays == [], "the child tested the package itself"
    return Child(told["passed"], told["failed"], ended.stdout)
