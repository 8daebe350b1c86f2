"""Sections of texts that only have lines: headings by their names, and what looks like them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.apps.papers.documents import Box, Document, SectionKind, sections_for
from headrace.apps.papers.documents.boxes import WordBoxes
from headrace.apps.papers.documents.headings import find_sections
from headrace.apps.papers.documents.plain import MarkdownReader
from headrace.apps.papers.documents.titles import kind_of, split_number
from tests.unit.papers_files import document_of


def shown(text: str, tall: dict[int, float] | None = None) -> list[tuple[str, str, int]]:
    """Return title, kind and level of the sections of a text."""
    return [(section.title, section.kind.value, section.level) for section in find_sections(text, tall)]


@pytest.mark.parametrize(
    ("kind", "titles"),
    [
        ("abstract", "Abstract|ABSTRACT|Summary|Plain language summary|A B S T R A C T|摘要|摘 要|【摘要】|中文摘要"),
        ("introduction",
         "1 Introduction|1. INTRODUCTION|Background|Background and aims|I. Introduction|引言|一、引言|研究背景"),
        ("methods", "Methods|Materials and methods|2. Materials & Methods|Patients and methods|Experimental section|"
                    "Methodology|Study design|Methods and materials|Online methods|材料与方法|1 资料与方法|对象和方法"),
        ("results", "Results|3 Results and Discussion|RESULTS:|Main findings|结果|二、结果与分析|实验结果"),
        ("discussion", "Discussion|4. Discussion and conclusions|Strengths and limitations|讨论|3 讨论"),
        ("conclusion", "Conclusions|5 Conclusion and future work|Concluding remarks|Summary and conclusions|结论|结语"),
        ("references", "References|REFERENCES|Literature cited|Bibliography|参考文献|[参考文献]"),
        ("funding",
         "Funding|Sources of funding|Role of the funding source|Funding statement|Financial disclosure|基金项目"),
        ("other", "Acknowledgements|ACKNOWLEDGMENTS|Author contributions|Conflict of interest|Declaration of competing "
                  "interest|Data availability statement|Appendix A|Supplementary material|致谢|附录|利益冲突"),
    ],
)  # fmt: skip
def test_titles_name_kinds(kind: str, titles: str) -> None:
    """Usual titles in English and Chinese, numbered or not, say what a section is about."""
    for title in titles.split("|"):
        assert kind_of(title) == SectionKind(kind), title


@pytest.mark.parametrize("title", ["Participants", "Results in men", "Method of Smith", "Data", "Study", "2", "",
                                   "Background music", "The results", "结果表明"])  # fmt: skip
def test_other_titles_name_none(title: str) -> None:
    """A title that only holds such a word says nothing."""
    assert kind_of(title) is None


def test_numbers_are_split_from_titles() -> None:
    """A number is one only before a title of its own."""
    assert split_number("2.1.3 Water") == ("2.1.3", "Water")
    assert split_number("4.Wheels") == ("4.", "Wheels")
    assert split_number("3D printing") == ("", "3D printing")
    assert split_number("2The mills") == ("", "2The mills")


def test_headings_of_plain_text() -> None:
    """Known names alone on a line begin sections; what stands above is the title."""
    text = (
        "Mills of two valleys\nAda Example\n\nAbstract: Mills turn.\nKeywords: mill\n\nIntroduction\nWater is old.\n"
        "Methods are described below.\n\nMETHODS\nWe ran 64 mills.\nResults\nIt fell.\n\nReferences\n"
        "Example A. Methods\n"
    )
    assert shown(text) == [
        ("Mills of two valleys", "title", 1),
        ("Abstract", "abstract", 1),
        ("Introduction", "introduction", 1),
        ("METHODS", "methods", 1),
        ("Results", "results", 1),
        ("References", "references", 1),
    ]


def test_numbered_headings_have_levels() -> None:
    """Sub-sections have the kind of their chapter; items of lists and rows of tables are no headings."""
    text = (
        "Mills\n1 Introduction\nWater.\n2 Methods\n2.1 Participants\nMillers.\n1. First take the cup.\n"
        "2.2 Ethics statement\nAll agreed.\n3 A chapter of its own\nText.\n12 Mills were old\n4 Results\n4.1 Men\n"
        "64 12 3.5\nEnd.\nReferences\n1 Example\n2.2 Water of the mills\n"
    )
    assert shown(text) == [
        ("Mills", "title", 1),
        ("1 Introduction", "introduction", 1),
        ("2 Methods", "methods", 1),
        ("2.1 Participants", "methods", 2),
        ("2.2 Ethics statement", "methods", 2),
        ("3 A chapter of its own", "other", 1),
        ("4 Results", "results", 1),
        ("4.1 Men", "results", 2),
        ("References", "references", 1),
    ]


def test_capitals_and_tall_lines_are_headings_where_others_are() -> None:
    """Lines in capitals count where known headings are in capitals, tall lines where lines are known to be tall."""
    text = "Title\nABSTRACT\nShort.\nMETHODS\nText.\nSTATISTICAL ANALYSIS\nText.\nRESULTS\nA B C\nText.\n"
    assert [title for title, _, _ in shown(text)] == [
        *("Title", "ABSTRACT", "METHODS", "STATISTICAL ANALYSIS", "RESULTS"),
    ]
    assert shown(text)[3][1:] == ("methods", 2)
    text = "Title\nMethods\nText.\nWho took part\nand who did not\nText.\nResults\nIt fell.\n"
    tall = {
        text.index(line): size for line, size in (("Methods", 14.0), ("Who", 12.0), ("and who", 12.0), ("Res", 14.0))
    }
    assert shown(text, tall)[2] == ("Who took part", "methods", 2)
    assert len(shown(text, tall)) == 4


@pytest.mark.parametrize("body", ["Introduction\nWater.\nMethods\nWe ran.\n", "Methods\nWe ran.\nResults\nIt fell.\n"])
def test_parts_of_a_structured_abstract_belong_to_it(body: str) -> None:
    """Methods and results within the abstract are not those of the paper."""
    text = f"Title\nAbstract\nBackground\nOld.\nMethods\nShort.\nResults\nLow.\n{body}"
    kinds = [kind for _, kind, _ in shown(text)]
    first = body.split("\n")[0].lower()
    assert kinds[: kinds.index(first)].count("abstract") >= (4 if first == "introduction" else 3)
    assert kinds[-1] in ("methods", "results")


def test_a_late_summary_is_a_conclusion() -> None:
    """A summary before the text is an abstract, one behind it a conclusion."""
    text = "Title\nSummary\nShort.\nMethods\nWe ran.\nResults\nIt fell.\nSummary\nIt did.\n"
    assert [kind for _, kind, _ in shown(text)] == ["title", "abstract", "methods", "results", "conclusion"]


def test_chinese_papers_have_sections() -> None:
    """Chinese headings, numbered or not, and their run-in abstract are known."""
    text = (
        "水车的研究\n摘要:水车转动。\n关键词:水车\n1 引言\n水很老。\n2 材料与方法\n2.1 研究对象\n64个。\n"
        "3 结果\n下降。\n4 讨论\n参考文献\n[1] 例\n"
    )
    assert [kind for _, kind, _ in shown(text)] == [
        *("title", "abstract", "introduction", "methods", "methods", "results", "discussion", "references"),
    ]


def test_markdown_headings_have_their_marks() -> None:
    """In Markdown headings are what is marked as such, and the title is no chapter."""
    content = b"# Mills\nAda\n\n## Methods\nWe ran.\n\n### Who\nAll.\n\n## Results\nMethods\nworked.\n"
    document = MarkdownReader().read("a.md", content)
    assert isinstance(document, Document)
    assert [(section.title, section.kind.value, section.level) for section in document.sections] == [
        ("Mills", "title", 1),
        ("Methods", "methods", 1),
        ("Who", "methods", 2),
        ("Results", "results", 1),
    ]
    assert document.text[slice(*sections_for(document, "who")[0])] == "### Who\nAll.\n\n"


def test_hints_choose_stretches() -> None:
    """A hint is a kind, a usual title or words of a title; neighbours are joined; none means everywhere."""
    document = document_of("Mills\nMethods\nWe ran.\nResults and discussion\nIt fell.\nConclusions\nGood.\n")

    def chosen(hint: str | list[str] | None) -> list[str]:
        return [document.text[start:end].split("\n")[0] for start, end in sections_for(document, hint)]

    assert chosen("methods") == chosen("Materials and Methods") == chosen("方法") == ["Methods"]
    assert chosen("discussion") == chosen("results") == ["Results and discussion"]
    assert chosen(["conclusion", "methods"]) == ["Methods", "Conclusions"]
    assert chosen(["results", "methods"]) == ["Methods"]
    assert chosen("title") == ["Mills"]
    everywhere = [(0, len(document.text))]
    nowhere: list[str | list[str] | None] = [None, "", [], "costs", "references"]
    for hint in nowhere:
        assert sections_for(document, hint) == everywhere


def test_offsets_lead_to_sections() -> None:
    """Every offset of a document with sections lies in one of them; without headings there are none."""
    document = document_of("Mills\nMethods\nWe ran.\nResults\nIt fell.\n")
    section = document.section_of(document.text.index("ran"))
    assert section is not None
    assert section.kind is SectionKind.METHODS
    assert document.section_of(len(document.text)) is None
    assert document_of("Just a text.\nAnd more.").sections == ()
    assert document_of("Just a text.").section_of(0) is None


PIECES = st.lists(st.sampled_from(["Abstract", "Methods", "1 Results", "2.1 Who", "# A", "## Methods", "Text here.",
                                   "ALL CAPITALS", "", "摘要:文", "Summary", "References", "| a | b |"]),
                  max_size=25)  # fmt: skip


@given(PIECES, st.dictionaries(st.integers(0, 200), st.floats(10, 20), max_size=5))
def test_sections_cover_a_text_in_order(lines: list[str], tall: dict[int, float]) -> None:
    """Sections begin at the beginning of the text, follow each other, and end with it."""
    text = "\n".join(lines).strip()
    sections = find_sections(text, tall)
    if sections:
        assert sections[0].char_start == 0
        assert sections[-1].char_end == len(text)
    assert all(above.char_end == below.char_start for above, below in pairwise(sections))
    assert all(section.char_start < section.char_end for section in sections)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("line", ["and " * 24, "a, " * 30, "methods and " * 8, "A" * 99, "1." * 40, "I N T " * 15])
def test_hostile_lines_take_linear_time(line: str) -> None:
    """A text of many odd lines is searched for headings in a moment."""
    find_sections(f"{line}\n" * 5_000)


def test_parts_of_words_have_parts_of_boxes() -> None:
    """Boxes are cut to the letters asked for, and joined within a line but not over a gap between columns."""
    boxes = WordBoxes()
    for start, end, x0, y0, page in ((0, 4, 10, 20, 1), (5, 9, 32, 20, 1), (10, 14, 300, 20, 1), (15, 19, 10, 40, 1),
                                     (20, 24, 10, 20, 2)):  # fmt: skip
        boxes.add(start, end, Box(page, x0, y0, x0 + 20, y0 + 10))
    assert len(boxes) == 5
    assert boxes.between(0, 24) == [
        (1, 10, 20, 52, 30),
        (1, 300, 20, 320, 30),
        (1, 10, 40, 30, 50),
        (2, 10, 20, 30, 30),
    ]
    assert boxes.between(1, 3) == [(1, 15, 20, 25, 30)]
    assert boxes.between(4, 5) == []
    assert boxes.between(30, 40) == []
