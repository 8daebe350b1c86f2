"""Figures of reports: how each is defined, what incomplete data do to them, and sums that must agree."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.apps.report.data.cases import FAILING, Case, Source, Status
from headrace.apps.report.data.modules import UNCATEGORIZED, Assignment
from headrace.apps.report.stats import Previous, Thresholds, add_findings, check_reconciled, compute_stats
from headrace.apps.report.stats.durations import EDGES, NAMES
from headrace.apps.report.stats.gate import Criterion
from headrace.apps.report.stats.previous import PreviousCluster
from tests.unit.report_documents import document, make_cases, make_clusters, make_defects, make_previous

P, F, B, S, U = Status


def case(number: int, status: Status = P, **fields: object) -> Case:
    """Return a case of a status."""
    return Case(case_id=f"C{number}", status=status, source=Source(sheet="S", row=number), **fields)  # type: ignore[arg-type]


def cases(*statuses: Status, **fields: object) -> list[Case]:
    """Return a case of each status."""
    return [case(number, status, **fields) for number, status in enumerate(statuses)]


def criterion(name: str, given_cases: Sequence[Case], thresholds: Thresholds | None = None) -> Criterion:
    """Return one criterion of the verdict on cases."""
    gate = compute_stats(given_cases, (), thresholds=thresholds or Thresholds()).gate
    return next(one for one in gate.criteria if one.name == name)


def test_each_rate_is_what_its_definition_says() -> None:
    """Blocked cases lower the pass rate; skipped and unknown ones are not executed and never passed."""
    rates = compute_stats(cases(*[P] * 6, F, B, S, U), ()).rates
    assert (rates.pass_rate_of_executed.count, rates.pass_rate_of_executed.of) == (6, 8)
    assert rates.pass_rate_of_executed.percent == 75
    assert (rates.pass_rate_of_all.count, rates.pass_rate_of_all.of) == (6, 10)
    assert (rates.execution_rate.count, rates.execution_rate.of, rates.execution_rate.percent) == (8, 10, 80)


def test_a_rate_of_nothing_is_not_known() -> None:
    """Without an executed case there is no pass rate, and without a case no verdict."""
    assert compute_stats(cases(S, U), ()).rates.pass_rate_of_executed.percent is None
    nothing = compute_stats((), ())
    assert nothing.rates.execution_rate.percent is None
    assert nothing.gate.verdict == "undecidable"


@pytest.mark.parametrize(
    ("passed", "failed", "unknown", "met"),
    [(95, 5, 0, True), (94, 6, 0, False), (95, 4, 1, True), (94, 3, 3, None), (90, 8, 2, False), (0, 0, 0, None)],
)
def test_the_pass_rate_is_judged_whatever_unknown_results_are(
    passed: int, failed: int, unknown: int, met: bool | None
) -> None:
    """Met when all unknown ones count as failed, not met when all count as passed, else not to be told."""
    found = criterion("pass_rate_of_executed", cases(*[P] * passed, *[F] * failed, *[U] * unknown))
    assert (found.met, found.uncertain) == (met, unknown)


def test_urgent_failures_without_priority_leave_the_verdict_open() -> None:
    """A failed case that nobody gave a priority may be urgent."""
    easy = Thresholds(pass_rate_of_executed=0, execution_rate=0)
    assert compute_stats(cases(P, F, priority="P2"), (), thresholds=easy).gate.verdict == "pass"
    assert compute_stats(cases(P, F, priority=""), (), thresholds=easy).gate.verdict == "undecidable"
    assert compute_stats(cases(P, F, priority="P1"), (), thresholds=easy).gate.verdict == "fail"
    assert criterion("failed_urgent", cases(F, F, priority="P0")).actual == 2
    assert criterion("blocked_most_urgent", cases(B, priority="P1")).met is True
    assert criterion("blocked_most_urgent", cases(B, priority="P0")).met is False


def test_thresholds_are_configurable_and_checked() -> None:
    """Percentages stay between 0 and 100."""
    assert criterion("execution_rate", cases(P, S), Thresholds(execution_rate=50)).met is True
    with pytest.raises(ValueError, match="less than or equal to 100"):
        Thresholds(pass_rate_of_executed=101)


def test_modules_come_worst_first_and_cases_without_one_are_uncategorized() -> None:
    """A case that nobody assigned counts there, too."""
    given_cases = cases(F, P, P, F, F)
    assigned = [Assignment(case_id=f"C{number}", module="A" if number else "B") for number in range(4)]
    modules = compute_stats(given_cases, assigned).modules
    assert [(one.name, one.failing, one.total) for one in modules] == [
        ("A", 1, 3), ("B", 1, 1), (UNCATEGORIZED, 1, 1),
    ]  # fmt: skip


def test_durations_fall_into_bins_and_those_without_are_told() -> None:
    """Each edge belongs to the bin above it; negative and infinite ones are missing."""
    seconds = [0.0, *EDGES, -1.0, float("inf"), None]
    found = compute_stats([case(n, duration_seconds=one) for n, one in enumerate(seconds)], ()).durations
    assert [one.count for one in found.bins] == [1] * len(NAMES)
    assert (found.of, found.missing) == (7, 3)
    assert found.median_seconds.model_dump() == {"value": 60.0, "of": 7, "missing": 3}
    assert found.longest_seconds.value == EDGES[-1]


def test_completeness_tells_how_many_cases_lack_a_field() -> None:
    """Of all cases, and for some fields of the failing ones."""
    found = {one.field: one for one in compute_stats([case(1, title="t"), case(2, F), case(3, U)], ()).completeness}
    assert (found["title"].missing, found["title"].of) == (2, 3)
    assert (found["status"].missing, found["status"].of) == (1, 3)
    assert (found["actual"].missing, found["actual"].of, found["actual"].failing_only) == (1, 1, True)


def test_the_trend_says_what_became_of_each_case() -> None:
    """What failed before and was not run now is not fixed."""
    then = Previous(
        job_id="J0", created_at="2026-01-01T00:00:00Z", by_status={"passed": 2, "failed": 3},
        statuses={"C0": P, "C1": F, "C2": F, "C3": B, "C9": P}, modules={UNCATEGORIZED: {"passed": 2, "failed": 3}},
    )  # fmt: skip
    trend = compute_stats(cases(F, F, P, S, F), (), previous=then.model_dump(mode="json")).trend
    assert trend is not None
    assert trend.newly_failing == ("C0", "C4")
    assert trend.still_failing == ("C1",)
    assert trend.fixed == ("C2",)
    assert trend.unconfirmed == ("C3",)
    assert (trend.new_cases, trend.removed_cases) == (("C4",), ("C9",))
    assert trend.by_status["passed"].change == -1
    assert trend.rates["pass_rate_of_executed"].model_dump() == {"before": 40.0, "now": 25.0, "change": -15.0}
    assert trend.modules[0].failing.change == 0


def test_clusters_are_new_known_or_gone() -> None:
    """A cluster that was merged into another is known with it."""
    made = make_cases()
    clusters = [one.model_copy(update={"merged": ("Kx",)}) for one in make_clusters(made)[:2]]
    then = make_previous(made).model_copy(
        update={"clusters": (PreviousCluster(cluster_id="Kx"), PreviousCluster(cluster_id="Kgone", name="old"))}
    )
    stats = compute_stats(made.cases, made.assignments, previous=then)
    assert stats.trend is not None
    assert stats.trend.clusters is None
    found = add_findings(stats, made.assignments, make_defects(made), clusters, then)
    assert found.trend is not None
    assert found.trend.clusters is not None
    assert set(found.trend.clusters.known) == {one.cluster_id for one in clusters}
    assert found.trend.clusters.gone_names == {"Kgone": "old"}
    assert sum(one.total for one in found.defect_severity_by_module) == found.failing


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_figures_of_a_report_agree(lang: str) -> None:
    """And a report in which they do not says which."""
    whole = document(lang)  # type: ignore[arg-type]
    assert check_reconciled(whole) == []
    told = check_reconciled(whole.model_copy(update={"defects": whole.defects[1:], "cases": whole.cases[1:]}))
    assert len(told) >= 3
    assert any(str(len(whole.defects) - 1) in one for one in told)


RANDOM = st.builds(
    lambda status, fields: (status, fields),
    st.sampled_from(list(Status)),
    st.fixed_dictionaries(
        {
            "priority": st.sampled_from(["", "P0", "P1", "P2"]),
            "severity": st.sampled_from(["", "critical", "minor", "odd"]),
            "executor": st.sampled_from(["", "Ana", "李"]),
            "duration_seconds": st.none() | st.floats(),
            "executed_at": st.none() | st.sampled_from(["2026-03-05", "2026-03-05T14:30:00"]),
        }
    ),
)


@given(drawn=st.lists(RANDOM, max_size=40), modules=st.lists(st.sampled_from(["A", "B", UNCATEGORIZED]), max_size=40))
@settings(max_examples=60, deadline=None)
def test_sums_agree_for_any_cases(drawn: list[tuple[Status, dict[str, object]]], modules: list[str]) -> None:
    """Whatever is missing: each case is counted once in every split."""
    found = [case(number, status, **fields) for number, (status, fields) in enumerate(drawn)]
    stats = compute_stats(found, [Assignment(case_id=f"C{n}", module=one) for n, one in enumerate(modules)])
    for splits in (stats.modules, stats.priorities, stats.executors):
        assert sum(one.total for one in splits) == len(found)
    assert sum(one.total for one in stats.severity_by_module) == stats.failing == sum(one.fails for one in found)
    assert sum(one.count for one in stats.durations.bins) + stats.durations.missing == len(found)
    assert sum(one.total for one in stats.days) + stats.without_day == len(found)
    if stats.gate.verdict == "pass":
        assert not any(one.status in FAILING and one.priority == "P0" for one in found)
