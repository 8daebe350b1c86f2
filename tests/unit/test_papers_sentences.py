"""Sentences: exact offsets always, and no cut within abbreviations and numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.apps.papers.dates import dates_in
from headrace.apps.papers.documents.cleaning import clean_characters, join_broken_words
from headrace.apps.papers.quantities import numbers_in
from headrace.apps.papers.sentences import MAX_SENTENCE_CHARS, sentence_spans
from tests.unit.papers_files import document_of, sentences_of

PIECES = st.sampled_from(
    [
        *("We saw 1.5 g", "Fig. 2", "e.g.", "et al.", "J. Smith", ". ", "! ", "\n", "\n\n", "- ", "# ", "1. ", "| a |"),
        *("。", "(p = 0.05)", " ", "…", "“So?” ", "sp.", "U.S.", "\t", "Методы.", "\N{SNOWMAN}"),
    ]
)
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join))


def cut(text: str) -> list[str]:
    """Return the sentences of a text, each on one line."""
    return [" ".join(text[start:end].split()) for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Smith et al. (2019) found 1.5 g, i.e. less.", "See Fig. 2 and Figs. 3–5.", "It fell."],
        ["J. R. Smith wrote it.", "We gave vitamin C.", "The dose was 5 mg."],
        ["It fell (p = 0.05).", '"Was it?"', "We think so!", "Doses of .5 g, approx. 380 kcal, were given."],
        ["In the U.S. the rate is 5 %.", "At 5 p.m.", "The lamps went out."],
        ["No. 5 was bad.", "Did it help?", "No.", "The end."],
        ["Escherichia coli sp. nov. was used.", "Prof. Example spoke, cf. Eq. 4.", "All was well."],
        ["Values were 12 ± 3 vs. 14 ± 2 (resp. 5.1–6.2).", "N. meningitidis grew."],
        ["这是一个句子。", "第二句！"],
        ["The rate was 37 °C.", "All tests were two-sided."],
        ["It ended … or so.", "Not yet..."],
    ],
    ids=lambda sentences: sentences[0][:20],
)
def test_running_text_is_cut_at_its_sentences(sentences: list[str]) -> None:
    """A paragraph of these sentences is cut into exactly these, also where lines are wrapped within them."""
    joiner = "" if sentences[0].endswith("。") else " "
    text = joiner.join(sentences)
    assert cut(text) == sentences
    assert cut(text.replace(", ", ",\n")) == sentences


def test_headings_items_and_rows_stand_alone() -> None:
    """Headings with and without marks, list items and table rows do not run into their neighbours."""
    text = (
        "# A title\nSome text that goes on\nover two lines.\n\nMethods\n"
        "We did this on a rather long line of the page.\n"
        "- one item\n- another item\n  that goes on\n1. First step. It is short.\n| a | 1 |\n| b | 2 |\nThe end\n"
    )
    assert cut(text) == [
        "A title",
        "Some text that goes on over two lines.",
        "Methods",
        "We did this on a rather long line of the page.",
        "one item",
        "another item that goes on",
        "1. First step.",
        "It is short.",
        "a | 1 |",
        "b | 2 |",
        "The end",
    ]


def test_rows_without_bars_at_their_edges_stand_alone() -> None:
    """A row of a table is one sentence, stops in its cells or not; a bar in running text cuts nothing."""
    text = (
        "Doses by arm.\nArm | Dose. Mean | n\nA | 1.5 mg. Oral | 32\nB | 2 mg | 31\n"
        "Kind | n\nOld | 5\n\nWe write p(y | x)\nand q for it."
    )
    assert cut(text) == [
        "Doses by arm.",
        "Arm | Dose. Mean | n",
        "A | 1.5 mg. Oral | 32",
        "B | 2 mg | 31",
        "Kind | n",
        "Old | 5",
        "We write p(y | x) and q for it.",
    ]


@given(TEXTS)
def test_offsets_are_exact(text: str) -> None:
    """Sentences lie in order without overlap, without spaces around them, and lose no letter or digit."""
    spans = sentence_spans(text)
    ends = [0, *(end for _, end in spans)]
    assert all(end <= start < stop for end, (start, stop) in zip(ends, spans, strict=False))
    assert all(text[start:stop] == text[start:stop].strip() for start, stop in spans)
    kept = "".join(text[start:stop] for start, stop in spans)
    assert [char for char in kept if char.isalnum()] == [char for char in text if char.isalnum()]


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_every_sentence_is_cut_from_its_document(pages: list[str]) -> None:
    """The text of a sentence is what its offsets cut out of the document, and its page holds its first character."""
    document = document_of(*pages)
    for number, sentence in enumerate(sentences_of(*pages), start=1):
        assert sentence.number == number
        assert document.text[sentence.char_start : sentence.char_end] == sentence.text
        page = document.pages[sentence.page - 1]
        assert page.char_start <= sentence.char_start < page.char_end


def test_a_sentence_may_run_over_a_page() -> None:
    """A sentence that goes on after the end of a page is one sentence of the first page."""
    sentences = sentences_of("It began on the first page\nand then", "went on. A new one.")
    assert [(sentence.line, sentence.page) for sentence in sentences] == [
        ("It began on the first page and then went on.", 1),
        ("A new one.", 2),
    ]


def test_endless_text_is_cut() -> None:
    """A table without any stop is cut into pieces of bounded length, at spaces."""
    sentences = sentences_of("word " * 2_000)
    assert len(sentences) > 5
    assert all(len(sentence.text) <= MAX_SENTENCE_CHARS for sentence in sentences)
    assert {word for sentence in sentences for word in sentence.text.split()} == {"word"}


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "piece",
    [" ", ".", "1,", "1.", "- ", "a-\n", "a\n", "A. ", "e.g. ", "12 200 ", "10^", "May 1", "5 m-1 ", "|", "(", "ten-"],
)
def test_hostile_texts_take_linear_time(piece: str) -> None:
    """A text that repeats one piece is cleaned, cut and searched in no more than a moment."""
    text = piece * (300_000 // len(piece))
    sentence_spans(join_broken_words(clean_characters(text)))
    assert sum(1 for _ in numbers_in(text[:50_000])) <= 100_000
    assert sum(1 for _ in dates_in(text[:50_000])) <= 50_000
