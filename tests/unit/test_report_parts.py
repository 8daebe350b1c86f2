"""Parts of reports that need no store: chords, the watch over the model, progress, and the text of the template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import NodeState, RunState
from headrace.apps.report import stages
from headrace.apps.report.content.figures import figures_for
from headrace.apps.report.content.found import Found
from headrace.apps.report.content.template import template_content
from headrace.apps.report.data.cases import Case, ValidationReport
from headrace.apps.report.data.content import Sentence
from headrace.apps.report.job import Job
from headrace.apps.report.model_watch import FAILURES, PATIENCE, PROBE, ModelAwayError, ModelWatch
from headrace.apps.report.progress import ReportProgress, look_at, progress_document
from headrace.apps.report.prompts.content import ContentAnswer, SentenceAnswer, checked
from headrace.apps.report.stages import StageResult
from headrace.apps.report.stats import Stats
from headrace.apps.report.tasks.defects import LEAST, MOST, MOST_IN_ONE, split
from tests.unit.report_documents import document as document_of


def rows(counts: list[int]) -> list[Case]:
    """Failed rows, with what chords go by: so many of each module, mixed as files have them."""
    modules = [f"M{number}" for number, count in enumerate(counts) for _ in range(count)]
    mixed = sorted(modules, key=lambda name: int(name[1:]) % 3)
    return [Case.model_construct(case_id=f"TC-{number}", module=module) for number, module in enumerate(mixed)]


@settings(max_examples=60)
@given(st.lists(st.integers(0, 900), min_size=1, max_size=12))
def test_every_row_is_in_one_chord_and_chords_are_of_a_good_size(counts: list[int]) -> None:
    """Whatever the modules: one chord up to 2,000 rows, else chords of 200 to 500."""
    failing = rows(counts)
    chords = [list(chord) for chord in split(failing)]
    assert sorted(case.case_id for chord in chords for case in chord) == sorted(case.case_id for case in failing)
    if len(failing) <= MOST_IN_ONE:
        assert chords == [failing]
    else:
        assert all(LEAST <= len(chord) <= MOST for chord in chords), [len(chord) for chord in chords]


def test_a_small_module_is_not_torn_apart_and_the_last_is_no_chord_by_itself() -> None:
    """Rows of one module of a chord's size are together; a handful at the end goes with those before."""
    chords = [{case.module for case in chord} for chord in split(rows([400, 400, 400, 400, 450, 5]))]
    assert chords[:4] == [{"M0"}, {"M1"}, {"M2"}, {"M3"}]
    assert chords[4:] == [{"M4", "M5"}]


@dataclass
class Watched:
    """A watch and its clock."""

    now: float = 100.0
    watch: ModelWatch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = ModelWatch(lambda: self.now)

    def lets_through(self) -> bool:
        """Whether a call may be made now."""
        try:
            self.watch.check()
        except ModelAwayError:
            return False
        return True

    def fail(self, times: int) -> None:
        """Let calls fail."""
        for _ in range(times):
            self.watch.failed()


def test_a_model_that_stumbles_is_asked_on() -> None:
    """Few failures, or many in a moment, or an answer in between: it is not away."""
    one = Watched()
    one.fail(FAILURES - 1)
    one.now += 10 * PATIENCE
    assert one.lets_through()
    many = Watched()
    many.fail(100)
    many.now += PATIENCE - 0.1
    assert many.lets_through()
    well = Watched()
    well.fail(100)
    well.watch.answered()
    well.now += 10 * PATIENCE
    well.fail(FAILURES - 1)
    assert well.lets_through()


def test_a_model_that_is_away_is_probed_now_and_then_and_back_with_the_first_answer() -> None:
    """One call in so many seconds; those beside it fail at once."""
    here = Watched()
    here.fail(FAILURES)
    here.now += PATIENCE
    assert [here.lets_through() for _ in range(3)] == [True, False, False]
    here.fail(1)
    here.now += PROBE - 0.1
    assert not here.lets_through()
    here.now += 0.2
    assert [here.lets_through() for _ in range(2)] == [True, False]
    here.watch.answered()
    assert all(here.lets_through() for _ in range(10))


@dataclass
class FakeRun:
    """A run that stands somewhere."""

    state: RunState
    nodes: dict[str, NodeState]
    outcome: dict[str, Any] | None = None

    async def view(self) -> Any:
        """What is known of it."""
        made = datetime(2026, 3, 5, tzinfo=UTC)
        return type("View", (), {"state": self.state, "created_at": made, "finished_at": None, "error": None})

    async def progress(self) -> Any:
        """The states of its nodes."""
        return type("Told", (), {"nodes": self.nodes})

    async def result(self) -> Any:
        """What it came to."""
        return self.outcome


async def progress_of(state: RunState, nodes: dict[str, NodeState], outcome: Any = None) -> ReportProgress:
    """Look at a report whose last run stands there."""
    return await look_at(Job("J1", cast(Any, FakeRun(state, nodes, outcome))))


OK, RUNNING, FAILED = NodeState.SUCCESS, NodeState.RUNNING, NodeState.FAILED
ALL_OK = dict.fromkeys(stages.STAGES, OK)


async def test_a_report_that_begins_is_at_nothing_and_one_that_ended_is_whole() -> None:
    """0 and 100 per cent."""
    begun = await progress_of(RunState.RUNNING, {})
    assert (begun.status, begun.percent, {one.status for one in begun.stages}) == ("running", 0, {"pending"})
    outcome = {"status": "ok", "warnings": [], "next_inputs": {"degraded": []}}
    ended = await progress_of(RunState.SUCCEEDED, ALL_OK, outcome)
    assert (ended.status, ended.percent, ended.message) == ("ok", 100, "complete")


async def test_questions_that_ended_are_the_percents_of_their_stage() -> None:
    """Also those that failed for good; a stage that runs is never at 100."""
    inside = f"{stages.DEFECTS}/chords[0]/extract"
    nodes = {stages.INGEST: OK, stages.DEFECTS: RUNNING}
    nodes |= {f"{inside}[{number}]/extract_defect_fact": OK for number in range(2)}
    nodes |= {f"{inside}[2]/extract_defect_fact": FAILED, f"{inside}[3]/extract_defect_fact": RUNNING}
    nodes |= {f"{stages.TAGGING}/classify[0]/classify_case_module": OK}
    told = await progress_of(RunState.RUNNING, nodes)
    found = {one.stage: one for one in told.stages}
    defects, tagging = found[stages.DEFECTS], found[stages.TAGGING]
    assert (defects.status, defects.percent, defects.completed, defects.total) == ("running", 75, 3, 4)
    assert (tagging.status, tagging.percent) == ("running", 99)
    assert told.percent == (5 * 100 + 45 * 75 + 20 * 99) // 100
    assert progress_document(told)["stages"][3]["completed"] == 3


async def test_a_stage_that_lacks_the_model_is_degraded_and_one_that_failed_is_named() -> None:
    """With the command that goes on."""
    lacking = {"stage": stages.DEFECTS, "missing": 3, "total": 9}
    outcome = {"status": "degraded", "warnings": ["3 of 9"], "next_inputs": {"degraded": [lacking]}}
    told = await progress_of(RunState.SUCCEEDED, ALL_OK, outcome)
    assert [one.stage for one in told.stages if one.status == "degraded"] == [stages.DEFECTS]
    assert "headrace report resume J1 --out DIR" in told.message
    nodes = {stages.INGEST: OK, f"{stages.CLUSTERS}/cluster_defects": FAILED}
    failed = await progress_of(RunState.FAILED, nodes)
    assert (failed.status, [one.stage for one in failed.stages if one.status == "failed"]) == (
        "failed", [stages.CLUSTERS],
    )  # fmt: skip
    assert f"--out DIR --from {stages.CLUSTERS}" in failed.message
    # While the run goes on, what failed may be tried again.
    going = await progress_of(RunState.RUNNING, nodes)
    assert {one.stage: one.status for one in going.stages}[stages.CLUSTERS] == "running"


async def test_a_stage_that_ended_without_some_answers_says_so_while_others_go_on() -> None:
    """It is not told as whole until the report has ended; and the time is that of the look."""
    inside = f"{stages.DEFECTS}/chords[0]/extract"
    nodes = {stages.INGEST: OK, stages.DEFECTS: OK, stages.CLUSTERS: RUNNING}
    nodes |= {f"{inside}[0]/extract_defect_fact": OK, f"{inside}[1]/extract_defect_fact": FAILED}
    told = await progress_of(RunState.RUNNING, nodes)
    defects = told.stages[3]
    assert (defects.status, defects.message) == ("degraded", "2/2 rows done, 1 without an answer")
    assert told.updated_at is not None
    assert (datetime.now(UTC) - told.updated_at).total_seconds() < 60


def found_of(lang: Any, count: int) -> Found:
    """What the stages found of so many cases."""
    document = document_of(lang, count)
    return Found(
        results={"x": StageResult(job_id="J1", stage="x")}, cases=document.cases, issues=document.issues,
        validation=ValidationReport(), assignments=document.assignments,
        counted=Stats.model_validate(document.stats), defects=document.defects, grouped=document.clusters,
    )  # fmt: skip


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("count", [0, 1, 120])
def test_every_sentence_of_the_template_cites_what_there_is(lang: Any, count: int) -> None:
    """Ids of cases and clusters of this very report; of no cases there is nothing to cite."""
    found = found_of(lang, count)
    told = template_content(found, lang)
    sentences: list[Sentence] = [*told.objective_and_scope, *told.conclusions, *told.risks]
    sentences += [one for some in told.modules.values() for one in some]
    assert not told.by_model
    assert len(sentences) >= 2
    for one in sentences:
        assert set(one.cites) <= found.ids, one
        assert bool(one.cites) == (count > 0), one


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_code_says_of_the_figures_a_model_may_say_too(lang: Any) -> None:
    """The template's sentences about counts, rates, clusters and modules stand; with another count none does."""
    found = found_of(lang, 120)
    figures, template = figures_for(found), template_content(found, lang)
    shown = ContentAnswer.model_validate({
        "objective_and_scope": _told(template.objective_and_scope), "conclusions": _told(template.conclusions),
        "risks": [],
        "modules": [{"module": name, **one} for name, some in template.modules.items() for one in _told(some)],
    })  # fmt: skip
    kept = checked(shown, figures, found.ids, template)
    assert (kept.left_out, kept.by_model) == (0, True)
    more = [
        {"text": one["text"] + " 977 个用例 / 977 cases.", "cites": one["cites"]} for one in _told(template.conclusions)
    ]
    worse = shown.model_copy(update={"conclusions": [SentenceAnswer.model_validate(one) for one in more]})
    assert checked(worse, figures, found.ids, template).left_out == len(more) > 0


def _told(sentences: Sequence[Sentence]) -> list[dict[str, Any]]:
    return [{"text": one.text, "cites": list(one.cites)} for one in sentences]
