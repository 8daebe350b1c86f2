"""The text of a JATS article: blocks with an empty line between, in sections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.apps.papers.documents.cleaning import clean_characters
from headrace.apps.papers.documents.jats_front import front_lines, name_of, pages_of
from headrace.apps.papers.documents.jats_inline import flatten, inline_text
from headrace.apps.papers.documents.jats_table import table_rows, tables_in
from headrace.apps.papers.documents.sections import Section
from headrace.apps.papers.documents.titles import SectionKind, kind_of
from headrace.apps.papers.documents.xml_tree import Node

#: `sec-type`, which may name several: `materials|methods`.
_SEC_TYPES = {
    "intro": SectionKind.INTRODUCTION,
    "introduction": SectionKind.INTRODUCTION,
    "background": SectionKind.INTRODUCTION,
    "methods": SectionKind.METHODS,
    "materials": SectionKind.METHODS,
    "subjects": SectionKind.METHODS,
    "results": SectionKind.RESULTS,
    "discussion": SectionKind.DISCUSSION,
    "conclusions": SectionKind.CONCLUSION,
    "conclusion": SectionKind.CONCLUSION,
}
#: Sub-sections of these are what they are, whatever their titles say.
_CLOSED = (SectionKind.ABSTRACT, SectionKind.REFERENCES, SectionKind.FUNDING)
#: Elements that stand within a paragraph and are blocks of their own.
_BLOCKS = frozenset(
    {"list", "table-wrap", "table-wrap-group", "fig", "fig-group", "boxed-text", "disp-quote", "def-list", "fn"}
    | {"fn-group", "supplementary-material", "verse-group", "statement", "speech", "preformat", "code", "array"}
    | {"table", "list-item", "chem-struct-wrap", "disp-formula-group", "notes"}
)
_SKIPPED = frozenset(
    {"title", "label", "sec-meta", "object-id", "graphic", "media", "permissions", "attrib", "ref-list"}
)
_FUNDING_NOTES = ("financial-disclosure", "supported-by", "funding")


class ArticleText:
    """Writes an article down. `text`, `sections` and `notes` are the outcome."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._length = 0
        self._headings: list[tuple[str, SectionKind, int, int]] = []
        self._floats: dict[str, Node] = {}
        self.notes: list[str] = []

    @property
    def text(self) -> str:
        """Everything written, blocks with an empty line between."""
        return "\n\n".join(self._blocks)

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections, from heading to heading; those without text are left out."""
        ends = [*(start for _, _, start, _ in self._headings), self._length][1:]
        return tuple(
            Section(title, kind, start, end, level)
            for (title, kind, start, level), end in zip(self._headings, ends, strict=True)
            if start < end
        )

    def write(self, article: Node) -> None:
        """Write front, body and back; tables and figures kept at the end come where they are first named."""
        floats = article.first("floats-group")
        self._floats = {node.attributes.get("id", str(id(node))): node for node in (floats.nodes() if floats else ())}
        meta = article.first("front", "article-meta") or Node("article-meta", {})
        self._front(article, meta)
        self._body(article.first("body") or Node("body", {}))
        self._back(article.first("back") or Node("back", {}), meta)
        if self._floats:
            self._begin("Figures and tables", SectionKind.OTHER, 1)
            for node in list(self._floats.values()):
                self._write([node], 1, SectionKind.OTHER)
        left_out = [node for node in article.nodes() if node.tag in ("sub-article", "response")]
        if left_out:
            self.notes.append(f"{len(left_out)} articles within the article (such as reviews) are left out")

    def _front(self, article: Node, meta: Node) -> None:
        lines = [line for line in front_lines(article) if line]
        if lines:
            self._begin("", SectionKind.TITLE, 1, titled=lines[0])
            self._add("\n".join(lines))
        for abstract in meta.all("abstract", "trans-abstract"):
            title = _title(abstract) or "Abstract"
            self._begin(title, SectionKind.ABSTRACT, 1)
            self._write(abstract.parts, 1, SectionKind.ABSTRACT)
        for group in meta.all("kwd-group"):
            words = [inline_text(node) for node in group.walk() if node.tag in ("kwd", "compound-kwd")]
            if words:
                self._add(f"{_title(group) or 'Keywords'}: {'; '.join(words)}")

    def _body(self, body: Node) -> None:
        first = next(body.nodes(), None)
        if first is not None and first.tag != "sec":
            # Many journals give the introduction no heading.
            has_sections = bool(body.all("sec"))
            self._begin("", SectionKind.INTRODUCTION if has_sections else SectionKind.OTHER, 1)
        self._write(body.parts, 0, SectionKind.OTHER)

    def _back(self, back: Node, meta: Node) -> None:
        for node in back.nodes():
            if node.tag in ("ref-list", "ack", "app-group", "app", "fn-group", "glossary", "notes", "sec", "bio"):
                self._matter(node)
        notes = meta.first("author-notes")
        if notes is not None:
            self._matter(notes)
        groups = meta.all("funding-group")
        lines = [line for group in groups for line in _funding_lines(group)]
        # The statement is often in the acknowledgements too, and there in its words.
        new = [line for line in dict.fromkeys(lines) if line not in self.text]
        if new:
            self._begin("Funding", SectionKind.FUNDING, 1)
            self._add("\n".join(new))

    def _matter(self, node: Node) -> None:
        title = _title(node)
        if node.tag == "ref-list":
            self._references(node, title or "References")
        elif node.tag == "app-group":
            for app in node.all("app", "ref-list"):
                self._matter(app)
        elif node.tag == "ack":
            title = title or "Acknowledgements"
            self._begin(title, kind_of(title) or SectionKind.OTHER, 1)
            self._write(node.parts, 1, SectionKind.OTHER)
        elif node.tag == "sec":
            self._section(node, 0, SectionKind.OTHER)
        else:
            self._notes(node, title)

    def _notes(self, node: Node, title: str) -> None:
        funding = [fn for fn in node.all("fn") if fn.attributes.get("fn-type") in _FUNDING_NOTES]
        rest = [part for part in node.parts if not any(part is fn for fn in funding)]
        if any(isinstance(part, Node) and part.tag not in _SKIPPED for part in rest):
            title = title or {"app": "Appendix", "glossary": "Abbreviations"}.get(node.tag, "Notes")
            self._begin(title, kind_of(title) or SectionKind.OTHER, 1)
            self._write(rest, 1, SectionKind.OTHER)
        if funding:
            self._begin("Funding", SectionKind.FUNDING, 1)
            self._write(funding, 1, SectionKind.FUNDING)

    def _references(self, node: Node, title: str) -> None:
        self._begin(title, SectionKind.REFERENCES, 1)
        for ref in node.walk():
            if ref.tag == "ref":
                self._add(_reference(ref))

    def _section(self, node: Node, level: int, above: SectionKind) -> None:
        title = _title(node)
        types = (_SEC_TYPES.get(part) for part in node.attributes.get("sec-type", "").lower().replace("|", " ").split())
        own = next((kind for kind in types if kind is not None), None) or (kind_of(title) if title else None)
        # An ethics statement among the methods is a part of them.
        kind = above if above in _CLOSED or own in (None, SectionKind.OTHER) else own
        if title or own is not None:
            self._begin(title, kind, level + 1)
        self._write(node.parts, level + 1, kind)
        for refs in node.all("ref-list"):
            self._references(refs, _title(refs) or "References")

    def _write(self, parts: Sequence[Node | str], level: int, kind: SectionKind) -> None:
        """Write blocks; text between them is a block too."""
        run: list[Node | str] = []
        for part in parts:
            if isinstance(part, str) or part.tag not in _OWN_BLOCKS:
                if isinstance(part, str) or part.tag not in _SKIPPED:
                    run.append(part)
                continue
            self._add(flatten(run))
            run = []
            self._block(part, level, kind)
        self._add(flatten(run))

    def _block(self, node: Node, level: int, kind: SectionKind) -> None:
        match node.tag:
            case "sec":
                self._section(node, level, kind)
            case "p":
                self._paragraph(node, level, kind)
            case "list" | "def-list":
                self._add("\n".join(_items(node)))
            case "table-wrap" | "table":
                self._table(node)
            case "fn":
                self._add(flatten([part for part in node.parts if not _is(part, "label")]))
            case "fig" | "boxed-text" | "statement" | "supplementary-material" | "chem-struct-wrap":
                self._add(_caption(node))
                self._write(_without(node, "caption"), level, kind)
            case "ref-list":
                self._references(node, _title(node) or "References")
            case _:
                self._write(node.parts, level, kind)
        self._floats.pop(node.attributes.get("id", str(id(node))), None)

    def _paragraph(self, node: Node, level: int, kind: SectionKind) -> None:
        named = [part.attributes.get("rid", "") for part in node.walk() if part.tag == "xref"]
        self._write(node.parts, level, kind)
        for name in " ".join(named).split():
            if name in self._floats:
                self._block(self._floats.pop(name), level, kind)

    def _table(self, node: Node) -> None:
        rows = [row for table in tables_in(node) for row in table_rows(table)]
        self._add(_caption(node))
        self._add("\n".join(rows))
        for foot in node.all("table-wrap-foot"):
            for part in foot.nodes():
                if part.tag == "fn-group":
                    self._write(part.parts, 0, SectionKind.OTHER)
                else:
                    self._add(_note(part))

    def _begin(self, title: str, kind: SectionKind, level: int, *, titled: str = "") -> None:
        """Begin a section with its heading; `titled` names one whose heading is part of its text."""
        start = self._length + 2 if self._blocks else 0
        self._headings.append((titled or title, kind, start, level))
        self._add(title)

    def _add(self, block: str) -> None:
        block = clean_characters(block)
        if block:
            self._length += len(block) + (2 if self._blocks else 0)
            self._blocks.append(block)


_OWN_BLOCKS = _BLOCKS | {"sec", "p", "ref-list", "table-wrap-foot", "app", "def-item", "caption", "ack"}


def _is(part: Node | str, *tags: str) -> bool:
    return isinstance(part, Node) and part.tag in tags


def _without(node: Node, *tags: str) -> list[Node | str]:
    return [part for part in node.parts if not _is(part, *tags)]


def _title(node: Node) -> str:
    """The title of a section, with its number if it has one."""
    title, label = node.first("title"), node.first("label")
    parts: Iterable[Node] = (part for part in (label if title is not None else None, title) if part is not None)
    return " ".join(filter(None, (inline_text(part) for part in parts)))


def _caption(node: Node) -> str:
    """Label and caption on one line: Table 2. Outcomes after 12 weeks."""
    label, caption = node.first("label"), node.first("caption")
    texts = [inline_text(label)] if label is not None else []
    if caption is not None:
        texts += [inline_text(part) for part in caption.nodes()] or [inline_text(caption)]
    stopped = [text if text.endswith((".", "!", "?", ":")) else f"{text}." for text in texts if text]
    return " ".join(stopped)


def _note(node: Node) -> str:
    """A footnote of a table, its mark in front."""
    label = node.first("label")
    mark = f"{inline_text(label)} " if label is not None else ""
    return mark + flatten(_without(node, "label"))


def _items(node: Node, depth: int = 0) -> Iterable[str]:
    """The items of a list, one a line; lists within it follow their item."""
    for item in node.all("list-item", "def-item"):
        if item.tag == "def-item":
            yield "- " + ": ".join(inline_text(part) for part in item.all("term", "def"))
            continue
        inner = item.all("list", "def-list") + [part for p in item.all("p") for part in p.all("list", "def-list")]
        own = [part for part in item.parts if not any(part is other for other in inner)]
        text = " ".join(_without_lists(part) for part in own if _is(part, "p", "label", "title")) or flatten(own)
        yield f"{'  ' * depth}- {text}"
        for part in inner:
            yield from _items(part, depth + 1)


def _without_lists(part: Node | str) -> str:
    return flatten(_without(part, "list", "def-list")) if isinstance(part, Node) else part


def _funding_lines(group: Node) -> Iterable[str]:
    for statement in group.all("funding-statement"):
        yield inline_text(statement)
    if not group.all("funding-statement"):
        for award in group.all("award-group"):
            yield ", ".join(filter(None, (inline_text(node) for node in award.all("funding-source", "award-id"))))


def _reference(ref: Node) -> str:
    label = ref.first("label")
    mark = f"{inline_text(label)} " if label is not None else ""
    cited = ref.all("mixed-citation", "citation", "element-citation", "nlm-citation")
    cited += [node for group in ref.all("citation-alternatives") for node in list(group.nodes())[:1]]
    return mark + " ".join(_citation(node) for node in cited) + "".join(inline_text(node) for node in ref.all("note"))


def _citation(node: Node) -> str:
    """A citation as written; where only its elements are given, in the usual order."""
    if any(isinstance(part, str) and any(char.isalnum() or char in ".,;" for char in part) for part in node.parts):
        return inline_text(node)
    people = [name for part in node.walk() if part.tag in ("name", "collab", "string-name") and (name := name_of(part))]
    text = {part.tag: inline_text(part) for part in reversed(list(node.nodes()))}
    year, volume, pages = text.get("year", ""), text.get("volume", ""), pages_of(node)
    title = text.get("article-title") or text.get("chapter-title", "")
    where = ", ".join(filter(None, [text.get("source", ""), volume, pages]))
    doi = next((inline_text(part) for part in node.all("pub-id") if part.attributes.get("pub-id-type") == "doi"), "")
    publisher = ", ".join(filter(None, [text.get("publisher-name", ""), text.get("publisher-loc", "")]))
    known = [", ".join(people), f"({year})" if year else "", title, where, publisher, f"doi: {doi}" if doi else ""]
    shown = ". ".join(part.rstrip(".") for part in known if part)
    return f"{shown}." if shown else inline_text(node)
