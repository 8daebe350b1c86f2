"""Agents: each event's effect once, errors by their class, dead letters with their cause."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headrace import App, Backoff, ConfigError, Context, InvalidInputError, StoreUnavailableError
from headrace.engine.events.agent_runner import AgentRunner
from headrace.engine.telemetry import Telemetry
from headrace.events import Agent, AgentContext, Event, OnError
from headrace.model.emitting import Emission
from headrace.model.envelopes import encode
from headrace.model.event import Message
from headrace.model.inbox import Effect
from headrace.ports.bus import Delivery
from headrace.ports.inbox import Inbox

ASKED, ANSWERED = "Test.Thing.Asked", "Test.Thing.Answered"
TOPIC = "outbox.event.TestThing"
QUICK = Backoff.fixed("1ms", max_attempts=3)


def asked(number: int = 1, **facts: Any) -> Event:
    """Return a request."""
    return Event(ASKED, "TestThing", "t-1", {"number": number}, correlation_id="c-1", id=f"e-{number}", **facts)


def delivered(event: Event, *headers: tuple[str, str]) -> Delivery:
    """Return an event as it is received."""
    sent = encode(event, "headrace", "/test", TOPIC)
    return Delivery(replace(sent, headers=(*sent.headers, *headers)), 0, 7)


class World:
    """An agent of an app in memory, its runner, and what came of it."""

    def __init__(self, app: App, agent: Agent) -> None:
        self.app, self.agent, self.telemetry = app, agent, Telemetry()
        self.inbox: Inbox = app.event_stores.inbox

    @property
    def runner(self) -> AgentRunner:
        """What takes the agent's messages."""

        def context(event: Event, attempt: int) -> AgentContext:
            return self.agent.context(event, attempt, emission=Emission(), can_write=False, resources="given")

        return AgentRunner(self.agent.definition, self.inbox, context, self.telemetry, ".dlt")

    async def take(self, event: Event, *headers: tuple[str, str]) -> None:
        """Handle an event."""
        await self.runner.take(delivered(event, *headers))

    async def outbox(self) -> list[Any]:
        """Return what waits to leave."""
        return [row.outgoing for row in await self.app.event_stores.outbox.waiting_events(limit=100)]

    def counted(self) -> dict[str, int]:
        """Return what was counted, without the common beginning of the names."""
        return {name.rpartition(".")[2]: value for name, value in self.telemetry.snapshot().items()}


@asynccontextmanager
async def world(**options: Any) -> AsyncIterator[World]:
    """Open an app with one agent."""
    app = App("memory://")
    agent = Agent(app, "world_builder", **{"retry": QUICK, **options})
    async with app:
        yield World(app, agent)


async def test_an_effect_is_stored_once_however_often_the_event_comes() -> None:
    """Events, jobs and signals follow from the first delivery alone."""
    async with world() as at:
        calls: list[AgentContext] = []
        double = at.app.task(name="double")(lambda number: 2 * number)

        @at.agent.on(ASKED)
        async def handle(event: Event, ctx: AgentContext) -> None:
            calls.append(ctx)
            ctx.emit(ANSWERED, {"number": event.payload["number"]})
            ctx.enqueue(double, 21)
            ctx.signal("done", event.id)

        await at.take(asked(retries=2))
        await at.take(asked(retries=2))
        [row] = await at.outbox()
        assert row.event.type == ANSWERED and row.topic == TOPIC
        assert (row.event.aggregate_id, row.event.correlation_id) == ("t-1", "c-1")
        assert (row.event.causation_id, row.event.retries) == ("e-1", 2)
        assert len(await at.app.runtime.stores.inspect.list_jobs(limit=10)) == 1
        assert await at.app.runtime.stores.signals.read_signal("done") == '"e-1"'
        assert len(calls) == 1 and calls[0].resources == "given"
        assert calls[0].idempotency_key == "worldbuilder:e-1"
        assert at.counted() == {"handle": 1, "repeat": 1}


async def test_a_handler_that_fails_leaves_nothing_and_is_tried_again() -> None:
    """What an attempt collected goes with it; the retries are told to who follows."""
    async with world() as at:

        @at.agent.on(ASKED)
        def handle(event: Event, ctx: AgentContext) -> None:
            ctx.emit(ANSWERED, {"attempt": ctx.attempt})
            if ctx.attempt < 3:
                raise RuntimeError("as planned")

        await at.take(asked())
        [row] = await at.outbox()
        assert row.event.payload == {"attempt": 3} and row.event.retries == 2
        assert at.counted() == {"handle": 1, "retry": 2}


async def test_an_event_that_always_fails_is_a_dead_letter_with_its_cause() -> None:
    """The message goes as it came to TOPIC.dlt, once, and tells who gave up, why and when."""
    async with world() as at:

        @at.agent.on(ASKED)
        async def handle(event: Event, ctx: AgentContext) -> None:
            raise KeyError("no such thing")

        await at.take(asked())
        await at.take(asked())
        [row] = await at.outbox()
        message = row.message
        assert row.topic == message.topic == f"{TOPIC}.dlt" and message.key == "t-1"
        assert message.value == delivered(asked()).message.value
        facts = {name: message.header(f"dlt-{name}") for name in ("agent", "attempts", "error-kind", "offset", "topic")}
        assert facts == {
            "agent": "worldbuilder", "attempts": "3", "error-kind": "KeyError", "offset": "7", "topic": TOPIC,
        }  # fmt: skip
        assert "no such thing" in message.header("dlt-error")
        assert at.counted() == {"dead_letter": 1, "retry": 2, "repeat": 1}


async def test_a_redriven_message_is_handled_again() -> None:
    """What came back from the dead letters is another message than the one that died."""
    async with world(retry=Backoff.none()) as at:
        fails = [True]

        @at.agent.on(ASKED)
        async def handle(event: Event, ctx: AgentContext) -> None:
            if fails[0]:
                raise RuntimeError("as planned")
            ctx.emit(ANSWERED)

        await at.take(asked())
        fails[0] = False
        await at.take(asked(), ("redrives", "1"))
        await at.take(asked(), ("redrives", "1"))
        assert [row.topic for row in await at.outbox()] == [f"{TOPIC}.dlt", TOPIC]


@pytest.mark.parametrize(
    ("verdict", "counted"),
    [(OnError.DROP, {"drop": 1, "repeat": 1}), (OnError.DEAD_LETTER, {"dead_letter": 1, "repeat": 1})],
)
async def test_classify_decides_what_becomes_of_an_error(verdict: OnError, counted: dict[str, int]) -> None:
    """The hook is asked with event and error, and its word counts at once."""
    seen: list[tuple[str, str]] = []

    def classify(event: Event, error: Exception) -> OnError:
        seen.append((event.id, str(error)))
        return verdict

    async with world(classify=classify) as at:

        @at.agent.on(ASKED)
        async def handle(event: Event, ctx: AgentContext) -> None:
            raise RuntimeError("as planned")

        await at.take(asked())
        await at.take(asked())
        assert seen == [("e-1", "as planned")]
        assert at.counted() == counted


async def test_a_classify_that_fails_lets_the_event_be_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """A broken hook loses nothing."""
    async with world(classify=lambda event, error: "nonsense") as at:

        @at.agent.on(ASKED)
        async def handle(event: Event, ctx: AgentContext) -> None:
            if ctx.attempt == 1:
                raise RuntimeError("as planned")

        await at.take(asked())
        assert at.counted() == {"retry": 1, "handle": 1}
        assert "its classify failed" in caplog.text


async def test_what_is_no_event_is_a_dead_letter_at_once() -> None:
    """Bytes that nobody can read do not hold up what is behind them."""
    async with world() as at:
        for _ in range(2):
            await at.runner.take(Delivery(Message(TOPIC, "k", b"\xff{"), 3, 9))
        [row] = await at.outbox()
        assert row.message.value == b"\xff{" and row.message.header("dlt-error-kind") == "bad_envelope"


async def test_types_without_a_handler_and_tombstones_are_passed_over() -> None:
    """An agent reads topics in which much is not for it."""
    async with world() as at:
        await at.take(asked())
        await at.runner.take(Delivery(Message(TOPIC, "k", None), 0, 1))
        assert at.counted() == {"ignore": 2} and await at.outbox() == []


async def test_a_handler_that_takes_too_long_is_stopped() -> None:
    """A hang is an error like any other."""
    async with world(timeout="20ms", retry=Backoff.none()) as at:

        @at.agent.on(ASKED)
        async def handle(event: Event, ctx: AgentContext) -> None:
            await asyncio.Event().wait()

        await at.take(asked())
        assert at.counted() == {"dead_letter": 1}


class Fickle:
    """An inbox that is away for the first few calls of a verb."""

    def __init__(self, inbox: Inbox, away: int) -> None:
        self._inbox, self.away = inbox, away
        self.writes = False

    async def _answer(self, ask: Callable[[], Any]) -> Any:
        if self.away:
            self.away -= 1
            raise StoreUnavailableError("away")
        return await ask()

    async def handled(self, consumer: str, message_id: str) -> bool:
        """Answer, or be away."""
        return bool(await self._answer(lambda: self._inbox.handled(consumer, message_id)))

    async def accept(self, consumer: str, message_id: str, effect: Effect) -> bool:
        """Store, or be away."""
        return bool(await self._answer(lambda: self._inbox.accept(consumer, message_id, effect)))

    async def prune_inbox(self, *, older_than: timedelta, limit: int, term: Any = None) -> int:
        """Nothing is old here."""
        return 0


async def test_a_store_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the event nor its effect is given up, and the handler is not called again."""
    monkeypatch.setattr("headrace.engine.events.agent_runner.STORE_PAUSES", (0.001, 0.001))
    async with world() as at:
        calls: list[str] = []

        @at.agent.on(ASKED)
        async def handle(event: Event, ctx: AgentContext) -> None:
            calls.append(event.id)
            fickle.away = 2
            ctx.emit(ANSWERED)

        at.inbox = fickle = Fickle(at.inbox, away=2)
        await at.take(asked())
        assert calls == ["e-1"] and len(await at.outbox()) == 1


async def test_an_outage_within_a_handler_is_no_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event is not given up because the store was away while its handler asked it."""
    monkeypatch.setattr("headrace.engine.events.agent_runner.STORE_PAUSES", (0.001, 0.001))
    async with world(retry=Backoff.none()) as at:

        @at.agent.on(ASKED)
        async def handle(event: Event, ctx: AgentContext) -> None:
            if ctx.attempt < 5:
                raise StoreUnavailableError("away")
            ctx.emit(ANSWERED)

        await at.take(asked())
        assert at.counted() == {"handle": 1}


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()], ids=["exit", "cancelled"])
async def test_what_a_library_raises_to_end_the_process_ends_the_try_alone(error: BaseException) -> None:
    """An event cannot stop its agent."""
    async with world(retry=Backoff.fixed("1ms", max_attempts=2)) as at:

        @at.agent.on(ASKED)
        def handle(event: Event, ctx: AgentContext) -> None:
            raise error

        await at.take(asked())
        assert at.counted() == {"retry": 1, "dead_letter": 1}


async def test_hung_sync_handlers_take_no_thread_from_others() -> None:
    """Each handler has a thread of its own, however many hang."""
    release = threading.Event()
    async with world(retry=Backoff.none(), timeout="50ms") as at:

        @at.agent.on(ASKED)
        def hang(event: Event, ctx: AgentContext) -> None:
            if event.payload["number"] < 40:
                release.wait(20)

        runner = at.runner
        try:
            await asyncio.gather(*(runner.take(delivered(asked(number))) for number in range(40)))
            await runner.take(delivered(asked(40)))
        finally:
            release.set()
        assert at.counted() == {"dead_letter": 40, "handle": 1}


async def test_dead_letters_make_no_dead_letters() -> None:
    """A pattern that takes in topics of dead letters does not, and who reads one by its name leaves it there."""
    bad = Message(f"{TOPIC}.dlt", "k", b"?")
    async with world(topics=["outbox.event.*"]) as at:
        await at.runner.take(Delivery(bad, 0, 1))
        assert at.counted() == {"ignore": 1} and await at.outbox() == []
    async with world(topics=[f"{TOPIC}.dlt"]) as at:
        await at.runner.take(Delivery(bad, 0, 1))
        assert at.counted() == {"drop": 1} and await at.outbox() == []


async def test_writes_need_a_database() -> None:
    """A store without a connection says so in the handler."""
    async with world(retry=Backoff.none()) as at:
        raised: list[BaseException] = []

        async def write(connection: Any) -> None:
            raise AssertionError("there is no connection")

        @at.agent.on(ASKED)
        async def handle(event: Event, ctx: AgentContext) -> None:
            try:
                ctx.in_transaction(write)
            except ConfigError as error:
                raised.append(error)

        await at.take(asked())
        assert "PostgreSQL" in str(raised[0])


def _wrong() -> list[tuple[Callable[[App], Any], type[Exception], str]]:
    async def handle(event: Event, ctx: AgentContext) -> None:
        raise AssertionError

    return [
        (lambda app: Agent(app, "a b"), InvalidInputError, "agent id"),
        (lambda app: Agent(app, "x", concurrency=0), InvalidInputError, "concurrency"),
        (lambda app: Agent(app, "x", retry=3), InvalidInputError, "retry"),  # type: ignore[arg-type]
        (lambda app: Agent(app, "x", classify="no"), InvalidInputError, "classify"),  # type: ignore[arg-type]
        (lambda app: Agent(app, "x", topics="t"), InvalidInputError, "topics"),  # type: ignore[arg-type]
        (lambda app: Agent(app, "x", timeout="soon"), InvalidInputError, "timeout"),
        (lambda app: Agent(app, "x", speed=3), InvalidInputError, "options of an agent"),  # type: ignore[call-arg]
        (lambda app: (Agent(app, "x"), Agent(app, "X")), ConfigError, "in use"),
        (lambda app: Agent(app, "x").on("Started"), InvalidInputError, "Domain.Aggregate.Event"),
        (lambda app: Agent(app, "x").on(handle), InvalidInputError, "must name one"),  # type: ignore[arg-type]
        (lambda app: _twice(Agent(app, "x"), handle), ConfigError, "two handlers"),
        (lambda app: Agent(app, "x").on(ASKED)(lambda event: None), InvalidInputError, "an event and an AgentContext"),
    ]


def _twice(agent: Agent, handle: Any) -> None:
    agent.on(ASKED)(handle)
    agent.on(ASKED)(lambda event, ctx: None)


@pytest.mark.parametrize(("make", "kind", "text"), _wrong(), ids=lambda value: value if isinstance(value, str) else "")
def test_wrong_declarations_are_refused(make: Callable[[App], Any], kind: type[Exception], text: str) -> None:
    """An agent that cannot work is found when it is declared."""
    with pytest.raises(kind, match=text):
        make(App("memory://"))


@pytest.mark.parametrize(
    ("type_", "payload", "options", "text"),
    [
        ("Started", None, {"aggregate_id": "1"}, "Domain.Aggregate.Event"),
        (ASKED, None, {}, "aggregate_id"),
        (ASKED, None, {"aggregate_id": ""}, "aggregate_id"),
        (ASKED, {1, 2}, {"aggregate_id": "1"}, "payload"),
        (ASKED, float("nan"), {"aggregate_id": "1"}, "payload"),
        (ASKED, "x" * 1_000_000, {"aggregate_id": "1"}, "at most"),
        (ASKED, None, {"aggregate_id": "1", "aggregate_type": "a/b"}, "aggregate_type"),
        (ASKED, None, {"aggregate_id": "1", "schema_version": 0}, "schema_version"),
        (ASKED, None, {"aggregate_id": "1", "colour": "red"}, "options of an event"),
        (ASKED, None, {"aggregate_id": "1", "correlation_id": "\n"}, "correlation_id"),
    ],
)
async def test_wrong_events_are_refused(type_: str, payload: Any, options: dict[str, Any], text: str) -> None:
    """Nothing of an event that breaks a rule is stored, and the error names the rule."""
    async with App("memory://") as app:
        with pytest.raises(InvalidInputError, match=text):
            await app.emit(type_, payload, **options)
        assert await app.event_stores.outbox.waiting_events(limit=1) == []


async def test_an_event_goes_the_whole_way_in_one_process(caplog: pytest.LogCaptureFixture) -> None:
    """A task emits, the relay publishes, an agent answers, another one hears it; all within one worker."""
    app, heard = App("memory://"), asyncio.Queue[Event]()
    builder, auditor = Agent(app, "world_builder"), Agent(app, "auditor")

    @builder.on(ASKED)
    async def build(event: Event, ctx: AgentContext) -> None:
        ctx.emit(ANSWERED, {"twice": 2 * event.payload["number"]})

    @auditor.on(ANSWERED)
    async def hear(event: Event, ctx: AgentContext) -> None:
        heard.put_nowait(event)

    @app.task
    async def ask(number: int) -> None:
        await app.emit(ASKED, {"number": number}, aggregate_id="t-1", correlation_id="c-9")

    caplog.set_level(logging.ERROR)
    async with app.worker(grace="1s"):
        await ask.enqueue(21)
        async with asyncio.timeout(20):
            event = await heard.get()
    assert (event.payload, event.correlation_id) == ({"twice": 42}, "c-9")
    assert not caplog.records


async def test_events_of_a_task_leave_with_its_success_alone() -> None:
    """A try that fails emits nothing, and the try that succeeds once."""
    app = App("memory://")

    @app.task(retry=Backoff.fixed("1ms", max_attempts=3))
    async def pack(ctx: Context) -> int:
        ctx.emit(ASKED, {"attempt": ctx.attempt}, aggregate_id="t-1")
        await app.emit(ANSWERED, aggregate_id="t-1")
        if ctx.attempt < 3:
            raise RuntimeError("as planned")
        return ctx.attempt

    async with app.worker(grace="1s"):
        handle = await pack.enqueue()
        assert await handle.result(timeout=20) == 3
        events = await app.event_stores.outbox.list_events(aggregate_id="t-1")
    assert sorted((event.type, json.dumps(event.payload)) for event in events) == [
        (ANSWERED, "null"), (ASKED, '{"attempt": 3}'),
    ]  # fmt: skip
    assert {event.causation_id for event in events} == {str(handle.id)}


async def test_events_that_a_repeated_handler_emits_at_once_leave_once_each() -> None:
    """By what they say, in whatever order, or by their key, where what they say may differ."""
    app, orders = App("memory://"), [["a", "b", "b"], ["b", "a", "b"]]

    @app.task(retry=Backoff.fixed("1ms", max_attempts=3))
    async def tell(ctx: Context) -> None:
        for said in orders[ctx.attempt - 1]:
            await app.emit(ASKED, said, aggregate_id="t-1")
        await app.emit(ANSWERED, ctx.attempt, aggregate_id="t-1", key="only")
        if ctx.attempt == 1:
            raise RuntimeError("as planned")

    async with app.worker(grace="1s"):
        await (await tell.enqueue()).result(timeout=20)
        for _ in range(2):
            await app.emit(ANSWERED, "outside", aggregate_id="t-1", key="k")
        events = await app.event_stores.outbox.list_events(aggregate_id="t-1")
    assert sorted(str(event.payload) for event in events) == ["1", "a", "b", "b", "outside"]


async def test_events_that_the_filter_does_not_want_leave_no_trace() -> None:
    """They are passed over as types without a handler are: another agent handles them."""
    async with world() as at:
        seen: list[int] = []

        @at.agent.on(ASKED, where=lambda event: event.payload["number"] > 1)
        async def handle(event: Event, ctx: AgentContext) -> None:
            seen.append(event.payload["number"])

        await at.take(asked(1))
        await at.take(asked(2))
        assert seen == [2]
        assert at.counted() == {"ignore": 1, "handle": 1}
        assert not await at.inbox.handled("worldbuilder", "e-1")


async def test_an_event_that_the_filter_raises_for_is_a_dead_letter() -> None:
    """It would raise again; and nothing is passed over in silence."""
    async with world() as at:

        @at.agent.on(ASKED, where=lambda event: event.payload["no such"])
        async def handle(event: Event, ctx: AgentContext) -> None: ...

        await at.take(asked())
        [row] = await at.outbox()
        assert row.topic == f"{TOPIC}.dlt"
        assert at.counted() == {"dead_letter": 1}


@pytest.mark.parametrize("where", [7, lambda: True, lambda one, two: True])
def test_a_filter_must_take_one_event(where: Any) -> None:
    """A mistake is told when the handler is registered."""
    with pytest.raises(InvalidInputError, match="where must be a function of an event"):
        Agent(App("memory://"), "world_builder").on(ASKED, where=where)


def test_a_filter_must_not_be_async() -> None:
    """A coroutine is always true: every event would be handled."""

    async def wanted(event: Event) -> bool:
        return False

    with pytest.raises(InvalidInputError, match="where must be a plain function"):
        Agent(App("memory://"), "world_builder").on(ASKED, where=wanted)


def test_ordered_must_be_a_flag() -> None:
    """A text would be taken for true."""
    with pytest.raises(InvalidInputError, match="ordered must be True or False"):
        Agent(App("memory://"), "world_builder", ordered="no")  # type: ignore[arg-type]
