"""What changed since an earlier report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import Field

from headrace.apps.report.data.base import Value
from headrace.apps.report.data.cases import FAILING, Case, Status
from headrace.apps.report.data.clusters import Cluster
from headrace.apps.report.stats.previous import Point, Previous
from headrace.apps.report.stats.values import Rate, Rates, Split, rates_of


class Delta(Value):
    """A figure then and now; `change` is None where one of them is not known."""

    before: float | None
    now: float | None
    change: float | None


class ModuleDelta(Value):
    """How a module changed; one that is not in a report has no cases there."""

    name: str
    total: Delta
    failing: Delta
    pass_rate_of_executed: Delta


class ClusterTrend(Value):
    """Ids of clusters that the earlier report lacks, has too, and had alone."""

    new: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    #: Names of those that are gone, by id.
    gone_names: dict[str, str] = Field(default={})


class Trend(Value):
    """The comparison. Newly and still failing cases together are the failing cases of today."""

    previous_job_id: str
    previous_created_at: str
    by_status: dict[str, Delta]
    rates: dict[str, Delta]
    modules: tuple[ModuleDelta, ...]
    #: Fail now and did not before: cases that the earlier report lacks, too.
    newly_failing: tuple[str, ...] = ()
    still_failing: tuple[str, ...] = ()
    #: Failed or were blocked, and passed now.
    fixed: tuple[str, ...] = ()
    #: Failed or were blocked, and were not run now, or say nothing: not known to be fixed.
    unconfirmed: tuple[str, ...] = ()
    new_cases: tuple[str, ...] = ()
    removed_cases: tuple[str, ...] = ()
    #: None until clusters are known.
    clusters: ClusterTrend | None = None
    #: Earlier reports, the oldest first.
    history: tuple[Point, ...] = ()


def delta(before: float | None, now: float | None) -> Delta:
    """Return the change of a figure."""
    known = before is not None and now is not None
    return Delta(before=before, now=now, change=round(now - before, 2) if known else None)  # type: ignore[operator]


def compare(cases: Sequence[Case], by_status: Mapping[str, int], modules: Iterable[Split], then: Previous) -> Trend:
    """Return what changed since `then`."""
    return Trend(
        previous_job_id=then.job_id,
        previous_created_at=then.created_at,
        by_status={name: delta(then.by_status.get(name, 0), count) for name, count in by_status.items()},
        rates=_rates(rates_of(_whole(then.by_status)), rates_of(by_status)),
        modules=_modules(modules, then.modules),
        history=then.history,
        **_moves(cases, then.statuses),
    )


def _whole(counts: Mapping[str, int]) -> dict[str, int]:
    return {status.value: counts.get(status.value, 0) for status in Status}


def _rates(before: Rates, now: Rates) -> dict[str, Delta]:
    names = Rates.model_fields
    pairs: dict[str, tuple[Rate, Rate]] = {name: (getattr(before, name), getattr(now, name)) for name in names}
    return {name: delta(one.percent, other.percent) for name, (one, other) in pairs.items()}


def _modules(now: Iterable[Split], then: Mapping[str, Mapping[str, int]]) -> tuple[ModuleDelta, ...]:
    present = {one.name: one.by_status for one in now}
    names = [*present, *sorted(set(then) - set(present))]
    return tuple(_module(name, _whole(then.get(name, {})), _whole(present.get(name, {}))) for name in names)


def _module(name: str, then: dict[str, int], now: dict[str, int]) -> ModuleDelta:
    failing = [sum(counts[status] for status in FAILING) for counts in (then, now)]
    return ModuleDelta(
        name=name,
        total=delta(sum(then.values()), sum(now.values())),
        failing=delta(*failing),
        pass_rate_of_executed=_rates(rates_of(then), rates_of(now))["pass_rate_of_executed"],
    )


def _moves(cases: Sequence[Case], then: Mapping[str, Status]) -> dict[str, Any]:
    """Ids of cases by what became of them."""
    failed = {case_id for case_id, status in then.items() if status in FAILING}
    now = {case.case_id for case in cases}
    of_failed = [case for case in cases if case.case_id in failed]
    quiet = (Status.SKIPPED, Status.UNKNOWN)
    return {
        "newly_failing": tuple(case.case_id for case in cases if case.fails and case.case_id not in failed),
        "still_failing": tuple(case.case_id for case in of_failed if case.fails),
        "fixed": tuple(case.case_id for case in of_failed if case.status is Status.PASSED),
        "unconfirmed": tuple(case.case_id for case in of_failed if case.status in quiet),
        "new_cases": tuple(case.case_id for case in cases if case.case_id not in then),
        "removed_cases": tuple(case_id for case_id in then if case_id not in now),
    }


def compare_clusters(clusters: Iterable[Cluster], then: Previous) -> ClusterTrend:
    """Return which clusters are new; one that was merged into another counts as seen with it."""
    ids = {one.cluster_id: {one.cluster_id, *one.merged} for one in clusters}
    seen = {cluster_id for one in then.clusters for cluster_id in (one.cluster_id, *one.merged)}
    today = {cluster_id for members in ids.values() for cluster_id in members}
    gone = [one for one in then.clusters if not today & {one.cluster_id, *one.merged}]
    return ClusterTrend(
        new=tuple(one for one, members in ids.items() if not members & seen),
        known=tuple(one for one, members in ids.items() if members & seen),
        gone=tuple(one.cluster_id for one in gone),
        gone_names={one.cluster_id: one.name for one in gone},
    )
