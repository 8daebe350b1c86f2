"""What the rules of the machine share: the stores, the time, and a plain record of what was asked of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Coroutine
from datetime import datetime, timedelta
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from headrace.model.batch import BatchState, ClosedBatch
from headrace.model.ids import uuid7
from headrace.model.job import ClaimedJob, JobSpec, JobState, JobView, NewJob
from headrace.model.llm import StoredAnswer
from headrace.model.session import LeaderTerm
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock

T = TypeVar("T")
ALL = 1_000_000
SECOND = timedelta(seconds=1)
LEASE = timedelta(seconds=12)
ARGS = '{"args":[],"kwargs":{}}'
QUEUES = ("left", "right")
#: Queues whose jobs pass a gate.
GATES = ("gate", "door")
CALLBACKS = (
    JobSpec("callback", "callbacks"),
    JobSpec("callback", "left", 0, 1, 5 * SECOND, at_most_once=True),
)

#: Most of the work meets in one queue: that is where operations get into each other's way.
queues = st.sampled_from(["left", "left", "left", "right"])
specs = st.builds(
    JobSpec,
    task=st.just("work"),
    queue=queues,
    priority=st.sampled_from([0, 5, 9]),
    max_attempts=st.integers(1, 3),
    timeout=st.sampled_from([None, 5 * SECOND]),
    at_most_once=st.booleans(),
)
callbacks = st.sampled_from([None, *CALLBACKS])
counts = st.integers(1, 4)
some = st.integers(0, 10_000)
delays = st.sampled_from([0, 0, 3, 30]).map(lambda seconds: timedelta(seconds=seconds))


def look(verb: Coroutine[Any, Any, T]) -> T:
    """Run a verb of the memory store to its end; it is atomic, so it never suspends."""
    try:
        verb.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("a verb of the memory store gave way in the middle")


def first_callback(view: JobView) -> bool:
    """Whether a close made this job. One that somebody retries by hand is a job of theirs, not a second callback."""
    return view.task == "callback" and view.retry_of is None


class Ticks:
    """Time for ids: each is made one millisecond after the last, so ids follow the order of making in every run."""

    def __init__(self) -> None:
        self._ticks = count(time.time_ns() // 1_000_000)

    def time_ns(self) -> int:
        """Return the next millisecond."""
        return next(self._ticks) * 1_000_000


class World(RuleBasedStateMachine):
    """The stores under test. `memory` is looked at; verbs go to `stores`, which may be more than the memory store."""

    memory: Stores
    stores: Stores

    def begin(self) -> None:
        """Open empty stores and forget everything."""
        self.patches = pytest.MonkeyPatch()
        self.patches.setattr("headrace.model.ids.time", Ticks())
        self.clock = FakeClock()
        self.open_stores()
        self.workers: list[UUID] = []
        self.sent: list[NewJob] = []
        self.held: list[tuple[UUID, ClaimedJob]] = []
        self.seen: dict[UUID, JobView] = {}
        #: By key: the job it stands for, the hash of its body, and until when.
        self.keys: dict[str, tuple[UUID, str, datetime]] = {}
        self.batch_keys: dict[str, tuple[UUID, str]] = {}
        self.answers: dict[str, tuple[StoredAnswer, datetime]] = {}
        self.steps: dict[tuple[UUID, str], str] = {}
        self.batches: list[UUID] = []
        #: By batch: how many items were appended, and the ordinal after the last one.
        self.lengths: dict[UUID, int] = {}
        self.ends: dict[UUID, int] = {}
        #: Batches that lost items to a prune: they do not add up any more.
        self.thinned: set[UUID] = set()
        self.closings: Counter[UUID] = Counter()
        self.announced: set[UUID] = set()
        self.paused: set[str] = set()
        #: Batches that were paused, and of which all was held.
        self.still: set[UUID] = set()
        self.terms: list[LeaderTerm] = []

    def open_stores(self) -> None:
        """Open the memory store alone."""
        self.memory = self.stores = open_memory_stores(self.clock)

    def close_stores(self) -> None:
        """Close what `open_stores` opened."""

    def run(self, verb: Coroutine[Any, Any, T]) -> T:
        """Run a verb of `stores`."""
        return look(verb)

    # What is looked at

    def jobs(self) -> list[JobView]:
        """Return every job there is."""
        return look(self.memory.inspect.list_jobs(limit=ALL))

    def job(self, job_id: UUID) -> JobView:
        """Return a job that must be there."""
        view = look(self.memory.inspect.get_job(job_id))
        assert view is not None
        return view

    def may_start(self, batch_id: UUID) -> bool:
        """Whether jobs of a batch may start now: it is not being cancelled, nor paused and held."""
        cancelled = self.batch_state(batch_id) is BatchState.CANCELLING
        return not cancelled and not (batch_id in self.still and self.is_paused(batch_id))

    def is_paused(self, batch_id: UUID) -> bool:
        """Whether a batch that must be there is paused."""
        return look(self.memory.inspect.get_batch(batch_id)).paused_at is not None

    def batch_state(self, batch_id: UUID) -> BatchState:
        """Return the state of a batch that must be there."""
        view = look(self.memory.inspect.get_batch(batch_id))
        assert view is not None
        return view.state

    def alive(self, session: UUID) -> bool:
        """Whether the lease of a session runs."""
        return any(view.id == session and view.alive for view in look(self.memory.inspect.list_sessions()))

    def owns(self, session: UUID, job_id: UUID, attempt: int) -> bool:
        """Whether an attempt still runs its job."""
        view = look(self.memory.inspect.get_job(job_id))
        return view is not None and (view.state, view.attempt, view.session) == (JobState.RUNNING, attempt, session)

    def snapshot(self) -> list[Any]:
        """Return everything that can be read of the stores."""
        read = self.memory.inspect
        jobs = self.jobs()
        return [
            jobs,
            [(look(read.get_attempts(job.id)), look(self.memory.jobs.load_steps(job.id))) for job in jobs],
            [(look(read.get_batch(batch_id)), look(read.batch_progress(batch_id))) for batch_id in self.batches],
            look(read.queue_stats()),
            look(read.list_sessions()),
        ]

    # What is written down

    def new_id(self) -> UUID:
        """Return an id that nobody has."""
        return uuid7()

    def note_closed(self, closed: list[ClosedBatch]) -> None:
        """Count the closes."""
        self.closings.update(batch.id for batch in closed)

    def forget_what_went(self) -> None:
        """After a prune: strike out what the stores do not hold any more."""
        left = {job.id for job in self.jobs()}
        gone = [view for job_id, view in self.seen.items() if job_id not in left]
        self.thinned |= {view.batch_id for view in gone if view.batch_id is not None}
        self.closings.subtract(UUID(view.args["args"][0]) for view in gone if first_callback(view))
        self.seen = {job_id: view for job_id, view in self.seen.items() if job_id in left}
        self.steps = {name: value for name, value in self.steps.items() if name[0] in left}
        self.batches = [batch_id for batch_id in self.batches if look(self.memory.inspect.get_batch(batch_id))]
        self.batch_keys = {key: named for key, named in self.batch_keys.items() if named[0] in self.batches}
