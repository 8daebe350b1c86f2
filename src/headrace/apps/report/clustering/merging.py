"""Merges of clusters that a model proposes. It says which are one; all else is worked out by code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headrace.apps.report.clustering.cluster import Known, counted, largest_first
from headrace.apps.report.clustering.naming import named
from headrace.apps.report.data.cases import Case
from headrace.apps.report.data.clusters import Cluster

#: So many clusters are shown to a model at once.
MOST_CARDS = 30
MOST_SNIPPET = 300
#: Ids of cases that a card shows, for a model to cite.
MOST_CASES = 5
_MOST_MODULES = 5


@dataclass(frozen=True, slots=True)
class Merged:
    """Clusters after the merges."""

    clusters: tuple[Cluster, ...]
    #: Groups that were not followed: an unknown id, one id alone, or an id that stands in two groups.
    ignored: int = 0


def cards(clusters: Iterable[Cluster], cases: Iterable[Case], *, most: int = MOST_CARDS) -> list[dict[str, Any]]:
    """Short cards of the largest clusters for the prompt of a model, which merges them by `id`."""
    by_id = {case.case_id: case for case in cases}
    return [_card(cluster, by_id.get(cluster.representative)) for cluster in largest_first(clusters)[:most]]


def apply_merges(
    clusters: Sequence[Cluster],
    proposals: Sequence[Sequence[str]],
    cases: Iterable[Case],
    known: Known | None = None,
    *,
    lang: Literal["en", "zh"] = "en",
) -> Merged:
    """Merge the clusters of each valid group of ids, recount them, and name them by template.

    A merged cluster keeps the id that the previous report knew, else that of its largest member.
    """
    by_id = {cluster.cluster_id: cluster for cluster in clusters}
    groups = _valid(proposals, by_id)
    book = _Book({case.case_id: case for case in cases}, known or Known())
    gone = {name for group in groups for name in group}
    merged = [named(book.merge([by_id[name] for name in group]), lang) for group in groups]
    others = [cluster for cluster in clusters if cluster.cluster_id not in gone]
    return Merged(tuple(largest_first([*others, *merged])), len(proposals) - len(groups))


def _valid(proposals: Sequence[Sequence[str]], known: Mapping[str, Cluster]) -> list[list[str]]:
    # What contradicts itself is followed in no part: which of two groups a cluster is of, code cannot know.
    groups = [sorted(set(map(str, group))) for group in proposals]
    times = Counter(name for group in groups for name in group)
    return [group for group in groups if len(group) > 1 and all(name in known and times[name] == 1 for name in group)]


@dataclass(frozen=True, slots=True)
class _Book:
    cases: Mapping[str, Case]
    known: Known

    def merge(self, clusters: Sequence[Cluster]) -> Cluster:
        first, *others = sorted(clusters, key=self._rank)
        case_ids = tuple(sorted(name for cluster in clusters for name in cluster.case_ids))
        modules, severities = counted((self.cases[name] for name in case_ids if name in self.cases), self.known)
        gone = {name for cluster in others for name in (cluster.cluster_id, *cluster.merged)}
        return first.model_copy(
            update={
                "case_ids": case_ids,
                "representative": largest_first(clusters)[0].representative,
                "modules": modules,
                "severities": severities,
                "merged": tuple(sorted(gone.union(first.merged))),
                "seen_before": _seen(clusters),
            }
        )

    def _rank(self, cluster: Cluster) -> tuple[bool, bool, int, str]:
        is_old = any(cluster.cluster_id == old.cluster_id for old in self.known.previous or ())
        return (not is_old, not cluster.seen_before, -cluster.size, cluster.cluster_id)


def _seen(clusters: Sequence[Cluster]) -> bool | None:
    told = [cluster.seen_before for cluster in clusters if cluster.seen_before is not None]
    return any(told) if told else None


def _card(cluster: Cluster, case: Case | None) -> dict[str, Any]:
    texts = (case.error, case.actual, case.remark, case.title) if case else ()
    snippet = next((text for text in texts if text), "")
    return {
        "id": cluster.cluster_id,
        "size": cluster.size,
        "exception": cluster.exception,
        "message": cluster.message[:MOST_SNIPPET],
        "frame": cluster.frame,
        "modules": dict(list(cluster.modules.items())[:_MOST_MODULES]),
        "example": snippet[:MOST_SNIPPET],
        "representative": cluster.representative,
        "cases": list(cluster.case_ids[:MOST_CASES]),
    }
