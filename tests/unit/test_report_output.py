"""The page, the workbook and JSON of one document: the same figures in all three, and words that stay words."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.worksheet.worksheet import Worksheet

from headrace.apps.report.data.cases import Case, Source, Status
from headrace.apps.report.data.document import ReportDocument
from headrace.apps.report.data.modules import Assignment
from headrace.apps.report.errors import PreviousReportError
from headrace.apps.report.output.html import render_html
from headrace.apps.report.output.json_file import read_previous, write_json
from headrace.apps.report.output.plain import render_plain
from headrace.apps.report.output.wording import percent, wording
from headrace.apps.report.output.xlsx import SHEETS, write_cases_xlsx, write_xlsx
from headrace.apps.report.stats import Stats, add_findings, compute_stats
from tests.unit.report_documents import NASTY, document, ingested_of, make_cases

ROOT = Path(__file__).resolve().parents[2]
LANGS: Any = pytest.mark.parametrize("lang", ["en", "zh"])


class Page(HTMLParser):
    """What a page holds: the rows of its tables, its figures, its scripts, links and ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.figures: dict[str, str] = {}
        self.scripts = 0
        self.links: list[str] = []
        self.ids: list[str] = []
        self.handlers: list[str] = []
        self.tags: set[str] = set()
        self.words: list[str] = []
        self._rows: list[list[str]] | None = None
        self._figure = ""
        self._cell = False
        self._quiet = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.handlers += [name for name in found if name.startswith("on") or name == "style"]
        self.scripts += tag == "script"
        self._quiet = tag in ("script", "style")
        if "id" in found:
            self.ids.append(found["id"])
        self.links += [found[name] for name in ("href", "src") if name in found]
        if tag == "table":
            self._rows = self.tables.setdefault(found.get("id", ""), [])
        if tag == "tr" and self._rows is not None:
            self._rows.append([])
        if tag in ("td", "th") and self._rows:
            self._rows[-1].append("")
            self._cell = True
        self._figure = found.get("data-figure", self._figure)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._cell = False
        if tag == "strong":
            self._figure = ""
        if tag in ("script", "style"):
            self._quiet = False

    def handle_data(self, data: str) -> None:
        if self._quiet:
            return
        self.words.append(data)
        if self._cell and self._rows:
            self._rows[-1][-1] += data
        if self._figure:
            self.figures[self._figure] = self.figures.get(self._figure, "") + data.strip()


def sheet_rows(sheet: Worksheet, header: str) -> list[list[Any]]:
    """Return the rows below the header that begins with a word, until an empty one."""
    rows = [list(row) for row in sheet.iter_rows(values_only=True)]
    start = next(index for index, row in enumerate(rows) if row[0] == header and row[1] is not None)
    body = []
    for row in rows[start + 1 :]:
        if row[0] is None:
            break
        body.append(row)
    return body


def assert_reconciled(report: ReportDocument, folder: Path) -> None:
    """Read the figures back from all three files and compare them."""
    write_json(folder / "r.json", report)
    write_xlsx(folder / "r.xlsx", report)
    page = Page(render_html(report))
    word = wording(report.lang)
    told = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    stats = told["stats"]
    book = openpyxl.load_workbook(folder / "r.xlsx")
    sheets = {key: book[word(f"sheet.{key}")] for key in SHEETS}

    assert page.figures["total"] == str(stats["total"]) == str(len(told["cases"]))
    assert page.figures["failing"] == str(stats["failing"])
    for name, rate in stats["rates"].items():
        assert page.figures[name] == percent(rate["percent"])
    rates = {row[0]: row[1:4] for row in sheet_rows(sheets["summary"], word("column.rate"))}
    assert rates == {word(f"rate.{n}"): [r["percent"], r["count"], r["of"]] for n, r in stats["rates"].items()}
    by_status = {row[0]: row[1] for row in sheet_rows(sheets["summary"], word("column.status"))}
    assert by_status == {word(f"status.{name}"): count for name, count in stats["by_status"].items()}
    assert_modules_agree(page, sheets["modules"], stats, word)

    assert len(page.tables["table-cases"]) - 1 == sheets["cases"].max_row - 1 == len(told["cases"])
    statuses = [row[5] for row in sheets["cases"].iter_rows(min_row=2, values_only=True)]
    assert statuses == [word(f"status.{case['status']}") for case in told["cases"]]
    assert [row[5] for row in page.tables["table-cases"][1:]] == statuses
    assert len(list(sheets["failed"].rows)) - 1 == stats["failing"]
    assert len(page.tables.get("table-failed", [[]])) - 1 == stats["failing"]
    assert len(list(sheets["defects"].rows)) - 1 == len(told["defects"])
    sizes = [row[2] for row in sheets["clusters"].iter_rows(min_row=2, values_only=True)]
    assert sizes == [len(one["case_ids"]) for one in told["clusters"]]
    met = [row[3] for row in sheet_rows(sheets["summary"], word("column.criterion"))]
    assert met == [row[3] for row in page.tables["table-criteria"][1:]]


def assert_modules_agree(page: Page, sheet: Worksheet, stats: dict[str, Any], word: Any) -> None:
    """The same counts and rates, and the same sums below them."""
    names = list(Status)
    wanted = [
        [one["total"], *(one["by_status"][name] for name in names),
         *(rate["percent"] for rate in (one["rates"][n] for n in ("pass_rate_of_executed", "pass_rate_of_all",
                                                                   "execution_rate")))]
        for one in stats["modules"]
    ]  # fmt: skip
    in_sheet = sheet_rows(sheet, word("column.module"))
    assert [row[1:10] for row in in_sheet[:-1]] == wanted
    assert in_sheet[-1][1:7] == [stats["total"], *(stats["by_status"][name] for name in names)]
    on_page = page.tables["table-modules"][1:]
    assert [row[1:7] for row in on_page[:-1]] == [[str(value) for value in row[:6]] for row in wanted]
    assert [row[7] for row in on_page[:-1]] == [percent(row[6]) for row in wanted]
    assert [int(value) for value in on_page[-1][1:7]] == in_sheet[-1][1:7]


@LANGS
@pytest.mark.parametrize("degraded", ["", "whole"])
def test_figures_are_the_same_on_the_page_in_the_workbook_and_in_json(lang: Any, degraded: str, tmp_path: Path) -> None:
    """Totals, rates, modules, rows, criteria."""
    assert_reconciled(document(lang, degraded=degraded), tmp_path)


ANY = st.builds(
    lambda status, text, priority, seconds: (
        status, {"title": text, "priority": priority, "duration_seconds": seconds},
    ),
    st.sampled_from(list(Status)),
    st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(NASTY),
    st.sampled_from(["", "P0", "P2"]),
    st.none() | st.floats(0, 1e9),
)  # fmt: skip


@given(drawn=st.lists(ANY, min_size=1, max_size=12))
@settings(max_examples=12, deadline=None)
def test_figures_agree_for_any_cases(drawn: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever the cells say."""
    base = document(count=3, earlier=False)
    cases = tuple(Case(case_id=f"C{n}", status=status, source=Source(sheet="S", row=n), module="M", **fields)
                  for n, (status, fields) in enumerate(drawn))  # fmt: skip
    modules = tuple(Assignment(case_id=one.case_id, module=one.title[:9] or "M") for one in cases)
    stats = add_findings(compute_stats(cases, modules), modules, ())
    update = {"cases": cases, "assignments": modules, "stats": stats.model_dump(mode="json"), "charts": {},
              "defects": (), "clusters": ()}  # fmt: skip
    assert_reconciled(base.model_copy(update=update), tmp_path_factory.mktemp("any"))


@LANGS
def test_words_of_files_and_of_the_model_stay_words_on_the_page(lang: Any) -> None:
    """One script, ours; no handler, no address of elsewhere, every link leads to what is there."""
    text = render_html(document(lang))
    page = Page(text)
    assert page.scripts == 1
    assert page.handlers == []
    assert {"img", "iframe", "object", "form", "base", "link"}.isdisjoint(page.tags)
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]", text)
    words = "".join(page.words)
    for nasty in NASTY[:7]:
        assert nasty in words
    assert "http" not in re.sub(r'xmlns(:xlink)?="http[^"]+"', "", text).replace("http-equiv", "")


def test_the_policy_of_the_page_names_its_script_and_its_style_and_nothing_else() -> None:
    """The hashes are those of what stands there: a browser would run neither else (see the browser tests)."""
    text = render_html(document(count=5))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert "unsafe" not in policy[1]


@LANGS
def test_the_first_screen_says_what_ran_without_the_model_and_how_to_fill_it(lang: Any) -> None:
    """The words for an analysis that is missing as a whole are given."""
    said = {"en": "Analysis degraded: only statistics and failed cases", "zh": "分析部分降级，仅输出统计与失败用例"}
    for render in (render_html, render_plain):
        whole = render(document(lang, degraded="whole"))
        assert said[lang] in whole
        assert "headrace report resume J-7f3a --out DIR" in whole
        part = render(document(lang, degraded="part"))
        assert said[lang] not in part
        assert wording(lang)("degraded.part") in part
        assert wording(lang)("degraded.part") not in render(document(lang))
        assert whole.index(said[lang]) < whole.index('id="table-')


@pytest.mark.parametrize("render", [render_html, render_plain])
def test_figures_that_contradict_each_other_are_told_first(render: Any) -> None:
    """A report never hides that its sums do not agree."""
    whole = document(count=40)
    broken = render(whole.model_copy(update={"defects": whole.defects[1:]}))
    assert wording("en")("warning.sums") in broken
    assert wording("en")("warning.sums") not in render(whole)


def test_empty_reports_can_be_rendered(tmp_path: Path) -> None:
    """No case, no defect, no cluster, nothing to compare with."""
    empty = document(count=0, earlier=False)
    assert_reconciled(empty, tmp_path)
    assert "UNDECIDED" in render_html(empty)
    assert "UNDECIDED" not in render_plain(empty)


def test_the_plain_page_needs_nothing_and_escapes_everything() -> None:
    """It holds figures, failed cases and links to the other files."""
    report = document()
    page = Page(render_plain(report))
    assert page.scripts == 0
    assert page.handlers == []
    assert page.links == ["report.xlsx", "report.json"]
    assert [row[:2] for row in page.tables["table-statuses"][1:]][1] == [
        "Failed",
        str(report.stats["by_status"]["failed"]),
    ]
    assert sum("TC-" in one for one in page.words) >= 20


@LANGS
def test_no_cell_of_the_workbook_is_a_formula_or_leads_elsewhere(lang: Any, tmp_path: Path) -> None:
    """Formulas are words with an apostrophe, links lead to sheets, long texts are cut, numbers stay numbers."""
    path = tmp_path / "r.xlsx"
    write_xlsx(path, document(lang, count=300))
    book = openpyxl.load_workbook(path)
    word = wording(lang)
    assert book.sheetnames == [word(f"sheet.{key}") for key in SHEETS]
    for sheet in book:
        for cell in (cell for row in sheet.iter_rows() for cell in row if cell.value is not None):
            assert cell.data_type in ("s", "n", "b"), cell.coordinate
            if cell.data_type == "s":
                assert len(cell.value) <= 32_767
                assert not cell.value.startswith(("=", "+", "-", "@", "\t", "\r"))
            if cell.hyperlink is not None:
                assert cell.hyperlink.target is None
                assert cell.hyperlink.location.startswith("'")
    cases = book[word("sheet.cases")]
    titles = [row[1].value for row in cases.iter_rows(min_row=2)]
    assert any(str(title).startswith("'=cmd") for title in titles)
    assert isinstance(cases["I2"].value, float)
    assert (cases.freeze_panes, cases.auto_filter.ref.split(":")[0]) == ("B2", "A1")
    assert len(book.worksheets[0]._charts) == 5


def test_links_of_the_workbook_lead_to_the_row_that_they_name(tmp_path: Path) -> None:
    """Of cases and of clusters."""
    path = tmp_path / "r.xlsx"
    write_xlsx(path, document())
    book = openpyxl.load_workbook(path)
    followed = 0
    for name in ("Failed", "Defects", "Clusters", "Trend"):
        for cell in (cell for row in book[name].iter_rows() for cell in row if cell.hyperlink is not None):
            sheet, _, place = cell.hyperlink.location.rpartition("!")
            assert book[sheet.strip("'")][place].value == cell.value
            followed += 1
    assert followed > 60


def test_cases_can_be_written_alone(tmp_path: Path) -> None:
    """With their modules, the other columns of the file, and what was wrong with its rows."""
    made = make_cases()
    write_cases_xlsx(tmp_path / "cases.xlsx", ingested_of(made), made.assignments)
    book = openpyxl.load_workbook(tmp_path / "cases.xlsx")
    assert book.sheetnames == ["All cases", "Data quality"]
    header = [cell.value for cell in book["All cases"][1]]
    assert header[-2:] == ["Build", "'=Reviewer"]
    assert book["All cases"].max_row == len(made.cases) + 1


def test_json_is_the_document_and_the_same_every_time(tmp_path: Path) -> None:
    """Also with half characters and with what is no number."""
    report = document(count=60)
    odd = report.cases[0].model_copy(update={"duration_seconds": float("nan"), "title": "\ud800"})
    for name in ("a", "b"):
        write_json(tmp_path / name, report.model_copy(update={"cases": (odd, *report.cases[1:])}))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    told = json.loads((tmp_path / "a").read_text(encoding="utf-8"))
    assert told["schema"] == "headrace.report/1"
    assert told["cases"][0]["duration_seconds"] is None
    told["schema_"] = told.pop("schema")
    assert ReportDocument.model_validate(told).stats == report.stats
    assert Stats.model_validate(told["stats"]).total == 60


def test_a_report_can_be_compared_with_one_that_was_written(tmp_path: Path) -> None:
    """Its statuses, modules and clusters come back, and its point is the last of the history."""
    report = document()
    write_json(tmp_path / "report.json", report)
    previous = read_previous(tmp_path / "report.json")
    stats = Stats.model_validate(report.stats)
    assert previous.by_status == stats.by_status
    assert previous.statuses == {case.case_id: case.status for case in report.cases}
    assert {one.name: one.by_status for one in stats.modules} == previous.modules
    assert [one.job_id for one in previous.history] == ["J0", "J1", "J2", "J3", "J-7f3a"]
    again = compute_stats(report.cases, report.assignments, previous=previous)
    found = add_findings(again, report.assignments, report.defects, report.clusters, previous).trend
    assert found is not None
    assert found.clusters is not None
    assert (found.newly_failing, found.fixed, found.clusters.new, found.clusters.gone) == ((), (), (), ())
    assert all(one.change == 0 for one in found.by_status.values())


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("no json", "must be JSON"),
        ("[]", "schema must be 'headrace.report/1', got 'list'"),
        ('{"schema": "other/2"}', "schema must be 'headrace.report/1', got 'other/2'"),
        ('{"schema": "headrace.report/1"}', "run: Field required"),
        ('{"schema": "headrace.report/1", "run": {"job_id": 5, "created_at": ""}}', "run.job_id: .* got 5"),
        ("[" * 100_000, "must be JSON"),
    ],
)
def test_what_is_no_report_is_refused_with_field_rule_and_value(content: str, says: str, tmp_path: Path) -> None:
    """The message also says which file to give."""
    path = tmp_path / "previous.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(PreviousReportError, match=says) as caught:
        read_previous(path)
    assert "report.json that an earlier report wrote" in str(caught.value)


def test_a_report_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """With its name."""
    with pytest.raises(PreviousReportError, match=r"gone\.json: cannot be read"):
        read_previous(tmp_path / "gone.json")


def test_both_languages_have_the_same_words_with_the_same_places() -> None:
    """No key is missing, and what is filled in is filled in in both."""
    english, chinese = wording("en").words, wording("zh").words
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", chinese[key])), key
        assert "'" not in text or not key.startswith("status."), key


def test_a_page_of_two_thousand_cases_is_of_a_size_to_be_sent() -> None:
    """A kilobyte or so for each case."""
    assert len(render_html(document(count=2_000))) < 3_000_000
