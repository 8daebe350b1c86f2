"""`headrace report` stage by stage: run again from each, failing in one, and without one of its three forms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.apps.report.stages import CLUSTERS, DEFECTS, INGEST, RENDER, STAGES, STATS, TAGGING
from tests.acceptance.report_looks import rows_of, text_of
from tests.acceptance.report_run import FILES, Place, place
from tests.acceptance.report_workbooks import QUESTIONS, write_small

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]
BUILD = ("build", "cases.xlsx", "--out", "out")
#: What runs again with a stage: the report, where what it says of calls is another.
AGAIN = {
    INGEST: {INGEST}, TAGGING: {TAGGING, RENDER}, STATS: {STATS}, DEFECTS: {DEFECTS, RENDER},
    CLUSTERS: {CLUSTERS, RENDER}, RENDER: {RENDER},
}  # fmt: skip


@pytest.fixture
def here() -> Iterator[Place]:
    """A place with the small workbook."""
    with place() as made:
        write_small(made.root / "cases.xlsx")
        yield made


def _files(here: Place) -> list[str]:
    return sorted(path.name for path in (here.root / "out").iterdir())


def test_from_each_stage_that_stage_runs_again_and_what_did_not_change_is_reused(here: Place) -> None:
    """Nothing is paid again, and the report is the same."""
    summary = here.report(*BUILD)
    calls, before = here.calls(), here.without_run("out")
    assert calls.total() == QUESTIONS
    runs = {summary["run_id"]}
    for stage in STAGES:
        again = here.report(*BUILD, "--from", stage)
        assert (again["job_id"], again["status"]) == (summary["job_id"], "ok")
        told = here.report("status", summary["job_id"])["stages"]
        assert {one["stage"] for one in told if not one["reused"]} == AGAIN[stage]
        assert all(one["stage_status"] == "ok" for one in told)
        runs.add(again["run_id"])
    assert len(runs) == len(STAGES) + 1
    assert here.calls() == calls
    assert here.without_run("out") == before


@pytest.mark.parametrize(
    ("task", "stage"),
    [
        ("module_tagging_rules", TAGGING), ("compute_stats_and_charts", STATS), ("collect_defect_facts", DEFECTS),
        ("cluster_defects", CLUSTERS), ("assemble_report", RENDER),
    ],
)  # fmt: skip
def test_a_stage_that_fails_is_named_and_resume_goes_on_there(task: str, stage: str, here: Place) -> None:
    """Exit code 1, no file, and the words that go on; what was paid before is not paid again."""
    failed = here.report(*BUILD, faults=f"{task}:fail", code=1)
    assert (failed["status"], failed["files"]) == ("failed", [])
    assert [one["stage"] for one in failed["stages"] if one["status"] == "failed"] == [stage]
    assert f"headrace report resume {failed['job_id']} --out DIR --from {stage}" in failed["message"]
    assert f"{task} was told to fail" in failed["message"]
    assert not any(one["status"] == "running" for one in failed["stages"])
    assert _files(here) == []
    assert here.report("status", failed["job_id"])["status"] == "failed"
    filled = here.report("resume", failed["job_id"], "--out", "out", "--from", stage)
    assert (filled["status"], _files(here)) == ("ok", sorted(FILES))
    assert (here.calls().total(), set(here.calls().values())) == (QUESTIONS, {1})


def test_without_a_workbook_or_a_page_the_others_are_there_and_resume_makes_what_lacks(here: Place) -> None:
    """Smaller forms stand for them: a workbook of the cases alone, and a plain page."""
    job = here.report(*BUILD)["job_id"]
    page = (here.root / "out" / "report.html").stat().st_size
    sheets = len(rows_of(here.root / "out" / "report.xlsx"))
    again = (*BUILD, "--from", RENDER)
    without = here.report(*again, faults="export_excel:fail")
    assert (without["status"], _files(here)) == ("degraded", sorted(FILES))
    # One of the cases alone stands for it.
    assert len(rows_of(here.root / "out" / "report.xlsx")) < sheets
    assert [warning.partition(":")[0] for warning in without["warnings"]] == ["xlsx_failed"]
    assert (here.report("resume", job, "--out", "out")["status"], _files(here)) == ("ok", sorted(FILES))
    plain = here.report(*again, faults="render_html:fail")
    assert (plain["status"], _files(here)) == ("degraded", sorted(FILES))
    assert [warning.partition(":")[0] for warning in plain["warnings"]] == ["html_failed"]
    told = text_of(here.root / "out" / "report.html")
    assert (here.root / "out" / "report.html").stat().st_size < page
    for case in here.document("out")["cases"]:
        assert (case["case_id"] in told) == (case["status"] == "failed")
    neither = here.report(*again, faults="render_html:fail,export_excel:fail")
    assert (neither["status"], len(neither["warnings"]), _files(here)) == ("degraded", 2, sorted(FILES))
    whole = here.report("resume", job, "--out", "out")
    assert len(rows_of(here.root / "out" / "report.xlsx")) == sheets
    assert (whole["status"], whole["warnings"], _files(here)) == ("ok", [], sorted(FILES))
    assert here.calls().total() == QUESTIONS


def test_a_stage_of_what_was_not_made_yet_is_no_reason_to_refuse(here: Place) -> None:
    """With other options it is another report: all of it is made, and answers that were paid before are taken."""
    assert here.report(*BUILD)["status"] == "ok"
    code, _, told = here.run(*BUILD, "--title", "Another", "--from", RENDER, "--json")
    assert (code, here.calls().total()) == (0, QUESTIONS)
    assert "no report of this file with these options yet" in told


def test_a_file_that_changed_is_another_report_and_no_other_half_of_one(here: Place) -> None:
    """A report that was begun of a file goes on with that file alone."""
    failed = here.report(*BUILD, faults="ingest_and_normalize:fail", code=1)
    write_small(here.root / "cases.xlsx", fixed="Login")
    code, out, told = here.run("resume", failed["job_id"], "--out", "out")
    assert (code, out) == (2, "")
    assert "changed after the report was begun: begin another one" in told
    other = here.report(*BUILD)
    assert (other["job_id"] != failed["job_id"], other["status"], other["metrics"]["failed"]) == (True, "ok", 12)


def test_a_file_in_the_way_is_told(here: Place) -> None:
    """The report is stored; only where it was to be written it cannot be."""
    (here.root / "out" / "report.xlsx").mkdir(parents=True)
    code, out, told = here.run(*BUILD)
    assert (code, out) == (2, "")
    assert "report.xlsx cannot be written (Is a directory); name another folder" in told
    assert not list(Path(here.root / "out").glob(".*"))
