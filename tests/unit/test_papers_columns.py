"""The layout of PDF pages: columns are read one after the other, and what is no column is never cut."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from headrace.apps.papers.documents import Document
from headrace.apps.papers.documents.columns import Gutter, reading_regions
from headrace.apps.papers.documents.pdf import PdfReader
from headrace.apps.papers.documents.words import Word
from tests.unit.papers_files import pdf_of
from tests.unit.papers_render import STYLES, Style, make_paper, render_pdf
from tools.papers_location import measure

PROSE = re.findall(
    r"\w+",
    "the mills of a northern valley yield more flour in spring than those of any other valley we know of and their "
    "owners told us so when we asked them about it in the second year of our long study of water and wheels",
)


def read(content: bytes) -> Document:
    """Return the document of a PDF that can be read."""
    document = PdfReader().read("paper.pdf", content)
    assert isinstance(document, Document), document
    return document


def drawn(pieces: Sequence[tuple[float, float, str]], *, size: float = 10) -> bytes:
    """Return a PDF of one page with texts at x and y, y from its upper edge."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4)
    for x, y, text in pieces:
        canvas.setFont("Vera", size)
        canvas.drawString(x, A4[1] - y, text)
    canvas.save()
    return buffer.getvalue()


def justified(chance: random.Random, *, x: float, width: float, size: float, lines: int) -> list[Word]:
    """Return justified prose, word by word."""
    words: list[Word] = []
    for row in range(lines):
        line: list[str] = []
        while stringWidth(" ".join(line), "Vera", size) < width - 3 * size:
            line.append(chance.choice(PROSE))
        space = (width - sum(stringWidth(word, "Vera", size) for word in line)) / (len(line) - 1)
        at, base = x, 60 + row * 1.2 * size
        for text in line:
            wide = stringWidth(text, "Vera", size)
            words.append(Word(text, at, base - 0.9 * size, at + wide, base + 0.25 * size, base, 1.15 * size))
            at += wide + space
    return words


@pytest.mark.parametrize("seed", range(12))
def test_a_page_of_one_column_is_never_cut(seed: int) -> None:
    """Justified prose has spaces below each other by chance; they are no gutter, in narrow and in wide lines."""
    chance = random.Random(seed)
    size = chance.choice([8.0, 10.0, 12.0])
    words = justified(chance, x=50, width=chance.choice([200.0, 350.0, 500.0]), size=size, lines=55)
    found: list[Gutter] = []
    assert reading_regions(words, found=found) == [words]
    assert found == []


@pytest.mark.parametrize("gutter", [9.0, 14.0, 30.0])
def test_two_columns_are_read_one_after_the_other(gutter: float) -> None:
    """Justified prose in two columns is two regions, whichever order the file has."""
    chance = random.Random(7)
    left = justified(chance, x=50, width=240, size=9, lines=40)
    right = justified(chance, x=290 + gutter, width=240, size=9, lines=30)
    mixed = sorted([*left, *right], key=lambda word: (word.base, word.x0))
    assert reading_regions(mixed) == [
        sorted(left, key=lambda word: (word.base, word.x0)),
        sorted(right, key=lambda word: (word.base, word.x0)),
    ]


def test_a_table_is_read_row_by_row() -> None:
    """The cells of a row stay together, also where the file gives a table column by column."""
    labels = [f"Site {name} of the comparison" for name in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")]
    cells = [[label, f"{n}.5 (1.2 to 3.4)", f"{n}.25"] for n, label in enumerate(labels)]
    pieces = [(50 + 180 * c, 100 + 15 * r, row[c]) for c in range(3) for r, row in enumerate(cells)]
    assert read(drawn(pieces)).text.split("\n") == [" ".join(row) for row in cells]


def test_a_table_of_texts_is_read_row_by_row() -> None:
    """Cells of several lines that begin at equal heights are rows, not columns."""
    chance = random.Random(3)
    rows = []
    y = 60.0
    for _ in range(6):
        for line in range(3):
            rows += [(x, y, " ".join(chance.choices(PROSE, k=7 if line < 2 else 3))[:42]) for x in (50, 320)]
            y += 12
        y += 14
    text = read(drawn(rows, size=9)).text
    left, right = ([piece for x, _, piece in rows if x == at] for at in (50, 320))
    assert text.index(right[0]) < text.index(left[3])


def test_a_list_of_options_is_read_line_by_line() -> None:
    """Short terms beside their explanations are no columns."""
    lines = [("--verbose", "says more about what is being done at every step"), ("--quiet", "says nothing at all but "
             "for errors that end the run"), ("--output", "names the file that the results are written to at the end"),
             ("--strict", "takes every warning for an error and stops there"), ("--help", "shows all of this and ends"
             " at once without a run")]  # fmt: skip
    pieces = [(x, 100 + 15 * n, text) for n, line in enumerate(lines) for x, text in zip((50, 200), line, strict=True)]
    assert read(drawn(pieces)).text.split("\n") == [" ".join(line) for line in lines]


def test_a_stamp_in_the_margin_comes_last() -> None:
    """Turned text is no part of the lines beside it, and is not lost."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4)
    canvas.setFont("Vera", 10)
    for row in range(5):
        canvas.drawString(60, 700 - 14 * row, f"Line number {row} of the page.")
    canvas.rotate(90)
    canvas.drawString(600, -30, "Preprint 2101.00001")
    canvas.save()
    lines = read(buffer.getvalue()).text.split("\n")
    assert lines[0] == "Line number 0 of the page."
    assert lines[-1] == "Preprint 2101.00001"


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_a_turned_page_is_read_as_it_is_shown(rotation: int) -> None:
    """Text that is upright once the page is turned gives the same lines, with boxes on the page as shown."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4)
    canvas.setPageRotation(rotation)
    # The page as shown is A4; a quarter turned, the page as stored is as wide as A4 is high.
    width, height = A4
    if rotation == 90:
        canvas.translate(height, 0)
    elif rotation == 180:
        canvas.translate(width, height)
    elif rotation == 270:
        canvas.translate(0, width)
    canvas.rotate(rotation)
    canvas.setFont("Vera", 12)
    for row in range(4):
        canvas.drawString(72, height - 72 - 20 * row, f"Row {row} at 10")
    canvas.save()
    document = read(buffer.getvalue())
    assert document.text.split("\n") == [f"Row {row} at 10" for row in range(4)]
    page = document.pages[0]
    assert (page.width, page.height) == pytest.approx((width, height), abs=0.1)
    start = document.text.index("Row 2")
    (box,) = document.boxes(start, start + 5)
    assert box.x0 == pytest.approx(72, abs=1)
    assert box.y0 < 112 < box.y1


def test_boxes_follow_lines_hyphens_and_pages() -> None:
    """A quote over two lines has two boxes; a word broken between pages has a box on both."""
    content = pdf_of([["It began on this line and went", "on. The conclu-"], ["sion stood on the next page."]])
    document = read(content)
    assert document.text == "It began on this line and went\non. The conclusion stood on the next page."
    start = document.text.index("began")
    boxes = document.boxes(start, document.text.index(" The"))
    assert [box.page for box in boxes] == [1, 1]
    assert boxes[0].x0 > boxes[1].x0
    assert boxes[0].y1 <= boxes[1].y0 + 4
    word = document.text.index("conclusion")
    assert [box.page for box in document.boxes(word, word + len("conclusion"))] == [1, 2]
    assert document.page_of(word) == 1
    assert document.page_of(word + len("conclu")) == 2
    assert document.boxes(0, 0) == []


def test_raised_digits_stay_raised() -> None:
    """A small 2 above the line is an exponent: 10² is never 102, and a lowered one is a plain digit."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    text = canvas.beginText(50, 700)
    for piece, size, rise in (("10", 12, 0), ("2", 8, 5), (" m", 12, 0), ("−3", 8, 5), (" of H", 12, 0), ("2", 8, -3),
                              ("O.", 12, 0)):  # fmt: skip
        text.setFont("Vera", size)
        text.setRise(rise)
        text.textOut(piece)
    canvas.drawText(text)
    canvas.save()
    assert read(buffer.getvalue()).text == "10² m⁻³ of H2O."


HEADERS = {
    "alternate": [["Example et al. 345"], ["346 Journal of mills"]],
    "numbers alone": [["345"], ["346"]],
    "chapters": [["12 The first chapter"], ["Another one 13"]],
}


@pytest.mark.parametrize("kind", HEADERS)
def test_running_lines_may_differ_between_left_and_right_pages(kind: str) -> None:
    """Headers that alternate, and lines that share only the number of their page, are no text."""
    pages = []
    for number in range(6):
        header = HEADERS[kind][number % 2][0]
        digits = "".join(char for char in header if char.isdigit())
        header = header.replace(digits, str(int(digits) + number - number % 2)) if digits else header
        pages.append([header, f"Text of page {'abcdef'[number]} goes on", f"in its line {'uvwxyz'[number]}."])
    text = read(pdf_of(pages)).text
    assert text == "\n\n".join(
        f"Text of page {letter} goes on\nin its line {other}." for letter, other in zip("abcdef", "uvwxyz", strict=True)
    )


def test_lines_that_only_look_alike_are_kept() -> None:
    """First lines with numbers that do not count pages are text, and so are captions that do."""
    pages = [[f"We saw {n} mills in valley {c}.", "A line.", "More."] for n, c in ((12, "a"), (7, "b"), (31, "c"))]
    assert "We saw 7 mills" in read(pdf_of(pages)).text
    captions = [[f"Table {n}", "", "", "", f"Cells of {word}."] for n, word in ((1, "flour"), (2, "water"))]
    assert read(pdf_of(captions)).text.count("Table") == 2


@pytest.mark.timeout(120)
def test_quotes_are_located_where_they_stand() -> None:
    """On documents rendered from a known text at least 98 % of the locations are right, in every layout."""
    for score in measure([11]):
        assert score.quotes > 100
        assert score.share >= 0.98, (score.name, score.wrong[:3])


def test_no_word_is_lost_or_doubled_in_any_layout() -> None:
    """The words of a page come out once each, whatever the layout; only what repeats on all pages is left out."""
    style = Style("plain", columns=2, by_words=True, table=True)
    paper = make_paper(5)
    content, quotes = render_pdf(paper, style)
    text = " ".join(read(content).text.split())
    assert all(text.count(quote.text) == 1 for quote in quotes)


def test_sections_follow_each_other_in_every_layout() -> None:
    """Sections have the kinds of the known text and cover the document without gap or overlap."""
    for style in STYLES[::3]:
        paper = make_paper(2)
        document = read(render_pdf(paper, style)[0])
        assert [section.kind.value for section in document.sections] == ["title", *(part.kind for part in paper.parts)]
        assert document.sections[0].char_start == 0
        assert document.sections[-1].char_end == len(document.text)
        assert all(above.char_end == below.char_start for above, below in pairwise(document.sections))
