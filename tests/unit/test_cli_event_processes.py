"""`headrace relay`, `agent` and `callback`: what they refuse before they work; tests/acceptance has the processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.cli import event_processes
from headrace.cli.event_hosting import bus_words, store_words
from headrace.engine.events.parts import EventParts
from headrace.event_settings import EventSettings, KafkaSettings
from headrace.settings import QueueSettings, Settings
from tests.unit.cli_runner import CommandLine, command_line

SHOP = """
from headrace import App
from headrace.events import Agent
app = App()
namer = Agent(app, "character_expert", aliases=["names"])
builder = Agent(app, "world_builder")
for agent in (namer, builder):
    @agent.on("Genesis.Session.Started")
    async def handle(event, ctx): ...
none = App()
idle = App()
Agent(idle, "idle")
"""


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[CommandLine]:
    """The command line beside an app with agents."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop_of_agents.py").write_text(SHOP, encoding="utf-8")
    with command_line(monkeypatch) as line:
        yield line


def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note what would run."""
    seen: list[Any] = []
    monkeypatch.setattr(event_processes, "run_host", lambda app, options: seen.append(options) or 0)
    monkeypatch.setattr(event_processes, "keep_alive", lambda *words, **more: seen.append((*words, more)) or 0)
    return seen


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        ([], ("characterexpert", "worldbuilder")),
        (["names"], ("characterexpert",)),
        (["world-builder", "WorldBuilder", "names"], ("worldbuilder", "characterexpert")),
    ],
)
def test_agents_are_chosen_by_id_and_alias(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch, names: list[str], ids: tuple[str, ...]
) -> None:
    """Each once, all of the app where none is named."""
    seen = asked(monkeypatch)
    assert headrace("agent", "shop_of_agents:app", *names).exit_code == 0
    assert seen[0].parts == EventParts(agents=ids)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["shop_of_agents:app", "charakter_expert"], 5, "did you mean 'character_expert'"),
        (["shop_of_agents:none"], 2, "the app has no agents"),
        (["shop_of_agents:idle"], 2, "agent idle handles no type of event"),
        (["no_such_shop:app"], 2, "no_such_shop"),
        (["shop_of_agents:app", "--processes", "0"], 2, "processes must be a whole number"),
    ],
)
def test_agents_that_cannot_work(headrace: CommandLine, words: list[str], code: int, said: str) -> None:
    """The error names what is wrong, and the fix."""
    ended, error = headrace.refusal("agent", *words)
    assert ended == code
    assert said in error["message"]


def test_several_processes_are_told_everything(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervisor keeps them alive; each runs the agents that were asked for, with the same options."""
    seen = asked(monkeypatch)
    words = ["shop_of_agents:app", "names", "--processes", "3", "--grace", "2s", "--log-level", "debug", "--json"]
    assert headrace("agent", *words).exit_code == 0
    [(command, count, more)] = seen
    assert command[command.index("agent") :] == [
        "agent", "shop_of_agents:app", "characterexpert", "--log-level", "debug", "--grace", "2s", "--json",
    ]  # fmt: skip
    assert (count, more) == (3, {"grace": timedelta(seconds=2)})


@pytest.mark.parametrize(
    ("command", "parts"),
    [("relay", EventParts(relay=True)), ("callback", EventParts(callback=True, callback_at_once=True))],
)
def test_parts_that_need_no_app(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch, command: str, parts: EventParts
) -> None:
    """They work by the settings alone."""
    seen = asked(monkeypatch)
    assert headrace(command, "--grace", "0s").exit_code == 0
    assert (seen[0].parts, seen[0].grace) == (parts, timedelta())


@pytest.mark.parametrize("words", [["relay"], ["callback"], ["agent", "shop_of_agents:app"]])
def test_a_store_without_an_outbox(headrace: CommandLine, words: list[str]) -> None:
    """Nothing works there: each says so and ends with 2."""
    headrace.stores = replace(headrace.stores, events=None)
    code, error = headrace.refusal(*words)
    assert (code, error["code"]) == (2, "config")
    assert "PostgreSQL" in error["message"]


@pytest.mark.parametrize("words", [["relay"], ["callback"], ["agent", "shop_of_agents:app", "--processes", "2"]])
def test_the_memory_store_has_nothing_for_them(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:  # fmt: skip
    """Nobody else can reach it, so they end with 2 and name what to use."""
    monkeypatch.setenv("HEADRACE_QUEUE_URL", "memory://")
    code, error = headrace.refusal(*words)
    assert (code, "use a durable store" in error["message"]) == (2, True)


def test_what_it_works_on_is_said_without_secrets() -> None:
    """The first line has no password."""
    kafka = EventSettings(bus="kafka", kafka=KafkaSettings(servers="k-1:9092", sasl_password="secret"))
    settings = Settings(queue=QueueSettings(url="postgresql://app:secret@db/jobs", schema="shop"), events=kafka)
    assert store_words(settings) == "postgresql://app@db/jobs, schema shop"
    assert bus_words(settings) == "kafka at k-1:9092"
    assert bus_words(Settings()) == "the store"
