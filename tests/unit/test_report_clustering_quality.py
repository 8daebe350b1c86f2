"""How well clusters agree with the causes that a person would file, and how fast they are made."""

from __future__ import annotations

import random
from unittest.mock import Mock

import pytest

from headrace.apps.report.clustering import alike, cluster_cases, gathering
from headrace.apps.report.data.cases import Case
from tests.unit.report_labelled import adjusted_rand_index, homogeneity, labelled


def groups_of(cases: list[Case]) -> dict[str, str]:
    """The cluster of each case."""
    return {case_id: cluster.cluster_id for cluster in cluster_cases(cases) for case_id in cluster.case_ids}


@pytest.mark.parametrize(
    ("labels", "groups", "index"),
    [
        ("aabb", "xxyy", 1.0),
        ("aabb", "yyxx", 1.0),
        ("aabb", "xyxy", -0.5),
        ("aabb", "xxyz", 0.5714),
        ("aabb", "xxxx", 0.0),
        ("abcd", "wxyz", 1.0),
    ],
)
def test_the_adjusted_rand_index_is_that_of_the_books(labels: str, groups: str, index: float) -> None:
    """Known small examples."""
    assert adjusted_rand_index(list(labels), list(groups)) == pytest.approx(index, abs=1e-4)


@pytest.mark.parametrize(
    ("labels", "groups", "value"),
    [("aabb", "xxyy", 1.0), ("aabb", "wxyz", 1.0), ("aabb", "xxyz", 1.0), ("aabb", "xyxy", 0.0), ("aabb", "xxxx", 0.0)],
)
def test_homogeneity_is_that_of_the_books(labels: str, groups: str, value: float) -> None:
    """Known small examples."""
    assert homogeneity(list(labels), list(groups)) == pytest.approx(value, abs=1e-9)


def test_the_labelled_set_is_large_skewed_and_of_many_causes() -> None:
    """Two hundred failures or more, one cause of which is far larger than the others, and several single ones."""
    for half, least in (("tuning", 100), ("held_out", 90)):
        cases, causes = labelled(half)
        sizes = sorted((list(causes.values()).count(cause) for cause in set(causes.values())), reverse=True)
        assert len(cases) >= least and len(sizes) >= 12
        assert sizes[0] >= 5 * sizes[2] and sizes.count(1) >= 5
    assert len(labelled("tuning")[0]) + len(labelled("held_out")[0]) >= 200


@pytest.mark.parametrize("half", ["tuning", "held_out"])
def test_clusters_agree_with_the_causes_that_a_person_would_file(half: str) -> None:
    """ARI of 0.9 and homogeneity of 0.97 at least; the held-out half has causes that no threshold was chosen with."""
    cases, causes = labelled(half)
    groups = groups_of(cases)
    labels, found = [causes[case.case_id] for case in cases], [groups[case.case_id] for case in cases]
    assert adjusted_rand_index(labels, found) >= 0.9
    assert homogeneity(labels, found) >= 0.97


def test_both_halves_together_do_too() -> None:
    """A report holds the failures of several products."""
    halves = [labelled(half) for half in ("tuning", "held_out")]
    cases = [case for half, _ in halves for case in half]
    causes = {**halves[0][1], **halves[1][1]}
    groups = groups_of(cases)
    labels, found = [causes[case.case_id] for case in cases], [groups[case.case_id] for case in cases]
    assert adjusted_rand_index(labels, found) >= 0.9
    assert homogeneity(labels, found) >= 0.97


def many(count: int, kind: str) -> list[Case]:
    """Failures in thousands: those of the labelled set with other numbers, or texts that are alike in part alone."""
    dice = random.Random(count)
    cases = [*labelled("tuning")[0], *labelled("held_out")[0]]
    words = ["".join(dice.choices("abcdefghij", k=dice.randint(4, 9))) for _ in range(3_000)]
    if kind == "labelled":
        texts = [f"{(case := dice.choice(cases)).error or case.actual} (order {number})" for number in range(count)]
    else:
        texts = [f"after saving the order of {' '.join(dice.choices(words, k=4))} the page of it" for _ in range(count)]
    return [cases[0].model_copy(update={"case_id": f"P-{number}", "error": text}) for number, text in enumerate(texts)]


@pytest.mark.parametrize("kind", ["labelled", "other words"])
def test_two_thousand_failures_are_not_all_compared_with_each_other(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with twenty at most, where all pairs are two million, whether they are alike or not."""
    compared = Mock(side_effect=alike.are_one)
    monkeypatch.setattr(gathering, "are_one", compared)
    clusters = cluster_cases(many(2_000, kind))
    assert 0 < compared.call_count <= 20 * 2_000
    assert sum(cluster.size for cluster in clusters) == 2_000
