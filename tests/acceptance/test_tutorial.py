"""The tutorial, step by step: what its page says is what happens."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

from headrace.cli.root import cli
from headrace.testing.provider import ProviderProcess
from tests.waiting import wait_until_sync

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "tutorial" / "first-batch.md").read_text("utf-8")
FILE = re.compile(r"^```\w+ (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"^```output\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MEND = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: What a test cannot do: install from an index, and begin with an environment of its own.
INSTALLS = {"python -m venv .venv", ". .venv/bin/activate", "pip install 'headrace[service,testing]'"}
#: Done by the test itself, with the process id that the page has a reader look up.
KILL = "kill -9 PID"
PATIENCE = timedelta(seconds=60)

pytestmark = pytest.mark.acceptance


@dataclass
class Reader:
    """Somebody who follows the page in an empty directory."""

    folder: Path
    environment: dict[str, str]
    #: What stands for the words in capitals.
    known: dict[str, str] = field(default_factory=dict)
    typed: set[str] = field(default_factory=set)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def words(self, command: str) -> list[str]:
        """Return what a command of the page comes to."""
        assert command in commands(), f"the page does not say {command}"
        self.typed.add(command)
        words = [self.known.get(word, word) for word in shlex.split(command)]
        return [sys.executable, *(["-m", "headrace"] if words[0] == "headrace" else []), *words[1:]]

    def run(self, command: str) -> str:
        """Run a command to its end, which must be a good one, and return what it says.

        Those that only look run in this process: to start one takes longer than to look.
        """
        words = self.words(command)
        if words[1] == "-m":
            shown = CliRunner().invoke(cli, words[3:])
            assert shown.exit_code == 0, shown.output
            return shown.stdout
        return subprocess.check_output(
            words, cwd=self.folder, env=self.environment, text=True, timeout=PATIENCE.total_seconds()
        )

    def start(self, command: str, log: str) -> subprocess.Popen[str]:
        """Start what runs in a terminal of its own, whose text is that of a file."""
        with (self.folder / log).open("w") as stream:
            process = subprocess.Popen(
                self.words(command), cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=stream,
                stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def sees(self, log: str) -> str:
        """Return what stands in a terminal."""
        return (self.folder / log).read_text(encoding="utf-8")

    def edit(self, old: str, new: str) -> None:
        """Change the program."""
        text = self.sees("slogans.py")
        assert old in text
        (self.folder / "slogans.py").write_text(text.replace(old, new), encoding="utf-8")


def commands() -> set[str]:
    """Return every command of the page."""
    return {line for block in COMMANDS.findall(PAGE) for line in block.splitlines()}


@pytest.fixture
def provider() -> Iterator[ProviderProcess]:
    """The model, as the page starts it, on a free port."""
    [command] = [one for one in commands() if "headrace.testing.provider" in one]
    options = shlex.split(command)[3:]
    options[options.index("--port") + 1] = "0"
    with ProviderProcess(*options) as process:
        yield process


@pytest.fixture
def reader(workplace: Path, provider: ProviderProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """A reader who has written the files of the page."""
    monkeypatch.chdir(workplace)
    monkeypatch.setenv("HEADRACE_LLM_BASE_URL", provider.base_url)
    for name, text in FILE.findall(PAGE):
        (workplace / name).write_text(text, encoding="utf-8")
    made = Reader(workplace, {**os.environ})
    yield made
    for process in made.processes:
        process.kill()
        process.wait()


WORKER = "headrace worker slogans:app --concurrency 2"


def test_the_tutorial_does_what_its_page_says(reader: Reader, provider: ProviderProcess) -> None:
    """Submitted, watched, killed, rescued, paid once, mended, run again, and run once more for nothing."""
    client = reader.start("python slogans.py", "client")
    reader.known["ID"] = wait_until_sync(lambda: re.findall(r"^batch (\S+)$", reader.sees("client"), re.M), PATIENCE)[0]
    wait_until_sync(lambda: "no live worker serves queue 'slogans'" in reader.sees("client"), PATIENCE)
    kill_in_the_middle(reader)
    # What is left need not take its time.
    reader.edit("asyncio.sleep(2)", "asyncio.sleep(0.1)")
    worker = reader.start(WORKER, "second")
    watching = reader.start("headrace batch watch ID", "watching")
    assert client.wait(PATIENCE.total_seconds()) == 0
    assert watching.wait(PATIENCE.total_seconds()) == 0
    assert "succeeded=11, failed=1" in reader.sees("client")
    see_who_ran_twice(reader)
    assert paid(reader) == as_told(OUTPUT.findall(PAGE)[1])
    look_at_the_failure(reader)
    reader.edit(re.search(r"^ON_THE_MAP = .*\n", PAGE, re.M)[0], MEND.findall(PAGE)[0])  # type: ignore[index]
    worker.send_signal(signal.SIGINT)
    assert worker.wait(PATIENCE.total_seconds()) == 130  # as any process that Ctrl-C ends
    reader.start(WORKER, "third")
    assert "1 failed items run again" in reader.run("headrace batch retry ID")
    assert "12 succeeded" in reader.run("headrace batch watch ID")
    again = reader.run("python slogans.py")
    assert again.count(" succeeded ") == 12
    assert "Atlantis failed Atlantis is not on the map" in again
    assert reader.sees("third").count(": paid") == 1
    assert paid(reader)[1][1] == "12"
    assert provider.stats().calls == 12
    look_around(reader)
    assert commands() - reader.typed - INSTALLS - {KILL} == {
        one for one in commands() if "headrace.testing.provider" in one
    }


def kill_in_the_middle(reader: Reader) -> None:
    """Let four answers come, two of which are worked on, and kill the worker with the id that is shown."""
    worker = reader.start(WORKER, "first")
    wait_until_sync(lambda: reader.sees("first").count(": paid") >= 4, PATIENCE)
    assert KILL in commands()
    worker.kill()
    worker.wait()
    assert f"pid {worker.pid}" in reader.sees("first")
    assert str(worker.pid) in reader.run("headrace workers")
    assert "my-first-batch" in reader.run("headrace batch list")


def see_who_ran_twice(reader: Reader) -> None:
    """Only what was running at the kill, as the page shows it."""
    first, second = reader.sees("first"), reader.sees("second")
    ended = set(re.findall(r"^(\w+): done", first, re.M))
    running = set(re.findall(r"^(\w+): paid", first, re.M)) - ended
    again = set(re.findall(r"^(\w+): paid, attempt 2$", second, re.M))
    assert again == running == set(re.findall(r"^(\w+): paid, attempt 2$", OUTPUT.findall(PAGE)[0], re.M))
    assert ended & set(re.findall(r"^(\w+): paid", second, re.M)) == set()
    assert "processes of this host are gone" in second or "process of this host is gone" in second


def paid(reader: Reader) -> list[list[str]]:
    """Return what was paid, as a table."""
    return as_told(reader.run("headrace llm spend --by purpose"))


def as_told(text: str) -> list[list[str]]:
    """Return the words of a table, row by row."""
    return [line.split() for line in text.strip().splitlines()]


def look_at_the_failure(reader: Reader) -> None:
    """Find it by batch, by its error and by its job."""
    assert "partial" in reader.run("headrace batch show ID")
    assert "Atlantis is not on the map" in reader.run("headrace dlq list")
    [failed] = [line for line in reader.run("headrace batch results ID").splitlines() if '"failed"' in line]
    reader.known["JOB"] = re.findall(r'"job": "([^"]+)"', failed)[0]
    assert "Atlantis is not on the map" in reader.run("headrace job show JOB")
    assert "it failed" in reader.run("headrace job explain JOB")


def look_around(reader: Reader) -> None:
    """The commands of the last step."""
    assert "slogans" in reader.run("headrace queue stats")
    assert reader.run("headrace workers --all").count("slogans") >= 3
    assert reader.run("headrace doctor")
    reader.start("headrace dev slogans:app", "dev")
    url = wait_until_sync(lambda: re.findall(r"dashboard: (http://\S+)", reader.sees("dev")), PATIENCE)[0]
    page = httpx2.get(f"{url}/batches/{reader.known['ID']}", headers={"accept": "text/html"}, timeout=30)
    assert page.status_code == 200 and "slogan" in page.text


def test_the_page_can_be_followed_from_an_empty_directory() -> None:
    """It installs an extra that there is, and names its files."""
    assert commands() >= INSTALLS
    assert [name for name, _ in FILE.findall(PAGE)] == ["headrace.toml", "slogans.py"]
