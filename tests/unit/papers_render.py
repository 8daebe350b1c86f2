"""Papers whose text is known, drawn as PDF in many layouts, and written as JATS and Markdown.

The drawing keeps for every sentence and row of a table the page it begins on, the section it belongs to, and where its
first letter stands, so that what a reader and a search make of the file can be compared with the truth.
"""

from __future__ import annotations

import io
import random
from dataclasses import dataclass, field
from html import escape
from itertools import count
from pathlib import Path

import reportlab
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

FONTS = Path(reportlab.__file__).parent / "fonts"
for _name in ("Vera", "VeraBd"):
    pdfmetrics.registerFont(TTFont(_name, str(FONTS / f"{_name}.ttf")))

SUBJECTS = [
    "The mills of the northern valley",
    "All farmers who took part",
    "Plots with the specific treatment",
    "Both groups of wheels",
    "The efficient double-blind comparison",
    "Our first measurements",
    "Samples from the long-term archive",
    "The control group",
    "Most of the participants",
    "A reflected beam of light",
    "The affiliated laboratories",
    "Half of the investigated sites",
]
VERBS = [
    "yielded",
    "showed",
    "needed",
    "gave",
    "reached",
    "were followed by",
    "differed by",
    "confirmed",
    "stabilised at",
    "were compared with",
]
OBJECTS = [
    "a difference in the flow of water",
    "significant improvements of the harvest",
    "no effect on the final concentration",
    "an unexpected modification of temperature",
    "more than the predefined threshold",
    "a considerable amount of flour",
    "the qualification of the personnel",
    "well-known characteristics of the instrument",
]
ENDS = [
    "after the intervention had been discontinued",
    "in the randomised part of the programme",
    "although the conditions varied",
    "as the manufacturer had specified",
    "when the measurements were repeated in spring",
    "which nobody had anticipated",
]
PARTS = (
    ("Abstract", "abstract", 1),
    ("Introduction", "introduction", 3),
    ("Methods", "methods", 5),
    ("Results", "results", 6),
    ("Discussion", "discussion", 5),
    ("Conclusions", "conclusion", 1),
    ("Funding", "funding", 1),
    ("References", "references", 0),
)


@dataclass(frozen=True)
class Part:
    """A section: paragraphs as lists of sentences, and maybe a table."""

    title: str
    kind: str
    paragraphs: list[list[str]]
    table: list[list[str]] = field(default_factory=list)


@dataclass(frozen=True)
class Paper:
    """What is known before anything is drawn."""

    title: str
    authors: str
    parts: list[Part]


@dataclass(frozen=True)
class Quote:
    """A stretch of the known text and where it was put; x and y in points from the upper left corner."""

    text: str
    page: int
    kind: str
    x: float
    y: float


@dataclass(frozen=True)
class Style:
    """How a paper is drawn."""

    name: str
    columns: int = 1
    size: float = 10.0
    gutter: float = 18.0
    #: none, same (on all pages), alternating (left and right pages differ).
    header: str = "none"
    numbered: bool = False
    upper: bool = False
    justified: bool = True
    #: Whether the file gives a page row by row, across its columns.
    by_rows: bool = False
    #: Whether every word is placed by itself, without spaces in the file.
    by_words: bool = False
    ligatures: bool = False
    table: bool = True


STYLES = (
    Style("one column"),
    Style("one column, ragged, header", justified=False, header="same", numbered=True),
    Style("one column, by words, footers alternate", by_words=True, header="alternating", upper=True),
    Style("two columns", columns=2, size=9),
    Style("two columns, narrow gutter, headers alternate", columns=2, size=9, gutter=12, header="alternating"),
    Style("two columns, row by row, ligatures", columns=2, size=9, by_rows=True, ligatures=True, header="same"),
    Style("two columns, by words, ragged, numbered", columns=2, by_words=True, justified=False, numbered=True),
    Style("three columns", columns=3, size=7.5, gutter=14, header="alternating", table=False),
)


def make_paper(seed: int) -> Paper:
    """Return a paper of its own: no two sentences are equal."""
    chance = random.Random(seed)
    numbers = count(101)

    def sentence() -> str:
        value = f"{next(numbers)}.{chance.randint(1, 9)}"
        words = f"{chance.choice(SUBJECTS)} {chance.choice(VERBS)} {chance.choice(OBJECTS)}"
        power = " at 10² m" if chance.random() < 0.1 else ""
        return f"{words}{power} ({value} kg), {chance.choice(ENDS)}."

    parts = []
    for title, kind, amount in PARTS:
        paragraphs = [[sentence() for _ in range(chance.randint(3, 7))] for _ in range(amount)]
        if kind == "references":
            paragraphs = [[f"Example {chr(65 + n)}, Mill {next(numbers)} and flour; Journal, {1990 + n}."]
                          for n in range(12)]  # fmt: skip
        rows = [[f"Site {chr(65 + n)}{next(numbers)}", *(f"{chance.uniform(1, 99):.2f}" for _ in range(4))]
                for n in range(9)]  # fmt: skip
        parts.append(Part(title, kind, paragraphs, rows if kind == "results" else []))
    title = "Water, wheels and flour: a comparison of mills with and without efficient gears in two valleys"
    return Paper(title, "Ada Example, Ben Sample and Cleo Model", parts)


@dataclass
class _Word:
    text: str
    font: str
    size: float
    #: The quote that begins with it.
    opens: tuple[str, str] | None = None


@dataclass
class _Line:
    words: list[_Word]
    is_last: bool
    above: float = 0.0
    size: float = 10.0
    #: Cells at fixed places across the whole page instead of running words.
    cells: list[str] = field(default_factory=list)


class Renderer:
    """Draws one paper in one style."""

    def __init__(self, paper: Paper, style: Style) -> None:
        self.paper, self.style = paper, style
        self.quotes: list[Quote] = []
        self._buffer = io.BytesIO()
        self._canvas = Canvas(self._buffer, pagesize=A4)
        self._page = 1
        self._width = (A4[0] - 100 - style.gutter * (style.columns - 1)) / style.columns

    def render(self) -> tuple[bytes, list[Quote]]:
        """Return the PDF and its quotes."""
        style = self.style
        above = self._broken(self.paper.title.split(), "VeraBd", 16, A4[0] - 100)
        top = self._wide([_Line([_Word(word, "VeraBd", 16) for word in line], True, size=16) for line in above], 790)
        top = self._wide([_Line([_Word(word, "Vera", 10) for word in self.paper.authors.split()], True)], top - 6) - 14
        pending: list[_Line] = []
        for number, part in enumerate(self.paper.parts, start=1):
            title = f"{number}. {part.title}" if style.numbered else part.title
            heading = [_Word(word, "VeraBd", style.size + 2) for word in title.split()]
            for word in heading:
                word.text = word.text.upper() if style.upper else word.text
            pending.append(_Line(heading, True, above=style.size, size=style.size + 2))
            for sentences in part.paragraphs:
                pending += self._paragraph(sentences, part.kind)
            if part.table and style.table:
                top = self._flow(pending, top)
                pending = []
                top = self._table(part, top)
        self._flow(pending, top)
        self._end_page()
        self._canvas.save()
        return self._buffer.getvalue(), self.quotes

    def _paragraph(self, sentences: list[str], kind: str) -> list[_Line]:
        words: list[_Word] = []
        for sentence in sentences:
            for index, text in enumerate(sentence.split()):
                words.append(_Word(text, "Vera", self.style.size, (sentence, kind) if index == 0 else None))
        lines: list[_Line] = []
        while words:
            taken = self._fitting(words)
            lines.append(_Line(words[:taken], taken == len(words), size=self.style.size))
            words = words[taken:]
        lines[0].above = 0.35 * self.style.size
        return lines

    def _fitting(self, words: list[_Word]) -> int:
        """How many words fit on a line; the last of them may be broken in two."""
        space, used = stringWidth(" ", "Vera", self.style.size), 0.0
        for index, word in enumerate(words):
            wide = stringWidth(word.text, word.font, word.size)
            if used + wide > self._width and index:
                cut = self._hyphenation(word.text, self._width - used)
                if cut:
                    words[index : index + 1] = [
                        _Word(f"{word.text[:cut]}-".replace("--", "-"), word.font, word.size, word.opens),
                        _Word(word.text[cut:], word.font, word.size),
                    ]
                    return index + 1
                return index
            used += wide + space
        return len(words)

    def _hyphenation(self, word: str, room: float) -> int:
        for cut in range(len(word) - 3, 2, -1):
            left, right = word[:cut], word[cut:]
            splits = left.endswith("-") or (left.isalpha() and right.isalpha() and right[0] not in "aeiou")
            if splits and stringWidth(f"{left}-", "Vera", self.style.size) <= room:
                return cut
        return 0

    def _broken(self, words: list[str], font: str, size: float, width: float) -> list[list[str]]:
        lines: list[list[str]] = [[]]
        for word in words:
            if lines[-1] and stringWidth(" ".join([*lines[-1], word]), font, size) > width:
                lines.append([])
            lines[-1].append(word)
        return lines

    def _wide(self, lines: list[_Line], y: float) -> float:
        for line in lines:
            y -= line.size * 1.25
            self._draw(line, 50, y, A4[0] - 100, ragged=True)
        return y

    def _flow(self, lines: list[_Line], top: float) -> float:
        """Fill columns below `top`, page after page; return how far down the last page is filled."""
        todo = list(lines)
        while todo:
            columns = [self._fill(todo, top) for _ in range(self.style.columns)]
            if not todo:
                columns = self._balanced([line for column in columns for line in column])
            placed = [(50 + index * (self._width + self.style.gutter), y, line)
                      for index, column in enumerate(columns) for y, line in self._stacked(column, top)]  # fmt: skip
            self._place(placed)
            if todo:
                self._end_page()
                top = 780
            else:
                return min(y for _, y, _ in placed) - 6
        return top

    def _place(self, placed: list[tuple[float, float, _Line]]) -> None:
        order = sorted(placed, key=lambda item: (-item[1], item[0])) if self.style.by_rows else placed
        drawn = {id(line): self._draw(line, x, y, self._width) for x, y, line in order}
        # Quotes are noted in the order of the text, whatever the order of drawing.
        for _, _, line in placed:
            self.quotes += drawn[id(line)]

    def _height(self, line: _Line) -> float:
        return line.size * 1.2 + line.above

    def _fill(self, todo: list[_Line], top: float) -> list[_Line]:
        column: list[_Line] = []
        room = top - 70
        while todo and (room := room - self._height(todo[0])) >= 0:
            column.append(todo.pop(0))
        return column

    def _balanced(self, lines: list[_Line]) -> list[list[_Line]]:
        share = sum(map(self._height, lines)) / self.style.columns
        columns: list[list[_Line]] = [[]]
        used = 0.0
        for line in lines:
            if used >= share and len(columns) < self.style.columns:
                columns.append([])
                used = 0.0
            columns[-1].append(line)
            used += self._height(line)
        return columns

    def _stacked(self, column: list[_Line], top: float) -> list[tuple[float, _Line]]:
        placed, y = [], top
        for line in column:
            y -= self._height(line)
            placed.append((y, line))
        return placed

    def _table(self, part: Part, top: float) -> float:
        rows = [["Site", "Flow", "Yield", "Loss", "Gain"], *part.table]
        if top - 15 * len(rows) < 90:
            self._end_page()
            top = 780
        self._canvas.setFont("Vera", 9)
        self._canvas.drawString(
            50, top - 20, "Table 1. What every site of the comparison yielded, and what it lost, in kg"
        )
        for index, row in enumerate(rows, start=2):
            y = top - 10 - 14 * index
            for column, cell in enumerate(row):
                self._canvas.drawString(50 + column * 100, y, cell)
            if index > 2:
                self.quotes.append(Quote(" ".join(row), self._page, part.kind, 50, A4[1] - y))
        return top - 14 * len(rows) - 40

    def _draw(self, line: _Line, x: float, y: float, width: float, *, ragged: bool = False) -> list[Quote]:
        widths = [stringWidth(word.text, word.font, word.size) for word in line.words]
        space = stringWidth(" ", line.words[0].font, line.words[0].size)
        if self.style.justified and not line.is_last and not ragged and len(widths) > 1:
            space = (width - sum(widths)) / (len(widths) - 1)
        quotes = []
        for index, (word, wide) in enumerate(zip(line.words, widths, strict=True)):
            if word.opens:
                quotes.append(Quote(word.opens[0], self._page, word.opens[1], x, A4[1] - y))
            text = word.text.replace("fi", "\ufb01").replace("fl", "\ufb02") if self.style.ligatures else word.text
            ends = index + 1 == len(widths) or self.style.by_words
            self._string(text if ends else f"{text} ", word, x, y)
            x += wide + space
        return quotes

    def _string(self, text: str, word: _Word, x: float, y: float) -> None:
        self._canvas.setFont(word.font, word.size)
        before, raised, after = text.partition("²")
        self._canvas.drawString(x, y, before)
        if raised:  # as typesetters do it: a small 2 above the line
            x += stringWidth(before, word.font, word.size)
            self._canvas.setFont(word.font, word.size * 0.7)
            self._canvas.drawString(x, y + 0.35 * word.size, f"2{after}")

    def _end_page(self) -> None:
        canvas, style, number = self._canvas, self.style, self._page
        canvas.setFont("Vera", 8)
        if style.header == "same":
            canvas.drawString(50, 812, "Journal of Mills 12 (2020)")
            canvas.drawCentredString(A4[0] / 2, 40, str(number + 344))
        elif style.header == "alternating":
            left = "Example et al." if number % 2 else f"{number + 344}"
            right = f"{number + 344}" if number % 2 else "Mills and flour"
            canvas.drawString(50, 812, left)
            canvas.drawRightString(A4[0] - 50, 812, right)
        canvas.showPage()
        self._page += 1


def render_pdf(paper: Paper, style: Style) -> tuple[bytes, list[Quote]]:
    """Return a paper as PDF, and where everything in it was put."""
    return Renderer(paper, style).render()


def render_jats(paper: Paper) -> tuple[bytes, list[Quote]]:
    """Return a paper as JATS, and what belongs to which section."""
    quotes = [Quote(sentence, 1, part.kind, 0, 0) for part in paper.parts for sentences in part.paragraphs
              for sentence in sentences]  # fmt: skip
    quotes += [Quote(" | ".join(row), 1, part.kind, 0, 0) for part in paper.parts for row in part.table]
    abstract, *body, funding, references = paper.parts
    names = "".join(
        f"<contrib contrib-type='author'><name><surname>{name.split()[1]}</surname>"
        f"<given-names>{name.split()[0]}</given-names></name></contrib>"
        for name in paper.authors.replace(" and ", ", ").split(", ")
    )
    refs = "".join(f"<ref><mixed-citation>{escape(p[0])}</mixed-citation></ref>" for p in references.paragraphs)
    sections = "".join(f"<sec><title>{part.title}</title>{_jats_part(part)}</sec>" for part in body)
    xml = f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving and Interchange DTD v1.2 20190208//EN" "a.dtd">
<article><front><article-meta><article-id pub-id-type="doi">10.5555/mills.1</article-id>
<title-group><article-title>{escape(paper.title)}</article-title></title-group><contrib-group>{names}</contrib-group>
<abstract>{_jats_part(abstract)}</abstract></article-meta></front><body>{sections}</body>
<back><sec><title>{funding.title}</title>{_jats_part(funding)}</sec><ref-list>{refs}</ref-list></back></article>"""
    return xml.encode(), quotes


def _jats_part(part: Part) -> str:
    text = "".join(f"<p>{escape(' '.join(sentences))}</p>" for sentences in part.paragraphs)
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in part.table)
    text = text.replace("²", "<sup>2</sup>")
    return f"{text}<table-wrap><label>Table 1</label><table>{rows}</table></table-wrap>" if rows else text
