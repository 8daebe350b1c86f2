"""The page of results: every found value marked in its text, nothing hostile, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace.apps.papers.documents import Document
from headrace.apps.papers.documents.model import Page as DocumentPage
from headrace.apps.papers.output.forms import write_forms
from headrace.apps.papers.output.lines import lines_of
from headrace.apps.papers.output.model import Row
from headrace.apps.papers.page.data import MAX_DOCUMENT_CHARS, REACH, script_json, whole_texts
from headrace.apps.papers.page.html import text_of, write_page
from headrace.apps.papers.page.marks import around, cut
from headrace.apps.papers.page.places import where
from headrace.apps.papers.page.texts import DocumentText, Texts
from headrace.apps.papers.result import FieldResult, Status
from headrace.apps.papers.review.reading_back import read_back
from tests.unit.papers_page import Page, marked, parts_of, words_of
from tests.unit.papers_reports import (
    DOCUMENT_A,
    DOCUMENT_B,
    TEMPLATE,
    document_of,
    found,
    report,
    result_of,
    rows,
)
from tests.unit.papers_sheets import fill_csv

DOCUMENTS = {document.document_id: document for document in (DOCUMENT_A, DOCUMENT_B)}
HOSTILE = "</script><!--<script>\x00\x0b\r\n\u2028\ud800&amp;]]>\ufffe'\"<img src=x onerror=alert(1)>"


def written(folder: Path, *some: Row, documents: tuple[Document, ...] = (DOCUMENT_A, DOCUMENT_B)) -> Page:
    """Write the page of a report whose texts are kept, and read it."""
    texts = Texts(folder / "texts")
    for document in documents:
        texts.keep(document)
    write_page(folder / "results.html", report(*some), texts=texts, decisions={})
    return Page.read(folder / "results.html")


def findings(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every value, and of disputed ones both candidates."""
    return [one for value in values for one in value.get("candidates", [value])]


def test_every_found_value_is_marked_with_exactly_its_quote(tmp_path: Path) -> None:
    """Over line breaks and pages, beside emoji, and where quotes overlap, for candidates too; texts are complete."""
    seen = 0
    for entry, values, text in written(tmp_path).documents():
        assert words_of(text) == DOCUMENTS[entry["id"]].text
        for finding in findings(values):
            if finding["status"] == "found":
                assert marked(text, finding["mark"]) == finding["quote"]
                seen += 1
    assert seen == 9 + 2


def test_every_value_and_document_is_on_the_page(tmp_path: Path) -> None:
    """Values of every status, files that gave nothing with their reason, and the counts of the filters."""
    page = written(tmp_path)
    index = page.block("index")
    assert [entry["name"] for entry in index["documents"]] == ["a.pdf", "b <i>.txt", "c.pdf"]
    assert index["documents"][2]["problem"] == "encrypted: is <encrypted>"
    assert index["documents"][0]["counts"] == {"found": 8, "not_reported": 2}
    assert sum(len(values) for _, values, _ in page.documents()) == len(list(lines_of(TEMPLATE, rows())))
    (_, values, _) = next(page.documents())
    dose = next(value for value in values if value["field"] == "dose")
    assert (dose["group"], dose["row"], dose["name"], dose["value"], dose["where"]) == (
        "arm", 1, "Aspirin", "100", "page 2",
    )  # fmt: skip
    assert index["fields"]["arm"]["dose"] == ["How much", "mg"]


def test_the_run_record_is_at_the_top(tmp_path: Path) -> None:
    """Tool, model, versions, dates and counts stand there without any script."""
    head = written(tmp_path).source.partition("<main>")[0]
    for fact in (
        "headrace 1",
        "m-1",
        "papers-1",
        "2026-01-02T03:00:00Z",
        TEMPLATE.digest,
        "2 of 3 documents extracted",
    ):
        assert fact in head


def test_nothing_but_our_script_and_style_may_run(tmp_path: Path) -> None:
    """The policy names both by their hashes; there is no handler, no address of another place, no inline style."""
    page = written(tmp_path)
    (policy,) = [
        meta.attributes["content"]
        for meta in page.all("meta")
        if meta.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = {name: values for name, *values in (rule.split() for rule in policy.split(";"))}
    scripts = [script.text for script in page.all("script") if script.attributes.get("type") is None]
    styles = [style.text for style in page.all("style")]
    assert (len(scripts), len(styles)) == (1, 1)
    assert rules["default-src"] == ["'none'"]
    for name, (text,) in {"script-src": scripts, "style-src": styles}.items():
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[name] == [f"'sha256-{digest}'"]
    assert rules["base-uri"] == rules["form-action"] == ["'none'"]
    names = {name for element in page.elements for name in element.attributes}
    assert not {name for name in names if name.startswith("on") or name in ("src", "href", "style", "action")}
    assert not re.search(r"https?:|//[a-z]+\.|url\(|@import", page.source)


def test_the_script_makes_no_markup_of_words() -> None:
    """Nothing in it parses HTML or runs text, so what is shown can only be text."""
    import headrace.apps.papers.page as package

    script = (Path(package.__file__).parent / "page.js").read_text(encoding="utf-8")
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|setTimeout|fetch\(|import\("
    )
    assert not re.search(forbidden, script)


def test_hostile_documents_change_nothing_of_the_page(tmp_path: Path) -> None:
    """Ends of scripts, comments, controls and half characters stay words; the page has the elements it always has."""
    words = HOSTILE.replace("\ud800", "")  # a model's words are stored without half characters
    document = document_of(f"{HOSTILE}.txt", (f"Before {HOSTILE} and {words} after.",))
    result = result_of(other := document_of("x.txt", ("Before words after.",)), {}, [])
    usual = written(tmp_path, Row(other.document_id, other.name).extracted(result), documents=(other,))
    fields = {"country": found(document, words, words, section=words, note=words)}
    hostile = result_of(document, {}, []).model_copy(update={"notes": (words,)})
    hostile = hostile.model_copy(update={"fields": hostile.fields | fields})
    row = Row(document.document_id, document.name, (HOSTILE,)).extracted(hostile)
    page = written(tmp_path, row, documents=(document,))
    assert [element.tag for element in page.elements] == [element.tag for element in usual.elements]
    ((entry, values, text),) = page.documents()
    assert entry["name"] == document.name
    assert values[1]["value"] == values[1]["quote"] == marked(text, values[1]["mark"]) == words
    assert words_of(text) == document.text
    assert not re.search("<img|[\x00-\x08\x0b]", page.source)


def test_hostile_words_of_the_record_are_text(tmp_path: Path) -> None:
    """What stands in the static part is escaped, and its controls are replaced."""
    record = replace(report().record, models=(HOSTILE,), readers=(HOSTILE,))
    write_page(tmp_path / "a.html", replace(report(), record=record), texts=Texts(), decisions={})
    page = Page.read(tmp_path / "a.html")
    assert [element.tag for element in page.elements if element.tag == "img"] == []
    assert html.escape("<img src=x onerror=alert(1)>") in page.source


@given(st.text(st.characters(), max_size=60) | st.text("</script>!-&\u2028\x00", max_size=20))
def test_any_text_survives_as_json_and_as_html(text: str) -> None:
    """What the script decodes is the text; what stands in HTML has no markup of its own; all of it can be encoded."""
    block = script_json({"text": text})
    assert not re.search("[<>&\u2028\u2029\ud800-\udfff]", block)
    assert json.loads(block)["text"] == text
    escaped = text_of(text)
    assert not re.search('[<>"\x00-\x08]', escaped)
    (block + escaped).encode("utf-8")


spans = st.tuples(st.integers(0, 30), st.integers(1, 30)).map(lambda pair: (pair[0], min(30, pair[0] + pair[1])))


@given(st.lists(spans.filter(lambda span: span[0] < span[1]), max_size=6), st.integers(0, 29))
def test_parts_join_to_the_text_and_each_mark_to_its_quote(marks: list[tuple[int, int]], middle: int) -> None:
    """Whatever quotes overlap, nest, repeat or cross a page, nothing is lost or doubled."""
    text = "".join(chr(0x1F600 + at) for at in range(30))
    parts = [*cut(text, marks, (0, middle)), *cut(text, marks, (middle, 30))]
    assert "".join(part if isinstance(part, str) else part[0] for part in parts) == text
    for number, (start, end) in enumerate(marks):
        own = [part[0] for part in parts if not isinstance(part, str) and number in part[1]]
        assert "".join(own) == text[start:end]


@given(st.lists(spans, max_size=6), st.integers(0, 10))
def test_surroundings_hold_every_mark_and_do_not_touch(marks: list[tuple[int, int]], reach: int) -> None:
    """They are in order, within the text, and each mark lies in one."""
    found_spans = around(marks, reach, 30)
    assert all(left[1] < right[0] for left, right in pairwise(found_spans))
    for start, end in marks:
        assert any(left <= start and end <= right for left, right in found_spans)


def test_a_large_run_keeps_what_surrounds_its_quotes(tmp_path: Path) -> None:
    """A text above the limit is shortened, says so, and still shows every quote whole."""
    filler = "Words that nobody quotes. " * (MAX_DOCUMENT_CHARS // 26)
    document = document_of("long.txt", (filler, f"{filler}We studied 40 people.", f"At first, 42. {filler}"))
    fields = {
        "size": found(document, 40, "We studied 40 people."),
        "country": found(document, "42", "people.\n\nAt first"),
    }
    row = Row(document.document_id, document.name).extracted(result_of(document, fields, []))
    page = written(tmp_path, row, documents=(document,))
    ((_, values, text),) = page.documents()
    assert text["shortened"]
    assert [shown["number"] for shown in text["pages"]] == [2, 3]
    assert None in text["pages"][0]["parts"]
    assert len(words_of(text)) < 4 * REACH
    for value in values[:2]:
        assert marked(text, value["mark"]) == value["quote"]


def test_the_shortest_texts_are_kept_whole() -> None:
    """Of a run above the limit the longest documents are shortened, and the choice does not depend on their order."""
    made = []
    for size in (500, 100, 300, 200):
        document = document_of(f"{size}.txt", ("x" * size,))
        made.append(Row(document.document_id, document.name).extracted(result_of(document, {}, [])))
    kept = whole_texts(made, limit=650)
    assert kept == whole_texts(made[::-1], limit=650)
    assert [row.name for row in made if row.document_id in kept] == ["100.txt", "300.txt", "200.txt"]


def test_pages_of_pdfs_are_told_in_words() -> None:
    """Where boxes and the size of the page are known, the place on the page is told; else the page alone."""
    pages = (DocumentPage(1, 0, 50, 600, 800), DocumentPage(2, 50, 100, 600, 800))
    text = DocumentText("x" * 100, pages)
    box = (1, 320.0, 700.0, 560.0, 712.0)
    finding = FieldResult(status=Status.UNCLEAR, page=1, char_start=40, char_end=49, boxes=(box,))
    assert where(finding, text) == "page 1, bottom right"
    assert where(finding.model_copy(update={"boxes": ((1, 30.0, 390.0, 560.0, 402.0),)}), text) == "page 1, middle"
    assert where(finding.model_copy(update={"char_end": 60}), text) == "pages 1 to 2, bottom right"
    assert where(finding, None) == "page 1"
    assert where(FieldResult(status=Status.NOT_REPORTED), text) == ""


def test_texts_are_those_that_were_extracted_from(tmp_path: Path) -> None:
    """A kept text counts, not what a file holds today; another reader's text is another text."""
    texts = Texts(tmp_path / "texts")
    texts.keep(DOCUMENT_A)
    kept = texts.find(DOCUMENT_A.document_id, "test 1", tmp_path / "gone.txt")
    assert kept == DocumentText(DOCUMENT_A.text, DOCUMENT_A.pages)
    assert texts.find(DOCUMENT_A.document_id, "test 2", None) is None
    texts.keep(replace(DOCUMENT_A, text="other"))
    assert texts.find(DOCUMENT_A.document_id, "test 1", None) == kept
    for path in (tmp_path / "texts").rglob("*.json"):
        path.write_text("{")
    assert texts.find(DOCUMENT_A.document_id, "test 1", None) is None


def test_without_a_kept_text_the_file_is_read_again(tmp_path: Path) -> None:
    """Its marks are the quotes that stand there; a file that changed is no longer the document."""
    path = tmp_path / "b.txt"
    path.write_text(DOCUMENT_B.text, encoding="utf-8")
    document = Document.of_pages("b.txt", path.read_bytes(), [DOCUMENT_B.text], reader="test 1")
    moved = found(document, "Peru", "from Peru").model_copy(update={"char_start": 1})
    result = result_of(document, {"size": found(document, 40, "Only 40"), "country": moved}, [])
    row = Row(document.document_id, document.name, path=path).extracted(result)
    ((_, values, text),) = written(tmp_path, row, documents=()).documents()
    assert marked(text, values[0]["mark"]) == "Only 40"
    assert "mark" not in values[1]
    assert "does not stand in the text" in values[1]["lost"]
    path.write_text("other", encoding="utf-8")
    ((_, values, text),) = written(tmp_path, row, documents=()).documents()
    assert "not at hand" in text["missing"]
    assert values[0]["quote"] == "Only 40"


def test_reviewed_values_are_told(tmp_path: Path) -> None:
    """What a person decided stands beside the value, once the run has written its page again."""
    write_forms(report(), tmp_path)
    place = ("a.pdf", None, "country")
    cells = {place: {"edited_value": "Sweden", "reviewer": "A<B", "comment": "see 2"}}
    read_back(fill_csv(tmp_path / "review.csv", cells), tmp_path)
    write_forms(report(), tmp_path)
    page = Page.read(tmp_path / "results.html")
    _, values, _ = next(page.documents())
    assert values[1]["review"] == {"answer": "edited", "by": "A<B", "comment": "see 2", "value": "Sweden"}
    assert page.block("index")["documents"][0]["decided"] == 1


def test_the_size_of_the_page_stays_bounded(tmp_path: Path) -> None:
    """A page of many documents is little larger than their texts and values."""
    count, many, documents = 60, [], []
    for number in range(count):
        document = document_of(
            f"{number}.txt", (f"Paper {number} studied {number + 1} people. " + "More words. " * 2000,)
        )
        value = found(document, number + 1, f"Paper {number} studied {number + 1} people.")
        many.append(Row(document.document_id, document.name).extracted(result_of(document, {"size": value}, [])))
        documents.append(document)
    page = written(tmp_path, *many, documents=tuple(documents))
    characters = sum(len(document.text) for document in documents)
    assert len(page.source) < 1.2 * characters + 2_000 * count
    assert len(parts_of(page.block("text-7"))) == 2
