"""Tasks that wait for events, in thousands of races: one winner, told to all, and nothing is parked for ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from headrace.testing.simulation import run_pauses, run_seeds
from headrace.testing.simulation.__main__ import main
from headrace.testing.simulation.pause_scenario import MANY, draw_pauses

#: Seeds of `make test`, and of the long tests.
FEW, ALL = 150, 2_000
BLOCK = 50

HASHES = """
import hashlib, sys
from headrace.testing.simulation import run_pauses
hashes = "".join(run_pauses(seed, traced=True).trace_hash for seed in range(1, 16))
sys.stdout.write(hashlib.sha256(hashes.encode()).hexdigest())
"""


def check_block(first: int) -> None:
    """Run a block of seeds; fail with the report of the first that breaks an invariant."""
    for run in run_seeds(range(first, first + BLOCK), world="pauses"):
        assert run.ok, run.report()


@pytest.mark.parametrize("first", range(1, FEW, BLOCK))
def test_one_winner_and_nothing_parked_for_ever(first: int) -> None:
    """Result, timeout, cancel and token race, before and after the wait begins, and whatever fails on the way."""
    check_block(first)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FEW + 1, ALL, BLOCK))
def test_one_winner_in_all_seeds(first: int) -> None:
    """The others of the 2,000."""
    check_block(first)


def test_seeds_reach_every_race() -> None:
    """Each way to end happens, early events and dead requests do, and so do 50 pauses, or 50 events, at once."""
    scenarios = [draw_pauses(seed) for seed in range(1, FEW + 1)]
    assert {deed.kind for one in scenarios for deed in one.deeds} == {"start", "cancel", "stop", "token"}
    mishaps = [mishap for one in scenarios for mishap in (*one.mishaps, *one.workers.mishaps)]
    assert {mishap.kind for mishap in mishaps} == {"crash", "freeze", "cut"}
    assert MANY in {len(one.pauses) for one in scenarios}
    assert MANY in {pause.expect_count for one in scenarios for pause in one.pauses}
    happened: Counter[str] = Counter()
    for run in run_seeds(range(1, BLOCK + 1), world="pauses"):
        happened.update(run.counts)
    wanted = ("handles: resolved", "handles: expired", "handles: cancelled", "by token", "early", "dead", "woken",
              "crashed attempts", "jobs: cancelled")  # fmt: skip
    assert [name for name in wanted if not happened[name]] == []


def test_a_seed_replays_exactly_in_another_process() -> None:
    """Every line of the traces is the same whatever order a process gives to sets of texts."""

    def traced(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(
            [sys.executable, "-c", HASHES], env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert traced("1") == traced("2")


def test_the_command_runs_this_world(capsys: pytest.CaptureFixture[str]) -> None:
    """By `--world pauses`, many seeds or one; a report says how to see it again."""
    assert main(["--world", "pauses", "--seeds", "4", "--jobs", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["handles: resolved"] > 0
    assert main(["--world", "pauses", "--seed", "3", "--trace"]) == 0
    assert "register_handle" in capsys.readouterr().out
    assert run_pauses(3).replay == "python -m headrace.testing.simulation --seed 3 --trace --world pauses"
