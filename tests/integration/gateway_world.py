"""Processes that call a model, a store and a provider that fail at any moment, on virtual time."""

from __future__ import annotations

import asyncio
import random as global_random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any
from uuid import uuid4

from headrace.engine.llm_session import CallerSession
from headrace.llm.calling import Means
from headrace.llm.counting import Tally
from headrace.llm.endpoint import Endpoint
from headrace.llm.gateway import LLM
from headrace.llm.ledger import Ledger
from headrace.llm.models import Models
from headrace.llm.quota import Quotas
from headrace.model.calls import LIVE, CallState, CallView, Origin, current_origin
from headrace.model.errors import ConfigError, HeadraceError, StoreUnavailableError
from headrace.model.llm import Answer, AnswerStyle, CompletionRequest, Embeddings, Message, TextPart
from headrace.model.parking import ParkRequested
from headrace.model.provider_errors import OverloadedError, ProviderTimeoutError, RateLimitedError
from headrace.model.quota import Pool, PoolLimits
from headrace.model.usage import Usage
from headrace.ports.call_observer import Observers
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from headrace.testing.simulation.loop import WORLD, Actor, VirtualLoop
from tests.unit.llm_answers import OnePrice
from tests.unit.quota_world import LoopClock

POOL = Pool("virtual:virtual-1", PoolLimits(requests_per_minute=1_200, concurrency=6))
#: Nothing that is asked may take longer, whatever fails: outages are shorter than a minute.
DEADLINE_SECONDS = 900
WORDS = 12
_GRAVES: list[Actor] = []


@dataclass
class Network:
    """The way to a server: slow, cut off for a time, and now and then a message is lost."""

    random: Random
    away: bool = False
    #: shares of messages that get lost on their way there, and back
    fails: float = 0.0
    loses: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)

    async def carry(self, verb: Callable[[], Awaitable[Any]], name: str = "") -> Any:
        """Ask the server."""
        self.asked[name] += 1
        await asyncio.sleep(self.random.uniform(0.0005, 0.003))
        if self.away or self.random.random() < self.fails:
            raise StoreUnavailableError("nobody listens there")
        answer = await verb()
        await asyncio.sleep(self.random.uniform(0.0005, 0.003))
        if self.away or self.random.random() < self.loses:
            raise StoreUnavailableError("the answer was lost")
        return answer


class Far:
    """A port behind a network."""

    def __init__(self, near: Any, network: Network) -> None:
        self._near, self._network = near, network

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any, **options: Any) -> Any:
            return await self._network.carry(lambda: getattr(self._near, name)(*arguments, **options), name)

        return call


@dataclass
class VirtualProvider:
    """Answers in capitals, after a while; counts what it answered, and sometimes refuses or never answers."""

    random: Random
    #: shares of calls that end so
    refuses: float = 0.0
    overloads: float = 0.0
    times_out: float = 0.0
    seconds: tuple[float, float] = (0.05, 1.5)
    asked: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    name = "virtual"
    model = "virtual-1"
    style = AnswerStyle.PLAIN

    async def prepare(self) -> None:
        """Connect."""
        await asyncio.sleep(0.01)

    async def complete(self, request: CompletionRequest) -> Answer:
        """Answer, or fail."""
        text = request.messages[-1].content
        chance = self.random.random()
        self.calls += 1
        await asyncio.sleep(0.005)
        if chance < self.refuses:
            raise RateLimitedError(retry_after=timedelta(seconds=self.random.choice([0.1, 3])))
        if chance < self.refuses + self.overloads:
            raise OverloadedError
        self.asked[text] += 1
        await asyncio.sleep(self.random.uniform(*self.seconds))
        if chance < self.refuses + self.overloads + self.times_out:
            raise ProviderTimeoutError(maybe_paid=True)
        self.answered[text] += 1
        return Answer(text=text.upper(), usage=Usage(10, 5, 1), model=self.model, request_id=f"req-{text}")

    async def stream(self, request: CompletionRequest) -> AsyncGenerator[TextPart | Answer]:
        """Answer in parts of two characters."""
        answer = await self.complete(request)
        self.answered[request.messages[-1].content] -= 1
        for start in range(0, len(answer.text), 2):
            yield TextPart(answer.text[start : start + 2])
            await asyncio.sleep(0.05)
        self.answered[request.messages[-1].content] += 1
        yield answer

    async def embed(self, texts: tuple[str, ...], *, model: str) -> Embeddings:
        """Is not asked."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Nothing is held."""


@dataclass
class Caller:
    """One process: its gateway, and what that stands on."""

    actor: Actor
    llm: LLM
    quotas: Quotas
    session: CallerSession
    closed: bool = False

    async def close(self) -> None:
        """Close as an app does."""
        self.closed = True
        await self.llm.aclose()
        await self.quotas.close()
        await self.session.close()


@dataclass
class World:
    """Three processes over one store, and what their askers were told."""

    loop: VirtualLoop
    random: Random
    stores: Stores
    store_way: Network
    limiter_way: Network
    provider: VirtualProvider
    callers: list[Caller] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    limits: PoolLimits = POOL.limits

    def start(self) -> Caller:
        """Start one more process."""
        far = replace(
            self.stores,
            calls=Far(self.stores.calls, self.store_way),
            sessions=Far(self.stores.sessions, self.store_way),
        )
        session = CallerSession(far, dict)
        quotas = Quotas(
            Far(self.stores.limiter, self.limiter_way),
            random=Random(len(self.callers)),
        )

        async def hold_jobs(pool: str, wait: timedelta) -> None:
            await self.limiter_way.carry(lambda: asyncio.sleep(0))

        means = Means(
            ledger=Ledger(far.calls, session.id), quotas=quotas, memo=self.stores.memo, budgets=self.stores.budgets,
            observer=Observers(), tally=Tally(), hold_jobs=hold_jobs,
        )  # fmt: skip
        pool = Pool(POOL.name, self.limits)
        models = Models({"": Endpoint(open=lambda: self.provider, pool=pool, prices=OnePrice())}, means)
        # A price list is read in a thread, and threads know no virtual time.
        models.asker("").caller._has_prices = True
        caller = Caller(Actor(f"process-{len(self.callers)}"), LLM(models), quotas, session)
        self.callers.append(caller)
        return caller

    @property
    def living(self) -> list[Caller]:
        """Processes that may be asked."""
        return [caller for caller in self.callers if not caller.actor.dead and not caller.closed]

    def heal(self) -> None:
        """Let every server be reached again."""
        for way in (self.store_way, self.limiter_way):
            way.away, way.fails, way.loses = False, 0.0, 0.0

    def run_as(self, caller: Caller, work: Any) -> asyncio.Task[Any]:
        """Run a coroutine in a process: it dies with it."""
        return self.loop.create_task(work, context=caller.actor.context())

    async def ask(self, caller: Caller, text: str, *, streamed: bool, in_handler: bool) -> None:
        """Ask until there is an answer, as a job does, and count how that ended."""
        if in_handler:
            current_origin.set(Origin(job_id=uuid4()))
        for _ in range(200):
            try:
                said = await (stream(caller.llm, text) if streamed else caller.llm.complete(text, max_tokens=20))
            except ParkRequested as parked:
                await asyncio.sleep(parked.wait.total_seconds())
            except ConfigError:
                self.outcomes["closed" if caller.closed else "wrongly closed"] += 1
                return
            except HeadraceError as error:
                assert error.transient, error
                await asyncio.sleep(self.random.uniform(0.2, 1))
            else:
                if said != text.upper():
                    self.wrong.append(f"{text}: {said}")
                self.outcomes["answered"] += 1
                return
        self.outcomes["given up"] += 1

    async def work(self, text: str) -> None:
        """Ask as a job does: each run of it is in any of the processes."""
        current_origin.set(Origin(job_id=uuid4()))
        while True:
            try:
                assert await self.random.choice(self.living).llm.complete(text, max_tokens=20) == text.upper()
            except ParkRequested as parked:
                await asyncio.sleep(parked.wait.total_seconds() + self.random.uniform(0, 0.5))
            else:
                return

    async def calls(self) -> list[CallView]:
        """All calls on record, oldest first."""
        return (await self.stores.budgets.list_calls(limit=10_000))[::-1]

    async def check_rest(self) -> None:
        """Everything is at rest: nothing is held or reserved, every answer is kept, and every call is on record."""
        await self.stores.calls.reap_calls(limit=10_000)
        calls = await self.calls()
        assert [call for call in calls if call.state in LIVE] == []
        for caller in self.callers:
            for stats in [] if caller.actor.dead else caller.quotas.stats():
                assert (stats.in_flight, stats.waiting) == (0, 0), (caller.actor, stats)
        for view in await self.stores.budgets.list_budgets(["day"]):
            assert view.reserved_tokens == 0
        await self._check_paid(calls)

    async def _check_paid(self, calls: list[CallView]) -> None:
        """Every call that was answered is on record, and its answer is kept; more than one only beside orphans."""
        settled = Counter(call.key for call in calls if call.state is CallState.SETTLED and call.usage.calls)
        orphans = Counter(call.key for call in calls if call.state is CallState.ORPHANED)
        for text, asked in self.provider.asked.items():
            key = key_of(text)
            answered = self.provider.answered[text]
            assert settled[key] <= answered <= settled[key] + orphans[key], text
            assert asked <= settled[key] + orphans[key], text
            assert settled[key] <= 1 + orphans[key], text
            if settled[key]:
                answer = await self.stores.memo.load_answer(key)
                assert answer is not None, text
                assert answer.answer.text == text.upper()


def request_of(text: str) -> CompletionRequest:
    """The request that `complete(text, max_tokens=20)` makes."""
    return CompletionRequest(model="virtual-1", messages=(Message("user", text),), max_tokens=20, temperature=0.0)


def key_of(text: str) -> str:
    """The memo key of a question."""
    return request_of(text).memo_key("virtual")


async def stream(llm: LLM, text: str) -> str:
    """Ask for an answer in parts, and put them together."""
    parts = llm._exchange().stream(request_of(text))
    return "".join([part.text async for part in parts if isinstance(part, TextPart)])


def in_world(
    scenario: Callable[[World], Awaitable[None]],
    *,
    seed: int,
    processes: int = 3,
    limits: PoolLimits = POOL.limits,
    **provider: Any,
) -> World:
    """Run a scenario on virtual time, then let everything come to rest."""
    loop, random = VirtualLoop(None), Random(seed)
    global_random.seed(seed)
    stores = open_memory_stores(LoopClock(loop))
    world = World(
        loop, random, stores, Network(random), Network(random), VirtualProvider(random, **provider), limits=limits,
    )  # fmt: skip

    async def whole() -> None:
        for _ in range(processes):
            world.start()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await scenario(world)

    try:
        loop.run_until_complete(whole())
    finally:
        # What died never runs again, not even the `finally` that comes with being collected.
        _GRAVES.extend(caller.actor for caller in world.callers if caller.actor.dead)
        loop.dispose([WORLD, *(caller.actor for caller in world.callers if not caller.actor.dead)])
    return world
