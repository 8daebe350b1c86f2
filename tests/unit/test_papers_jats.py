"""JATS articles: their structure is read, their markup flattened, and nothing they declare is fetched or expanded."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.apps.papers.documents import Document, Reason, SectionKind, Unreadable, read_document, sections_for
from headrace.apps.papers.documents.formulas import lowered, mathml_text, raised, tex_text
from headrace.apps.papers.documents.jats import JatsReader
from headrace.apps.papers.documents.jats_inline import inline_text
from headrace.apps.papers.documents.jats_table import table_rows
from headrace.apps.papers.documents.xml_tree import MAX_DEPTH, parse_xml
from headrace.apps.papers.sentences import split_document

ARTICLE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving and Interchange DTD v1.2 20190208//EN" "a.dtd">
<article article-type="research-article" xmlns:mml="http://www.w3.org/1998/Math/MathML"><front>
<journal-meta><journal-title-group><journal-title>Journal of Mills</journal-title></journal-title-group></journal-meta>
<article-meta>
<article-id pub-id-type="doi">10.5555/mills.1</article-id><article-id pub-id-type="pmid">7</article-id>
<title-group><article-title>Water <italic>and</italic> wheels</article-title><subtitle>A trial</subtitle></title-group>
<contrib-group><contrib contrib-type="author"><name><surname>Example</surname><given-names>Ada</given-names></name>
<xref ref-type="aff" rid="a1"><sup>1</sup></xref></contrib>
<contrib contrib-type="author"><collab>The Mill Group</collab></contrib></contrib-group>
<aff id="a1"><label>1</label>Institute of Mills</aff>
<pub-date><month>5</month><year>2020</year></pub-date><volume>12</volume><issue>3</issue>
<fpage>45</fpage><lpage>50</lpage>
<abstract><sec><title>Background</title><p>Mills turn.</p></sec>
<sec><title>Methods</title><p>64 mills.</p></sec></abstract>
<kwd-group><kwd>mill</kwd><kwd>water</kwd></kwd-group>
<funding-group><award-group><funding-source>Mill Fund</funding-source>
<award-id>MF-1</award-id></award-group></funding-group>
</article-meta></front>
<body><p>Nobody had asked before.</p>
<sec sec-type="materials|methods"><label>2</label><title>What we did</title>
<sec><title>Participants</title><p>See <xref ref-type="table" rid="t1">Table 1</xref>:
<list><list-item><p>old mills</p></list-item><list-item><p>new mills</p>
<list><list-item><p>of wood</p></list-item></list></list-item></list> and others.</p></sec>
<sec><title>Ethics statement</title><p>All agreed.</p></sec></sec>
<sec><title>Results and discussion</title><p>It fell<fn><p>Slowly.</p></fn> by 5.</p>
<fig><label>Figure 1</label><caption><title>The mills</title><p>They turn</p></caption><graphic/></fig>
<boxed-text><caption><title>Key points</title></caption><p>Mills matter.</p></boxed-text></sec></body>
<back><ack><p>We thank the millers.</p></ack>
<fn-group><fn fn-type="conflict"><p>None declared.</p></fn>
<fn fn-type="financial-disclosure"><p>Paid by us.</p></fn></fn-group>
<ref-list><title>References</title>
<ref><label>1</label><element-citation><person-group><name><surname>Sample</surname><given-names>B</given-names></name>
</person-group><article-title>On mills</article-title><source>J Mills</source><year>1999</year><volume>2</volume>
<fpage>3</fpage></element-citation></ref>
<ref><mixed-citation>Model C. <source>Wheels</source>. 2001.</mixed-citation></ref></ref-list></back>
<floats-group><table-wrap id="t1"><label>Table 1</label><caption><p>Mills by kind</p></caption>
<table><thead><tr><th>Kind</th><th>n</th><th>Flour</th></tr></thead><tbody><tr><td colspan="3">Wet</td></tr>
<tr><td>Old</td><td>5</td><td>2.5 kg</td></tr></tbody></table>
<table-wrap-foot><fn><label>a</label><p>Per day.</p></fn></table-wrap-foot></table-wrap></floats-group>
<sub-article><front-stub/><body><p>A review.</p></body></sub-article></article>"""


def read(xml: str | bytes) -> Document:
    """Return the document of an article that can be read."""
    document = JatsReader().read("a.nxml", xml.encode() if isinstance(xml, str) else xml)
    assert isinstance(document, Document), document
    return document


def article(body: str) -> str:
    """Return an article with that body."""
    return f"<article><body>{body}</body></article>"


def test_an_article_is_written_down_in_order() -> None:
    """Front, body and back come in order; a table kept at the end comes where it is first named."""
    assert read(ARTICLE).text.split("\n\n") == [
        "Water and wheels: A trial\nAda Example, The Mill Group\n1 Institute of Mills\n"
        "Journal of Mills. 2020-05. 12(3): 45–50. doi: 10.5555/mills.1",
        "Abstract",
        *("Background", "Mills turn.", "Methods", "64 mills.", "Keywords: mill; water"),
        "Nobody had asked before.",
        *("2 What we did", "Participants", "See Table 1:", "- old mills\n- new mills\n  - of wood", "and others."),
        *("Table 1. Mills by kind.", "Kind | n | Flour\nWet\nOld | 5 | 2.5 kg", "a Per day."),
        *("Ethics statement", "All agreed."),
        *("Results and discussion", "It fell", "Slowly.", "by 5.", "Figure 1. The mills. They turn."),
        *("Key points.", "Mills matter."),
        *("Acknowledgements", "We thank the millers.", "Notes", "None declared.", "Funding", "Paid by us."),
        *("References", "1 B Sample. (1999). On mills. J Mills, 2, 3.", "Model C. Wheels. 2001."),
        *("Funding", "Mill Fund, MF-1"),
    ]


def test_sections_come_from_the_structure() -> None:
    """Types and titles name the kinds; parts of an abstract and of methods stay what they are parts of."""
    document = read(ARTICLE)
    assert [(section.title, section.kind.value, section.level) for section in document.sections] == [
        ("Water and wheels: A trial", "title", 1),
        ("Abstract", "abstract", 1),
        ("Background", "abstract", 2),
        ("Methods", "abstract", 2),
        ("", "introduction", 1),
        ("2 What we did", "methods", 1),
        ("Participants", "methods", 2),
        ("Ethics statement", "methods", 2),
        ("Results and discussion", "results", 1),
        ("Acknowledgements", "other", 1),
        ("Notes", "other", 1),
        ("Funding", "funding", 1),
        ("References", "references", 1),
        ("Funding", "funding", 1),
    ]
    (span,) = sections_for(document, "methods")
    assert document.text[slice(*span)].startswith("2 What we did")
    assert "2.5 kg" in document.text[slice(*span)]
    assert sections_for(document, "discussion") == sections_for(document, "results")
    offset = document.text.index("All agreed")
    assert document.section_of(offset) == document.sections[7]


def test_metadata_and_notes() -> None:
    """What the file says of itself is kept beside the text, and what was left out is said."""
    document = read(ARTICLE)
    assert document.metadata == {
        "title": "Water and wheels: A trial",
        "type": "research-article",
        "doi": "10.5555/mills.1",
        "pmid": "7",
        "journal": "Journal of Mills",
        "year": "2020",
        "volume": "12",
        "issue": "3",
        "pages": "45–50",
        "authors": "Ada Example; The Mill Group",
        "keywords": "mill; water",
    }
    assert document.notes == ("1 articles within the article (such as reviews) are left out",)
    assert document.reader == "jats 1"
    assert document.word_boxes is None


def test_a_row_of_a_table_is_one_sentence() -> None:
    """Rows and captions are quoted by themselves."""
    lines = [sentence.line for sentence in split_document(read(ARTICLE))]
    assert "Old | 5 | 2.5 kg" in lines
    assert "2 What we did" in lines


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("10<sup>2</sup> to 10<sup>−3</sup>, <italic>x</italic><sup>a+b</sup>", "10² to 10⁻³, x^(a+b)"),
        ("H<sub>2</sub>O, <italic>C</italic><sub>max</sub>, the 5<sup>th</sup> of 3 mm<sup>2</sup>",
         "H₂O, C_max, the 5th of 3 mm²"),
        ("64<sup><xref ref-type='bibr'>3</xref></sup> mills<sup><xref ref-type='bibr'>4</xref>–"
         "<xref ref-type='bibr'>6</xref></sup>.", "64 mills."),
        ("64<xref ref-type='bibr'><sup>3</sup></xref> of 70<xref ref-type='bibr'>4</xref>,"
         "<xref ref-type='bibr'>5</xref> mills", "64 of 70 mills"),
        ("as before [<xref ref-type='bibr'>3</xref>, <xref ref-type='bibr'>5</xref>]", "as before [3, 5]"),
        ("as in ref. <xref ref-type='bibr'>3</xref> and (<xref ref-type='bibr'>Model, 2001</xref>)",
         "as in ref. 3 and (Model, 2001)"),
        ("2.5<xref ref-type='table-fn'><sup>a</sup></xref> in <xref ref-type='fig'>Figure 1<sup>b</sup></xref>",
         "2.5 in Figure 1^b"),
        ("5&#160;&#xb5;m &lt; 1&#8201;mm<break/>long", "5 µm < 1 mm long"),
        ("the <inline-formula><alternatives><tex-math>$\\frac{a}{b}$</tex-math><math><mi>a</mi></math></alternatives>"
         "</inline-formula> of <named-content>it</named-content><inline-graphic/>", "the a of it"),
    ],
)  # fmt: skip
def test_inline_markup_is_flattened(markup: str, text: str) -> None:
    """Raised and lowered signs keep their meaning, marks of references do not run into numbers."""
    assert inline_text(parse_xml(f"<p>{markup}</p>".encode())) == text


def test_formulas_are_readable() -> None:
    """MathML and TeX become one line of text."""
    math = "<math><msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup><mo>≤</mo><msqrt><mi>y</mi></msqrt></math>"
    assert mathml_text(parse_xml(math.encode())) == "x₁² ≤ √(y)"
    fraction = "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac></math>"
    assert mathml_text(parse_xml(fraction.encode())) == "(a + b)/2"
    assert tex_text(r"\documentclass{m}\begin{document}$$x_{max}^{2} \ge \frac{a+b}{\sqrt{c}}$$\end{document}") == (
        "x_max² ≥ (a+b)/(√(c))"
    )
    assert (raised("*"), raised("+1.5"), lowered("2"), lowered("i j")) == ("*", "^+1.5", "₂", "_(i j)")


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("<tr><td rowspan='2'>A</td><td>1</td></tr><tr><td>2</td></tr>", ["A | 1", "A | 2"]),
        ("<tr><th/><th colspan='2'>Arm</th></tr><tr><td>n</td><td>3</td><td>4</td></tr>", ["| Arm | Arm", "n | 3 | 4"]),
        ("<tr><td>a</td><td/><td>c</td></tr><tr><td/><td/></tr>", ["a |  | c"]),
        ("<tgroup><tbody><row><entry namest='c1' nameend='c2'>A</entry><entry>B</entry></row>"
         "<row><entry morerows='1'>x</entry><entry>y</entry><entry>z</entry></row>"
         "<row><entry>p</entry><entry>q</entry></row></tbody></tgroup>", ["A | A | B", "x | y | z", "x | p | q"]),
        ("<tr><td rowspan='99999' colspan='99999'>A</td></tr><tr><td>B</td></tr>", ["A", "A"]),
    ],
)  # fmt: skip
def test_tables_are_rows_of_cells(table: str, rows: list[str]) -> None:
    """Spanned cells are repeated, empty ones kept, and a span may say anything."""
    assert table_rows(parse_xml(f"<table>{table}</table>".encode())) == rows


def test_spans_do_not_multiply_without_bound() -> None:
    """A cell that claims to span everything is repeated only so often."""
    rows = f"<tr><td rowspan='999' colspan='199'>{'long ' * 100}</td></tr>" + "<tr><td>b</td></tr>" * 1000
    assert sum(map(len, table_rows(parse_xml(f"<table>{rows}</table>".encode())))) < 10**6


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", Reason.EMPTY),
        (article("").encode(), Reason.EMPTY),
        (ARTICLE.encode()[:900], Reason.DAMAGED),
        (article("<p>&").encode(), Reason.DAMAGED),
        (b"no XML at all", Reason.DAMAGED),
        (b"%PDF-1.7", Reason.WRONG_TYPE),
        (b"<html><body><p>Hello<br></body></html>", Reason.WRONG_TYPE),
        (b"<article><title>DocBook</title><para>Text</para></article>", Reason.WRONG_TYPE),
        (b"<TEI><text/></TEI>", Reason.WRONG_TYPE),
        (f"<pmc-articleset>{article('<p>a</p>') * 2}</pmc-articleset>".encode(), Reason.WRONG_TYPE),
        (b"<?xml version='1.0' encoding='klingon'?><article/>", Reason.BAD_ENCODING),
        (b"<article>" + b"<sec>" * MAX_DEPTH, Reason.TOO_LARGE),
    ],
    ids=["no bytes", "no text", "cut", "malformed", "text", "pdf", "html", "docbook", "tei", "two", "encoding", "deep"],
)
def test_what_is_no_article_has_a_reason(content: bytes, reason: Reason) -> None:
    """Broken XML is damaged, other XML is of a wrong type."""
    read = JatsReader().read("a.xml", content)
    assert isinstance(read, Unreadable)
    assert read.reason is reason, read
    assert read.message


BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 9}">' for n in range(1, 12))


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "declared",
    [
        '<!ENTITY e SYSTEM "secret.txt">',
        '<!ENTITY e PUBLIC "x" "http://127.0.0.1:9/e">',
        '<!ENTITY % p SYSTEM "http://127.0.0.1:9/p.dtd"> %p;',
        '<!ENTITY % p "text">',
        f'<!ENTITY e "{"x" * 100}">',
        f'<!ENTITY e0 "lol">{BOMB}<!ENTITY e "&e11;">',
        '<!ENTITY e "<p>markup</p>">',
        f'<!ATTLIST p a CDATA "{"x" * 100}"><!ENTITY e "x">',
    ],
    ids=["file", "web", "parameter", "internal parameter", "long", "bomb", "markup", "attribute"],
)
def test_declarations_that_could_do_harm_are_refused(declared: str) -> None:
    """Entities from elsewhere, and such that expand, are refused before anything is read or expanded."""
    read = JatsReader().read("a.xml", f"<!DOCTYPE article [{declared}]>{article('<p>&e;</p>')}".encode())
    assert isinstance(read, Unreadable)
    assert read.reason is Reason.UNSAFE


def test_harmless_declarations_are_taken() -> None:
    """A named DTD is not read, its entities are known by name; own entities may be a few characters."""
    named = f'<!DOCTYPE article SYSTEM "http://127.0.0.1:9/jats.dtd">{article("<p>5&nbsp;&mu;m &unknown;</p>")}'
    assert read(named).text == "5 μm &unknown;"
    own = f'<!DOCTYPE article [<!ENTITY lab "the lab">]>{article("<p>At &lab;.</p>")}'
    assert read(own).text == "At the lab."
    picture = '<!DOCTYPE article [<!NOTATION gif SYSTEM "gif"><!ENTITY g SYSTEM "g.gif" NDATA gif>]>'
    assert read(picture + article("<p>Text.</p>")).text == "Text."
    assert read(article("<p>Größe</p>").replace("<article>", "<?xml version='1.0'?><article>").encode("utf-16")).text


def test_too_many_elements_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read in bounds: elements and characters."""
    monkeypatch.setattr("headrace.apps.papers.documents.xml_tree.MAX_ELEMENTS", 3)
    refused = JatsReader().read("a.xml", article("<p>a</p><p>b</p>").encode())
    assert isinstance(refused, Unreadable)
    assert refused.reason is Reason.TOO_LARGE
    monkeypatch.undo()
    monkeypatch.setattr("headrace.apps.papers.documents.xml_tree.MAX_CHARS", 5)
    refused = JatsReader().read("a.xml", article(f"<p>{'long ' * 9}</p>").encode())
    assert isinstance(refused, Unreadable)
    assert refused.reason is Reason.TOO_LARGE


def test_an_article_within_its_delivery_is_found(tmp_path: Path) -> None:
    """Archives deliver articles in a wrapper; both endings are read."""
    for name in ("a.xml", "b.NXML"):
        (tmp_path / name).write_text(f"<pmc-articleset>{article('<p>Text.</p>')}</pmc-articleset>")
        document = read_document(tmp_path / name)
        assert isinstance(document, Document)
        assert document.text == "Text."
        assert [section.kind for section in document.sections] == [SectionKind.OTHER]


@given(st.binary(max_size=60), st.integers(0, 4000))
def test_no_bytes_make_the_reader_raise(noise: bytes, at: int) -> None:
    """An article with noise in it is read or refused, never an exception."""
    whole = ARTICLE.encode()
    result = JatsReader().read("a.xml", whole[:at] + noise + whole[at + len(noise) :])
    assert isinstance(result, Document | Unreadable)


TAGS = st.sampled_from(["sec", "p", "list", "list-item", "table-wrap", "table", "tr", "td", "fn", "xref", "sup", "fig",
                        "math", "msup", "tex-math", "ref-list", "ref", "caption", "title", "alternatives"])  # fmt: skip


@given(st.recursive(st.text(st.characters(codec="utf-8", exclude_characters="<&", min_codepoint=32), max_size=8),
                    lambda inner: st.tuples(TAGS, st.lists(inner, max_size=4)), max_leaves=25))  # fmt: skip
def test_elements_in_any_order_are_read(tree: object) -> None:
    """However elements are nested, the sections lie within the text, in order and without overlap."""

    def xml(node: object) -> str:
        if isinstance(node, tuple):
            return f"<{node[0]}>{''.join(map(xml, node[1]))}</{node[0]}>"
        return str(node)

    result = JatsReader().read("a.xml", article(xml(tree)).encode())
    if isinstance(result, Document):
        ends = [0, *(section.char_end for section in result.sections)]
        for before, section in zip(ends, result.sections, strict=False):
            assert before <= section.char_start < section.char_end <= len(result.text)
