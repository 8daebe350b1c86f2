"""The example of model calls as its page tells it: streamed, within a budget, killed, and paid once."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.llm.dedupe import normalise
from headrace.testing.provider import ProviderProcess
from tests.acceptance.command_runs import Place, place
from tests.waiting import wait_until_sync

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "02_models"
REGION = re.compile(r"^(\w+): (.*\))$", re.MULTILINE)
TOWN = re.compile(r"([\w ]+) \((\w+)\)")
REGIONS, TOWNS = 6, 5
PATIENCE = timedelta(seconds=60)

pytestmark = pytest.mark.acceptance


@pytest.fixture
def provider() -> Iterator[ProviderProcess]:
    """The provider as the page starts it, on a free port."""
    command = re.search(r"^python -m headrace.testing.provider .*$", (EXAMPLE / "README.md").read_text(), re.MULTILINE)
    assert command is not None
    options = shlex.split(command.group().replace("answers.json", str(EXAMPLE / "answers.json")))[3:]
    options[options.index("--port") + 1] = "0"
    with ProviderProcess(*options) as process:
        yield process


@pytest.fixture
def example(tmp_path: Path, provider: ProviderProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A place with the example, its model elsewhere than its file says."""
    for name in ("towns.py", "headrace.toml"):
        shutil.copy(EXAMPLE / name, tmp_path)
    monkeypatch.setenv("HEADRACE_LLM_BASE_URL", provider.base_url)
    with place(tmp_path) as made:
        yield made


def start(example: Place, output: Path) -> subprocess.Popen[str]:
    """Start the program."""
    with output.open("w") as stream:
        return subprocess.Popen(
            [sys.executable, "towns.py"], cwd=example.folder, env={**os.environ, **example.environment},
            stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip


def test_the_example_does_what_its_page_says(example: Place, provider: ProviderProcess, tmp_path: Path) -> None:
    """It pauses at its budget, survives kill -9, goes on when the budget is raised, and costs nothing again."""
    outputs = [tmp_path / f"{number}.txt" for number in range(3)]
    first = start(example, outputs[0])
    try:
        wait_until_sync(lambda: is_paused(example), PATIENCE, message="the budget to be used up")
    finally:
        first.kill()
        first.wait()
    [budget] = example.json("llm", "budget", "list")
    assert 0 < len(REGION.findall(outputs[0].read_text())) < REGIONS
    assert 0 < budget["cost_nano"] <= budget["budget"]["cost_nano"]

    assert example.run("llm", "budget", "set", "tenant:atlas", "--dollars", "1")[0] == 0
    for output in outputs[1:]:
        assert start(example, output).wait(PATIENCE.total_seconds()) == 0, output.read_text()
    printed = outputs[1].read_text()
    assert sorted(outputs[2].read_text().splitlines()) == sorted(printed.splitlines())

    regions = {name: TOWN.findall(towns) for name, towns in REGION.findall(printed)}
    names = [normalise(name) for towns in regions.values() for name, _ in towns]
    assert {len(towns) for towns in regions.values()} == {TOWNS} and len(regions) == REGIONS
    assert len(set(names)) == REGIONS * TOWNS
    assert "not given twice" in printed
    assert [how for _, how in regions["hills"]].count("escalated") == 1
    stats = provider.stats()
    assert (stats.paid_again, stats.rate_limited) == (0, 0)
    # A call that the kill cut off comes on record once its process is known to be dead.
    answered = stats.calls - stats.outcomes.get("aborted", 0)
    assert (
        answered <= sum(row["usage"]["calls"] for row in example.json("llm", "spend", "--by", "purpose")) <= stats.calls
    )


def is_paused(example: Place) -> bool:
    """Whether jobs are left, and all of them wait without a slot."""
    queues = example.json("queue", "stats")
    return bool(queues) and queues[0]["scheduled"] > 0 and queues[0]["ready"] == queues[0]["running"] == 0
