"""Gathering: one call of a handler for several jobs, each of which keeps an attempt of its own.

To everything around it, a gathered job is an attempt like any other: its call joins a gather and waits for its entry
of the answer. So its retries, its fence, its ack and its cancel are those of every attempt, and only what this module
does is shared: when the call begins, how long it may take, and whose entry is whose.

A gather begins when it is full, when no slot is free to bring more, when nothing has come for a few of the usual gaps
between jobs, and `max_wait` after its first job at the latest. A job that comes after a longer pause than that begins
at once. Not guaranteed: that a call is full, or that a job is called with the same others when it runs again.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Any
from uuid import UUID

from headrace.engine.attempt import Attempt, SharedCall
from headrace.engine.context import Context, GatherContext
from headrace.engine.gather_codec import GatherCodec
from headrace.engine.registry import TaskDef
from headrace.engine.telemetry import Telemetry
from headrace.model.errors import TaskTimeoutError, WrongAnswerError
from headrace.model.gathering import Gather, Pace
from headrace.model.job import ClaimedJob
from headrace.model.parking import current_slot
from headrace.ports.clock import Clock

Fence = tuple[UUID, int]
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
#: Runs a handler with its arguments where its task wants it, for the first of its jobs and a session.
Run = Callable[[TaskDef, ClaimedJob, UUID, Arguments], Awaitable[Any]]

#: An attempt's own timer is behind that of the call by its longest wait and so many seconds: the call's decides.
TIMER_MARGIN = 1.0


@dataclass(frozen=True, slots=True)
class Entry:
    """What a call answered for one job: a value, or an error to raise."""

    value: Any = None
    error: BaseException | None = None
    trace: TracebackType | None = None

    @classmethod
    def of_error(cls, error: BaseException) -> Entry:
        """Return an entry that raises the error as it is now."""
        return cls(error=error, trace=error.__traceback__)

    def give(self) -> Any:
        """Return the value, or raise the error: for each job as if for it alone, for raising lengthens the trace."""
        if self.error is None:
            return self.value
        raise self.error.with_traceback(self.trace)


@dataclass(slots=True, eq=False)
class Item:
    """A job in a gather."""

    attempt: Attempt
    value: Any
    #: Seconds that its attempt may run.
    timeout: float
    joined_at: float
    answer: asyncio.Future[Entry]
    #: Of its attempt: what the call uses of models is kept with the first job of it.
    variables: contextvars.Context = field(default_factory=contextvars.copy_context)

    @property
    def job(self) -> ClaimedJob:
        """The job."""
        return self.attempt.job

    @property
    def fence(self) -> Fence:
        """What names its attempt."""
        return self.job.id, self.job.attempt


class Gatherings:
    """The gathers of one worker, by session and task."""

    def __init__(self, run: Run, clock: Clock, resources: Any = None) -> None:
        self._run = run
        self._clock = clock
        self._resources = resources
        self._open: dict[tuple[UUID, str], _Gathering] = {}
        self._full: dict[UUID, Callable[[str], bool]] = {}
        self._telemetry: dict[UUID, Telemetry] = {}
        self._begun: set[Fence] = set()

    def open(self, session: UUID, *, is_full: Callable[[str], bool], telemetry: Telemetry) -> None:
        """Begin a session; `is_full(queue)` says whether its slots for a queue are all taken."""
        self._full[session], self._telemetry[session] = is_full, telemetry

    def close(self, session: UUID) -> None:
        """End a session of which nothing runs any more."""
        self._full.pop(session, None)
        self._telemetry.pop(session, None)
        for key in [key for key in self._open if key[0] == session]:
            del self._open[key]

    def has_begun(self, fence: Fence) -> bool:
        """Whether the call of a gathered attempt runs."""
        return fence in self._begun

    async def join(self, attempt: Attempt, session: UUID, timeout: float) -> Any:
        """Wait in a gather of the task, and for its call; return what that answers for this job, or raise it."""
        task = attempt.task
        assert isinstance(task.codec, GatherCodec)
        value = task.codec.decode_item(attempt.job.args)
        loop = asyncio.get_running_loop()
        gathering = self._open.get((session, task.name))
        if gathering is None:
            gathering = self._open[session, task.name] = _Gathering(self, task, session)
        item = Item(attempt, value, timeout, loop.time(), loop.create_future())
        gathering.add(item)
        try:
            entry = await item.answer
        except asyncio.CancelledError:
            if (runner := gathering.leave(item)) is not None:
                # The last to leave waits, so that the handler never outlives the attempts it ran for.
                await asyncio.wait([runner])
            raise
        return entry.give()

    def is_full(self, session: UUID, queue: str) -> bool:
        """Whether no slot is free that could bring more jobs."""
        full = self._full.get(session)
        return full is not None and full(queue)

    def begin(self, task: TaskDef, session: UUID, items: list[Item]) -> asyncio.Task[None]:
        """Call the handler for these jobs."""
        self._begun.update(item.fence for item in items)
        if (telemetry := self._telemetry.get(session)) is not None:
            telemetry.count("headrace.gathers.calls")
            telemetry.count("headrace.gathers.jobs", len(items))
        call = _Call(task, items, self._clock, self._resources)
        runner = asyncio.get_running_loop().create_task(
            call.run(lambda arguments: self._run(task, items[0].job, session, arguments)),
            name=f"headrace-gather-{task.name}",
            context=items[0].variables,
        )
        runner.add_done_callback(lambda _: self._begun.difference_update(item.fence for item in items))
        return runner


class _Gathering:
    """The jobs of one task that wait for a call, and those whose call runs."""

    def __init__(self, gatherings: Gatherings, task: TaskDef, session: UUID) -> None:
        assert task.gather is not None
        self._gatherings, self._task, self._session = gatherings, task, session
        self._rule: Gather = task.gather
        self._longest = self._rule.max_wait.total_seconds()
        self._pace = Pace(longest=self._longest)
        self._waiting: list[Item] = []
        self._calls: dict[Item, tuple[list[Item], asyncio.Task[None]]] = {}
        self._timer: asyncio.Handle | None = None
        #: Whether it is looked at in this turn of the event loop, behind all that comes in it.
        self._looks = False

    def add(self, item: Item) -> None:
        """Let a job in. What comes in the same turn of the event loop, as from one claim, goes together."""
        self._waiting.append(item)
        self._pace.note(item.joined_at)
        if len(self._waiting) >= self._rule.batch_size:
            self._begin(self._rule.batch_size)
        if not self._looks:
            self._looks = True
            asyncio.get_running_loop().call_soon(self._look)

    def leave(self, item: Item) -> asyncio.Task[None] | None:
        """Let a job go whose attempt was stopped; a call that all have left is cancelled, and returned."""
        if item in self._waiting:
            self._waiting.remove(item)
            return None
        items, runner = self._calls.get(item, ([], None))
        if runner is None or not all(one.answer.done() for one in items):
            return None
        runner.cancel()
        return runner

    def _look(self) -> None:
        """Begin what need not wait any longer."""
        self._looks = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        loop = asyncio.get_running_loop()
        first, last = self._waiting[0], self._waiting[-1]
        begin_at = min(first.joined_at + self._longest, last.joined_at + self._pace.patience)
        if begin_at <= loop.time() or self._gatherings.is_full(self._session, first.job.queue):
            self._begin(len(self._waiting))
        else:
            self._timer = loop.call_at(begin_at, self._look)

    def _begin(self, count: int) -> None:
        items, self._waiting = self._waiting[:count], self._waiting[count:]
        runner = self._gatherings.begin(self._task, self._session, items)
        self._calls.update(dict.fromkeys(items, (items, runner)))
        runner.add_done_callback(lambda _: [self._calls.pop(item, None) for item in items])


class _Call:
    """One call of a handler."""

    def __init__(self, task: TaskDef, items: list[Item], clock: Clock, resources: Any) -> None:
        self._task, self._items = task, items
        self._shared = SharedCall(items[-1].fence)
        for item in items:
            item.attempt.shared = self._shared
        #: All have the task's timeout but those that were enqueued with another one.
        self._timeout = min(item.timeout for item in items)
        self._context = GatherContext(
            task=task.name,
            queue=items[0].job.queue,
            job_ids=tuple(item.job.id for item in items),
            deadline=clock.now() + timedelta(seconds=self._timeout),
            resources=resources,
            on_activity=self._report,
            keeping=items[0].attempt.context.keeping,
            keep=self._keep,
        )

    def _keep(self, line: str) -> None:
        for item in self._items:
            item.attempt.context.keep(line)

    def _report(self) -> None:
        for item in self._items:
            item.attempt.context.on_activity()

    async def run(self, run: Callable[[Arguments], Awaitable[Any]]) -> None:
        """Call the handler and tell each job its entry."""
        assert isinstance(self._task.codec, GatherCodec)
        self._report()
        current_slot.set(_Slots(self._items))
        limit = asyncio.timeout(self._timeout)
        try:
            arguments = self._task.codec.call([item.value for item in self._items], self._context)
            async with limit:
                answer = await run(arguments)
            entries = entries_of(self._task, answer, len(self._items))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            # SystemExit too, and what a handler awaited and was cancelled: see the retry middleware.
            self._context.cancelled = True
            entries = [Entry.of_error(self._seen(error, expired=limit.expired()))] * len(self._items)
        self._shared.endings = [entry.value if entry.error is None else entry.error for entry in entries]
        for item, entry in zip(self._items, entries, strict=True):
            if not item.answer.done():
                item.answer.set_result(entry)

    def _seen(self, error: BaseException, *, expired: bool) -> BaseException:
        if not (expired and isinstance(error, TimeoutError | asyncio.CancelledError)):
            return error
        hint = f"raise timeout= of task {self._task.name!r}, lower its batch_size, or make it faster"
        return TaskTimeoutError(f"the call for {len(self._items)} jobs ran longer than {self._timeout:g} s; {hint}")


class _Slots:
    """The slots of all jobs of a call: what it waits for, all of them do."""

    def __init__(self, items: list[Item]) -> None:
        self._slots = [item.attempt.slot for item in items if item.attempt.slot is not None]

    def begin(self) -> None:
        """It waits."""
        for slot in self._slots:
            slot.begin()

    def end(self) -> None:
        """It waits no longer."""
        for slot in self._slots:
            slot.end()


def entries_of(task: TaskDef, answer: Any, count: int) -> Sequence[Entry]:
    """Return the entry of each job of a call. Raises WrongAnswerError for anything but so many."""
    if not isinstance(answer, list | tuple) or len(answer) != count:
        got = f"a list of {len(answer)}" if isinstance(answer, list | tuple) else f"a {type(answer).__name__}"
        raise WrongAnswerError(
            f"the handler of task {task.name!r} was called for {count} jobs and returned {got}: it must return a list "
            "with one entry for each, in their order; an exception instance or an outcome is an entry too"
        )
    return [Entry.of_error(entry) if isinstance(entry, Exception) else Entry(entry) for entry in answer]


async def call_alone(task: TaskDef, text: str, context: Context, run: Callable[..., Any]) -> Any:
    """Call a gathering handler for one job, where its neighbours must not share its fate: in a child process."""
    assert isinstance(task.codec, GatherCodec)
    gathered = GatherContext(
        task=task.name, queue=context.queue, job_ids=(context.job_id,), deadline=context.deadline,
        resources=context.resources, on_activity=lambda: context.on_activity(),
        keeping=context.keeping, keep=context.keep,
    )  # fmt: skip
    args, kwargs = task.codec.call([task.codec.decode_item(text)], gathered)
    [entry] = entries_of(task, await run(*args, **kwargs), 1)
    return entry.give()
