"""Whatever cells a sheet has, reading it ends in cases that keep the rules of cases, or in none."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.apps.report.data.cases import Case, Status
from headrace.apps.report.ingest.cells import Broken, Cell, Grid, Merge, key_of
from headrace.apps.report.ingest.header import find_header
from headrace.apps.report.ingest.ids import Ids
from headrace.apps.report.ingest.issues import RULES, IssueBook
from headrace.apps.report.ingest.rows import SheetRows
from headrace.apps.report.ingest.words import meanings, words

WORDS = [word for listed in words()["fields"].values() for word in listed[:3]]
VALUES = [word for group in ("status", "priority", "severity") for listed in words()[group].values() for word in listed]
TEXTS = st.one_of(
    st.sampled_from(WORDS), st.sampled_from(VALUES), st.text(max_size=12), st.sampled_from(["合计", "1.0"])
)
CELLS: st.SearchStrategy[Cell] = st.one_of(
    st.none(),
    TEXTS,
    st.integers(-5, 60_000),
    st.floats(),
    st.booleans(),
    st.dates(date(1890, 1, 1)),
    st.datetimes(datetime(1890, 1, 1)),
    st.timedeltas(timedelta(-1), timedelta(2)),
    st.sampled_from([Broken("#REF!"), Broken("")]),
)
PLACES = st.tuples(*[st.integers(0, 14)] * 4).map(
    lambda four: (min(four[0], four[2]), min(four[1], four[3]), max(four[0], four[2]), max(four[1], four[3]))
)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """Return a sheet: now and then a title, often a header, cells of all kinds in rows of any length, merged ranges."""
    above = draw(st.lists(st.lists(CELLS, max_size=3), max_size=2))
    header: list[list[Cell]] = [list(draw(st.lists(st.sampled_from(WORDS), min_size=2, max_size=8)))]
    body = draw(st.lists(st.lists(CELLS, max_size=10), max_size=12))
    merges: list[Merge] | None = draw(st.none() | st.lists(PLACES, max_size=5))
    return Grid("Any", [*above, *header, *body], None if merges is None else tuple(merges))


def read(grid: Grid) -> tuple[list[Case], IssueBook, SheetRows | None]:
    """Read a sheet."""
    book = IssueBook()
    header = find_header(grid)
    rows = SheetRows(grid, header, book, Ids(book)) if header else None
    return rows.cases() if rows else [], book, rows


@given(grids())
@example(Grid("Any", [["Module", "Test Case ID"], [], []], ((1, 1, 2, 1),)))
@settings(max_examples=300, deadline=None)
def test_no_sheet_breaks_the_reader(grid: Grid) -> None:
    """Ids are given once, rows are of the sheet, texts are stripped, issues are of known rules, and values are JSON."""
    cases, book, rows = read(grid)
    assert len({case.case_id for case in cases}) == len(cases)
    assert set(book.counts) <= set(RULES)
    for case in cases:
        assert case.case_id == case.case_id.strip() != ""
        assert 1 <= case.source.row <= len(grid.rows)
        assert case.title == case.title.strip()
        assert case.priority in ("", "P0", "P1", "P2", "P3", "P4")
        assert case.severity in ("", "critical", "major", "minor", "trivial")
        assert case.duration_seconds is None or case.duration_seconds >= 0
        assert Case.model_validate_json(case.model_dump_json()) == case
    if rows:
        assert len(cases) + rows.rejected <= rows.rows <= len(grid.rows)


@given(st.lists(TEXTS, min_size=1, max_size=30))
@settings(max_examples=200, deadline=None)
def test_results_are_counted_as_their_words_say(texts: list[str]) -> None:
    """A column of results gives as many passed cases as it has words for it, whatever else it says."""
    rows: list[list[Cell]] = [
        ["Case ID", "Title", "Result"],
        *[[f"T-{n}", f"t {n}", text] for n, text in enumerate(texts)],
    ]
    cases, _, _ = read(Grid("Any", rows, ()))
    said = [meanings("status").get(key_of(text)) for text in texts]
    assert len(cases) == len(texts)
    assert sum(case.status is Status.PASSED for case in cases) == said.count("passed")
