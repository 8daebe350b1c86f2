"""`headrace events` on the memory store."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from headrace import App
from headrace.cli.event_checks import event_findings
from headrace.engine.events.redriving import GROUP
from headrace.event_settings import EventSettings, KafkaSettings
from headrace.model.envelopes import encode
from headrace.model.envelopes.dead_letters import dead_letter
from headrace.model.event import Event
from headrace.model.resume_handle import NotedEvent
from headrace.model.session import Role
from headrace.settings import Settings
from tests.unit.cli_runner import CommandLine, as_client, command_line

T = TypeVar("T")

LEADER = uuid4()
TYPE, TOPIC = "Shop.Order.Paid", "outbox.event.ShopOrder"


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


def ask(headrace: CommandLine, work: Callable[[App], Awaitable[T]]) -> T:
    """Run `work` on an app on the same stores."""
    app = headrace.app()
    return as_client(app, lambda: work(app))


def emit(headrace: CommandLine, number: int = 1, **options: str) -> str:
    """Emit an event and return its id."""
    given = {"aggregate-id": "o-1", **options}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    return str(headrace.json("events", "emit", TYPE, f'{{"n": {number}}}', *words)["id"])


def park(headrace: CommandLine, count: int) -> list[int]:
    """Park so many rows, and return their positions."""

    async def work(app: App) -> list[int]:
        outbox, sessions = app.event_stores.outbox, app.runtime.stores.sessions
        term = await sessions.lead(LEADER, lease=timedelta(minutes=1), role=Role.RELAY)
        assert term is not None
        first, *later = [row.position for row in await outbox.waiting_events(limit=10)]
        parked = [first, *later][:count]
        await outbox.park_events([(position, "too large for the topic") for position in parked], term=term)
        await outbox.hold_events([position for position in later if position not in parked], term=term)
        return parked

    return ask(headrace, work)


def test_an_event_is_emitted_and_listed(headrace: CommandLine) -> None:
    """It is in the log with all that it was given, and its id is printed."""
    own = headrace.text("events", "emit", TYPE, '{"cents": 1200}', "--aggregate-id", "o-7", "--correlation-id", "c-1")
    other = emit(headrace, **{"causation-id": "x", "aggregate-type": "Order"})
    [event] = headrace.json("events", "list", "--correlation", "c-1")
    assert (event["id"], event["payload"], event["aggregate_type"]) == (own.strip(), {"cents": 1200}, "ShopOrder")
    [event] = headrace.json("events", "list", "--aggregate", "o-1")
    assert (event["id"], event["causation_id"], event["aggregate_type"]) == (other, "x", "Order")
    assert headrace.text("events", "list").count(TYPE) == 2
    assert headrace.json("events", "list", "--after", max(own.strip(), other)) == []
    assert "There is no such event." in headrace.text("events", "list", "--correlation", "c-2")
    assert f"--after {min(own.strip(), other)}" in headrace.text("events", "list", "--limit", "1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["paid", "{}", "--aggregate-id", "o"], "Domain.Aggregate.Event"),
        ([TYPE, "{", "--aggregate-id", "o"], "must be JSON"),
        ([TYPE, "{}"], "--aggregate-id"),
        ([TYPE, "{}", "--aggregate-id", ""], "aggregate_id must be 1 to 255"),
    ],
)
def test_an_event_that_cannot_be(headrace: CommandLine, words: list[str], said: str) -> None:
    """It is refused with its rule, and nothing is stored."""
    code, error = headrace.refusal("events", "emit", *words)
    assert code == 2
    assert said in error["message"]
    assert headrace.json("events", "list") == []


def test_the_status_of_a_bus_that_is_away(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which brokers do not answer; nothing of it while one does."""
    monkeypatch.setenv("HEADRACE_EVENTS_BUS", "kafka")
    monkeypatch.setenv("HEADRACE_EVENTS_KAFKA_SERVERS", "127.0.0.1:1")
    assert "no Kafka broker can be reached: 127.0.0.1:1" in headrace.text("events", "status")
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("HEADRACE_EVENTS_KAFKA_SERVERS", f"127.0.0.1:{server.getsockname()[1]}")
        assert "reached" not in headrace.text("events", "status")


def test_an_event_that_would_be_forgotten(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory store ends with the command: it is refused, as a job is."""
    monkeypatch.setenv("HEADRACE_QUEUE_URL", "memory://")
    code, error = headrace.refusal("events", "emit", TYPE, "--aggregate-id", "o")
    assert (code, "use a durable store" in error["message"]) == (2, True)


def test_the_status_of_the_outbox(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many wait, are held and are parked, and what to do about each."""
    assert headrace.json("events", "status") == {
        "waiting": 0, "held": 0, "parked": 0, "oldest_seconds": 0.0, "bus": "store",
        "backlog": {"headrace.callback": {}},
    }  # fmt: skip
    for number in range(3):
        emit(headrace, number)
    assert headrace.json("events", "status")["waiting"] == 3
    park(headrace, 1)
    found = headrace.json("events", "status")
    assert (found["waiting"], found["held"], found["parked"]) == (0, 2, 1)
    assert "headrace events parked" in headrace.text("events", "status")
    emit(headrace, **{"aggregate-id": "o-2"})
    monkeypatch.setattr("headrace.cli.events.LATE", timedelta())
    assert "headrace relay" in headrace.text("events", "status")


def test_groups_that_are_behind(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Of the agents of an app, by topic."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop_of_status.py").write_text(
        "from headrace import App\nfrom headrace.events import Agent\napp = App()\nbiller = Agent(app, 'biller')\n"
        f"@biller.on('{TYPE}')\nasync def bill(event, ctx): ...\n"
    )
    event = Event(TYPE, "ShopOrder", "o-1", id="e-1")

    async def publish(app: App) -> None:
        log = app.event_stores.log
        await log.append_messages([encode(event, "headrace", "/headrace", TOPIC)] * 2, partitions=2)
        await log.join_group("headrace.agent.biller", uuid4(), [TOPIC], lease=timedelta(seconds=1))

    ask(headrace, publish)
    found = headrace.json("events", "status", "shop_of_status:app")["backlog"]
    assert found == {"headrace.callback": {}, "headrace.agent.biller": {TOPIC: 2}}
    line = next(
        line for line in headrace.text("events", "status", "shop_of_status:app").splitlines() if "biller" in line
    )
    assert line.split() == ["headrace.agent.biller", TOPIC, "2"]


def test_parked_rows_are_released_and_dropped(headrace: CommandLine) -> None:
    """Each is shown with its reason; released it waits again, dropped it is gone, and those behind it go on."""
    assert headrace.text("events", "parked") == "Nothing is parked.\n"
    for number in range(3):
        emit(headrace, number)
    [position] = park(headrace, 1)
    [row] = headrace.json("events", "parked")
    assert (row["position"], row["topic"], row["key"], row["held"]) == (position, TOPIC, "o-1", 2)
    assert "too large for the topic" in headrace.text("events", "parked")
    assert headrace.json("events", "release", position) == {"released": [position]}
    assert headrace.json("events", "status")["waiting"] == 3
    park(headrace, 1)
    code, error = headrace.refusal("events", "drop", position)
    assert (code, "--yes" in error["message"]) == (2, True)
    assert headrace.text("events", "drop", position, "--yes") == f"{position} is dropped\n"
    found = headrace.json("events", "status")
    assert (found["waiting"], found["held"], found["parked"]) == (2, 0, 0)
    assert len(headrace.json("events", "list")) == 3


def test_positions_where_nothing_is_parked(headrace: CommandLine) -> None:
    """The others are released, those are named, and the command ends with 5."""
    emit(headrace)
    [position] = park(headrace, 1)
    result = headrace("events", "release", position, 9_000)
    assert (result.exit_code, result.stdout) == (5, f"{position} is released\n")
    assert "nothing is parked at 9000" in result.stderr


def test_groups_are_listed_and_forgotten(headrace: CommandLine) -> None:
    """With members, messages behind and the time; one with a live member stays, one that nobody knows is told."""
    assert headrace.text("events", "groups", "list") == "No group has read messages yet.\n"
    member, words = uuid4(), ("events", "groups", "forget", "headrace.agent.biller")

    async def join(app: App) -> None:
        log = app.event_stores.log
        await log.append_messages([encode(Event(TYPE, "ShopOrder", "o-1"), "headrace", "/", TOPIC)] * 3, partitions=1)
        await log.join_group("headrace.agent.biller", member, [TOPIC], lease=timedelta(hours=1))

    ask(headrace, join)
    [found] = headrace.json("events", "groups", "list")
    assert (found["name"], found["members"], found["backlog"]) == ("headrace.agent.biller", 1, 3)
    assert headrace.text("events", "groups", "list").splitlines()[-1].split()[:3] == [found["name"], "1", "3"]
    code, error = headrace.refusal(*words)
    assert (code, "--yes" in error["message"]) == (2, True)
    code, error = headrace.refusal(*words, "--yes")
    assert (code, "live member" in error["message"]) == (1, True)
    ask(headrace, lambda app: app.event_stores.log.give_up("headrace.agent.biller", member))
    assert headrace.text(*words, "--yes") == "headrace.agent.biller is forgotten\n"
    assert headrace.json("events", "groups", "list") == []
    code, error = headrace.refusal(*words, "--yes")
    assert (code, error["code"]) == (5, "not_found")


@pytest.mark.parametrize("words", [["list"], ["forget", "g", "--yes"]])
def test_groups_of_a_broker(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """Its own tools are named, and nothing else is done."""
    monkeypatch.setenv("HEADRACE_EVENTS_BUS", "kafka")
    monkeypatch.setenv("HEADRACE_EVENTS_KAFKA_SERVERS", "127.0.0.1:1")
    code, error = headrace.refusal("events", "groups", *words)
    assert (code, error["code"], "kafka-consumer-groups" in error["message"]) == (2, "config", True)


def bury(headrace: CommandLine, count: int) -> None:
    """Put dead letters into a topic."""

    async def publish(app: App) -> None:
        rows = []
        for number in range(count):
            sent = encode(Event(TYPE, "ShopOrder", "o-1", id=f"e-{number}"), "headrace", "/headrace", TOPIC)
            rows.append(dead_letter(
                sent, partition=0, offset=number, agent="biller", kind="ValueError", error="no\nsuch customer",
                attempts=3, suffix=".dlt",
            ))  # fmt: skip
        await app.event_stores.log.append_messages([row.message for row in rows if row.message], partitions=2)

    ask(headrace, publish)


def test_dead_letters_are_shown_and_put_back(headrace: CommandLine) -> None:
    """A dry run changes nothing; a redrive puts each into the outbox once, and says how many."""
    assert "no dead letters" in headrace.text("events", "dead-letters", "list", TOPIC)
    bury(headrace, 3)
    [first, *_] = headrace.json("events", "dead-letters", "list", TOPIC)["letters"]
    assert (first["event_id"], first["type"], first["agent"], first["attempts"]) == ("e-0", TYPE, "biller", 3)
    assert "no such customer" in headrace.text("events", "dead-letters", "list", TOPIC)
    dry = headrace.json("events", "dead-letters", "redrive", TOPIC, "--dry-run")
    assert (len(dry["letters"]), dry["redriven"]) == (3, 0)
    assert headrace.json("events", "status")["waiting"] == 0
    said = headrace.text("events", "dead-letters", "redrive", TOPIC, "--limit", "2")
    assert said == f"2 messages go back to {TOPIC}, through the outbox\n"
    assert headrace.json("events", "dead-letters", "redrive", TOPIC)["redriven"] == 1
    assert headrace.json("events", "dead-letters", "redrive", TOPIC)["redriven"] == 0
    assert headrace.json("events", "status")["waiting"] == 3

    async def behind(app: App) -> int:
        return sum((await app.event_stores.log.log_backlog(GROUP)).values())

    assert ask(headrace, behind) == 0


@pytest.mark.parametrize("topic", ["a b", "", "x" * 246, "ü"])
def test_dead_letters_of_an_impossible_topic(headrace: CommandLine, topic: str) -> None:
    """It is refused at once, with the rule."""
    code, error = headrace.refusal("events", "dead-letters", "list", topic)
    assert (code, error["field"]) == (2, "topic")


def test_the_topic_of_dead_letters_is_not_theirs(headrace: CommandLine) -> None:
    """Whoever names it is told which one to name."""
    code, error = headrace.refusal("events", "dead-letters", "list", f"{TOPIC}.dlt")
    assert (code, error["field"]) == (2, "topic")


def register(headrace: CommandLine, correlation_id: str, **facts: Any) -> str | None:
    """Register a handle and return its token."""

    async def work(app: App) -> str | None:
        return (await app.handles.register(correlation_id, TYPE, timeout="1h", token=True, **facts)).token

    return ask(headrace, work)


def test_handles_are_listed_shown_and_cancelled(headrace: CommandLine) -> None:
    """Those that wait, or all; with what has come; one that has ended stays as it is."""
    assert "Nothing waits" in headrace.text("events", "handles", "list")
    register(headrace, "c-1", count=2)
    [handle] = headrace.json("events", "handles", "list")
    assert (handle["correlation_id"], handle["state"], handle["arrived"]) == ("c-1", "waiting", 0)
    shown = headrace.json("events", "handles", "show", "c-1")
    assert (shown["expect_types"], shown["expect_count"], shown["events"]) == ([TYPE], 2, [])
    assert "0 of 2" in headrace.text("events", "handles", "show", "c-1")
    for _ in range(2):
        assert headrace.text("events", "handles", "cancel", "c-1") == "c-1 is cancelled\n"
    assert headrace.json("events", "handles", "list") == []
    [ended] = headrace.json("events", "handles", "list", "--all")
    assert ended["state"] == "cancelled"
    assert headrace.refusal("events", "handles", "show", "c-2")[0] == 5
    assert headrace.refusal("events", "handles", "cancel", "c-2")[0] == 5


def test_what_came_for_a_handle_is_shown(headrace: CommandLine) -> None:
    """Events and dead letters, with who gave up and why."""
    register(headrace, "c-1", count=2, request_types=("Shop.Order.Asked",))

    async def note(app: App) -> None:
        handles = app.event_stores.handles
        await handles.note_event(NotedEvent(Event(TYPE, "ShopOrder", "o", correlation_id="c-1", id="e-1")))
        asked = Event("Shop.Order.Asked", "ShopOrder", "o", correlation_id="c-1", id="e-2")
        await handles.note_event(NotedEvent(asked, dead=True, agent="biller", error="no such customer"))

    ask(headrace, note)
    shown = headrace.json("events", "handles", "show", "c-1")
    assert [(one["event"]["id"], one["dead"], one["agent"]) for one in shown["events"]] == [
        ("e-1", False, ""), ("e-2", True, "biller"),
    ]  # fmt: skip
    assert "no such customer" in headrace.text("events", "handles", "show", "c-1")


def test_a_token_from_standard_input(headrace: CommandLine) -> None:
    """It ends the wait with JSON; the same again is no error, another payload is one; no output has the token."""
    token = register(headrace, "c-1")
    words = ("events", "handles", "resolve", "-")
    for _ in range(2):
        result = headrace(*words, '{"by": "ann"}', given=f"{token}\n")
        assert (result.exit_code, result.stdout) == (0, "c-1 is resolved\n")
    other = headrace(*words, "7", given=f"{token}\n")
    assert other.exit_code == 1
    assert headrace.json("events", "handles", "show", "c-1")["payload"] == {"by": "ann"}
    assert str(token) not in other.output + other.stderr


@pytest.mark.parametrize(("token", "code"), [("hrh_" + "A" * 43, 5), ("x", 2)])
def test_a_token_that_nobody_gave_out(headrace: CommandLine, token: str, code: int) -> None:
    """It is told, and not repeated."""
    result = headrace("events", "handles", "resolve", token)
    assert result.exit_code == code
    assert "A" * 43 not in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["status"], ["list"], ["emit", TYPE, "--aggregate-id", "o"], ["parked"], ["release", "1"],
        ["drop", "1", "--yes"], ["dead-letters", "list", TOPIC], ["dead-letters", "redrive", TOPIC],
        ["groups", "list"], ["groups", "forget", "g", "--yes"], ["handles", "list"],
        ["handles", "show", "c"], ["handles", "cancel", "c"], ["handles", "resolve", "hrh_" + "A" * 43],
    ],
)  # fmt: skip
def test_a_store_without_an_outbox(headrace: CommandLine, words: list[str]) -> None:
    """Every command says that events need PostgreSQL, and ends with 2."""
    headrace.stores = replace(headrace.stores, events=None)
    code, error = headrace.refusal("events", *words)
    assert (code, error["code"]) == (2, "config")
    assert "PostgreSQL" in error["message"]


def test_doctor_says_whether_kafka_can_be_reached(headrace: CommandLine) -> None:
    """A broker that is away is a failure with its fix, one that listens is ok, one of two a warning."""

    def look(servers: str) -> tuple[str, str, bool]:
        events = EventSettings(bus="kafka", kafka=KafkaSettings(servers=servers))
        stores = replace(headrace.stores, events=None)
        [finding] = asyncio.run(event_findings(stores, Settings(events=events)))
        return finding.check, str(finding.status), finding.fix is None

    with socket.create_server(("127.0.0.1", 0)) as server:
        here = f"127.0.0.1:{server.getsockname()[1]}"
        assert look(here) == ("bus", "ok", True)
        assert look(f"{here}, 127.0.0.1:1") == ("bus", "warn", False)
    assert look("127.0.0.1:1") == ("bus", "fail", False)


def test_doctor_tells_of_what_is_parked_and_what_waits(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Both are warnings, with the command that helps."""

    def found() -> dict[str, Any]:
        checks = json.loads(headrace("doctor", "--json").stdout)["checks"]
        [check] = [check for check in checks if check["check"] == "events"]
        return dict(check)

    monkeypatch.setenv("OPENAI_MODEL", "small")
    assert found()["status"] == "ok"
    emit(headrace)
    monkeypatch.setattr("headrace.cli.event_checks.LATE", timedelta())
    assert (found()["status"], found()["fix"].split(",")[0]) == ("warn", "headrace relay")
    park(headrace, 1)
    assert (found()["status"], found()["fix"]) == ("warn", "headrace events parked")
