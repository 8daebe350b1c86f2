"""The network between actors and the store: calls come late, fail before or after they took effect, or vanish.

One proxy stands in front of every port. A call leaves its actor, is carried out at the store, and is answered; the
seed draws when each happens, and whether. What is on its way to the store arrives even when its sender has died or no
longer waits, as it does on a real wire.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random
from typing import Any

from headrace.model.errors import HeadraceError, StoreUnavailableError
from headrace.ports.stores import Stores
from headrace.testing.simulation.loop import WORLD, Actor, VirtualLoop

#: The store adapter gives up on an unanswered call then (30 s on PostgreSQL; leases are shorter here, too).
CALL_SECONDS = 4.0
#: A call whose sender was told that it failed may still arrive this much later.
LATE_SECONDS = 3.0
#: Between two statements of one transaction others get a turn of up to this long.
TURN_SECONDS = 0.01


#: These go wrong more often: most is at stake there.
BUSY_VERBS = frozenset(
    {"claim_jobs", "admit_jobs", "claimed_jobs", "complete_jobs", "exchange_jobs", "close_batches", "insert_jobs"}
    | {"append_slice"}
)
BUSY_FACTOR = 2.0


class Fate(Enum):
    """What becomes of one call."""

    ANSWERED = "ok"
    #: fails and is not carried out
    BEFORE = "fails before"
    #: is carried out, and the answer is lost
    AFTER = "fails after"
    #: is not carried out and not answered
    SILENT = "silent"
    #: is carried out and not answered
    APPLIED_SILENT = "applied, silent"
    #: fails, and is carried out later all the same
    LATE = "fails, applied late"


FAULTS = tuple(fate for fate in Fate if fate is not Fate.ANSWERED)


@dataclass(frozen=True, slots=True)
class Weather:
    """How the network behaves: the share of calls that go wrong, seconds of a journey, and outages (from, to)."""

    faults: float = 0.0
    journey: float = 0.002
    outages: tuple[tuple[float, float], ...] = ()
    lost_hints: float = 0.0


FINE = Weather()


@dataclass(slots=True)
class Request:
    """One call on its way."""

    number: int
    actor: Actor
    verb: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    method: Callable[..., Awaitable[Any]] = field(repr=False)
    fate: Fate
    reply: asyncio.Future[Any]
    sent_at: float


class Observer:
    """Looks at calls at the moment they are carried out."""

    def before(self, request: Request) -> None:
        """A call arrives at the store."""

    def after(self, request: Request, result: Any, error: BaseException | None) -> None:
        """A call was carried out, with this result or error of the store."""

    def between(self, request: Request) -> None:
        """A call gave others a turn."""


class Network:
    """Carries calls of actors to the store."""

    def __init__(self, loop: VirtualLoop, chance: Random, observer: Observer) -> None:
        self._loop, self._chance, self._observer = loop, chance, observer
        self.weather = FINE
        self._count = 0
        #: Calls of each actor that may still be carried out or be answered.
        self.under_way: dict[Actor, int] = {}
        #: When a call of an actor last went wrong.
        self._faulted_at: dict[Actor, float] = {}
        self._cut_until: dict[Actor, float] = {}
        #: How many calls met each fate.
        self.fates: dict[Fate, int] = {}

    async def call(self, verb: str, method: Callable[..., Awaitable[Any]], args: Any, kwargs: Any) -> Any:
        """Carry one call of the running actor to the store and return the answer."""
        loop, actor = self._loop, self._loop.actor
        fate = self._draw(verb, actor)
        self._count += 1
        request = Request(
            self._count, actor, verb, args, kwargs, method, fate, reply=loop.create_future(), sent_at=loop.now
        )
        self.under_way[actor] = self.under_way.get(actor, 0) + 1
        self.fates[fate] = self.fates.get(fate, 0) + 1
        if fate is not Fate.ANSWERED:
            self._faulted_at[actor] = loop.now
        self._send(request)
        return await request.reply

    def cut_off(self, actor: Actor, seconds: float) -> None:
        """Let no call of an actor arrive for some time."""
        self._cut_until[actor] = self._loop.now + seconds

    def undisturbed(self, actor: Actor, since: float) -> bool:
        """Whether nothing has happened to an actor, or to a call that it waited for, since a time of the world."""
        before = since - CALL_SECONDS
        return max(actor.disturbed_at, self._faulted_at.get(actor, before)) <= before

    def calm_down(self) -> None:
        """From now on every call is answered."""
        self.weather = FINE
        self._cut_until.clear()

    def _draw(self, verb: str, actor: Actor) -> Fate:
        weather, now = self.weather, self._loop.now
        away = any(begin <= now < end for begin, end in weather.outages)
        if away or self._cut_until.get(actor, now) > now:
            return self._chance.choice((Fate.BEFORE, Fate.BEFORE, Fate.SILENT))
        if weather.faults and self._chance.random() < weather.faults * (BUSY_FACTOR if verb in BUSY_VERBS else 1):
            return self._chance.choice(FAULTS)
        return Fate.ANSWERED

    def _send(self, request: Request) -> None:
        match request.fate:
            case Fate.BEFORE:
                self._later(self._journey(), self._fail, request, True)
            case Fate.SILENT:
                self._later(CALL_SECONDS, self._fail, request, True)
            case Fate.LATE:
                self._later(self._journey(), self._fail, request, False)
                self._later(self._chance.random() * LATE_SECONDS, self._arrive, request)
            case _:
                self._later(self._journey(), self._arrive, request)

    def _later(self, seconds: float, what: Callable[..., None], *args: Any) -> None:
        self._loop.call_at_world_time(self._loop.now + seconds, what, *args, context=_WORLD_CONTEXT)

    def _journey(self) -> float:
        return self._chance.expovariate(1 / self.weather.journey)

    def _arrive(self, request: Request) -> None:
        self._observer.before(request)
        self._go_on(request, request.method(*request.args, **request.kwargs))

    def _go_on(self, request: Request, verb: Any) -> None:
        """Carry a verb out, up to its end or to where it gives others a turn."""
        try:
            verb.send(None)
        except StopIteration as end:
            self._carried_out(request, end.value, None)
        except HeadraceError as error:
            self._carried_out(request, None, error)
        else:
            self._observer.between(request)
            self._later(self._chance.random() * TURN_SECONDS, self._go_on, request, verb)

    def _carried_out(self, request: Request, result: Any, error: HeadraceError | None) -> None:
        self._observer.after(request, result, error)
        match request.fate:
            case Fate.ANSWERED:
                self._later(self._journey(), self._answer, request, result, error)
            case Fate.AFTER:
                self._later(self._journey(), self._fail, request, True)
            case Fate.APPLIED_SILENT:
                self._later(CALL_SECONDS, self._fail, request, True)
            case _:
                self.under_way[request.actor] -= 1

    def _answer(self, request: Request, result: Any, error: HeadraceError | None) -> None:
        self.under_way[request.actor] -= 1
        if request.reply.done():
            return
        if error is None:
            request.reply.set_result(result)
        else:
            request.reply.set_exception(error)

    def _fail(self, request: Request, over: bool) -> None:
        self.under_way[request.actor] -= over
        if not request.reply.done():
            request.reply.set_exception(StoreUnavailableError(f"{request.verb}: {request.fate.value}"))


_WORLD_CONTEXT = WORLD.context()


@types.coroutine
def turn() -> Generator[None, None, None]:
    """Give others a turn in the middle of a verb; `Network` goes on with it later."""
    yield


class Port:
    """A port of the store as its actors see it: every verb goes through the network."""

    def __init__(self, real: Any, network: Network) -> None:
        self._real, self._network = real, network

    def __getattr__(self, verb: str) -> Any:
        method, network = getattr(self._real, verb), self._network

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await network.call(verb, method, args, kwargs)

        setattr(self, verb, call)
        return call


def across(network: Network, stores: Stores) -> Stores:
    """Return stores whose verbs go through the network."""
    ports: dict[str, Any] = {
        name: Port(getattr(stores, name), network)
        for name in ("jobs", "batches", "sessions", "control", "inspect", "memo", "admission")
    }
    return replace(stores, **ports)
