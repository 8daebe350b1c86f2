"""Removing what is older than its retention, in scripts that are short each."""

from __future__ import annotations

from datetime import timedelta

from headrace.model.job import JobState
from headrace.model.session import SESSION_RETENTION, LeaderTerm
from headrace.model.spend import SPEND_RETENTION, SpendGroup
from headrace.model.stats import Pruned, Retention
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import leader_words, span

#: What one script looks at.
SLICE = 100


async def prune_jobs(
    namespace: Namespace, retention: Retention, *, limit: int, queue: str | None, term: LeaderTerm | None
) -> Pruned:
    """Do what `JobStore.prune_jobs` promises."""
    pruning = _Pruning(namespace, term)
    removed = {"jobs": await pruning.ended(retention, limit, queue)}
    if queue is None:
        removed["batches"] = await pruning.walk("prune_batches", span(retention.succeeded), limit=limit)
        for kind, kept in {
            "keys": timedelta(),
            "sessions": SESSION_RETENTION,
            "answers": retention.kept_answers,
            "spool": retention.kept_answers,
        }.items():
            removed[kind] = await pruning.index(kind, kept, limit)
        removed["calls"] = await pruning.walk("prune_calls", span(retention.kept_answers), limit=limit)
        removed["spend"] = await pruning.sums(limit)
    return Pruned(removed)


async def prune_runs(namespace: Namespace, older_than: timedelta, *, limit: int, term: LeaderTerm | None) -> int:
    """Do what `RunStore.prune_runs` promises."""
    return await _Pruning(namespace, term).parts("prune_runs", span(older_than), limit=limit)


async def prune_signals(namespace: Namespace, older_than: timedelta, *, limit: int, term: LeaderTerm | None) -> int:
    """Do what `SignalStore.prune_signals` promises."""
    return await _Pruning(namespace, term).index("signals", older_than, limit)


async def prune_feeds(namespace: Namespace, older_than: timedelta, *, limit: int, term: LeaderTerm | None) -> int:
    """Do what `FeedStore.prune_feeds` promises."""
    return await _Pruning(namespace, term).parts("prune_feeds", span(older_than), limit=limit)


async def prune_actions(namespace: Namespace, older_than: timedelta, *, limit: int, term: LeaderTerm | None) -> int:
    """Do what `AuditStore.prune_actions` promises."""
    return await _Pruning(namespace, term).parts("prune_actions", span(older_than), limit=limit)


class _Pruning:
    def __init__(self, namespace: Namespace, term: LeaderTerm | None) -> None:
        self._namespace = namespace
        self._leader = leader_words(term)

    async def ended(self, retention: Retention, limit: int, queue: str | None) -> int:
        """Remove final jobs; those that repeat one that goes in the same call may go too."""
        names, _ = await self._namespace.run("list_queues")
        kinds = [
            (name, state.value, span(getattr(retention, state.value)))
            for name in sorted(names)
            if queue in (None, name)
            for state in (JobState.FAILED, JobState.CANCELLED, JobState.SUCCEEDED)
        ]
        removed, before = 0, -1
        while before < removed < limit:
            before = removed
            for kind in kinds:
                removed += await self.walk("prune_ended", *kind, limit=limit - removed)
        return removed

    async def walk(self, verb: str, *words: str | int, limit: int) -> int:
        """Walk what is old enough in slices, past what must stay."""
        removed = place = 0
        while removed < limit and place >= 0:
            rest = (place, SLICE, limit - removed)
            count, place = await self._namespace.run(verb, *self._leader, *words, *rest)
            removed += count
        return removed

    async def sums(self, limit: int) -> int:
        """Remove sums of days that are long over, where no budget needs them."""
        removed = 0
        for group in SpendGroup:
            removed += await self.walk("prune_spend", group.value, span(SPEND_RETENTION), limit=limit - removed)
        return removed

    async def index(self, kind: str, kept: timedelta, limit: int) -> int:
        """Remove what one index by time says is over."""
        return await self.parts("prune_index", kind, span(kept), limit=limit)

    async def parts(self, verb: str, *words: str | int, limit: int) -> int:
        """Remove what is over, the oldest first, part by part."""
        removed = 0
        while removed < limit:
            part = min(SLICE, limit - removed)
            count = await self._namespace.run(verb, *self._leader, *words, part)
            removed += count
            if count < part:
                break
        return removed
