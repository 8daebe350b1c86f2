"""Values decided one by one: where the log of a run lies, and that sheets, pages and commands read the same one."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace import App, InvalidInputError
from headrace.apps.papers.command import write_results
from headrace.apps.papers.job import workspace_of
from headrace.apps.papers.output.lines import ValueLine, lines_of
from headrace.apps.papers.review.deciding import Verdict, decide
from headrace.apps.papers.review.decisions import Answer, Decision
from headrace.apps.papers.review.errors import ReviewError
from headrace.apps.papers.review.log import LOG, ReviewLog
from headrace.apps.papers.review.reading_back import read_back
from headrace.apps.papers.workspace import Parameters, Workspace
from headrace.settings import QueueSettings, Settings
from tests.unit.papers_reports import TEMPLATE, report, rows
from tests.unit.papers_sheets import fill_csv, read_csv

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RUN = report().record.run_id
LINES = {(line.name, line.place.row, line.place.field): line for line in lines_of(TEMPLATE, rows())}
SIZE, COUNTRY = LINES["a.pdf", 0, "size"], LINES["a.pdf", 0, "country"]
DOSE, DISPUTE = LINES["a.pdf", 1, "dose"], LINES["b <i>.txt", 0, "size"]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace that knows the run of the report."""
    made = Workspace(tmp_path / "kept" / "papers")
    made.save(RUN, TEMPLATE, (), parameters=Parameters())
    return made


def say(workspace: Workspace, line: ValueLine, reviewer: str = "AB", **said: object) -> Decision:
    """Decide a value."""
    return decide(workspace, RUN, line, Verdict(**said, reviewer=reviewer), now=NOW)  # type: ignore[arg-type]


def test_decisions_wait_for_the_results_and_then_lie_with_them(workspace: Workspace, tmp_path: Path) -> None:
    """The command takes them along, shows them in its sheets, and what is decided later goes into the same log."""
    out = tmp_path / "results"
    out.mkdir()
    app = App(settings=Settings(directory=tmp_path / "kept", queue=QueueSettings(type="memory")))
    say(workspace, DOSE, edited_value="0.2 g", comment="see table 1")
    assert (workspace_of(app).folder(RUN) / LOG).exists() and not (out / LOG).exists()
    write_results(app, report(), out)
    assert not (workspace.folder(RUN) / LOG).exists()
    say(workspace, DISPUTE, "CD", accept="second")
    [dose] = [line for line in read_csv(out / "review.csv") if line["edited_value"]]
    assert (dose["edited_value"], dose["reviewer"], dose["comment"]) == ("200", "AB", "see table 1")
    sheet = fill_csv(out / "review.csv", {("a.pdf", None, "size"): {"accept": "yes", "reviewer": "EF"}})
    verified = read_back(sheet, out, now=NOW).verification
    assert (verified.accepted, verified.edited, verified.by) == (2, 1, ("AB", "CD", "EF"))
    logged = [json.loads(line) for line in (out / LOG).read_text().splitlines()]
    assert [(line["who"], line["sheet"]) for line in logged] == [
        ("AB", "service"), ("CD", "service"), ("EF", "review.csv"),
    ]  # fmt: skip
    assert say(workspace, SIZE, "EF", accept="yes").answer is Answer.ACCEPTED
    assert len((out / LOG).read_text().splitlines()) == 3


def test_where_the_results_went_decisions_are_kept_with_the_run(workspace: Workspace, tmp_path: Path) -> None:
    """A folder that is not on this machine is none to write into."""
    workspace.note_output(RUN, tmp_path / "gone")
    say(workspace, SIZE, accept="yes")
    assert (workspace.folder(RUN) / LOG).exists()
    (tmp_path / "gone").mkdir()
    assert workspace.review_folder(RUN) == tmp_path / "gone"
    (workspace.folder(RUN) / "output.json").write_text("[", encoding="utf-8")
    assert workspace.review_folder(RUN) == workspace.folder(RUN)


@pytest.mark.parametrize(
    ("line", "said", "answer", "value"),
    [
        (SIZE, {"accept": "yes"}, Answer.ACCEPTED, 1200),
        (SIZE, {"accept": "YES"}, Answer.ACCEPTED, 1200),
        (SIZE, {"edited_value": "1200 people"}, Answer.ACCEPTED, 1200),
        (SIZE, {"edited_value": 7}, Answer.EDITED, 7),
        (COUNTRY, {"edited_value": "[not reported]"}, Answer.EDITED, None),
        (COUNTRY, {"accept": "no"}, Answer.REJECTED, None),
        (DISPUTE, {"accept": "first"}, Answer.ACCEPTED, 40),
        (DOSE, {"edited_value": "0.2 g"}, Answer.EDITED, 200),
    ],
)
def test_a_verdict_is_read_as_a_sheet_is(
    workspace: Workspace, line: ValueLine, said: dict[str, object], answer: Answer, value: object
) -> None:
    """With units, notations, and words for what has no value."""
    decision = say(workspace, line, **said)
    assert (decision.answer, decision.value, decision.reviewer, decision.decided_at) == (answer, value, "AB", NOW)
    assert ReviewLog(workspace.folder(RUN)).decisions([line])[line.place] == decision


@pytest.mark.parametrize(
    ("line", "said", "field"),
    [
        (SIZE, {}, "accept"),
        (SIZE, {"comment": "only"}, "accept"),
        (SIZE, {"accept": "first"}, "accept"),
        (SIZE, {"accept": "yes", "edited_value": "7"}, "edited_value"),
        (SIZE, {"edited_value": "about 40"}, "edited_value"),
        (DOSE, {"edited_value": "7 s"}, "edited_value"),
        (SIZE, {"accept": "yes", "comment": "x" * 5_001}, "comment"),
        (SIZE, {"accept": "yes", "reviewer": "x" * 201}, "reviewer"),
    ],
)
def test_what_breaks_a_rule_of_sheets_changes_nothing(
    workspace: Workspace, line: ValueLine, said: dict[str, object], field: str
) -> None:
    """The column is named."""
    with pytest.raises(InvalidInputError) as refused:
        say(workspace, line, **said)
    assert refused.value.field == field
    assert not (workspace.folder(RUN) / LOG).exists()


@pytest.mark.parametrize("line", LINES.values(), ids=map(str, LINES))
def test_whatever_is_typed_is_taken_or_refused(workspace: Workspace, line: ValueLine) -> None:
    """For every kind of field; what is taken can be read back."""
    for cell in (True, 10**30, -0.0, 1e308, 1e-300, "\u202e", "\x00", "=1+1", "∞", "9" * 400, " ", "a;b\n;;", "'=x"):
        try:
            decision = say(workspace, line, edited_value=cell)
        except InvalidInputError as refused:
            assert refused.field in ("edited_value", "accept")
        else:
            assert ReviewLog(workspace.folder(RUN)).decisions([line])[line.place] == decision


def test_a_value_that_was_extracted_anew_is_open_again(workspace: Workspace) -> None:
    """What was decided of the old one stays in the log."""
    say(workspace, SIZE, accept="yes")
    other = replace(SIZE, found=SIZE.found.model_copy(update={"value": 1300}))
    log = ReviewLog(workspace.folder(RUN))
    assert log.decisions([other])[SIZE.place].answer is Answer.OPEN
    assert log.decisions([SIZE])[SIZE.place].answer is Answer.ACCEPTED


def test_a_log_that_was_changed_by_hand_is_refused(workspace: Workspace) -> None:
    """Also where it was read before."""
    say(workspace, SIZE, accept="yes")
    (workspace.folder(RUN) / LOG).write_text("{}\n", encoding="utf-8")
    with pytest.raises(ReviewError, match="line 1"):
        say(workspace, SIZE, accept="no")
