"""The bus and the callback service of the world of pauses: processes that start, crash and freeze, and what they take.

A lane is what a bus keeps in order. What one process does not finish in time another takes, as after a rebalance; what
was taken comes again now and then, as after a crash before the commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from headrace.engine.events.callbacks import Callbacks
from headrace.engine.loops.handle_sweeper import HandleSweeper
from headrace.engine.loops.waking import WakeLoop
from headrace.engine.telemetry import Telemetry
from headrace.model.envelopes import encode
from headrace.model.envelopes.dead_letters import dead_letter
from headrace.model.event import Message
from headrace.model.resume_handle import HandleView, NotedEvent
from headrace.ports.bus import Delivery
from headrace.ports.handle_store import HandleStore
from headrace.ports.waker import Woken
from headrace.testing.simulation.faults import Network
from headrace.testing.simulation.loop import WORLD, Actor, VirtualLoop
from headrace.testing.simulation.referee import Referee
from headrace.testing.simulation.scenario import Mishap

SUFFIX = ".dlt"
TOPIC = "outbox.event.ShopOrder"
#: After so long another process takes what one has not finished.
PATIENCE = 3.0
#: How often what was taken comes again, and what the cache forgets.
REPEATED, FORGOTTEN, NOT_READY = 0.15, 0.2, 0.3


def message_of(noted: NotedEvent) -> Message:
    """Return what stands on the bus for an event, or for a request that became a dead letter."""
    message = encode(noted.event, "headrace", "/simulation", TOPIC)
    if not noted.dead:
        return message
    letter = dead_letter(
        message, partition=0, offset=0, agent=noted.agent, kind="error", error=noted.error, attempts=1, suffix=SUFFIX
    ).message
    assert letter is not None
    return letter


class Forgetful:
    """A cache that all processes share, and that forgets; in between somebody empties it."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._kept: dict[str, HandleView] = {}

    async def get(self, correlation_id: str) -> HandleView | None:
        """Return a handle, unless it was forgotten."""
        if self._chance.random() < FORGOTTEN:
            self._kept.pop(correlation_id, None)
        return self._kept.get(correlation_id)

    async def put(self, handle: HandleView) -> None:
        """Remember a handle; one that has ended stays."""
        if handle.state.final or handle.correlation_id not in self._kept:
            self._kept[handle.correlation_id] = handle

    async def close(self) -> None:
        """Nothing to end."""


class Flows:
    """What is suspended elsewhere, and is told to go on; not always ready at once."""

    kind = "flow"

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.woken: dict[str, int] = {}

    async def wake(self, target: str) -> Woken:
        """Wake a target, or say that it is not ready."""
        await asyncio.sleep(self._chance.random() * 0.1)
        if self._chance.random() < NOT_READY:
            return Woken.AGAIN
        self.woken[target] = self.woken.get(target, 0) + 1
        return Woken.DONE

    async def close(self) -> None:
        """Nothing to end."""


@dataclass(slots=True)
class Member:
    """One start of a callback process."""

    actor: Actor
    callbacks: Callbacks


class CallbackService:
    """Starts and ends callback processes, at most one at a time in each place, and hands them what the bus carries."""

    def __init__(  # noqa: PLR0913 - collaborators arrive by constructor
        self, loop: VirtualLoop, handles: HandleStore, *, network: Network, referee: Referee, chance: Random,
        flows: Flows, places: int,
    ) -> None:  # fmt: skip
        self._loop, self._handles, self._network, self._referee = loop, handles, network, referee
        self._chance, self._flows, self._cache = chance, flows, Forgetful(chance)
        self.actors: list[Actor] = []
        self._members: list[Member | None] = [None] * places
        self._lanes: dict[str, list[NotedEvent]] = {}
        self._under_way = 0
        #: Nothing is repeated any more.
        self.healed = False
        #: Asked once somebody has taken an event.
        self.check: Callable[[NotedEvent], None] = lambda noted: None

    @property
    def quiet(self) -> bool:
        """Whether everything that was sent has been taken."""
        return not self._under_way

    def start(self, place: int) -> None:
        """Start a process, unless one is there."""
        if self._members[place] is not None:
            return
        actor = Actor(f"k{place}.{len(self.actors)}", offset=self._chance.choice((0.0, 1e3)))
        self.actors.append(actor)
        self._referee.note(actor, "starts")
        telemetry = Telemetry()
        callbacks = Callbacks(self._handles, self._cache, telemetry, SUFFIX)
        sweeper = HandleSweeper(self._handles, telemetry, cache=self._cache)
        waking = WakeLoop(self._handles, {self._flows.kind: self._flows}, telemetry, again_in=timedelta(seconds=2))
        context = actor.context()
        for loop in (sweeper, waking):
            self._loop.call_soon(loop.start, context=context)
        self._members[place] = Member(actor, callbacks)

    def happen(self, mishap: Mishap) -> None:
        """Let something happen to a process."""
        member = self._members[mishap.place]
        if member is None or not member.actor.present:
            return
        self._referee.note(member.actor, mishap.kind, mishap.seconds)
        match mishap.kind:
            case "crash":
                self._loop.kill(member.actor)
                self._members[mishap.place] = None
                self._later(mishap.seconds, self.start, mishap.place)
            case "freeze":
                self._loop.freeze(member.actor)
                self._later(mishap.seconds, self._thaw, member.actor)
            case _:
                self._network.cut_off(member.actor, mishap.seconds)

    def _later(self, seconds: float, what: Callable[..., None], *args: object) -> None:
        self._loop.call_at_world_time(self._loop.now + seconds, what, *args, context=WORLD.context())

    def _thaw(self, actor: Actor) -> None:
        if actor.frozen and not actor.dead:
            self._loop.thaw(actor)

    def heal(self) -> None:
        """Let every place have a process that runs."""
        self.healed = True
        for place, member in enumerate(self._members):
            if member is None:
                self.start(place)
            else:
                self._thaw(member.actor)

    def send(self, lane: str, noted: NotedEvent) -> None:
        """Put an event on the bus, behind what is in its lane."""
        waiting = self._lanes.setdefault(lane, [])
        waiting.append(noted)
        self._under_way += 1
        if len(waiting) == 1:
            self._loop.create_task(self._drain(waiting), context=WORLD.context())

    async def _drain(self, waiting: list[NotedEvent]) -> None:
        while waiting:
            if await self._taken(waiting[0]) and (self.healed or self._chance.random() >= REPEATED):
                waiting.pop(0)
                self._under_way -= 1

    async def _taken(self, noted: NotedEvent) -> bool:
        """Let a process that runs take an event; False: it has not finished in time, or none runs."""
        present = [member for member in self._members if member is not None and member.actor.present]
        if not present:
            await asyncio.sleep(PATIENCE / 10)
            return False
        member = self._chance.choice(present)
        work = member.callbacks.take(Delivery(message_of(noted), 0, 0))
        task = self._loop.create_task(work, context=member.actor.context())
        await asyncio.wait({task}, timeout=PATIENCE)
        if task.done():
            task.result()
            self.check(noted)
        return task.done()
