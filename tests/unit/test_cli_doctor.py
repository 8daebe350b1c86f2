"""`headrace doctor` and `headrace migrate`: every finding, with a store that is as the test wants it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.cli import checks
from headrace.model.backlog import Alarm
from headrace.model.errors import HeadraceError, NotAllowedError, StoreUnavailableError, StoreVersionError
from headrace.model.stats import StoreInfo
from tests.unit.cli_runner import CommandLine, as_client, command_line, working


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[CommandLine]:
    """The command line on a store that looks healthy, with a model configured."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_MODEL", "small")
    with command_line(monkeypatch) as line:
        pretend(monkeypatch, line)
        yield line


def pretend(
    monkeypatch: pytest.MonkeyPatch, line: CommandLine, *, durable: bool = True, ahead: timedelta = timedelta()
) -> None:
    """Let the store say that it is a durable PostgreSQL whose clock goes as this machine's, or not."""

    async def store_info() -> StoreInfo:
        notes = ("fsync on",) if durable else ("fsync off",)
        return StoreInfo("postgresql", "18.0", 3, durable, notes, datetime.now(UTC) + ahead)

    monkeypatch.setattr(line.stores.inspect, "store_info", store_info)


def examine(headrace: CommandLine, code: int = 0) -> dict[str, dict[str, Any]]:
    """Run the doctor, check that people read what machines read, and return the findings by name."""
    shown = headrace("doctor")
    assert shown.exit_code == code, shown.output
    result = headrace("doctor", "--json")
    assert result.exit_code == code
    document = json.loads(result.stdout)
    assert document["ok"] is (code == 0)
    for check in document["checks"]:
        assert check["status"] in shown.stdout
        assert (check["fix"] or "") in shown.stdout
    return {check["check"]: check for check in document["checks"]}


def enqueue(headrace: CommandLine) -> None:
    """Leave a job on queue `sums`."""
    app = headrace.app()

    @app.task(queue="sums")
    async def add() -> None: ...

    as_client(app, add.enqueue)


def test_a_healthy_system(headrace: CommandLine) -> None:
    """With a durable store, a model and a worker every line is ok, and the exit code 0."""
    app = headrace.app()

    @app.task
    async def add() -> None: ...

    with working(app):
        found = examine(headrace)
    assert {check["status"] for check in found.values()} == {"ok"}
    assert set(found) == {
        "headrace", "model", "address", "store", "schema", "durability", "capability", "clock", "workers", "queues",
        "events", "hints",
    }  # fmt: skip
    assert "postgresql 18.0" in found["store"]["message"]
    assert "version 3" in found["schema"]["message"]


def test_a_store_that_can_lose_accepted_jobs_fails(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not flush breaks the first promise: that is a failure, with its fix."""
    pretend(monkeypatch, headrace, durable=False)
    found = examine(headrace, code=1)["durability"]
    assert (found["status"], "fsync off" in found["message"]) == ("fail", True)
    assert "fsync = on" in found["fix"]


def test_a_clock_that_is_wrong_is_told(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clocks more than a second apart are a warning that says in which direction."""
    pretend(monkeypatch, headrace, ahead=timedelta(hours=1))
    found = examine(headrace)["clock"]
    assert (found["status"], "behind" in found["message"]) == ("warn", True)
    pretend(monkeypatch, headrace, ahead=-timedelta(hours=1))
    assert "ahead of" in examine(headrace)["clock"]["message"]


def test_jobs_that_nobody_works_on_are_told(headrace: CommandLine) -> None:
    """A backlog without a worker and a paused queue are warnings with the command that helps."""
    enqueue(headrace)
    found = examine(headrace)
    assert found["workers"]["fix"] == "headrace worker MODULE:app"
    assert "sums has 1 ready jobs" in found["queues"]["message"]
    assert found["queues"]["fix"] == "headrace worker MODULE:app --queue sums"
    headrace.text("queue", "pause", "sums", "--reason", "night")
    text = headrace.text("doctor")
    assert "sums is paused (night) with 1 ready jobs" in text
    assert "headrace queue resume sums" in text


def test_a_closed_queue_and_a_backlog_are_told(headrace: CommandLine) -> None:
    """A queue that refuses who enqueues and one whose backlog is an alarm are warnings."""
    enqueue(headrace)
    asyncio.run(headrace.stores.control.set_queue_closed("sums", closed=True))
    asyncio.run(headrace.stores.control.set_alarms({"sums": Alarm(1)}))
    text = headrace.text("doctor")
    assert "sums is closed, since it was drained" in text
    assert "sums has a backlog of 1 jobs, its alarm is at 1 jobs" in text


@pytest.mark.parametrize(
    ("variables", "fix"),
    [
        ({"HEADRACE_QUEUE_ENABLE_LISTEN_NOTIFY": "false"}, "enable_listen_notify = true"),
        ({"HEADRACE_QUEUE_POOLED": "true"}, "listen_url"),
    ],
)
def test_polling_alone_is_told(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], fix: str
) -> None:
    """Without LISTEN work is noticed by the poll: a warning that says how long that takes."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = examine(headrace)["hints"]
    assert (found["status"], "poll of 500ms" in found["message"]) == ("warn", True)
    assert fix in found["fix"]


def test_hints_that_do_not_arrive_are_told(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hint is really sent: one that does not come is a warning."""
    monkeypatch.setattr(checks, "HINT_SECONDS", 0.01)
    monkeypatch.setattr(headrace.stores.notifier, "hint", lambda _: None)
    assert "hears no NOTIFY" in examine(headrace)["hints"]["message"]


def test_the_model_is_told_and_its_key_is_not(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configured model is named, never its key; without one the local model is looked for."""
    monkeypatch.setenv("OPENAI_API_KEY", "hush")
    monkeypatch.setenv("HEADRACE_LLM_BASE_URL", "http://127.0.0.1:1/v1")
    text = headrace.text("doctor")
    assert "small at http://127.0.0.1:1/v1, with a key" in text
    assert "hush" not in text
    for name in ("OPENAI_MODEL", "OPENAI_API_KEY", "HEADRACE_LLM_BASE_URL"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(checks, "find_spec", lambda name: None if name == "xllamacpp" else object())
    found = examine(headrace)["model"]
    assert (found["status"], "lacks xllamacpp" in found["message"]) == ("warn", True)
    assert "HEADRACE_LLM_MODEL" in found["fix"]
    monkeypatch.setattr(checks, "find_spec", lambda _: object())
    assert examine(headrace)["model"]["status"] == "ok"


def test_a_model_of_litellm_is_told_as_such(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not said to be at OpenAI, nor to have OpenAI's key; one that is not named is neither guessed nor local."""
    monkeypatch.setenv("HEADRACE_LLM_PROVIDER", "litellm")
    monkeypatch.setenv("OPENAI_API_KEY", "hush")
    told = "small at its provider's endpoint, by LiteLLM, with the key that LiteLLM finds in the environment"
    assert examine(headrace)["model"]["message"] == told
    monkeypatch.delenv("OPENAI_MODEL")
    found = examine(headrace)["model"]
    assert (found["status"], found["message"]) == ("warn", "llm.provider is litellm, and no model is named")
    assert "HEADRACE_LLM_MODEL" in found["fix"]


def test_a_quota_smaller_than_an_answer_is_told(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named with its value and what it means; one that lets an answer through at once is fine, none is silent."""
    assert "quotas" not in examine(headrace)
    monkeypatch.setenv("HEADRACE_LLM_TOKENS_PER_MINUTE", "6000")
    found = examine(headrace)["quotas"]
    assert found["status"] == "warn"
    for words in (
        "llm.tokens_per_minute = 6,000 lets 100 tokens",
        "expected_tokens = 1024",
        "one after the other",
        "has flowed (10s)",
    ):
        assert words in found["message"]
    assert "llm.expected_tokens" in found["fix"]
    for name, value in (("EXPECTED_TOKENS", "100"), ("BURST", "11s"), ("TOKENS_PER_MINUTE", "61440")):
        with monkeypatch.context() as changed:
            changed.setenv(f"HEADRACE_LLM_{name}", value)
            assert examine(headrace)["quotas"]["status"] == "ok", name


def test_the_address_hides_the_password(headrace: CommandLine) -> None:
    """A store URL is shown without its password."""
    result = headrace("--url", "postgresql://app:hush@db.example:6432/jobs?password=hush", "doctor")
    assert "postgresql://app@db.example:6432/jobs, schema headrace" in result.stdout
    assert "hush" not in result.output
    result = headrace("--url", "postgresql://app:hush@[db/jobs", "doctor")
    assert "an address that cannot be read" in result.stdout
    assert "hush" not in result.output


def test_the_embedded_store_says_where_it_lies(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a URL the directory of the embedded PostgreSQL is named, and where its data went."""
    monkeypatch.delenv("HEADRACE_QUEUE_URL")
    assert str(tmp_path / ".headrace") in examine(headrace)["address"]["message"]
    (tmp_path / ".headrace").mkdir()
    (tmp_path / ".headrace" / "location").write_text("/var/lib/elsewhere\n")
    assert "its data in /var/lib/elsewhere" in examine(headrace)["address"]["message"]


def test_the_memory_store_is_for_tests(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store in memory works and is warned of."""
    monkeypatch.setenv("HEADRACE_QUEUE_URL", "memory://")
    pretend(monkeypatch, headrace, durable=False)
    found = examine(headrace)
    assert (found["address"]["status"], found["durability"]["status"]) == ("warn", "warn")


@pytest.mark.parametrize(
    ("error", "code", "check"),
    [
        (StoreUnavailableError("nobody answers"), 3, "store"),
        (NotAllowedError("wrong password"), 4, "store"),
        (StoreVersionError("lacks 2 migrations"), 1, "schema"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_store_that_cannot_be_used(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch, error: HeadraceError, code: int, check: str
) -> None:
    """The doctor says what it found before, what the store said, and ends with the code of that."""

    async def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr("headrace.wiring.open_stores", refuse)
    found = examine(headrace, code=code)
    assert (found[check]["status"], found[check]["message"]) == ("fail", str(error))
    assert found["model"]["status"] == "ok"


def test_a_store_that_goes_away_meanwhile(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is lost between two checks is told like one that never answered."""

    async def refuse() -> None:
        raise StoreUnavailableError("gone")

    monkeypatch.setattr(headrace.stores.inspect, "list_sessions", refuse)
    found = examine(headrace, code=3)
    assert "gone" in found["store"]["message"]


def test_a_store_without_schema_needs_no_migration(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """`headrace migrate` on the memory store has nothing to do, and says so."""
    monkeypatch.setenv("HEADRACE_QUEUE_URL", "memory://")
    assert headrace.json("migrate") == {"applied": []}
    assert headrace.json("migrate", "--dry-run") == {"pending": []}
    assert "nothing to apply" in headrace.text("migrate")
