"""`headrace report build` on real processes, all of which are killed in every stage: the same report, paid once."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from datetime import timedelta

import pytest

from headrace.testing.provider.calls import read_log
from tests.acceptance.report_run import Place, place
from tests.acceptance.report_workbooks import MESSY, QUESTIONS, write_small
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.acceptance

#: Questions at once. All of them are held when everything is killed: then nothing is in flight.
SLOTS = 2
#: Held first of all, so that later branches of the graph wait for their own kills.
NO_DEFECTS, NO_CLUSTERS = "prepare_fail_cases:before", "cluster_defects:before"
AFTER_INGEST, AFTER_DEFECTS = f"{NO_DEFECTS},{NO_CLUSTERS}", NO_CLUSTERS
#: A kill in each stage: the task that is held, from which call on, and what is held beside it.
STAGES = (
    ("ingest_and_normalize:after", 1, ""),
    ("classify_case_module:after:3", SLOTS, AFTER_INGEST),
    ("compute_stats_and_charts:before", 1, AFTER_INGEST),
    ("extract_defect_fact:after:5", SLOTS, AFTER_DEFECTS),
    ("summarize_cluster:after:2", SLOTS, ""),
    ("export_excel:after", 1, ""),
)
#: A kill in each task, before and after those that matter most, and at several points of the maps that ask.
EVERYWHERE = (
    ("ingest_and_normalize:before", 1, ""),
    ("ingest_and_normalize:after", 1, ""),
    ("module_tagging_rules:after", 1, AFTER_INGEST),
    ("classify_case_module:before", SLOTS, AFTER_INGEST),
    ("classify_case_module:after", SLOTS, AFTER_INGEST),
    ("classify_case_module:after:2", SLOTS, AFTER_INGEST),
    ("collect_module_results:after", 1, AFTER_INGEST),
    ("compute_stats_and_charts:after", 1, AFTER_INGEST),
    ("prepare_fail_cases:after", 1, NO_CLUSTERS),
    ("extract_defect_fact:before", SLOTS, AFTER_DEFECTS),
    ("extract_defect_fact:after", SLOTS, AFTER_DEFECTS),
    ("extract_defect_fact:after:4", SLOTS, AFTER_DEFECTS),
    ("extract_defect_fact:after:5", SLOTS, AFTER_DEFECTS),
    ("collect_defect_facts:after", 1, NO_CLUSTERS),
    ("finalize_defect_facts:after", 1, NO_CLUSTERS),
    ("cluster_defects:after", 1, ""),
    ("merge_clusters:after", 1, ""),
    ("prepare_summaries:after", 1, ""),
    ("summarize_cluster:after", SLOTS, ""),
    ("summarize_cluster:after", SLOTS, ""),
    ("finalize_cluster_summaries:after", 1, ""),
    ("compose_report_content:before", 1, ""),
    ("compose_report_content:after", 1, ""),
    ("assemble_report:after", 1, ""),
    ("render_html:after", 1, "export_excel:before"),
    ("export_excel:after", 1, ""),
    ("store_artifacts:after", 1, ""),
    ("mark_job_done:before", 1, ""),
    ("mark_job_done:after", 1, ""),
)
BUILD = ("build", "cases.xlsx", "--concurrency", SLOTS, "--out")


@pytest.fixture
def here() -> Iterator[Place]:
    """A place with the small workbook."""
    with place() as made:
        write_small(made.root / "cases.xlsx")
        yield made


def _kill_in(here: Place, kills: tuple[tuple[str, int, str], ...]) -> None:
    for fault, marks, beside in kills:
        here.killed(*BUILD, "out", faults=f"{fault},{beside}", held=fault.partition(":")[0], marks=marks)


def _check(here: Place) -> None:
    """End what was killed, and compare it with a report that nobody disturbed."""
    summary = here.report(*BUILD, "out")
    assert (summary["status"], summary["degraded"], summary["warnings"]) == ("ok", [], [])
    calls = here.calls()
    assert (len(calls), set(calls.values())) == (QUESTIONS, {1})
    undisturbed = here.report(*BUILD, "undisturbed")
    assert undisturbed["job_id"] != summary["job_id"]
    # Another report of the same cases: its questions are those that have answers.
    assert (undisturbed["usage"]["calls"], undisturbed["usage"]["reused"]) == (0, QUESTIONS)
    assert here.calls() == calls
    assert here.without_run("out") == here.without_run("undisturbed")
    html, other = ((here.root / out / "report.html").stat().st_size for out in ("out", "undisturbed"))
    assert abs(html - other) < 1_000


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "stages", [pytest.param(STAGES[3::2], id="some"), pytest.param(STAGES, id="all", marks=pytest.mark.slow)]
)
def test_killed_in_every_stage_the_same_command_ends_with_the_same_report_and_pays_once(
    here: Place, stages: tuple[tuple[str, int, str], ...]
) -> None:
    """Ctrl-C, then kill -9 of commands, children, supervisor and database in each stage; no answer is bought twice."""
    process = here.begin(*BUILD, "out", faults="ingest_and_normalize:before")
    wait_until_sync(lambda: list(here.marks.iterdir()), timedelta(seconds=60), message="the first stage to run")
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on" in told
    _kill_in(here, stages)
    _check(here)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_in_every_task_the_report_is_the_same_and_nothing_is_paid_twice(here: Place) -> None:
    """The same for each task, and for several points of those that ask the model."""
    _kill_in(here, EVERYWHERE)
    _check(here)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_at_random_moments_only_what_was_in_flight_may_be_asked_again() -> None:
    """Of the messy sample, at moments that nobody chose; the bound is what was in flight at each kill."""
    slots, kills, chance = 8, 6, random.Random()
    with place("--latency", "0.1", rules=MESSY) as here:
        assert here.run("sample", "samples")[0] == 0
        build = ("build", "samples/messy.xlsx", "--concurrency", slots, "--lang", "zh", "--out")
        in_flight = 0
        for _ in range(kills):
            before, wanted = here.answered(), chance.randrange(1, 70)
            process = here.begin(*build, "out")
            wait_until_sync(
                lambda before=before, wanted=wanted, process=process: (
                    here.answered() >= before + wanted or process.poll() is not None
                ),
                timedelta(seconds=90),
            )
            here.kill_everything()
            process.communicate()
            in_flight += slots
        summary = here.report(*build, "out")
        assert summary["status"] == "ok", summary
        calls = read_log(here.log)
        print(f"{kills} kills, {len(calls)} questions, {sum(calls.values()) - len(calls)} asked again")
        assert sum(calls.values()) - len(calls) <= in_flight
        assert max(calls.values()) <= 1 + kills
        here.report(*build, "undisturbed")
        assert read_log(here.log) == calls
        assert here.without_run("out") == here.without_run("undisturbed")
