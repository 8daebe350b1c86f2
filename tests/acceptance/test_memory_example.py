"""The example of memory as its page tells it, and the how-to over HTTP, in processes of their own."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from headrace.apps.memory.opening import PROCESS, SLOTS
from headrace.testing.provider import ProviderProcess
from tests.acceptance.command_runs import Place, place
from tests.waiting import wait_until_sync

#: Imports nothing but the memory of users, and waits until what it inserted has become memory by itself.
PROGRAM = """
import asyncio
from headrace.apps.memory.memory import Memory

async def main():
    memory = Memory()
    async with memory.app.worker():
        await memory.insert("full", [{"role": "user", "content": "I live in Lyon. " + "The weather is fine. " * 40}])
        await memory.insert("idle", [{"role": "user", "content": "I live in Rome."}])
        async with asyncio.timeout(30):
            while len(done := await memory.flushes(state="done")) < 2:
                await asyncio.sleep(0.2)
        print(sorted((flush.user_id, flush.reason.value) for flush in done))

asyncio.run(main())
"""
ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples" / "08_memory"
PAGE = (EXAMPLE / "README.md").read_text(encoding="utf-8")
HOWTO = (ROOT / "docs" / "howto" / "memory.md").read_text(encoding="utf-8")
SERVED = "http://127.0.0.1:8400"

pytestmark = pytest.mark.acceptance


@pytest.fixture
def provider() -> Iterator[ProviderProcess]:
    """The scripted model of the samples."""
    with ProviderProcess("--answer", "headrace.apps.memory.samples.model:answer") as process:
        yield process


@pytest.fixture
def example(tmp_path: Path, provider: ProviderProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A place with the example, and tables of its own."""
    shutil.copy(EXAMPLE / "remember.py", tmp_path)
    for name, value in provider.environment.items():
        monkeypatch.setenv(name, value)
    with place(tmp_path) as made:
        monkeypatch.setenv("HEADRACE_MEMORY_SCHEMA", f"{made.schema}_memory")
        yield made
        drop(made)


def drop(made: Place) -> None:
    """Remove the tables of memory."""

    async def work() -> None:
        connection = await asyncpg.connect(made.url)
        await connection.execute(f'DROP SCHEMA IF EXISTS "{made.schema}_memory" CASCADE')
        await connection.close()

    asyncio.run(work())


def shown(start: str) -> list[str]:
    """Return the words behind `headrace` of a command line of the page, by how it begins."""
    line = next(line for line in PAGE.splitlines() if line.startswith(f"headrace {start}"))
    return shlex.split(line)[1:]


def remember(example: Place) -> str:
    """Return what the program prints."""
    done = subprocess.run(
        [sys.executable, "remember.py"], cwd=example.folder, env=example.environment, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_does_what_its_page_says(example: Place, provider: ProviderProcess) -> None:
    """Two profiles in two languages; run again it asks nothing; each command shows what was made."""
    first = remember(example)
    asked = provider.stats().calls
    assert "contact_info/city: Marseille (version 2)" in first
    assert "- The user lives in Lyon" in first and "北京" in first
    assert (remember(example), provider.stats().calls) == (first, asked)
    assert "Marseille" in example.run(*shown("memory profile ada"))[1]
    assert "Marseille" in example.run(*shown("memory events"))[1]
    assert "绿茶" in example.run(*shown("memory search"))[1]
    assert "绿茶" in example.run(*shown("memory context"))[1]
    assert [one["state"] for one in example.json(*shown("memory flushes"))["flushes"]] == ["done"] * 3
    changed = example.json(*shown("memory profile ada --set"))["profile"]
    assert [one["version"] for one in changed if one["sub_topic"] == "title"] == [2]
    assert example.run(*shown("memory forget"))[:2] == (0, "wei is forgotten\n")
    assert example.json("memory", "profile", "wei")["profile"] == []


def test_the_example_embedded(workplace: Path) -> None:
    """In an empty folder, without a store and without a model of its own."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "remember.py")], cwd=workplace, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "Marseille" in done.stdout and (workplace / ".headrace").is_dir()


@pytest.mark.slow
def test_what_is_inserted_becomes_memory_by_itself(example: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process works; full buffers are flushed because the table tells of them, idle ones because time passes."""
    monkeypatch.setenv("HEADRACE_MEMORY_IDLE_FLUSH", "2s")
    monkeypatch.setenv("HEADRACE_MEMORY_SWEEP_INTERVAL", "1s")
    monkeypatch.setenv("HEADRACE_MEMORY_BUFFER_TOKENS", "64")
    monkeypatch.setenv("HEADRACE_MEMORY_BATCH_WINDOW", "0s")
    run = example.start(*shown("memory run"), "--json")
    started = run.line()
    assert started["event"] == "started" and "memory_process" in started["queues"]
    full = "I live in Lyon. " + "The weather is fine, and nothing else is to be told of it today. " * 10
    example.json("memory", "insert", "full", "--message", full)
    example.json(*shown("memory insert ada"))
    for user, reason in (("full", "full"), ("ada", "idle")):

        def done(user: str = user) -> list[dict[str, Any]]:
            found = example.json("memory", "flushes", "--user", user)["flushes"]
            return [one for one in found if one["state"] == "done"]

        # The sweep begins with the process, and not with the next minute.
        wait_until_sync(done, timedelta(seconds=40), message=f"the flush of {user}")
        assert done()[0]["reason"] == reason
    figures = example.json("memory", "figures")
    least, most, start = SLOTS[PROCESS]
    assert started["queues"][PROCESS] == start and least <= figures["kinds"]["process"]["pool_size"] <= most
    run.tell(signal.SIGTERM)
    assert run.end() == 0


def test_a_program_has_to_import_nothing_else(example: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker makes the tables, reads their changes, and sweeps at once: idle buffers and full ones are flushed."""
    monkeypatch.setenv("HEADRACE_MEMORY_IDLE_FLUSH", "1s")
    monkeypatch.setenv("HEADRACE_MEMORY_SWEEP_INTERVAL", "1s")
    monkeypatch.setenv("HEADRACE_MEMORY_BUFFER_TOKENS", "64")
    monkeypatch.setenv("HEADRACE_MEMORY_BATCH_WINDOW", "0s")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=example.folder, env=example.environment, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[('full', 'full'), ('idle', 'idle')]"


@pytest.mark.slow
def test_ctrl_c_ends_the_work_in_order(example: Place) -> None:
    """It tells that it has stopped, and ends with the code of an interrupt."""
    run = example.start("memory", "run", "--json")
    assert run.line()["event"] == "started"
    run.tell(signal.SIGINT)
    assert run.line()["event"] == "stopped"
    assert run.end() == 130


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl is installed")
def test_the_requests_of_the_how_to_do_what_it_says(example: Place) -> None:
    """Each as it stands: a message goes in, is flushed, and is known."""
    url = example.start("serve", "headrace.apps.memory.worker:app", "--worker", "--port", 0, "--json").line()["url"]
    example.json("memory", "set-up")
    answers = []
    for line in HOWTO.replace(SERVED, url).splitlines():
        if not line.startswith("curl "):
            continue

        def ask(line: str = line) -> Any:
            done = subprocess.run(shlex.split(line), capture_output=True, text=True, timeout=60, check=True)
            return json.loads(done.stdout)

        if "flushes" in line:
            wait_until_sync(lambda ask=ask: ask()["flushes"][0]["state"] == "done", message="the flush")
        answers.append(ask())
    inserted, flushed, flushes, profile, context = answers
    assert inserted["user_id"] == "ada" and len(flushed["flushes"]) == 1
    assert flushes["flushes"][0]["blob_ids"] == [inserted["blob_id"]]
    assert profile["profile"][0]["content"] == "Lyon"
    assert "Lyon" in context["context"]


def test_statements_of_the_how_to_fill_the_buffer(example: Place) -> None:
    """Another program may insert: what it writes waits as what we write does."""
    example.json("memory", "set-up")
    [block] = re.findall(r"^```sql\n(.*?)^```$", HOWTO, re.MULTILINE | re.DOTALL)

    async def work() -> None:
        connection = await asyncpg.connect(example.url)
        async with connection.transaction():
            await connection.execute(block.replace("headrace_memory.", f'"{example.schema}_memory".'))
        await connection.close()

    asyncio.run(work())
    assert example.json("memory", "flush", "ada", "--wait")["flushes"][0]["state"] == "done"
