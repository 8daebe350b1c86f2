"""Reading files: text with exact pages, or a reason; never a trace."""

from __future__ import annotations

import codecs
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.apps.papers.documents import Document, Reason, Unreadable, default_readers, model, read_document, reader
from headrace.apps.papers.documents.cleaning import clean_characters, join_broken_words
from headrace.apps.papers.documents.pdf import PdfReader
from headrace.apps.papers.documents.plain import MarkdownReader, PlainTextReader
from headrace.apps.papers.errors import ReaderPluginError
from tests.unit.papers_files import pdf_of, picture_pdf


def read_pdf(content: bytes) -> Document:
    """Return the document of a PDF that can be read."""
    document = PdfReader().read("paper.pdf", content)
    assert isinstance(document, Document), document
    return document


def why_not(read: Document | Unreadable) -> Reason:
    """Return the reason of what cannot be read."""
    assert isinstance(read, Unreadable), read
    assert read.message
    return read.reason


def test_pdf_pages_know_their_offsets() -> None:
    """The text of a page is exactly what its offsets cut out, and an offset leads back to its page."""
    document = read_pdf(pdf_of([["One page.", "Two lines."], ["Another page."]]))
    texts = [document.text[page.char_start : page.char_end] for page in document.pages]
    assert texts == ["One page.\nTwo lines.", "Another page."]
    assert document.page_of(document.text.index("Another")) == 2
    assert document.page_of(0) == 1
    assert document.page_of(len(document.text)) == 2


def test_pdf_hyphens_and_ligatures_are_undone() -> None:
    """Words broken at line ends are whole again, real hyphens stay, ligatures are letters."""
    lines = ["The partici-", "pants of the double-", "blind trial in 2019-", "20 \ufb01nished \ufb02at."]
    assert read_pdf(pdf_of([lines])).text == "The participants of the double-blind trial in 2019-20 finished flat."


def test_pdf_signs_are_kept() -> None:
    """Superscripts, the minus sign and accents are not folded into something else."""
    text = read_pdf(pdf_of([["−5.2 mg on 10² m² of caf\u00e9 ±3 µm"]])).text
    assert text == "−5.2 mg on 10² m² of caf\u00e9 ±3 µm"


def test_pdf_running_lines_are_dropped() -> None:
    """A header and page numbers that all pages share are not part of the text."""
    pages = [["A journal of mills", f"Text of page {word}.", f"Page {n}"] for n, word in enumerate("abcd", start=7)]
    assert read_pdf(pdf_of(pages)).text == "\n\n".join(f"Text of page {word}." for word in "abcd")


def test_a_page_without_text_is_noted() -> None:
    """A document with one empty page is read, and says so."""
    document = read_pdf(pdf_of([["One page."], []]))
    assert document.notes == ("1 of 2 pages hold no text (first: page 2)",)


def test_pdf_that_needs_no_password_to_open_is_read() -> None:
    """A file that is only protected against changes can be read."""
    assert read_pdf(pdf_of([["One page."]], password="")).text == "One page."


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (pdf_of([["Secret."]], password="user"), Reason.ENCRYPTED),
        (picture_pdf(), Reason.IMAGE_ONLY),
        (pdf_of([[]]), Reason.EMPTY),
        (b"", Reason.EMPTY),
        (pdf_of([["Cut."]])[:300], Reason.DAMAGED),
        (b"%PDF-1.7\nrubbish", Reason.DAMAGED),
        (b"PK\x03\x04 a docx", Reason.WRONG_TYPE),
        (b"plain text", Reason.WRONG_TYPE),
    ],
    ids=["encrypted", "picture", "blank page", "no bytes", "cut", "rubbish", "zip", "text"],
)
def test_a_bad_pdf_has_a_reason(content: bytes, reason: Reason) -> None:
    """What cannot be read says why, in a word for machines."""
    assert why_not(PdfReader().read("paper.pdf", content)) is reason


@given(st.binary(max_size=200), st.integers(0, 1500))
def test_no_bytes_make_the_pdf_reader_raise(noise: bytes, at: int) -> None:
    """A PDF with noise in it is read or refused, never an exception."""
    whole = WHOLE
    read = PdfReader().read("paper.pdf", whole[:at] + noise + whole[at + len(noise) :])
    assert isinstance(read, Document | Unreadable)


WHOLE = pdf_of([["Some text."]])


def test_limits_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Too many bytes, pages or characters are a reason, and nothing is extracted."""
    monkeypatch.setattr(reader, "MAX_BYTES", 10)
    path = tmp_path / "long.txt"
    path.write_text("longer than ten bytes")
    assert why_not(read_document(path)) is Reason.TOO_LARGE
    monkeypatch.setattr("headrace.apps.papers.documents.pdf.MAX_PAGES", 1)
    assert why_not(PdfReader().read("paper.pdf", pdf_of([["a"], ["b"]]))) is Reason.TOO_LARGE
    monkeypatch.setattr("headrace.apps.papers.documents.plain.MAX_CHARS", 3)
    assert why_not(PlainTextReader().read("a.txt", b"four")) is Reason.TOO_LARGE
    assert model.MAX_BYTES == 50 * 2**20


@pytest.mark.parametrize(
    "content",
    [
        "Größe: 5 µm.".encode(),
        codecs.BOM_UTF8 + "Größe: 5 µm.".encode(),
        "Größe: 5 µm.".encode("utf-16"),
        codecs.BOM_UTF16_BE + "Größe: 5 µm.".encode("utf-16-be"),
        "Größe: 5 µm.".encode("utf-32"),
        "Gro\u0308ße: 5\u00ad µm.\r\n".encode(),
    ],
    ids=["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "decomposed"],
)
def test_text_encodings(content: bytes) -> None:
    """Text in every Unicode form gives the same characters."""
    document = PlainTextReader().read("a.txt", content)
    assert isinstance(document, Document)
    assert document.text == "Größe: 5 µm."


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("Größe".encode("latin-1"), Reason.BAD_ENCODING),
        (b" \n\n ", Reason.EMPTY),
        (b"", Reason.EMPTY),
        (WHOLE, Reason.WRONG_TYPE),
        (b"\x89PNG\r\n", Reason.WRONG_TYPE),
        (b"a\0b", Reason.WRONG_TYPE),
    ],
)
def test_bad_text_has_a_reason(content: bytes, reason: Reason) -> None:
    """A text file that is none says why."""
    assert why_not(MarkdownReader().read("a.md", content)) is reason


def test_form_feeds_are_pages() -> None:
    """A form feed in a text begins a page."""
    document = PlainTextReader().read("a.txt", b"One.\fTwo.")
    assert isinstance(document, Document)
    assert [page.number for page in document.pages] == [1, 2]
    assert document.page_of(document.text.index("Two")) == 2


def test_the_id_is_the_content(tmp_path: Path) -> None:
    """Equal bytes are the same document whatever their name; results call it by the given name."""
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("The same.")
    first, second = read_document(tmp_path / "a.txt"), read_document(tmp_path / "b.txt", name="sub/b.txt")
    assert isinstance(first, Document)
    assert isinstance(second, Document)
    assert first.document_id == second.document_id
    assert second.name == "sub/b.txt"


@pytest.mark.parametrize(("name", "reason"), [("a.docx", Reason.UNSUPPORTED_TYPE), ("a.txt", Reason.NOT_READABLE)])
def test_what_cannot_be_opened_has_a_reason(tmp_path: Path, name: str, reason: Reason) -> None:
    """A missing file and a type without a reader are reasons, not exceptions."""
    assert why_not(read_document(tmp_path / name)) is reason


def test_pdfs_can_be_read_from_many_threads() -> None:
    """pdfium is not thread-safe; the reader is."""
    contents = [pdf_of([[f"Document number {n}."], ["Second page."]]) for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        documents = list(pool.map(read_pdf, contents * 4))
    assert [document.text.split(".")[0] for document in documents] == [f"Document number {n % 8}" for n in range(32)]


class UpperReader:
    """A reader as another package would bring it."""

    name = "upper 1"
    suffixes = frozenset({".txt", ".up"})

    def read(self, name: str, content: bytes) -> Document | Unreadable:
        """Return the text in capitals; fail on the word bad."""
        if content == b"bad":
            raise RuntimeError("model weights are missing")
        return Document.of_pages(name, content, [content.decode().upper()], reader=self.name)


def installed(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Pretend that a package with one reader is installed."""
    entry = EntryPoint("upper", value, reader.ENTRY_POINT_GROUP)
    monkeypatch.setattr(reader, "entry_points", lambda group: [entry] if group == reader.ENTRY_POINT_GROUP else [])


def test_an_installed_reader_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A reader from the entry-point group reads its suffixes, ours the others; its failure is a reason."""
    installed(monkeypatch, f"{__name__}:UpperReader")
    (tmp_path / "a.txt").write_text("words")
    (tmp_path / "b.up").write_text("bad")
    readers = default_readers()
    document = read_document(tmp_path / "a.txt", readers=readers)
    assert isinstance(document, Document)
    assert (document.text, document.reader) == ("WORDS", "upper 1")
    failed = read_document(tmp_path / "b.up", readers=readers)
    assert why_not(failed) is Reason.READER_FAILED
    assert isinstance(failed, Unreadable)
    assert "model weights are missing" in failed.message
    assert isinstance(readers[".pdf"], PdfReader)


@pytest.mark.parametrize("value", ["no_such_module:Reader", f"{__name__}:WHOLE"])
def test_an_installed_reader_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """A reader that cannot be loaded, or lacks what the port asks for, is named in the error."""
    installed(monkeypatch, value)
    with pytest.raises(ReaderPluginError, match="'upper'"):
        default_readers()


def test_joining_learns_from_the_text() -> None:
    """A word is joined or keeps its hyphen as the rest of the document writes it."""
    assert join_broken_words("a follow-\nup", vocabulary="the follow-up was long") == "a follow-up"
    assert join_broken_words("a follow-\nup", vocabulary="the followup was long") == "a followup"
    assert join_broken_words("anti-\nbody", vocabulary="antibody") == "antibody"


def test_running_lines_need_three_pages() -> None:
    """Two pages that begin alike keep their lines."""
    assert read_pdf(pdf_of([["Title", "a"], ["Title", "b"]])).text == "Title\na\nTitle\nb"


@given(st.text())
def test_cleaning_leaves_nothing_a_store_refuses(text: str) -> None:
    """Cleaned text can be encoded, holds no control characters, and cleaning it again changes nothing."""
    cleaned = clean_characters(text)
    cleaned.encode("utf-8")
    assert not [char for char in cleaned if ord(char) < 32 and char not in "\n\t"]
    assert clean_characters(cleaned) == cleaned
