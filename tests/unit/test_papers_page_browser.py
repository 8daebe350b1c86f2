"""The page in a real browser, where one is installed: keys, marks, filters, printing, and what it refuses to run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.apps.papers.output.lines import lines_of
from headrace.apps.papers.page.html import write_page
from headrace.apps.papers.page.texts import Texts
from tests.unit.browser import NEEDED, Tab
from tests.unit.papers_reports import DOCUMENT_A, DOCUMENT_B, TEMPLATE, report, rows

pytestmark = NEEDED

CHOSEN = "document.querySelectorAll('#values .chosen').length"
NAME = "document.querySelector('#values .chosen .name')?.textContent"
QUOTE = "document.querySelector('#values .chosen .quote')?.textContent ?? ''"
MARKED = "[...document.querySelectorAll('#text mark.on')].map((mark) => mark.textContent).join('')"
TITLE = "document.querySelector('#values h2').textContent"


@pytest.fixture
def page(tmp_path: Path, tab: Tab) -> Iterator[Path]:
    """A page that was written; nothing may have been asked for or complained of when the test ends."""
    texts = Texts(tmp_path / "texts")
    texts.keep(DOCUMENT_A)
    texts.keep(DOCUMENT_B)
    path = tmp_path / "results.html"
    write_page(path, report(), texts=texts, decisions={})
    tab.complaints.clear()
    tab.requests.clear()
    yield path
    assert tab.complaints == []
    assert {request.split("#")[0] for request in tab.requests} == {path.as_uri()}


def test_keys_go_through_every_value_and_mark_its_quote(tab: Tab, page: Path) -> None:
    """From the first value to the last one of the last document; what is marked is what is quoted."""
    tab.open(page)
    visited = []
    for line in lines_of(TEMPLATE, rows()):
        tab.press("j")
        visited.append(tab.ask(NAME))
        assert tab.ask(CHOSEN) == 1
        if line.candidates is None:
            assert tab.ask(MARKED) == tab.ask(QUOTE) == (line.found.quote or "")
    assert visited == [line.field.name for line in lines_of(TEMPLATE, rows())]
    tab.press("k")
    assert tab.ask(NAME) == visited[-2]
    tab.press("[")
    assert tab.ask(TITLE) == "a.pdf"


def test_both_sides_of_a_disagreement_are_marked(tab: Tab, page: Path) -> None:
    """Each in its colour, also where they overlap; a click on a mark chooses its value."""
    tab.open(page, f"#{DOCUMENT_B.document_id[:12]}/0")
    for side, quote in (("first", "Only 40 or"), ("second", "40 or 42 people")):
        marks = f"[...document.querySelectorAll('#text mark.on.{side}')].map((mark) => mark.textContent).join('')"
        assert tab.ask(marks) == quote
    tab.ask("[...document.querySelectorAll('#text mark')].at(-1).click()")
    assert tab.ask(NAME) == "country"


def test_filters_hide_values_and_documents(tab: Tab, page: Path) -> None:
    """Without its status a value is gone, and a document without any other too; a search finds names."""
    tab.open(page)
    names = "[...document.querySelectorAll('#documents button')].map((button) => button.firstChild.textContent).join()"
    assert tab.ask(names) == "a.pdf,b <i>.txt,c.pdf"
    boxes = "[...document.querySelectorAll('#filters label')]"
    tab.ask(f"{boxes}.filter((label) => !label.textContent.includes('needs')).map((label) => label.firstChild.click())")
    assert tab.ask(names) == "b <i>.txt"
    tab.press("]")
    assert tab.ask("[...document.querySelectorAll('#values .name')].map((name) => name.textContent).join()") == "size"
    tab.ask(f"{boxes}.map((label) => label.firstChild.checked || label.firstChild.click())")
    tab.press("/")
    tab.press("c")
    assert tab.ask("document.activeElement.id") == "find"
    assert tab.ask(names) == "c.pdf"


def test_all_values_are_printed(tab: Tab, page: Path) -> None:
    """On paper stand the record and the values of all documents with their quotes, and no controls."""
    tab.open(page)
    tab.ask("dispatchEvent(new Event('beforeprint'))")
    assert tab.ask("document.querySelector('#record').open") is True
    printed = tab.ask("[...document.querySelectorAll('#printed td')].map((cell) => cell.textContent)")
    for line in lines_of(TEMPLATE, rows()):
        for finding in (line.found, *line.found.candidates):
            assert not finding.quote or finding.quote in printed
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.ask("getComputedStyle(document.querySelector('main')).display") == "none"
    tab.call("Emulation.setEmulatedMedia", media="")
    tab.ask("dispatchEvent(new Event('afterprint'))")
    assert tab.ask("document.querySelector('#printed').childElementCount") == 0


def test_the_browser_refuses_every_other_script(tab: Tab, page: Path) -> None:
    """Even where markup got into the page, no script, handler or image of it would work."""
    text = page.read_text(encoding="utf-8")
    holed = page.with_name("holed.html")
    hole = '<script>window.evil = 1</script><img src=x onerror="window.evil = 2"><style>main { color: red }</style>'
    holed.write_text(text.replace("<main>", f"{hole}<main>"), encoding="utf-8")
    tab.open(holed)
    assert tab.ask("typeof window.evil") == "undefined"
    assert len(tab.complaints) >= 3
    assert tab.ask("getComputedStyle(document.querySelector('main')).color") != "rgb(255, 0, 0)"
    assert tab.ask(TITLE) == "a.pdf"
    tab.open(page)
    tab.complaints.clear()
    tab.requests[:] = tab.requests[-1:]
