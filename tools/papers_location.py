#!/usr/bin/env python3
"""Measure how often a quote is located where it stands, on papers rendered from a known text.

Usage: papers_location.py [--papers N] [--wrong]
Every paper (default 5) is drawn as PDF in all layouts of tests/unit/papers_render.py and written as JATS, read again,
cut into sentences and searched for every sentence and table row of the known text. A location is right when the quote
is found letter by letter, on its page, in its section, and its box begins where it was drawn. --wrong lists the others.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from headrace.apps.papers.documents import Document
from headrace.apps.papers.documents.jats import JatsReader
from headrace.apps.papers.documents.pdf import PdfReader
from headrace.apps.papers.locate import locate
from headrace.apps.papers.result import Alignment
from headrace.apps.papers.sentences import Sentence, split_document
from headrace.apps.papers.template import TemplateField
from tests.unit.papers_render import STYLES, Quote, make_paper, render_jats, render_pdf

FIELD = TemplateField(name="quote", type="text", description="A stretch of the text")
#: So far a box may begin from where its quote was drawn, in points.
NEAR = 4.0


@dataclass
class Score:
    """How many quotes of one layout were located, and what was wrong with the others."""

    name: str
    quotes: int = 0
    pages: int = 0
    seconds: float = 0.0
    wrong: list[tuple[Quote, str]] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Which part of the locations is right."""
        return 1 - len(self.wrong) / self.quotes


def measure(seeds: Sequence[int]) -> list[Score]:
    """The scores of every layout over the papers with these numbers."""
    scores = {name: Score(name) for name in [*(style.name for style in STYLES), "jats"]}
    for seed in seeds:
        for name, content, quotes in rendered(seed):
            score = scores[name]
            reader = JatsReader() if name == "jats" else PdfReader()
            began = time.process_time()
            document = reader.read(name, content)
            score.seconds += time.process_time() - began
            assert isinstance(document, Document), document
            score.pages += len(document.pages)
            score.quotes += len(quotes)
            sentences = split_document(document)
            score.wrong += [(quote, why) for quote in quotes if (why := fault(document, sentences, quote))]
    return list(scores.values())


def rendered(seed: int) -> Iterator[tuple[str, bytes, list[Quote]]]:
    """One paper in every layout."""
    paper = make_paper(seed)
    for style in STYLES:
        yield style.name, *render_pdf(paper, style)
    yield "jats", *render_jats(paper)


def fault(document: Document, sentences: Sequence[Sentence], quote: Quote) -> str:
    """What is wrong with the location that is found for a quote; nothing if it is right."""
    found = locate(FIELD, quote.text, sentences)
    if found is None or found[1].alignment not in (Alignment.EXACT, Alignment.NORMALISED):
        return "not located"
    sentence = found[0]
    start = document.text.find(quote.text.split()[0], sentence.char_start)
    section = document.section_of(start)
    if document.page_of(start) != quote.page:
        return f"page {document.page_of(start)}"
    if section is None or section.kind != quote.kind:
        return f"section {section and section.kind}"
    box = next(iter(document.boxes(start, sentence.char_end)), None)
    if box is not None and not (abs(box.x0 - quote.x) < NEAR and box.y0 - NEAR < quote.y < box.y1 + NEAR):
        return f"box {box}"
    return "" if box is not None or document.word_boxes is None else "no box"


def main() -> int:
    """Print the shares; 1 if one is below 98 %."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--papers", type=int, default=5, help="papers of different text (default 5)")
    parser.add_argument("--wrong", action="store_true", help="list what is not located rightly")
    options = parser.parse_args()
    scores = measure(range(1, options.papers + 1))
    for score in scores:
        print(f"{score.name:50} {score.share:7.2%} of {score.quotes} quotes, {score.pages} pages, "
              f"{1000 * score.seconds / score.pages:.0f} ms a page")  # fmt: skip
        for quote, why in score.wrong if options.wrong else ():
            print(f"    {why}: page {quote.page}, {quote.kind}: {quote.text}")
    return 1 if min(score.share for score in scores) < 0.98 else 0


if __name__ == "__main__":
    sys.exit(main())
