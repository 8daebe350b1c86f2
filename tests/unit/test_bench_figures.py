"""The arithmetic of the benchmark: medians, ratios within rounds, targets, validity, and how a report shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.bench.catalogue import CONTENDERS, WORKLOADS
from headrace.bench.drain import CLOSEST, RAREST, Look, pause
from headrace.bench.figures import Spread, ratio
from headrace.bench.machine import Quiet, look
from headrace.bench.markdown import to_markdown
from headrace.bench.order import Answer, Order
from headrace.bench.plan import Sizes, chosen_contenders
from headrace.bench.report import make_report, result_rows, target_rows
from headrace.bench.results import Result, Results
from headrace.bench.run import Plan, Run
from headrace.bench.targets import TARGETS, Level, Target
from headrace.bench.validity import Reference, objections

ROOT = Path(__file__).resolve().parent.parent.parent
SERVER = {"server_version": "18.6", "fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


def drained(*speeds: tuple[str, list[float]], workload: str = "drain") -> Results:
    """Return results of a drain: contender and jobs per second of each round."""
    results = Results()
    for contender, rounds in speeds:
        for number, speed in enumerate(rounds, start=1):
            results.add(Result(workload, contender, 100), number, Answer(figures={"per_second": speed}))
    return results


def report_of(results: Results, *, busy: float = 0.0, notes: list[str] | None = None) -> dict[str, Any]:
    """Return the report of a run with these results."""
    quiet = [Quiet(busy_cores=busy, steal=0.0, loop_ms=20.0, load=0.1)]
    plan = Plan(workloads=("drain",), contenders=chosen_contenders("none"), sizes=Sizes())
    return make_report(plan, Run(results, quiet), server=SERVER, notes=notes or [])


def test_ratios_are_taken_within_rounds() -> None:
    """A machine that runs at half speed in one round changes no ratio."""
    ours, raw = {1: 50.0, 2: 25.0, 3: 50.0}, {1: 100.0, 2: 50.0, 3: 100.0}
    assert ratio(ours, raw) == Spread(0.5, 0.5, 0.5)


def test_a_round_that_only_one_has_gives_no_ratio() -> None:
    """A failed round of one contender is left out of the ratio, not taken as zero."""
    assert ratio({1: 5.0, 3: 9.0}, {1: 10.0, 2: 10.0}) == Spread(0.5, 0.5, 0.5)
    assert ratio({1: 5.0}, {2: 10.0}) is None


def test_targets_are_met_at_their_bound_and_not_beside_it() -> None:
    """At least and at most mean what they say, and the median decides."""
    least = Target(name="a", of=("drain", "headrace", ""), to=("drain", "raw-ours", ""), bound=0.5)
    most = Target(name="b", of=("latency", "headrace", "p50"), bound=3, at_least=False)
    assert least.met(Spread(0.5, 0.1, 0.9)) and not least.met(Spread(0.499, 0.1, 0.9))
    assert most.met(Spread(3.0, 1.0, 9.0)) and not most.met(Spread(3.01, 1.0, 9.0))


def test_targets_read_the_figures_they_name() -> None:
    """The required half of the raw loop is met by half of it and says by how much."""
    results = drained(
        ("raw-delete", [100.0] * 3), ("raw-ours", [80.0, 90.0, 70.0]), ("headrace-400", [40.0, 45.0, 35.0])
    )
    found = {(target["name"], target["level"]): target for target in report_of(results)["targets"]}
    ours = found["the worker against our statements", "required"]
    assert ours["value"] == {"median": 0.5, "min": 0.5, "max": 0.5} and ours["met"] is True
    assert found["the worker against our statements", "goal"]["met"] is False
    assert found["our statements against the loop without fences", "goal"]["met"] is None
    assert found["the worker against pgqueuer", "required"]["met"] is None


def test_every_target_names_what_is_measured() -> None:
    """No target asks for a workload, contender or figure that does not exist."""
    extra = {"again_beyond_unrecorded"}
    for target in TARGETS:
        for workload, contender, figure in filter(None, (target.of, target.to)):
            entry = CONTENDERS[contender]
            assert workload in (entry.workloads or entry.loops), target.name
            assert figure in {"", *extra, *(known.key for known in WORKLOADS[workload].figures)}, target.name
    assert {target.level for target in TARGETS} == set(Level)


def quiet(busy: float = 0.0, steal: float = 0.0, loop_ms: float = 20.0) -> Quiet:
    """Return one look at a machine."""
    return Quiet(busy_cores=busy, steal=steal, loop_ms=loop_ms, load=0.0)


@pytest.mark.parametrize(
    ("raw", "looks", "word"),
    [
        (Spread(32_799, 1, 99_999), [quiet()], "below 80%"),
        (None, [quiet()], "not measured"),
        (Spread(60_000, 1, 1), [quiet(1.0), quiet(1.0), quiet(0.0)], "other programs"),
        (Spread(60_000, 1, 1), [quiet(), quiet(steal=0.2)], "hypervisor"),
    ],
)
def test_a_disturbed_run_is_invalid_and_says_why(raw: Spread | None, looks: list[Quiet], word: str) -> None:
    """Slow raw loops and busy machines are named as reasons."""
    [reason] = objections(raw, looks, Reference())
    assert word in reason


def test_a_quiet_run_is_valid() -> None:
    """At 80 % of the reference, with a short burst of others in one of three looks, a run counts."""
    assert objections(Spread(32_800, 1, 1), [quiet(), quiet(1.0), quiet()], Reference()) == []


def test_a_machine_that_changed_its_speed_is_named_beside_the_figures() -> None:
    """Ratios within a round still hold, so the run counts; the table says what its speeds are worth."""
    looks = [quiet(loop_ms=12.0), quiet(loop_ms=25.0)]
    assert objections(Spread(60_000, 1, 1), looks, Reference()) == []
    plan = Plan(workloads=("drain",), contenders=chosen_contenders("none"), sizes=Sizes())
    report = make_report(plan, Run(drained(("raw-delete", [60_000.0])), looks), server=SERVER, notes=[])
    assert report["valid"] and "12–25 ms: its own speed changed by 2.1" in to_markdown(report)


def test_the_published_reference_is_the_one_that_decides() -> None:
    """benchmarks/reference.json and the code agree."""
    published = json.loads((ROOT / "benchmarks" / "reference.json").read_text(encoding="utf-8"))
    assert {**Reference().to_json(), "source": published["source"]} == published


def test_invalid_figures_are_marked_in_every_form() -> None:
    """Whoever copies the table copies the mark."""
    report = report_of(drained(("raw-delete", [1_000.0])), busy=2.0, notes=["a note"])
    assert not report["valid"]
    assert len(report["invalid_because"]) == 3
    assert "INVALID" in to_markdown(report) and "a note" in to_markdown(report)


def test_failures_and_absences_stay_in_the_table() -> None:
    """A peer that is missing or broken has a row with the reason, not none."""
    results = drained(("raw-delete", [50_000.0]), ("headrace", [20_000.0]))
    results.add(Result("drain", "pgqueuer", 100), 1, Answer(missing="not installed"))
    results.add(Result("drain", "dbos", 100), 1, Answer(failed="WorkerEndedError: out of luck"))
    rows = {row[1]: row for row in result_rows(report_of(results))}
    assert rows["pgqueuer"][2] == "not installed"
    assert rows["dbos"][2] == "failed: WorkerEndedError: out of luck"
    assert rows["headrace"][2] == "20,000 jobs/s" and "0.40 of raw-delete" in rows["headrace"][4]


def test_a_figure_of_a_contender_that_also_failed_says_so() -> None:
    """One good round does not hide a bad one."""
    results = drained(("raw-delete", [50_000.0]), ("dbos", [1_000.0]))
    results.add(Result("drain", "dbos", 100), 2, Answer(failed="TimeoutError: stuck"))
    rows = [row for row in result_rows(report_of(results)) if row[1] == "dbos"]
    assert [row[2] for row in rows] == ["failed: TimeoutError: stuck", "1,000 jobs/s"]


def test_targets_are_shown_with_formula_and_measure() -> None:
    """A line of the table of targets can be read by itself."""
    rows = target_rows(report_of(drained(("raw-plain", [100.0]), ("raw-ours", [85.0]))))
    assert rows[0] == [
        "met", "goal", "our statements against the loop without fences",
        "raw-ours drain / raw-plain drain ≥ 0.8", "0.85 (0.85–0.85)",
    ]  # fmt: skip


def test_looks_at_the_store_grow_rarer_and_then_dense() -> None:
    """Counting must neither disturb the drain nor miss its end."""
    first = Look(0.0, 100, 0.0, 0.0)
    assert pause(first, first, 1_000) == CLOSEST
    assert pause(first, Look(1.0, 1_100, 0.0, 0.0), 100_000) == RAREST
    assert pause(first, Look(1.0, 1_100, 0.0, 0.0), 1_200) == pytest.approx(0.05)
    assert pause(first, Look(1.0, 1_100, 0.0, 0.0), 1_101) == CLOSEST


def test_orders_and_answers_survive_the_way_to_a_child() -> None:
    """What is asked and answered is read as it was written, whatever else a job system prints."""
    order = Order(contender="headrace", workload="drain", dsn="postgresql://x/y", jobs=7, server_pid=1)
    assert Order.from_json(order.to_json()) == order
    answer = Answer(figures={"per_second": 1.5})
    assert Answer.from_output(f"welcome!\n{answer.to_line()}\nbye") == answer
    assert Answer.from_output("nothing of ours") is None


def test_a_look_at_the_machine_is_plausible() -> None:
    """No more cores are busy than there are, and the calibration loop takes time."""
    seen = look(0.05)
    assert 0 <= seen.busy_cores <= 1024 and 0 <= seen.steal <= 1 and seen.loop_ms > 0
