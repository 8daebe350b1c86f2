"""The simulation finds each guard that is taken away, and says the right thing of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.children import params
from tests.mutants.mutated import import_path, mutated_package
from tests.mutants.pause_mutants import PAUSE_MUTANTS
from tests.mutants.simulation_mutants import MOST_SEEDS, MUTANTS, Mutant

ALL = (*MUTANTS, *PAUSE_MUTANTS)
#: Mutants for every run, a few that are found soon; all others run with the long tests.
EVERY_RUN = {
    "fence: the attempt does not count",
    "seal: an open batch is closed",
    "unique key: what is stored is not looked at",
    "term: a leader that was replaced goes on",
    "caps: a lowered one does not hold",
    "gated queues: plain jobs are claimed past the gate",
    "handles: a second one takes the place of the first",
    "wakes: an end sends no signal",
}


def simulate(root: Path, *, first: int, world: str) -> dict[str, Any]:
    """Run the simulation from the copy at `root` until it finds something; return its document."""
    command = [sys.executable, "-m", "headrace.testing.simulation", "--json", "--world", world]
    command += ["--seeds", str(MOST_SEEDS), "--first", str(first)]
    environment = {**os.environ, "PYTHONPATH": import_path(root)}
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def check_found(mutant: Mutant, folder: Path, first: int) -> int:
    """Require that the mutant is found by an invariant that is about it; return after how many seeds."""
    document = simulate(mutated_package(folder, mutant.edits), first=first, world=mutant.world)
    assert document["failures"], f"{mutant.name}: not found in {MOST_SEEDS} seeds from {first} on"
    failure = document["failures"][0]
    assert failure["invariant"] in mutant.found_by, failure
    return int(failure["seed"]) - first + 1


@pytest.mark.parametrize("mutant", params(ALL, EVERY_RUN))
def test_a_missing_guard_is_found(mutant: Mutant, tmp_path: Path) -> None:
    """Without the guard an invariant breaks within 500 seeds; `-rP` shows in which."""
    print(f"seed {check_found(mutant, tmp_path, first=1)} finds {mutant.name}")


@pytest.mark.slow
@pytest.mark.parametrize("first", [10_001, 20_001, 30_001])
@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_finding_it_is_no_luck(mutant: Mutant, tmp_path: Path, first: int) -> None:
    """Other seeds find it as well."""
    check_found(mutant, tmp_path, first)
