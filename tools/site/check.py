"""Check the built site: links and anchors lead somewhere, nothing comes from elsewhere, every page can be found.

usage: python -m tools.site.check build/site [--external]     (--external lists the links that leave the site)

Links to elsewhere are not followed: they are looked at for their form alone.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What a browser fetches by itself, by element and attribute.
FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("source", "src"),
    ("iframe", "src"),
    ("video", "src"),
    ("object", "data"),
}
#: Kinds of <link> that only tell; all others are fetched.
TOLD = {"canonical", "next", "prev", "search", "index", "author", "up", "top"}
STYLE_SOURCE = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])([^'\")\s]+)")
SCRIPT_SOURCE = re.compile(r"(?:fetch|import|importScripts|open)\(\s*['\"`](?:https?:)?//[^'\"`]*|new WebSocket\(")
HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?", re.IGNORECASE)


@dataclass(slots=True)
class Found:
    """What a page consists of, as far as links go."""

    links: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)


class Reader(HTMLParser):
    """Notes links, sources and anchors of one page."""

    def __init__(self) -> None:
        """Begin with nothing found."""
        super().__init__()
        self.found = Found()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what one element brings."""
        given = {name: value or "" for name, value in attrs}
        self.found.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        self.found.sources += [given[name] for kind, name in FETCHED if kind == tag and name in given]
        self.found.sources += STYLE_SOURCE.findall(given.get("style", ""))
        if tag == "a" and "href" in given:
            self.found.links.append(given["href"])
        if tag == "link" and "href" in given:
            told = set(given.get("rel", "").split()) <= TOLD
            (self.found.links if told else self.found.sources).append(given["href"])


def read(page: Path) -> Found:
    """Return what a page of HTML links to, fetches, and can be led to."""
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    reader.close()
    return reader.found


def problems(site: Path) -> list[str]:
    """Return one line per link that leads nowhere, source from elsewhere, and page that the search does not know."""
    found = {page.resolve(): read(page) for page in sorted(site.rglob("*.html"))}
    lines = [line for page in found for line in problems_of(page, found)]
    named = [line.replace(f"{site.resolve()}/", "") for line in lines]
    return [*named, *strange_files(site), *unsearchable(site)]


def problems_of(page: Path, found: dict[Path, Found]) -> Iterator[str]:
    """Yield what is wrong with one page, the others being known."""
    for source in found[page].sources:
        if is_elsewhere(source):
            yield f"{page}: fetches {source}"
        elif not source.startswith("data:") and target(page, source)[0].is_file() is False:
            yield f"{page}: fetches {source}, which is not there"
    for link in found[page].links:
        if is_elsewhere(link):
            if not is_well_formed(link):
                yield f"{page}: {link} is no address"
        elif not leads_somewhere(page, link, found):
            yield f"{page}: the link {link} leads nowhere"


def is_elsewhere(address: str) -> bool:
    """Return whether an address is not one of the site.

    >>> [is_elsewhere(one) for one in ("https://a.example", "//a.example", "../a.html#b", "data:x")]
    [True, True, False, False]
    """
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def is_well_formed(address: str) -> bool:
    """Return whether a link to elsewhere has the form of an address: of the web with a host, or of mail.

    >>> [is_well_formed(one) for one in ("https://a.example/b", "https://nowhere", "htps://a.example")]
    [True, False, False]
    """
    parts = urlsplit(address)
    if parts.scheme == "mailto":
        return "@" in parts.path
    return parts.scheme in ("http", "https") and HOST.fullmatch(parts.netloc) is not None and " " not in address


def target(page: Path, link: str) -> tuple[Path, str]:
    """Return the file that a link of the site leads to, and the anchor in it."""
    parts = urlsplit(link)
    file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    return file, unquote(parts.fragment)


def leads_somewhere(page: Path, link: str, found: dict[Path, Found]) -> bool:
    """Return whether a link of the site leads to a file, and its anchor to a place in it."""
    file, anchor = target(page, link)
    if not file.is_file():
        return False
    return not anchor or file not in found or anchor in found[file].anchors


def strange_files(site: Path) -> Iterator[str]:
    """Yield the styles and scripts that fetch from elsewhere."""
    for style in site.rglob("*.css"):
        for source in STYLE_SOURCE.findall(style.read_text(encoding="utf-8")):
            if is_elsewhere(source):
                yield f"{style.relative_to(site)}: fetches {source}"
    for script in site.rglob("*.js"):
        for call in SCRIPT_SOURCE.findall(script.read_text(encoding="utf-8")):
            yield f"{script.relative_to(site)}: fetches {call}"


def unsearchable(site: Path) -> Iterator[str]:
    """Yield the pages that the index of the search does not hold: it works without a server."""
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    known = set(json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))["docnames"])
    for page in sorted(site.rglob("*.html")):
        name = page.relative_to(site).as_posix().removesuffix(".html")
        if name not in known | {"index", "search"}:
            yield f"{name}.html: the search does not know it"


def main(arguments: list[str]) -> int:
    """Print what is wrong, or what leads elsewhere; return the exit code."""
    site = Path(arguments[0])
    if "--external" in arguments:
        links = {link for page in site.rglob("*.html") for link in read(page).links if is_elsewhere(link)}
        print("\n".join(sorted(links)))
        return 0
    wrong = problems(site)
    print("\n".join(wrong) if wrong else f"{len(list(site.rglob('*.html')))} pages, every link leads somewhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
