"""The report in a real browser, where one is installed: charts, tables, keys, colours, paper, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.apps.report.data.document import ReportDocument
from headrace.apps.report.output.html import render_html
from headrace.apps.report.output.plain import render_plain
from tests.unit.browser import NEEDED, Tab
from tests.unit.report_documents import NASTY, document

pytestmark = NEEDED

ROWS = "[...document.querySelectorAll('#table-cases tbody tr')]"
SHOWN = "document.querySelector('#cases .shown').textContent"
STATUSES = f"[...new Set({ROWS}.map((row) => row.cells[5].textContent))].join()"
#: The contrast of two colours by WCAG 2: of the words of every element with its ground.
CONTRAST = """
(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = parts(colour).map((one) => one / 255).map((one) =>
      one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const [, , , alpha] = parts(getComputedStyle(one).backgroundColor);
      if (alpha === undefined || alpha === 1) return getComputedStyle(one).backgroundColor;
    }
    return "rgb(255, 255, 255)";
  };
  const chosen = document.querySelectorAll("h1, h2, p, .tiles span, .tiles small, td, th, a, .status, .met, dt, dd");
  return Math.min(...[...chosen].slice(0, 2000).map((element) => {
    const [a, b] = [light(getComputedStyle(element).color), light(ground(element))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  }));
})()
"""


@pytest.fixture(scope="module")
def report() -> ReportDocument:
    """A report of two hundred cases."""
    return document()


@pytest.fixture(scope="module")
def markup(report: ReportDocument) -> str:
    """Its page."""
    return render_html(report)


@pytest.fixture
def page(tmp_path: Path, tab: Tab, markup: str) -> Iterator[Path]:
    """A page that was written; nothing may have been asked for or complained of when the test ends."""
    path = tmp_path / "report.html"
    path.write_text(markup, encoding="utf-8")
    emulate(tab)
    tab.complaints.clear()
    tab.requests.clear()
    yield path
    assert tab.complaints == []
    assert {request.split("#")[0] for request in tab.requests} == {path.as_uri()}


def emulate(tab: Tab, *, dark: bool = False, media: str = "", width: int = 1280) -> None:
    """Show pages in light or dark, on a screen or on paper."""
    feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    tab.call("Emulation.setEmulatedMedia", media=media, features=[feature])
    tab.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)


def open_without_scripts(tab: Tab, page: Path) -> None:
    """Open a page; no event of it can be waited for."""
    tab.call("Page.navigate", url=page.as_uri())
    for _ in range(10_000):
        if tab.ask("`${document.readyState} ${document.title}`").startswith("complete Webshop"):
            return
    raise AssertionError("the page was not opened")


def test_every_chart_has_marks_and_hostile_words_are_words(tab: Tab, page: Path, report: ReportDocument) -> None:
    """No script of a cell ran, and what it says can be read."""
    tab.open(page)
    drawn = "[...document.querySelectorAll('figure svg')].map((svg) => svg.querySelectorAll('path, rect').length)"
    counts = tab.ask(drawn)
    assert len(counts) == len(report.charts)
    assert min(counts) > 3
    assert tab.ask("document.scripts.length") == 1
    assert tab.ask("document.images.length") == 0
    tab.ask("[...document.querySelectorAll('#cases .tools button')].at(-1).click()")
    words = tab.ask("document.querySelector('main').textContent")
    for nasty in NASTY[:7]:
        assert nasty in words


def test_numbers_lead_to_the_rows_that_they_count(tab: Tab, page: Path, report: ReportDocument) -> None:
    """A click on a count filters the cases; what is shown is as many."""
    tab.open(page)
    links = "[...document.querySelectorAll('#table-modules a[data-filter]')]"
    for index in range(0, tab.ask(f"{links}.length"), 11):
        count = int(tab.ask(f"{links}[{index}].textContent"))
        tab.ask(f"{links}[{index}].click()")
        assert tab.ask(f"{ROWS}.length") == count
    tab.ask("document.querySelector('.tiles a[data-filter*=\"Failed\"]').click()")
    assert tab.ask(STATUSES) == "Failed"
    assert tab.ask(f"{ROWS}.length") == report.stats["by_status"]["failed"]


def test_tables_are_filtered_with_the_keyboard(tab: Tab, page: Path) -> None:
    """A slash goes to the filter; only rows with the words stay."""
    tab.open(page)
    tab.ask("document.getElementById('cases').scrollIntoView()")
    tab.press("/")
    assert tab.ask("document.activeElement.closest('section').id") == "cases"
    for key in "tc-0042":
        tab.press(key)
    assert tab.ask(f"{ROWS}.map((row) => row.cells[0].textContent).join()") == "TC-0042"
    assert tab.ask(SHOWN) == "1 of 200 rows"
    tab.ask("[...document.querySelectorAll('#cases .tools button')].find((one) => one.textContent === 'Reset').click()")
    assert tab.ask(SHOWN) == "1–100 of 200 rows"


def test_tables_are_sorted_by_numbers_as_numbers(tab: Tab, page: Path) -> None:
    """Up, then down; rows without a value come last both times."""
    tab.open(page)
    tab.ask("[...document.querySelectorAll('#cases .tools button')].at(-1).click()")
    head = "[...document.querySelectorAll('#table-cases th')].find((one) => one.dataset.key === 'duration_seconds')"
    values = f"{ROWS}.map((row) => row.cells[8].dataset.v)"
    for direction, reverse in (("ascending", False), ("descending", True)):
        tab.ask(f"{head}.firstChild.focus()")
        tab.ask(f"{head}.firstChild.click()")
        assert tab.ask(f"{head}.getAttribute('aria-sort')") == direction
        tab.ask("[...document.querySelectorAll('#cases .tools button')].at(-1).click()")
        shown = tab.ask(values)
        numbers = [float(one) for one in shown if one]
        assert len(shown) == 200
        assert numbers == sorted(numbers, reverse=reverse)
        assert not any(shown[len(numbers) :])


def test_a_link_to_a_row_finds_it_wherever_it_is(tab: Tab, page: Path) -> None:
    """On another page of the table, or filtered away."""
    tab.open(page)
    tab.ask("document.querySelector('.tiles a[data-filter*=\"Failed\"]').click()")
    tab.ask("location.hash = 'case-180'")
    tab.ask("new Promise((done) => setTimeout(done, 50))")
    assert tab.ask("document.querySelector('tr.hit')?.cells[0].textContent") == "TC-0180"
    assert tab.ask("(() => { const box = document.querySelector('tr.hit').getBoundingClientRect();"
                   " return box.top >= 0 && box.bottom <= innerHeight; })()")  # fmt: skip


@pytest.mark.parametrize("dark", [False, True])
def test_words_can_be_read_in_light_and_dark(tab: Tab, page: Path, dark: bool) -> None:
    """At least the contrast that WCAG AA asks of small text."""
    emulate(tab, dark=dark)
    tab.open(page)
    assert tab.ask(CONTRAST) >= 4.5
    ink = tab.ask("getComputedStyle(document.querySelector('figure svg text')).fill")
    assert ink == ("rgb(230, 232, 235)" if dark else "rgb(28, 32, 38)")


def test_small_screens_scroll_tables_and_not_the_page(tab: Tab, page: Path) -> None:
    """At 390 pixels nothing sticks out."""
    emulate(tab, width=390)
    tab.open(page)
    assert tab.ask("document.documentElement.scrollWidth") <= 390


def test_all_rows_are_printed_on_white(tab: Tab, page: Path) -> None:
    """Also those of other pages, and what is folded; no controls."""
    emulate(tab, dark=True, media="print")
    tab.open(page)
    tab.ask("dispatchEvent(new Event('beforeprint'))")
    assert tab.ask(f"{ROWS}.length") == 200
    assert tab.ask("document.querySelectorAll('details:not([open])').length") == 0
    assert tab.ask("getComputedStyle(document.querySelector('.tools')).display") == "none"
    assert tab.ask("getComputedStyle(document.querySelector('section')).backgroundColor") == "rgb(255, 255, 255)"
    assert len(tab.call("Page.printToPDF", preferCSSPageSize=True)["data"]) > 50_000
    tab.ask("dispatchEvent(new Event('afterprint'))")
    assert tab.ask(f"{ROWS}.length") == 100


def test_the_browser_refuses_every_other_script_and_style(tab: Tab, page: Path) -> None:
    """Even where markup got into the page, nothing of it would work."""
    text = page.read_text(encoding="utf-8")
    hole = '<script>window.evil = 1</script><img src=x onerror="window.evil = 2"><style>h1 { color: red }</style>'
    holed = page.with_name("holed.html")
    holed.write_text(text.replace("<main>", f"{hole}<main>"), encoding="utf-8")
    tab.open(holed)
    assert tab.ask("typeof window.evil") == "undefined"
    assert tab.ask("getComputedStyle(document.querySelector('h1')).color") != "rgb(255, 0, 0)"
    assert len(tab.complaints) >= 3
    tab.open(page)
    tab.complaints.clear()
    tab.requests[:] = tab.requests[-1:]


@pytest.mark.parametrize("render", [render_html, render_plain])
def test_without_scripts_everything_can_be_read(tab: Tab, page: Path, report: ReportDocument, render: Any) -> None:
    """Every row stands there, and links lead to their tables."""
    page.write_text(render(report), encoding="utf-8")
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        open_without_scripts(tab, page)
        rows = tab.ask("document.querySelectorAll('#table-cases tbody tr, li').length")
        assert rows > report.stats["failing"]
        assert render is render_plain or tab.ask(f"{ROWS}.length") == 200
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)


def test_five_thousand_rows_are_sorted_and_filtered(tab: Tab, page: Path, report: ReportDocument) -> None:
    """However many they are; how long each takes is printed, for that is the machine's."""
    many = tuple(case.model_copy(update={"case_id": f"{case.case_id}/{n}", "title": case.title[:60]})
                 for n in range(25) for case in report.cases)  # fmt: skip
    assignments = tuple(one.model_copy(update={"case_id": case.case_id})
                        for one, case in zip(report.assignments * 25, many, strict=True))  # fmt: skip
    page.write_text(render_html(report.model_copy(update={"cases": many, "assignments": assignments})), "utf-8")
    tab.open(page)
    opening = tab.ask("performance.now()")
    took = "(() => {{ const begun = performance.now(); {}; return performance.now() - begun; }})()"
    head = "[...document.querySelectorAll('#table-cases th')][1].firstChild"
    sorting = tab.ask(took.format(f"{head}.click()"))
    assert tab.ask(f"{head}.closest('th').getAttribute('aria-sort')") == "ascending"
    box = "const box = document.querySelector('#cases input')"
    search = f"{box}; box.value = 'tc-0042'; box.dispatchEvent(new Event('input'))"
    filtering = tab.ask(took.format(search))
    print(f"ms to open, sort and filter 5,000 rows: {opening:.0f}, {sorting:.0f}, {filtering:.0f}")
    assert tab.ask(SHOWN) == "25 of 5000 rows"
