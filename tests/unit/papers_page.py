"""Reading the page as a browser does, as far as its data goes: elements, attributes, and the blocks of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from headrace.apps.papers.page.marks import Part


@dataclass
class Element:
    """One element with its attributes and the text directly within."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))
        self._open = [*self._open, self.elements[-1]] if tag not in ("meta", "input") else self._open

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1].text += data


@dataclass
class Page:
    """A page that was written."""

    source: str
    elements: list[Element] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Page:
        """Parse a file."""
        source = path.read_bytes().decode("utf-8")
        parser = _Parser()
        parser.feed(source)
        parser.close()
        return cls(source, parser.elements)

    def all(self, tag: str) -> list[Element]:
        """Every element of a kind."""
        return [element for element in self.elements if element.tag == tag]

    def block(self, name: str) -> Any:
        """The data of one block."""
        (found,) = [element for element in self.elements if element.attributes.get("id") == name]
        assert found.attributes["type"] == "application/json"
        return json.loads(found.text)

    def documents(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]]:
        """Each extracted document: its entry in the index, its values, its text."""
        for number, entry in enumerate(self.block("index")["documents"]):
            if not entry["problem"]:
                yield entry, self.block(f"values-{number}"), self.block(f"text-{number}")


def parts_of(text: dict[str, Any]) -> list[Part]:
    """All parts of a text, over its pages."""
    return [part for page in text["pages"] for part in page["parts"] if part is not None]


def marked(text: dict[str, Any], mark: int) -> str:
    """What the page shows as marked."""
    return "".join(part[0] for part in parts_of(text) if not isinstance(part, str) and mark in part[1])


def words_of(text: dict[str, Any]) -> str:
    """The whole text as the page shows it."""
    return "".join(part if isinstance(part, str) else part[0] for part in parts_of(text))
