"""What becomes of one message of an agent: its effect is stored once, or it is a dead letter, or it is dropped.

Guaranteed: the effect, the note that the event was handled, and a dead letter are stored in one transaction; an event
that was handled before is passed over. A failing event keeps its key waiting while it is tried again, and no other.
Not guaranteed: that a handler runs once.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headrace.daemon_threads import DaemonThreads
from headrace.engine.attempt import describe
from headrace.engine.events.agents import AgentContext, AgentDef, EventsContext, Handler, OnError
from headrace.engine.outage import Outage
from headrace.engine.telemetry import Telemetry
from headrace.model.envelopes import EnvelopeError, decode
from headrace.model.envelopes.dead_letters import dead_letter
from headrace.model.errors import BusUnavailableError, InvalidInputError, StoreUnavailableError
from headrace.model.event import Event
from headrace.model.inbox import Effect
from headrace.model.job import JobError
from headrace.model.provider_errors import ProviderError
from headrace.ports.bus import Delivery
from headrace.ports.inbox import Inbox

T = TypeVar("T")
LOG = logging.getLogger("headrace.agent")

#: Pauses while the store is away, seconds.
STORE_PAUSES = (0.2, 5.0)
#: A message that was put back from the dead letters carries how often.
REDRIVES = "redrives"
#: And for which agent: the others, which had no trouble with it, know it again.
REDRIVEN_FOR = "redriven-for"


@dataclass(slots=True)
class AgentRunner:
    """Handles the messages of one agent."""

    agent: AgentDef
    inbox: Inbox
    #: Makes the context of an attempt at an event.
    context: Callable[[Event, int], AgentContext]
    telemetry: Telemetry
    suffix: str
    #: Where sync handlers run.
    threads: DaemonThreads = field(default_factory=DaemonThreads)
    _outage: Outage = field(init=False)

    def __post_init__(self) -> None:
        self._outage = Outage(LOG, f"agent {self.agent.id} does not get on")

    async def take(self, delivery: Delivery) -> None:
        """Handle one message to its end."""
        if self.is_others_dead_letter(delivery.message.topic):
            self.telemetry.count("headrace.events.ignore")
            return
        try:
            event = decode(delivery.message)
        except EnvelopeError as error:
            await self._bury(delivery, delivery_id(delivery, None, self.agent.id), describe(error), attempts=0)
            return
        try:
            handler = None if event is None else self.agent.handler_for(event)
        except Exception as error:  # of the filter: it would say the same again
            message_id = delivery_id(delivery, event, self.agent.id)
            cause = describe(error, with_trace=not isinstance(error, InvalidInputError))
            await self._bury(delivery, message_id, cause, attempts=0)
            return
        if event is None or handler is None:
            self.telemetry.count("headrace.events.ignore")
            return
        message_id = delivery_id(delivery, event, self.agent.id)
        if await self.until_answered(lambda: self.inbox.handled(self.agent.id, message_id)):
            self.telemetry.count("headrace.events.repeat")
            return
        await self._handle(delivery, event, handler, message_id)

    async def _handle(self, delivery: Delivery, event: Event, handler: Handler, message_id: str) -> None:
        attempt = failures = outages = 0
        while True:
            attempt += 1
            error = await self._try(event, handler, message_id, attempt)
            if error is None:
                return
            if await self.pause_for(error, outages + 1):
                outages += 1  # not counted as a try
                continue
            failures += 1
            verdict, wait = self._judge(event, error, failures)
            if verdict is OnError.RETRY:
                self.telemetry.count("headrace.events.retry")
                LOG.warning("agent %s: event %s failed, again in %.1f s: %s", self.agent.id, event.id, wait, error)
                await asyncio.sleep(wait)
                continue
            if verdict is OnError.DEAD_LETTER:
                # What a model's provider says is told in words, and was raised far from the handler.
                surprise = self.agent.classify is None and not isinstance(error, ProviderError)
                await self._bury(delivery, message_id, describe(error, with_trace=surprise), attempts=failures)
            else:
                LOG.warning("agent %s: event %s is dropped: %s", self.agent.id, event.id, error)
                await self._accept(message_id, Effect())
                self.telemetry.count("headrace.events.drop")
            return

    async def _try(self, event: Event, handler: Handler, message_id: str, attempt: int) -> Exception | None:
        """Run the handler once and store its effect; return what it raised."""
        first = await outcome_of(self._run(event, handler, message_id, attempt))
        if isinstance(first, Exception):
            return first
        self.telemetry.count("headrace.events.handle" if first else "headrace.events.repeat")
        return None

    async def _run(self, event: Event, handler: Handler, message_id: str, attempt: int) -> bool:
        context = self.context(event, attempt)
        if self.agent.gather is None:
            await self.call(handler, event, context)
        else:
            await self.call(handler, [event], EventsContext((event,), context))
        # Beyond the time limit: an effect that is being stored is not cut off.
        return await self._accept(message_id, context.effect)

    async def call(self, handler: Handler, given: Any, context: Any) -> None:
        """Call a handler with an event or several, within the time limit."""
        limit = self.agent.timeout
        async with asyncio.timeout(None if limit is None else limit.total_seconds()):
            if inspect.iscoroutinefunction(handler):
                await handler(given, context)
            else:
                await self.threads.run(lambda: handler(given, context))

    async def pause_for(self, error: Exception, outages: int) -> bool:
        """Whether an error of a handler is no fault of the event, because the store or the bus is away: then wait."""
        if not (isinstance(error, StoreUnavailableError | BusUnavailableError) and error.transient):
            return False
        self._outage.note(error)
        await asyncio.sleep(min(STORE_PAUSES[0] * 2 ** min(outages, 10), STORE_PAUSES[1]))
        return True

    def _judge(self, event: Event, error: Exception, failures: int) -> tuple[OnError, float]:
        """Return what becomes of an event whose handler raised, and when it is tried again."""
        verdict = OnError.RETRY
        if self.agent.classify is not None:
            try:
                verdict = OnError(self.agent.classify(event, error))
            except Exception as fault:
                LOG.error("agent %s: its classify failed, so the event is tried again: %r", self.agent.id, fault)
        if verdict is not OnError.RETRY:
            return verdict, 0.0
        wait = self.agent.backoff.decide(error, failures=failures, random=random.random())  # noqa: S311 - spreads
        return (OnError.DEAD_LETTER, 0.0) if wait is None else (OnError.RETRY, wait.total_seconds())

    def is_others_dead_letter(self, topic: str) -> bool:
        """Whether a topic of dead letters is read only because a pattern matches its name."""
        return topic.endswith(self.suffix) and topic not in self.agent.topics

    async def _bury(self, delivery: Delivery, message_id: str, error: JobError, *, attempts: int) -> None:
        if delivery.message.topic.endswith(self.suffix):
            # It is one, and stays where it is: letters of letters would never end.
            await self._accept(message_id, Effect())
            self.telemetry.count("headrace.events.drop")
            LOG.error("agent %s: dead letter %s failed: %s", self.agent.id, message_id, error.trace or error.message)
            return
        letter = dead_letter(
            delivery.message, partition=delivery.partition, offset=delivery.offset, agent=self.agent.id,
            kind=error.kind, error=error.message, attempts=attempts, suffix=self.suffix,
        )  # fmt: skip
        await self._accept(message_id, Effect(events=[letter]))
        self.telemetry.count("headrace.events.dead_letter")
        LOG.error(
            "agent %s: event %s is a dead letter in %s after %d attempts: %s",
            self.agent.id, message_id, letter.topic, attempts, error.trace or error.message,
        )  # fmt: skip

    async def _accept(self, message_id: str, effect: Effect) -> bool:
        return await self.until_answered(lambda: self.inbox.accept(self.agent.id, message_id, effect))

    async def until_answered(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask the store until it answers: nothing is given up because it is away."""
        pause = STORE_PAUSES[0]
        while True:
            try:
                return await ask()
            except StoreUnavailableError as error:
                if not error.transient:
                    raise
                self._outage.note(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, STORE_PAUSES[1])


def delivery_id(delivery: Delivery, event: Event | None, agent: str) -> str:
    """Return what a message is known by in the inbox of an agent.

    One that comes back from the agent's dead letters is another one; from those of others it is the same.
    """
    message = delivery.message
    if event is None:
        return f"{message.topic}/{delivery.partition}/{delivery.offset}"
    redrives = message.header(REDRIVES)
    if redrives is None or message.header(REDRIVEN_FOR) not in (None, agent):
        return event.id
    return f"{event.id} {REDRIVES} {redrives}"


async def outcome_of(work: Awaitable[T]) -> T | Exception:
    """Return what work comes to, or what it raised: also what would end more than it."""
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return _as_exception(error)  # of something that the handler waited for
    except SystemExit as error:
        return _as_exception(error)
    except Exception as error:
        return error


def _as_exception(error: BaseException) -> Exception:
    """Return an error of a handler for what would end more than the handler."""
    return RuntimeError(f"the handler raised {type(error).__name__}({error})")
