"""A seed is the whole story: it replays exactly, and its report is all one needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, NoReturn

import pytest

from headrace.stores.memory import endings
from headrace.testing.simulation import Run, run_seed
from headrace.testing.simulation import __main__ as simulation
from headrace.testing.simulation.__main__ import main
from headrace.testing.simulation.scenario import draw

HASHES = """
import hashlib, sys
from headrace.testing.simulation import run_seed
hashes = "".join(run_seed(seed, traced=True).trace_hash for seed in range(1, int(sys.argv[1]) + 1))
sys.stdout.write(hashlib.sha256(hashes.encode()).hexdigest())
"""


def test_a_seed_replays_exactly_in_another_process() -> None:
    """Every line of the traces of 30 seeds is the same whatever order a process gives to sets of texts."""

    def traced(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", HASHES, "30"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert traced("1") == traced("2")


def test_a_seed_replays_exactly_in_this_process() -> None:
    """What ran before leaves nothing behind that a later run could see."""
    first = run_seed(7, traced=True)
    run_seed(8)
    assert run_seed(7, traced=True).trace == first.trace


def test_seeds_differ() -> None:
    """Scenarios reach everything that can happen: weather, mishaps, work, both orders of callbacks."""
    scenarios = [draw(seed) for seed in range(1, 201)]
    assert {mishap.kind for scenario in scenarios for mishap in scenario.mishaps} == {"crash", "freeze", "cut", "stop"}
    assert len({errand.kind for scenario in scenarios for errand in scenario.errands}) == 10
    assert {scenario.fifo for scenario in scenarios} == {True, False}
    assert {len(scenario.places) for scenario in scenarios} == {1, 2, 3}
    assert {place.rate for scenario in scenarios for place in scenario.places} == {0.92, 1.0, 1.08}


def _without_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "owned_job", lambda state, job_id, attempt, session: state.running.get(job_id))


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return the first run that notices that the fence is gone."""
    _without_fence(monkeypatch)
    return next(run for run in map(run_seed, range(1, 200)) if not run.ok)


def test_a_report_says_how_to_see_it_again(broken: Run) -> None:
    """It names seed, step, invariant, the last lines, and the command, which finds the same breach."""
    report = broken.report(last=5)
    assert broken.violation is not None
    assert f"seed {broken.seed}, step {broken.steps}" in report
    assert broken.violation[0] == "a stale fence changes nothing"
    assert f"python -m headrace.testing.simulation --seed {broken.seed} --trace" in report
    assert "BREACH" in report
    assert run_seed(broken.seed).violation == broken.violation


def test_the_command_stops_at_a_breach(broken: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """It ends with 1 and reports the seed, as text and as JSON."""
    assert main(["--seeds", "3", "--first", str(broken.seed)]) == 1
    assert broken.report() in capsys.readouterr().out
    assert main(["--seeds", "3", "--first", str(broken.seed), "--json"]) == 1
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [failure["seed"] for failure in document["failures"]] == [broken.seed]


def test_the_command_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    """It ends with 0 where every invariant held, in two processes too, and counts what happened."""
    assert main(["--seeds", "4", "--jobs", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["ok"], document["seeds"], document["failures"]) == (True, 4, [])
    assert main(["--seed", "1", "--trace"]) == 0
    assert "the faults are over" in capsys.readouterr().out


MISTAKES = [
    ["--seeds", "0"],
    ["--seeds", "9" * 20],
    ["--jobs", "none"],
    ["--unknown"],
    ["--trace"],
    ["--seed", "1", "--seeds", "2"],
]


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_mistakes_end_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A mistake in the arguments names the option and ends with 2, as JSON too."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--json"])
    assert ended.value.code == 2
    assert arguments[0] in json.loads(capsys.readouterr().err)["error"]["message"]


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A long campaign is left with a word, not a traceback."""

    def interrupted(*_seeds: object, **_options: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(simulation, "run_seeds", interrupted)
    assert main(["--seeds", "5"]) == 130
    assert capsys.readouterr().err == "interrupted\n"
