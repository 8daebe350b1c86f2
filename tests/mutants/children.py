"""Children that run tests on a store against a copy of the package, on the server of this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.backends import server, valkey
from tests.mutants.child import REPORT
from tests.mutants.mutated import Edit, mutated_package
from tests.mutants.simulation_mutants import Mutant as SimulationMutant
from tests.mutants.sql_mutants import Mutant

CHECKOUT = Path(__file__).parents[2]
BACKENDS: dict[str, Any] = {"postgres": server, "redis": valkey}


@dataclass(frozen=True, slots=True)
class Child:
    """How the tests went in a child."""

    passed: list[str]
    #: By test: its error and what caused it.
    failed: dict[str, list[str]]
    output: str


def run_tests(
    folder: Path, edits: tuple[Edit, ...], tests: tuple[str, ...], *, store: str | None = "postgres"
) -> Child:
    """Run tests, on a store if one is named, against a copy of the package with `edits`, up to the first failure."""
    root, report = mutated_package(folder, edits), folder / "report.json"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "tests.mutants.child"]
    command += ["-p", "pytest_asyncio.plugin", "-p", "pytest_timeout", "-o", f"pythonpath={root} ."]
    own = {REPORT: str(report), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    if store is not None:
        command += ["-k", store]
        own[BACKENDS[store].LENT] = str(BACKENDS[store].shared_server().root)
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


def params(mutants: Sequence[Mutant | SimulationMutant], every_run: Collection[str]) -> list[object]:
    """Return mutants as parameters of a test; those that are not for every run are slow.

    Raises AssertionError where two share a name, or a name of the choice is nobody's.
    """
    names = {mutant.name for mutant in mutants}
    assert len(names) == len(mutants)
    assert names.issuperset(every_run), f"there are no such mutants: {set(every_run) - names}"
    marks = {mutant.name: () if mutant.name in every_run else pytest.mark.slow for mutant in mutants}
    return [pytest.param(mutant, id=str(mutant), marks=marks[mutant.name]) for mutant in mutants]


def choices(mutants: Sequence[Mutant], every_run: Collection[str]) -> list[object]:
    """Return those of every run, and, slow, all of them, as parameters of a test."""
    quick = [mutant for mutant in mutants if mutant.name in every_run]
    return [pytest.param(quick, id="every-run"), pytest.param(mutants, id="all", marks=pytest.mark.slow)]


def expect_noticed(mutant: Mutant, folder: Path, *, broken: tuple[str, ...], store: str | None = "postgres") -> None:
    """Fail unless a test misses the guard, and by none of the errors that say that the edit broke the statement."""
    child = run_tests(folder, mutant.edits, mutant.tests, store=store)
    assert child.failed, f"no test misses the guard:\n{child.output}"
    for errors in child.failed.values():
        assert not any(error.startswith(broken) for error in errors), "\n".join(errors)


def expect_whole(mutants: Sequence[Mutant], folder: Path, *, store: str | None = "postgres") -> None:
    """Fail unless all tests of the mutants run and pass against a copy with every guard in place."""
    tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    child = run_tests(folder, (), tests, store=store)
    assert child.failed == {}, child.output
    for test in tests:
        assert any(passed.startswith(test) for passed in child.passed), f"{test} did not run"
