"""Which documents are pages of the site, and where each stands in its navigation.

docs/README.md is the only list: its parts, each begun by a word in bold, become the parts of the navigation, and the
links below them its entries, in their order. A README.md in a folder below lists what lies beside it. Pages outside
`docs/` that no list names, such as the changelog, follow by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tools import check_docs

#: The page that a visitor sees first, and the list of all others.
HOME = "README.md"
INDEX = "docs/README.md"
#: What else is a page, as patterns below the root. Pictures and files that pages link to are taken along by themselves.
PATTERNS = (
    "*.md",
    "docs/*.md",
    "docs/**/*.md",
    "examples/*/README.md",
    "benchmarks/README.md",
    "deploy/README.md",
    "deploy/**/README.md",
)

_PART = re.compile(r"^\*\*([^*]+)\*\*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the navigation: its caption, and the pages in it by their path from the root."""

    caption: str
    pages: tuple[str, ...]


def pages(root: Path) -> list[str]:
    """Return every page by its path from the root."""
    found = {path.relative_to(root).as_posix() for pattern in PATTERNS for path in root.glob(pattern)}
    return sorted(page for page in found if not page.startswith("docs/_"))


def navigation(root: Path) -> list[Part]:
    """Return the parts of the navigation, and last what only the root knows."""
    listed = list(parts(root))
    named = {page for part in listed for page in part.pages} | set(below_all(root))
    rest = [page for page in pages(root) if not page.startswith("docs/") and page not in {*named, HOME}]
    return [*listed, *([Part("Project", tuple(rest))] if rest else [])]


def parts(root: Path) -> Iterator[Part]:
    """Yield the parts of the index; a page that two of them name stands in the first."""
    text = (root / INDEX).read_text(encoding="utf-8")
    starts = list(_PART.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    seen = {HOME, INDEX}
    for start, end in zip(starts, ends, strict=True):
        linked = linked_pages(root, INDEX, text[start.end() : end])
        fresh = [page for page in linked if page not in seen]
        seen.update(fresh)
        yield Part(start[1], tuple(fresh))


def below(root: Path, page: str) -> list[str]:
    """Return what a list in a folder of `docs/` names of its own folder, for the page to have below itself."""
    folder = page.removesuffix("README.md")
    if page in (HOME, INDEX) or not page.startswith("docs/") or not page.endswith("/README.md"):
        return []
    indexed = {entry for part in parts(root) for entry in part.pages}
    linked = linked_pages(root, page, (root / page).read_text(encoding="utf-8"))
    return [entry for entry in linked if entry.startswith(folder) and entry != page and entry not in indexed]


def below_all(root: Path) -> Iterator[str]:
    """Yield every page that a list in a folder names."""
    for page in pages(root):
        yield from below(root, page)


def unlisted(root: Path) -> list[str]:
    """Return the pages of `docs/` that no list names: a reader would not find them."""
    named = {page for part in parts(root) for page in part.pages} | set(below_all(root))
    return [page for page in pages(root) if page.startswith("docs/") and page not in {*named, INDEX}]


def linked_pages(root: Path, page: str, text: str) -> list[str]:
    """Return the pages that a text of `page` links to, once each, in their order."""
    known = set(pages(root))
    links = (link.partition("#")[0] for link in check_docs.LINK.findall(check_docs.FENCE.sub("", text)))
    targets = (((root / page).parent / link).resolve() for link in links if link and ":" not in link)
    inside = (path.relative_to(root.resolve()).as_posix() for path in targets if path.is_relative_to(root.resolve()))
    return list(dict.fromkeys(path for path in inside if path in known))


def toctree(caption: str, entries: Iterable[str]) -> str:
    """Return the directive that gives a page its part of the navigation; readers of the file never see it."""
    names = [f"/{page.removesuffix('.md')}" for page in entries]
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *options, "", *names, "```", ""])


def with_navigation(root: Path, page: str, text: str) -> str:
    """Return a page's text with the navigation that begins at it."""
    if page == HOME:
        first, *others = navigation(root)
        trees = [toctree("", [INDEX]), toctree(first.caption, first.pages)]
        return "".join([text, *trees, *(toctree(part.caption, part.pages) for part in others)])
    entries = below(root, page)
    return text + toctree("", entries) if entries else text
