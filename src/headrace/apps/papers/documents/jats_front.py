"""What the front of a JATS article says of it: title, authors, where it was published."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.apps.papers.documents.jats_inline import inline_text
from headrace.apps.papers.documents.xml_tree import Node


def metadata_of(article: Node) -> dict[str, str]:
    """Title, DOI, PMID, journal, year and the like, as far as they are there."""
    front = article.first("front") or Node("front", {})
    meta = front.first("article-meta") or Node("article-meta", {})
    found = {
        "title": title_of(meta),
        "type": article.attributes.get("article-type", ""),
        "language": article.attributes.get("xml:lang", ""),
        **{_id_name(node): inline_text(node) for node in meta.all("article-id")},
        "journal": _journal(front),
        "year": _text(_date(meta), "year"),
        **{tag: _text(meta, tag) for tag in ("volume", "issue")},
        "pages": pages_of(meta),
        "authors": "; ".join(authors_of(meta)),
        "keywords": "; ".join(inline_text(node) for group in meta.all("kwd-group") for node in group.all("kwd")),
    }
    return {name: value for name, value in found.items() if value}


def title_of(meta: Node) -> str:
    """The title, with its subtitle."""
    group = meta.first("title-group") or Node("title-group", {})
    title = _text(group, "article-title")
    subtitle = _text(group, "subtitle")
    return f"{title}{' ' if title.endswith(('?', '!', ':')) else ': '}{subtitle}" if title and subtitle else title


def authors_of(meta: Node) -> list[str]:
    """The names of authors as they are written, given name first, and of groups."""
    contributors = (node for group in meta.all("contrib-group") for node in group.walk() if node.tag == "contrib")
    authors = [node for node in contributors if node.attributes.get("contrib-type", "author") == "author"]
    return [name for node in authors if (name := name_of(node))]


def name_of(node: Node) -> str:
    """The first name that an author or an editor has."""
    for part in node.walk():
        if part.tag == "name":
            return " ".join(filter(None, (_text(part, tag) for tag in ("prefix", "given-names", "surname", "suffix"))))
        if part.tag in ("string-name", "collab"):
            return inline_text(part)
    return ""


def front_lines(article: Node) -> Iterator[str]:
    """What stands above the abstract, line by line: title, authors, affiliations, journal."""
    front = article.first("front") or Node("front", {})
    meta = front.first("article-meta") or Node("article-meta", {})
    yield title_of(meta)
    yield ", ".join(authors_of(meta))
    yield from (inline_text(node) for node in meta.walk() if node.tag == "aff")
    yield _published(front, meta)


def _published(front: Node, meta: Node) -> str:
    volume, issue, pages = _text(meta, "volume"), _text(meta, "issue"), pages_of(meta)
    where = f"{volume}({issue})" if volume and issue else volume or issue
    where = f"{where}: {pages}" if where and pages else where or pages
    doi = next((inline_text(node) for node in meta.all("article-id") if _id_name(node) == "doi"), "")
    date = _date(meta)
    parts = (_text(date, tag) for tag in ("year", "month", "day"))
    published = "-".join(part.zfill(2) for part in parts if part)
    return ". ".join(filter(None, [_journal(front), published, where, f"doi: {doi}" if doi else ""]))


def pages_of(meta: Node) -> str:
    """First and last page, or the number of an article without pages."""
    first, last = _text(meta, "fpage"), _text(meta, "lpage")
    return f"{first}–{last}" if first and last and first != last else first or _text(meta, "elocation-id")


def _journal(front: Node) -> str:
    group = front.first("journal-meta", "journal-title-group") or front.first("journal-meta")
    return _text(group, "journal-title") or _text(group, "abbrev-journal-title")


def _date(meta: Node) -> Node:
    """The earliest date of publication."""
    dates = [node for node in meta.all("pub-date") if node.first("year") is not None]
    return min(dates, key=lambda node: _text(node, "year"), default=Node("pub-date", {}))


def _id_name(node: Node) -> str:
    return {"pmc": "pmcid", "pmcid": "pmcid"}.get(kind := node.attributes.get("pub-id-type", "id"), kind)


def _text(node: Node | None, tag: str) -> str:
    found = node.first(tag) if node is not None else None
    return inline_text(found) if found is not None else ""
