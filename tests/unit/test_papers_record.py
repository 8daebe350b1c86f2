"""The record of a run, its problems, its pilot: what a person needs to report it and to go on."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from headrace import App, Batch, BatchItem
from headrace.apps.papers.documents import FoundDocument, Selection
from headrace.apps.papers.dual import Second
from headrace.apps.papers.extract import extract_document
from headrace.apps.papers.orphans import Orphans, find_orphans
from headrace.apps.papers.output.facts import run_facts
from headrace.apps.papers.output.model import Report
from headrace.apps.papers.record import run_json
from headrace.apps.papers.report import build_report, write_report
from headrace.apps.papers.result import DocumentResult
from headrace.apps.papers.run import Run, RunOptions, pilot_of, run_id_of, select
from headrace.apps.papers.template import Template, parse_template
from headrace.apps.papers.workspace import Parameters, Workspace
from headrace.model.batch import BatchOutcome, BatchState, BatchView, ClosePolicy
from headrace.model.calls import CallState, NewCall, Origin, Settlement
from headrace.model.job import JobState
from headrace.model.quota import Estimate
from headrace.model.session import NewSession, ProcessId
from headrace.model.usage import Usage
from tests.unit.papers_models import CapableModel, answer, silent
from tests.unit.test_papers_rows import TRIAL, arm

TEMPLATE = parse_template("""
name: arms
version: 2
fields:
  - {name: country, type: text, required: true, description: Country of the study}
rows:
  - name: arm
    description: An arm of the trial
    fields:
      - {name: drug, type: text, description: What was given}
      - {name: size, type: integer, required: true, description: How many were allocated}
      - {name: dose, type: number, unit: mg, description: Daily dose}
""")
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def run_of(*names: str, template: Template = TEMPLATE, dual: str | None = None) -> Run:
    """Return a run over documents of these names."""
    documents = tuple(FoundDocument(f"id-{name}", name, Path(name), 9) for name in names)
    options = RunOptions(Path("papers"), Path("t.yaml"), Path("out"), dual=dual)
    return Run(
        "run-1", template, Selection(Path("papers"), documents), Batch(App("memory://"), uuid4()), Path("out"), options
    )


def item(result: DocumentResult) -> BatchItem:
    """Return the ending of an extracted document."""
    return BatchItem(0, JobState.SUCCEEDED, uuid4(), {"result": result.to_json()})


def view_of(run: Run) -> BatchView:
    """Return a batch that began and ended at known moments."""
    return BatchView(
        run.batch.id, "key", "task", "queue", BatchState.CLOSED, BatchOutcome.SUCCEEDED, 1, 1, ClosePolicy(),
        MOMENT, MOMENT, MOMENT.replace(hour=4),
    )  # fmt: skip


async def report_of(*, dual: bool = False) -> Report:
    """Return the report of one document with two arms, of which a required size is missing."""
    said = {
        "country": answer("Norway", 1),
        "arm": [arm(answer("aspirin", 2), answer(40, 2)), arm(answer("placebo", 3))],
    }
    other = said | {"country": answer("Peru", 1)}
    second = Second(CapableModel(lambda prompt: other, model_name="other-2")) if dual else None
    result = await extract_document(TRIAL, TEMPLATE, CapableModel(lambda prompt: said), second=second)
    run = run_of("a.txt", "b.txt", dual="strong" if dual else None)
    return build_report(run, {"id-a.txt": item(result)}, view_of(run))


async def test_the_record_says_what_guidance_asks_for() -> None:
    """Tool, models, prompts, template, readers, dates, parameters, counts, tokens, and who verified."""
    record = json.loads(json.dumps(run_json(await report_of(dual=True))))
    assert record["tool"]["name"] == "headrace"
    assert (record["begun_at"], record["ended_at"]) == ("2026-01-02T03:04:05Z", "2026-01-02T04:04:05Z")
    assert [asking["model"] for asking in record["models"]] == ["capable-1", "other-2"]
    assert {asking["prompt_version"] for asking in record["models"]} == {"papers-1"}
    assert all(len(asking["prompt_digest"]) == 64 for asking in record["models"])
    content = record["template"].pop("content")
    assert parse_template(json.dumps(content)).digest == TEMPLATE.digest
    assert record["template"] == {
        "name": "arms", "version": 2, "digest": TEMPLATE.digest, "fields": 1, "rows": {"arm": 3},
    }  # fmt: skip
    assert (record["readers"], record["parameters"]["dual"]) == (["test 1"], "strong")
    counts = record["counts"]
    assert (counts["input_files"], counts["documents"], counts["extracted"], counts["failed"]) == (2, 2, 1, 1)
    assert (counts["disagreements"], counts["rows"]) == (1, {"arm": 2})
    assert (record["verification"]["verified"], record["verification"]["by"]) == (0, [])
    assert record["usage"] == {"input_tokens": 200, "output_tokens": 20, "calls": 2, "reused": 0}


async def test_money_that_nobody_knows_is_unknown() -> None:
    """A call without a price makes the money unknown, and the known part is told apart."""
    report = await report_of()
    (row, *_) = report.rows
    assert row.result is not None
    dear = row.result.usage.model_copy(update={"cost_nano": 2_000_000, "unpriced": 1})
    priced = replace(report, rows=(row.extracted(row.result.model_copy(update={"usage": dear})),))
    assert run_json(priced)["money"] == {"usd": "unknown", "usd_known": 0.002, "unpriced_calls": 1}
    assert priced.summary()["usd"] is None


async def test_calls_whose_answer_nobody_saw_are_counted_with_what_they_may_have_cost() -> None:
    """Of this batch alone; one of a process that died counts, and an unknown price makes the bound unknown."""
    app, batch_id = App("memory://"), uuid4()
    async with app:
        calls, sessions = app.runtime.stores.calls, app.runtime.stores.sessions
        session = NewSession(ProcessId("elsewhere", 1, 1), "elsewhere", {}, timedelta(minutes=5))
        await sessions.register_session(session)
        ours = Origin(batch_id=batch_id)
        lost, cut, paid, other = (call(ours), call(ours), call(ours), call(Origin(batch_id=uuid4())))
        await calls.open_calls(session.id, [lost, cut, paid, other])
        timed_out = Usage(100, 200, 1, cost_nano=5_000_000)
        await calls.settle_calls(
            [
                Settlement(call=lost, state=CallState.ORPHANED, usage=timed_out, error="provider_timeout"),
                Settlement(call=paid, usage=Usage(100, 50, 1, cost_nano=2_500_000)),
            ]
        )
        batch = ViewedBatch(app, batch_id)
        assert await find_orphans(app, batch) == Orphans(1, 5_000_000)
        await sessions.expire_sessions([session.id])
        found = await find_orphans(app, batch)
    assert found == Orphans(2, 12_000_000)
    report = await report_of()
    told = run_json(replace(report, record=replace(report.record, orphans=found)))
    assert told["orphaned"] == {
        "calls": 2, "usd_at_most": 0.012, "usd_known_at_most": 0.012, "unpriced_calls": 0,
    }  # fmt: skip
    assert replace(found, unpriced=1).to_json()["usd_at_most"] == "unknown"
    facts = dict(run_facts(replace(report, record=replace(report.record, orphans=found))))
    assert (facts["orphaned calls"], facts["orphaned usd at most"]) == (2, 0.012)


class ViewedBatch(Batch):
    """A batch that began today."""

    async def view(self) -> BatchView:
        """Its view."""
        return replace(view_of(run_of()), created_at=datetime.now(UTC))


def call(origin: Origin) -> NewCall:
    """Return a call that may cost 7 million nanodollars."""
    estimate = Estimate(100, 200, 7_000_000)
    return NewCall(key=uuid4().hex * 2, pool="p", provider="p", model="m", estimate=estimate, origin=origin)


async def test_what_is_missing_and_disputed_stands_among_the_problems() -> None:
    """A required field of a row is named with its row; a dispute is one, and no missing value."""
    problems = {(problem.name, problem.reason): problem.message for problem in (await report_of(dual=True)).problems}
    assert problems["a.txt", "required_field_missing"] == (
        "size of arm 2 (placebo) is required and its status is not_reported"
    )
    assert "differ in 1 field;" in problems["a.txt", "disagreement"]
    assert ("b.txt", "pending") in problems


async def test_the_record_is_written_beside_the_results(tmp_path: Path) -> None:
    """run.json is whole, and rows stand in the lines of results.jsonl."""
    files = write_report(await report_of(), tmp_path)
    assert {"results.xlsx", "results.csv", "results.jsonl", "run.json"} <= {file.name for file in files}
    assert json.loads((tmp_path / "run.json").read_text())["run_id"] == "run-1"
    line = json.loads((tmp_path / "results.jsonl").read_text().splitlines()[0])
    assert [row["drug"]["value"] for row in line["rows"]["arm"]] == ["aspirin", "placebo"]


async def test_results_of_an_earlier_version_are_still_read() -> None:
    """What a run stored before there were rows becomes a row of the report, its model in the record."""
    llm = CapableModel(lambda prompt: {"country": silent(), "arm": []})
    stored = (await extract_document(TRIAL, TEMPLATE, llm)).to_json()
    for new in ("rows", "row_notes", "asked"):
        del stored[new]
    for new in ("section", "boxes", "agreed", "candidates"):
        del stored["fields"]["country"][new]
    for new in ("cost_nano", "unpriced"):
        del stored["usage"][new]
    report = build_report(run_of("a.txt"), {"id-a.txt": item(DocumentResult.from_json(stored))})
    assert report.summary()["extracted"] == 1
    assert [asking.model for asking in report.record.asked] == ["capable-1"]


def test_a_pilot_is_the_same_whatever_the_names() -> None:
    """The choice depends on contents alone: renaming changes nothing, and more documents keep most of it."""
    documents = [FoundDocument(f"{at:064x}", f"{at}.txt", Path("x"), 9) for at in range(50)]
    renamed = [replace(document, name=f"other-{document.name}") for document in reversed(documents)]
    chosen = [document.document_id for document in pilot_of(documents, 8)]
    assert chosen == [document.document_id for document in pilot_of(renamed, 8)]
    assert len(set(chosen)) == 8
    assert chosen != [document.document_id for document in documents[:8]]
    assert pilot_of(documents, 100) == pilot_of(documents, 50)
    assert set(chosen) <= {document.document_id for document in pilot_of(documents, 9)}


async def test_a_pilot_is_part_of_the_run_and_dual_extraction_another(tmp_path: Path) -> None:
    """The documents of a pilot are not extracted again by the whole run; another way of asking is another run."""
    for at in range(4):
        (tmp_path / f"{at}.txt").write_text(f"Paper {at}.")
    (tmp_path / "t.yaml").write_text("name: t\nversion: 1\nfields: [{name: a, type: text, description: d}]")
    whole = RunOptions(tmp_path, tmp_path / "t.yaml", tmp_path / "out")
    pilot = replace(whole, pilot=2)
    template, selection = await select(pilot)
    assert len(selection.documents) == 2
    assert run_id_of(pilot, template) == run_id_of(whole, template)
    assert run_id_of(replace(whole, dual="prompts"), template) != run_id_of(whole, template)


def test_parameters_are_kept_for_the_jobs(tmp_path: Path) -> None:
    """Workers read how to ask; a run noted by an earlier version is asked once."""
    workspace = Workspace(tmp_path)
    workspace.save("one", TEMPLATE, (), parameters=Parameters(dual="prompts"))
    assert workspace.parameters("one").dual == "prompts"
    assert workspace.parameters("older") == Parameters()
    assert workspace.estimate("one") is None


@pytest.mark.parametrize("key", [None, "mine"])
def test_the_id_of_a_run_without_dual_is_what_it_always_was(key: str | None) -> None:
    """A run begun by an earlier version is found again."""
    template = parse_template("name: t\nversion: 1\nfields: [{name: a, type: text, description: d}]")
    options = RunOptions(Path("d"), Path("t"), Path("/out"), key=key)
    known = {None: "621740bad6bd89d377b53f92afcdeeba", "mine": "28aa0d5fce634ec1958c61472da3e41e"}
    assert run_id_of(options, template) == known[key]
