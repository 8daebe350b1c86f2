"""JATS and NXML: the XML in which PubMed Central and many publishers keep articles. Its structure is read, no guess."""

from __future__ import annotations

from headrace.apps.papers.documents.jats_front import metadata_of
from headrace.apps.papers.documents.jats_text import ArticleText
from headrace.apps.papers.documents.magic import foreign_type
from headrace.apps.papers.documents.model import MAX_CHARS, Document, Reason, Unreadable, content_id, joined_pages
from headrace.apps.papers.documents.xml_tree import Node, XmlError, parse_xml

#: What articles are delivered in by their archives.
_WRAPPERS = ("pmc-articleset", "OAI-PMH", "articles")


class JatsReader:
    """Reads JATS (NXML) articles as one page: front, body and back with their sections, tables row by row."""

    name = "jats 1"
    suffixes = frozenset({".nxml", ".xml"})

    def read(self, name: str, content: bytes) -> Document | Unreadable:
        """Read an article."""
        if not content.strip():
            return Unreadable(name, Reason.EMPTY, "holds no text")
        kind = foreign_type(content)
        if kind is not None:
            return Unreadable(name, Reason.WRONG_TYPE, f"is {kind}, not XML; give it the right ending")
        try:
            root = parse_xml(content)
        except XmlError as error:
            if error.reason is Reason.DAMAGED and error.root not in ("", "article", *_WRAPPERS):
                return _other(name, error.root)
            return Unreadable(name, error.reason, f"{error}; fetch it again")
        articles = [root] if root.tag == "article" else _wrapped(root)
        if len(articles) > 1:
            return Unreadable(name, Reason.WRONG_TYPE, f"holds {len(articles)} articles; split it, one file for each")
        if not articles or not any(articles[0].all("front", "body")):
            return _other(name, root.tag)
        return self._document(name, content, articles[0])

    def _document(self, name: str, content: bytes, article: Node) -> Document | Unreadable:
        text = ArticleText()
        text.write(article)
        if not text.text:
            return Unreadable(name, Reason.EMPTY, "holds no text")
        if len(text.text) > MAX_CHARS:
            return Unreadable(name, Reason.TOO_LARGE, f"has more than {MAX_CHARS:,} characters")
        joined, pages = joined_pages([text.text])
        return Document(
            content_id(content),
            name,
            joined,
            pages,
            self.name,
            tuple(text.notes),
            sections=text.sections,
            metadata=metadata_of(article),
        )


def _wrapped(root: Node) -> list[Node]:
    if root.tag not in _WRAPPERS:
        return []
    found, nodes = [], [root]
    while nodes:
        node = nodes.pop(0)
        # Answers to an article are articles within it, and none of their own.
        if node.tag == "article":
            found.append(node)
        else:
            nodes.extend(node.nodes())
    return found


def _other(name: str, root: str) -> Unreadable:
    return Unreadable(name, Reason.WRONG_TYPE, f"is XML of another kind (<{root}>), not a JATS article")
