"""Merges that a model proposes: what is valid is done and counted by code, what is not is ignored and counted."""

from __future__ import annotations

import json

import pytest

from headrace.apps.report.clustering import MOST_CARDS, Known, apply_merges, cards, cluster_cases
from headrace.apps.report.data.cases import Case
from headrace.apps.report.data.clusters import Cluster
from tests.unit.report_failing import failed

TEXTS = (
    "IOError: the disk of the server is full",
    "OddError: nobody can write a file",
    "NetError: no answer by the host",
)


def world() -> tuple[list[Case], tuple[Cluster, ...]]:
    """Three clusters of four, two and one case."""
    counts = zip(TEXTS, (4, 2, 1), strict=True)
    cases = [
        failed(f"{text[:2]}-{n}", text, module=text[:3], severity="major")
        for text, count in counts
        for n in range(count)
    ]
    return cases, cluster_cases(cases)


def test_a_merge_keeps_the_id_of_the_largest_and_is_recounted() -> None:
    """The others are listed, and a merged cluster stands in its place in the order."""
    cases, (first, second, third) = world()
    done = apply_merges([first, second, third], [[third.cluster_id, second.cluster_id]], cases)
    assert (done.ignored, [cluster.size for cluster in done.clusters]) == (0, [4, 3])
    merged = done.clusters[1]
    assert (merged.cluster_id, merged.merged) == (second.cluster_id, (third.cluster_id,))
    assert (merged.modules, merged.severities) == ({"Odd": 2, "Net": 1}, {"major": 3})
    assert merged.case_ids == tuple(sorted([*second.case_ids, *third.case_ids]))
    assert merged.representative == second.representative and merged.name.endswith("[Odd]")


def test_a_merge_keeps_the_id_that_the_previous_report_knew() -> None:
    """However small that cluster has become."""
    cases, (first, second, third) = world()
    known = Known(previous=(third,))
    clusters = cluster_cases(cases, known)
    merged = apply_merges(clusters, [[first.cluster_id, third.cluster_id]], cases, known).clusters[0]
    assert (merged.cluster_id, merged.merged, merged.seen_before) == (third.cluster_id, (first.cluster_id,), True)
    assert second.cluster_id not in merged.merged


def test_a_merged_cluster_may_be_merged_again() -> None:
    """All that it ever took in stays listed."""
    cases, (first, second, third) = world()
    once = apply_merges([first, second, third], [[second.cluster_id, third.cluster_id]], cases)
    twice = apply_merges(once.clusters, [[first.cluster_id, second.cluster_id]], cases)
    assert twice.clusters[0].merged == tuple(sorted([second.cluster_id, third.cluster_id]))
    assert twice.clusters[0].size == 7


def test_all_that_was_taken_in_stays_listed_where_the_first_had_some() -> None:
    """The other way round."""
    cases, (first, second, third) = world()
    once = apply_merges([first, second, third], [[first.cluster_id, second.cluster_id]], cases)
    twice = apply_merges(once.clusters, [[first.cluster_id, third.cluster_id]], cases)
    assert twice.clusters[0].merged == tuple(sorted([second.cluster_id, third.cluster_id]))


def test_an_id_that_stood_in_the_previous_report_goes_before_one_that_was_merged_there() -> None:
    """Both were seen before, but only one of them has a line that people know."""
    cases, (first, _, third) = world()
    known = Known(previous=(third.model_copy(update={"merged": (first.cluster_id,)}),))
    clusters = cluster_cases(cases, known)
    assert {cluster.cluster_id: cluster.seen_before for cluster in clusters}[first.cluster_id] is True
    merged = apply_merges(clusters, [[first.cluster_id, third.cluster_id]], cases, known).clusters[0]
    assert merged.cluster_id == third.cluster_id


@pytest.mark.parametrize("kind", ["unknown", "alone", "twice", "empty", "same"])
def test_invalid_proposals_are_ignored_and_counted(kind: str) -> None:
    """An unknown id, a single one, one in two groups, nothing, one id named twice."""
    cases, clusters = world()
    first, second, third = (cluster.cluster_id for cluster in clusters)
    proposals: dict[str, list[list[str]]] = {
        "unknown": [[first, "C-none"]],
        "alone": [[first]],
        "twice": [[first, second], [second, third]],
        "empty": [[]],
        "same": [[first, first]],
    }
    done = apply_merges(clusters, proposals[kind], cases)
    assert (done.clusters, done.ignored) == (clusters, len(proposals[kind]))


def test_an_invalid_group_spoils_no_other() -> None:
    """What is valid is done."""
    cases, clusters = world()
    first, second, third = (cluster.cluster_id for cluster in clusters)
    done = apply_merges(clusters, [[first, second], [third, "C-none"]], cases, lang="zh")
    assert (done.ignored, [cluster.size for cluster in done.clusters]) == (1, [6, 1])
    assert "个用例" in done.clusters[0].commonality


def test_cards_are_short_and_at_most_thirty() -> None:
    """The largest clusters, with what a model needs to see that two are one, and no more."""
    cases, clusters = world()
    shown = cards(clusters, cases)
    assert [card["size"] for card in shown] == [4, 2, 1]
    assert shown[0] == {
        "id": clusters[0].cluster_id,
        "size": 4,
        "exception": "IOError",
        "message": "the disk of the server is full",
        "frame": "",
        "modules": {"IOE": 4},
        "example": TEXTS[0],
        "representative": "IO-0",
        "cases": list(clusters[0].case_ids),
    }
    long = [failed(f"T-{n}", f"E{chr(65 + n % 26)}{chr(65 + n // 26)}Error: " + "word " * 900) for n in range(40)]
    shown = cards(cluster_cases(long), long)
    assert len(shown) == MOST_CARDS == 30
    assert max(len(card["example"]) for card in shown) <= 300 and len(json.dumps(shown)) < 30_000
    assert len(cards(cluster_cases(long), long, most=5)) == 5
