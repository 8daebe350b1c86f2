"""An asyncio event loop on virtual time, in which the callbacks of many simulated processes take turns.

Nothing here waits: when no callback is ready, time jumps to the next timer. Which of the ready callbacks runs next is
drawn from the seed, or first come first served. Whose a callback is, its context says (`ACTOR`): so the loop can hold
back those of a frozen process, drop those of a dead one, and tell each process the time by its own clock.

It uses private names of asyncio (`Handle._run`, `_cancelled`, `_context`, `BaseEventLoop._run_once`); a test pins them.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import warnings
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any


class Actor:
    """A process of the simulated world: it can freeze, die, and have a clock that runs at a rate of its own."""

    def __init__(self, name: str, *, rate: float = 1.0, offset: float = 0.0) -> None:
        self.name, self.rate, self.offset = name, rate, offset
        self.dead = self.frozen = False
        #: Neither dead nor frozen; looked at before every callback.
        self.present = True
        #: When it was last frozen, thawed or killed, by the time of the world.
        self.disturbed_at = float("-inf")
        self.held: list[asyncio.Handle] = []
        #: Kept, so that no unreachable coroutine is closed, and so runs its `finally`, in the middle of a run.
        self.tasks: list[asyncio.Task[Any]] = []

    def __repr__(self) -> str:
        return self.name

    def local(self, now: float) -> float:
        """Return what its clock shows at a time of the world."""
        return self.offset + now * self.rate

    def context(self) -> Context:
        """Return a context whose callbacks are this actor's."""
        context = copy_context()
        context.run(ACTOR.set, self)
        return context


#: The world itself: the store, the network, and whoever brings the faults.
WORLD = Actor("world")
ACTOR: ContextVar[Actor] = ContextVar("headrace-simulated-actor", default=WORLD)

Timer = tuple[float, int, asyncio.TimerHandle]


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks of actors; `chance` orders those that are ready, None takes them first come first served."""

    def __init__(self, chance: Random | None) -> None:
        super().__init__()
        self.set_debug(False)
        #: Seconds since the beginning, by the time of the world.
        self.now = 0.0
        #: Whose callback runs.
        self.actor = WORLD
        #: Called each time before time moves on: nothing is ready then.
        self.on_idle: Callable[[], None] = lambda: None
        self._chance = chance
        self._queue: list[asyncio.Handle] = []
        self._timers: list[Timer] = []
        self._numbers = itertools.count()

    def time(self) -> float:
        """Return the clock of the actor that asks."""
        return self.actor.local(self.now)

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        """Make a callback ready."""
        handle = asyncio.Handle(callback, args, self, context)
        self._queue.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Make a callback ready when the clock of the calling actor shows `when`."""
        actor = self.actor
        return self.call_at_world_time((when - actor.offset) / actor.rate, callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Make a callback ready after `delay` seconds of the calling actor's clock."""
        return self.call_at_world_time(self.now + delay / self.actor.rate, callback, *args, context=context)

    def call_at_world_time(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Make a callback ready at a time of the world."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    def create_task(
        self,
        coro: Generator[Any, None, Any] | Coroutine[Any, Any, Any],
        *,
        context: Context | None = None,
        **kwargs: Any,
    ) -> asyncio.Task[Any]:
        """Start a task; it belongs to the actor of its context."""
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, context=context, **kwargs)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        (self.actor if context is None else context.get(ACTOR, WORLD)).tasks.append(task)
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        """Refuse: a thread would not know virtual time."""
        raise RuntimeError(f"{func!r} cannot run in a thread: threads know no virtual time")

    def _run_once(self) -> None:
        while not self._stopping:  # type: ignore[attr-defined]
            if not self._queue:
                self._advance()
            handle = self._next()
            if handle._cancelled:
                continue
            actor: Actor = handle._context.get(ACTOR, WORLD)  # type: ignore[attr-defined]
            if actor.present:
                self.actor = actor
                handle._run()
            elif not actor.dead:
                actor.held.append(handle)
        self.actor = WORLD

    def _next(self) -> asyncio.Handle:
        queue, chance = self._queue, self._chance
        if chance is None or len(queue) == 1:
            return queue.pop(0)
        chosen = int(chance.random() * len(queue))
        queue[chosen], queue[-1] = queue[-1], queue[chosen]
        return queue.pop()

    def _advance(self) -> None:
        """Move on to the next timer and make ready all that are due then."""
        self.actor = WORLD
        self.on_idle()
        timers, queue = self._timers, self._queue
        while not queue:
            if not timers:
                raise RuntimeError("nothing is left to happen in the simulated world")
            now = max(timers[0][0], self.now)
            while timers and timers[0][0] <= now:
                timer = heapq.heappop(timers)[2]
                if not timer._cancelled:
                    queue.append(timer)
        self.now = now

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Nothing to count: a cancelled timer is passed over when it is due."""

    def freeze(self, actor: Actor) -> None:
        """Let nothing of an actor run until it thaws; its clock goes on."""
        actor.frozen, actor.present, actor.disturbed_at = True, False, self.now

    def thaw(self, actor: Actor) -> None:
        """Let a frozen actor run again, beginning with what became ready meanwhile."""
        actor.frozen, actor.present, actor.disturbed_at = False, not actor.dead, self.now
        held, actor.held = actor.held, []
        self._queue.extend(held)

    def kill(self, actor: Actor) -> None:
        """Let nothing of an actor ever run again: no cleanup, no goodbye."""
        actor.dead, actor.present, actor.disturbed_at = True, False, self.now
        actor.held.clear()

    def dispose(self, actors: list[Actor]) -> None:
        """After the end: close what still waits, unheard, so that no garbage collection does it elsewhere."""
        self.set_exception_handler(lambda _loop, _context: None)
        with warnings.catch_warnings():
            # What is closed may try to start more in its `finally`, which nobody awaits any more.
            warnings.simplefilter("ignore", RuntimeWarning)
            while tasks := [actor.tasks.pop() for actor in actors if actor.tasks]:
                for task in tasks:
                    _close(task)
        self._queue.clear()
        self._timers.clear()
        self.close()


def _close(task: asyncio.Task[Any]) -> None:
    coroutine = task.get_coro()
    if not task.done() and coroutine is not None:
        with contextlib.suppress(BaseException):
            coroutine.close()
    if task.done() and not task.cancelled():
        task.exception()
