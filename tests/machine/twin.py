"""Two stores behind one set of ports: every verb goes to both, and the answers have to be the same.

Ids that a store makes itself (of items, retries and callbacks) differ between the two. `Names` pairs them in the order
in which they were made, and everything read of the second store is compared under the names of the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any
from uuid import UUID

from headrace.model.admission import Admitted, Explanation, LimitsView
from headrace.model.backlog import QueueState
from headrace.model.batch import ClosedBatch, ItemPage
from headrace.model.job import ClaimedJob, JobView
from headrace.model.session import Renewal
from headrace.model.stats import Pruned, Rescued
from headrace.ports.stores import Stores

#: More than any machine has.
EVERYTHING = 1_000_000
#: The ports of which two stores are asked.
PORTS = ("jobs", "batches", "sessions", "control", "inspect", "memo", "admission", "limiter")
#: Verbs that make ids.
MAKERS = {
    "create_batch", "append_slice", "retry_failed", "close_batches", "sweep_batches", "retry_job", "retry_jobs",
    "retry_queue",
}  # fmt: skip
#: Verbs that choose freely which rows a limit leaves for the next time.
CHOOSERS = {"stage_jobs", "settle_cancelled", "settle_paused", "prune_jobs"}


class Names:
    """Which id of the second store stands for which of the first; the ids of callers are the same in both."""

    def __init__(self) -> None:
        self.second: dict[UUID, UUID] = {}
        self.first: dict[UUID, UUID] = {}

    def pair(self, first: list[UUID], second: list[UUID]) -> None:
        """Pair the ids that are new, in their order."""
        new = sorted(set(first) - set(self.second))
        others = sorted(set(second) - set(self.first))
        assert len(new) == len(others), f"one store made {len(new)} jobs, the other {len(others)}"
        # Ids that callers made are the same in both; among the others the order of making decides.
        shared = set(new) & set(others)
        pairs = [(name, name) for name in shared]
        pairs += zip(sorted(set(new) - shared), sorted(set(others) - shared), strict=True)
        for one, other in pairs:
            self.second[one], self.first[other] = other, one


def renamed(value: Any, names: Mapping[UUID, UUID]) -> Any:
    """Return a value with the ids in it replaced."""
    if isinstance(value, UUID):
        return names.get(value, value)
    if isinstance(value, dict):
        if "held_by" in value:
            # Facts of explanations name the job as text.
            value = {**value, "held_by": str(renamed(UUID(value["held_by"]), names))}
        return {renamed(key, names): renamed(each, names) for key, each in value.items()}
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(renamed(each, names) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: renamed(getattr(value, each.name), names) for each in fields(value) if each.init}
        return replace(value, **changed)
    return value


def in_any_order(verb: str, answer: Any) -> Any:
    """Return an answer with what no port gives an order in a fixed one."""
    if verb == "complete_jobs" and answer is not None:
        return sorted(answer)
    if verb == "exchange_jobs" and answer is not None:
        return sorted(answer[0]), answer[1]
    return _by_id(_comparable(answer))


def _comparable(answer: Any) -> Any:
    """Return an answer without what is each store's own."""
    match answer:
        case Admitted():
            return replace(answer, jobs=_refusals(answer.jobs))
        case [ClaimedJob(), *_]:
            return _refusals(answer)
        case Explanation():
            # A store may count jobs beside it whose batch is being cancelled, or not.
            facts = {name: fact for name, fact in answer.facts.items() if name not in ("ahead", "others")}
            return replace(answer, facts=facts)
        case LimitsView():
            # A store may forget shares that say nothing any more, now or later.
            return replace(answer, shares=())
        case dict():
            # A store may name a state without jobs, and a queue of which nothing is set, or not.
            return {name: value for name, value in answer.items() if value not in (0, QueueState())}
    return answer


def _by_id(answer: Any) -> Any:
    match answer:
        case Renewal():
            return replace(answer, cancel_jobs=tuple(sorted(answer.cancel_jobs)))
        case Rescued():
            return replace(answer, released=tuple(sorted(answer.released)), failed=tuple(sorted(answer.failed)))
        case Pruned():
            return {kind: count for kind, count in answer.removed.items() if count}
        case ItemPage():
            return sorted((replace(item, cursor="") for item in answer.items), key=lambda item: item.job_id)
        case [ClosedBatch(), *_]:
            return sorted(answer, key=lambda batch: batch.id)
        case [(UUID(), _), *_]:
            return sorted(answer, key=lambda pair: pair[0])
    return answer


def _refusals(jobs: list[ClaimedJob]) -> list[ClaimedJob]:
    """Return jobs without the words of their refusals."""
    return [replace(job, refused=job.refused and "refused") for job in jobs]


async def outcome(call: Coroutine[Any, Any, Any]) -> tuple[Any, Exception | None]:
    """Return what a verb answered, or the error that it raised."""
    try:
        return await call, None
    except Exception as error:
        return None, error


class Both:
    """One port of two stores."""

    def __init__(self, first: Any, second: Any, twin: Twin) -> None:
        self._first, self._second, self._twin = first, second, twin

    def __getattr__(self, verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            limit = kwargs.get("limit", EVERYTHING)
            answer = await self._ask(verb, args, kwargs, loosely=verb in CHOOSERS and limit < EVERYTHING)
            if verb in CHOOSERS and limit < EVERYTHING:
                # Each took others, as many; once they take the rest too, the same is left.
                await self._ask(verb, args, {**kwargs, "limit": EVERYTHING}, loosely=True)
            return answer

        return call

    async def _ask(self, verb: str, args: Any, kwargs: Any, *, loosely: bool) -> Any:
        names = self._twin.names
        one, error = await outcome(getattr(self._first, verb)(*args, **kwargs))
        theirs = renamed([args, kwargs], names.second)
        other, other_error = await outcome(getattr(self._second, verb)(*theirs[0], **theirs[1]))
        assert type(error) is type(other_error), f"{verb}: {error!r} is not {other_error!r}"
        if verb in MAKERS:
            await self._twin.learn()
        if error is not None:
            raise error
        if not loosely:
            told = in_any_order(verb, renamed(other, names.first))
            assert in_any_order(verb, one) == told, f"{verb} answers {one!r} here and {told!r} there"
            return one
        here, there = [rows_of(each) if isinstance(each, Pruned) else each for each in (one, other)]
        if not isinstance(one, frozenset):
            assert here == there, f"{verb} takes {here} here and {there} there"
        await self._twin.count()
        return one


class Twin:
    """The stores of a machine: `first` and `second` behind ports that compare them."""

    def __init__(self, first: Stores, second: Stores) -> None:
        self.first, self.second, self.names = first, second, Names()

    def stores(self) -> Stores:
        """Return the ports through which both are asked."""
        asked: Any = {name: Both(getattr(self.first, name), getattr(self.second, name), self) for name in PORTS}
        return replace(self.first, **asked)

    async def learn(self) -> None:
        """Pair the ids of jobs that appeared in both stores."""
        first, second = await self._jobs()
        self.names.pair([view.id for view in first], [view.id for view in second])

    async def count(self) -> None:
        """Compare how many jobs are in each state, after a verb that was free to choose which."""
        jobs = await self._jobs()
        here, there = [Counter("final" if view.state.final else view.state for view in views) for views in jobs]
        assert here == there, f"the jobs are {here} here and {there} there"

    async def _jobs(self) -> list[list[JobView]]:
        return [await read.list_jobs(limit=EVERYTHING) for read in (self.first.inspect, self.second.inspect)]


def rows_of(pruned: Pruned) -> dict[str, int]:
    """Return how many rows went, without batches: those follow the very jobs that were chosen."""
    return {kind: count for kind, count in pruned.removed.items() if kind != "batches"}
