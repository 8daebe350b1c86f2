"""The README's examples are the programs they claim to be."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.testing.provider import ProviderProcess
from tests.waiting import wait_until_sync

README = Path(__file__).resolve().parent.parent.parent / "README.md"
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODELS = re.compile(r"^```python rivers.py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WORKFLOW = re.compile(r"^```python sizes.py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MAX_LINES = 15

pytestmark = pytest.mark.acceptance


def example() -> str:
    """Return the first Python block of the README."""
    match = PROGRAM.search(README.read_text(encoding="utf-8"))
    assert match is not None
    return match.group(1)


def models_example() -> str:
    """Return the program that asks a model."""
    match = MODELS.search(README.read_text(encoding="utf-8"))
    assert match is not None
    return match.group(1)


def workflow_example() -> str:
    """Return the program that runs a workflow."""
    match = WORKFLOW.search(README.read_text(encoding="utf-8"))
    assert match is not None
    return match.group(1)


def run_example(directory: Path) -> list[str]:
    """Run the example as a reader would, and return its lines in the order of the items."""
    (directory / "example.py").write_text(example(), encoding="utf-8")
    command = [sys.executable, "-W", "error::ResourceWarning", "example.py"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return sorted(done.stdout.splitlines())


def test_the_example_runs_on_the_default_store(workplace: Path) -> None:
    """Copied into an empty directory it runs on an embedded PostgreSQL, and a second run finds the same batch."""
    expected = ["0 succeeded 6", "1 succeeded 4"]
    assert run_example(workplace) == expected
    assert (workplace / ".headrace").is_dir()
    assert run_example(workplace) == expected


def test_the_example_is_short() -> None:
    """Fifteen lines of code are enough for a first durable batch, and for calls of models."""
    for program in (example(), models_example()):
        assert len([line for line in program.splitlines() if line.strip()]) <= MAX_LINES


def test_the_models_example_killed_and_run_again_costs_nothing(workplace: Path) -> None:
    """Killed while its calls are in flight, it pays at most for those again; a further run makes no call."""
    (workplace / "rivers.py").write_text(models_example(), encoding="utf-8")
    with ProviderProcess("--latency", "0.3") as provider:
        command, environment = [sys.executable, "rivers.py"], {**os.environ, **provider.environment}
        killed = subprocess.Popen(command, cwd=workplace, env=environment, stdout=subprocess.DEVNULL)
        wait_until_sync(lambda: provider.stats().calls > 0, timedelta(seconds=60))
        killed.kill()
        killed.wait()
        printed, calls = [], []
        for _ in range(2):
            printed.append(subprocess.check_output(command, cwd=workplace, env=environment, text=True, timeout=60))
            calls.append(provider.stats().calls)
    assert calls[0] == calls[1] <= 4
    assert printed[0] == printed[1]
    assert "tokens were paid today" in printed[0]


def test_the_workflow_example_measures_each_page_once(workplace: Path) -> None:
    """Run again it finds its run by the key: the same output, and no node runs."""
    (workplace / "sizes.py").write_text(workflow_example(), encoding="utf-8")
    printed = [
        subprocess.check_output([sys.executable, "sizes.py"], cwd=workplace, text=True, timeout=60).splitlines()
        for _ in range(2)
    ]
    pages = [f"measures Hamlet, page {number}" for number in (1, 2, 3)]
    assert [sorted(lines) for lines in printed] == [["[14, 14, 14]", *pages], ["[14, 14, 14]"]]
