"""A project that `headrace init` writes: its README, followed step by step in an empty directory."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from time import monotonic

import pytest

from headrace.testing.provider import ProviderProcess
from tests.waiting import wait_until_sync

BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: What a test cannot do: install from an index.
INSTALLS = {"python -m pip install pytest"}
DEV = "headrace dev jobs:app"
#: The first result is promised in two minutes: no command may take longer.
PROMISED_SECONDS = 120
PATIENCE = timedelta(seconds=60)

pytestmark = pytest.mark.acceptance


@dataclass
class Newcomer:
    """Somebody in the project's directory, who types what its README says."""

    folder: Path
    environment: dict[str, str]
    typed: set[str] = field(default_factory=set)

    def run(self, command: str, *, told: bool = True) -> str:
        """Run a command to its end, which must be a good one, and return what it says; `told`: by the README."""
        done = subprocess.run(
            self.words(command, told=told), cwd=self.folder, env=self.environment, capture_output=True, text=True,
            timeout=PROMISED_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def words(self, command: str, *, told: bool = True) -> list[str]:
        """Return a command as this machine has it."""
        assert not told or command in commands(self.readme), f"the README does not say {command}"
        self.typed.add(command)
        first, *others = shlex.split(command)
        return [sys.executable, *(["-m", "headrace"] if first == "headrace" else []), *others]

    @contextmanager
    def terminal(self, command: str) -> Iterator[Path]:
        """Run a command in a terminal of its own until Ctrl-C; what it says is in the file."""
        log = self.folder.parent / "terminal"
        with log.open("w") as stream:
            process = subprocess.Popen(
                self.words(command), cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=stream,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        try:
            yield log
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE.total_seconds()) == 130, log.read_text()
        finally:
            process.kill()
            process.wait()

    @property
    def readme(self) -> str:
        """What the project says of itself."""
        return (self.folder / "README.md").read_text(encoding="utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        """Change a file of the project."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")


def commands(readme: str) -> set[str]:
    """Return every command of a README."""
    return {line for kind, block in BLOCK.findall(readme) for line in block.splitlines() if kind == "sh"}


def test_a_newcomer_follows_the_five_steps(workplace: Path) -> None:
    """The first result is there in time, and a task of one's own works with what the README says, word by word."""
    began = monotonic()
    newcomer = Newcomer(workplace / "shop", {**os.environ})
    printed = Newcomer(workplace, newcomer.environment).run("headrace init shop", told=False)
    first = newcomer.run("python jobs.py")
    print(f"first result {monotonic() - began:.1f} s after `headrace init` was typed")
    assert "It came late and the lid is broken. -> bad" in first
    assert "together: {'good': 1, 'bad': 1, 'mixed': 1, 'neutral': 1}" in first
    assert len(re.findall(r"^## \d\. ", newcomer.readme, re.MULTILINE)) == 5
    assert newcomer.run("headrace batch list").count("succeeded") == 1
    write_a_task(newcomer)
    work_it(newcomer)
    ask_a_model(newcomer)
    assert commands(newcomer.readme) - newcomer.typed == INSTALLS
    shown = {line.strip() for line in printed.partition("Now:\n")[2].splitlines()}
    assert shown - newcomer.typed == {"cd shop"}


def write_a_task(newcomer: Newcomer) -> None:
    """Copy the task of the README to where it says."""
    [task] = [block for kind, block in BLOCK.findall(newcomer.readme) if kind == "python"]
    assert "above `main`" in newcomer.readme
    newcomer.edit("jobs.py", "async def main()", f"{task}\n\nasync def main()")


def work_it(newcomer: Newcomer) -> None:
    """Let a second terminal work, and enqueue from the first."""
    with newcomer.terminal(DEV) as log:
        results = [newcomer.run(one) for one in sorted(commands(newcomer.readme)) if one.startswith("headrace enqueue")]
        assert results == ['"good"\n', '"to be"\n']
        assert "reviews" in newcomer.run("headrace queue stats")
        wait_until_sync(lambda: "shorten" in log.read_text(), PATIENCE)


def ask_a_model(newcomer: Newcomer) -> None:
    """Name a model in headrace.toml: the same program asks it, once for each review, and its tests do not."""
    with ProviderProcess() as model:
        newcomer.environment["OPENAI_API_KEY"] = "scripted-key"
        newcomer.edit("headrace.toml", '# model = "gpt-4o-mini"', 'model = "gpt-4o-mini"')
        newcomer.edit("headrace.toml", '# base_url = "http://127.0.0.1:8000/v1"', f'base_url = "{model.base_url}"')
        assert "together: {'scripted answer " in newcomer.run("python jobs.py")
        assert model.stats().calls == 4
        assert newcomer.run("headrace doctor")
        assert "4" in newcomer.run("headrace llm spend").split()
        assert "2 passed" in newcomer.run("python -m pytest")
        assert model.stats().calls == 4
