"""What becomes of a batch, shown while it happens: a bar with items above it, plain lines, or lines of JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol

from headrace.apps.details.commands.desks import Told
from headrace.apps.details.names import ENDED, FIRST_RESPONSE, ITEM
from headrace.apps.flows.commands.telling import plain, tell, tell_json


class Display(Protocol):
    """Shows entries of a batch as they come. `after`: seconds since it was asked for; None where nobody measured."""

    def accepted(self, batch_id: str, document: Mapping[str, Any]) -> None:
        """Show what was said of a request at once."""
        ...

    def entry(self, told: Told, after: float | None) -> None:
        """Show an entry."""
        ...

    def attention(self, text: str) -> None:
        """Show what keeps the batch from being made."""
        ...

    def close(self) -> None:
        """Leave the last state where it was shown."""
        ...


def new_display(*, as_json: bool, count: int | None = None) -> Display:
    """Return the display that suits where standard output goes. `count`: items that are awaited, as far as known."""
    if as_json:
        return JsonLines()
    return LiveBar(count) if sys.stdout.isatty() else PlainLines()


class JsonLines:
    """A line of JSON for each entry, and one for the answer to the request."""

    def accepted(self, batch_id: str, document: Mapping[str, Any]) -> None:
        """Write the answer to the request."""
        tell_json({"event": "submitted", "seq": None, "after_seconds": None, "data": dict(document)})
        sys.stdout.flush()

    def entry(self, told: Told, after: float | None) -> None:
        """Write an entry."""
        seconds = None if after is None else round(after, 3)
        tell_json({"event": told.type, "seq": told.seq, "after_seconds": seconds, "data": dict(told.data)})
        sys.stdout.flush()

    def attention(self, text: str) -> None:
        """Write it as an event that is no entry."""
        tell_json({"event": "attention", "seq": None, "after_seconds": None, "data": {"attention": text}})
        sys.stdout.flush()

    def close(self) -> None:
        """Nothing to end."""


class PlainLines:
    """A line for each item on standard output, for other programs and files; everything else is told beside it."""

    def accepted(self, batch_id: str, document: Mapping[str, Any]) -> None:
        """Tell the id, and when the batch cannot be there in time."""
        for line in accepted_lines(batch_id, document):
            tell(line, err=True)

    def entry(self, told: Told, after: float | None) -> None:
        """Write an item; tell the rest."""
        if told.type == ITEM:
            tell(item_line(told.data))
            sys.stdout.flush()
            return
        for line in entry_lines(told, after):
            tell(line, err=True)

    def attention(self, text: str) -> None:
        """Tell it."""
        tell(attention_line(text), err=True)

    def close(self) -> None:
        """Nothing to end."""


class LiveBar:
    """Items as they come, above a bar of how many there are, on a terminal."""

    def __init__(self, count: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._console = Console(highlight=False, markup=False, emoji=False)
        self._bar = Progress(
            BarColumn(), MofNCompleteColumn(), TextColumn("items"), TimeElapsedColumn(), console=self._console,
            transient=True,
        )  # fmt: skip
        self._task = self._bar.add_task("", total=count)
        self._bar.start()

    def accepted(self, batch_id: str, document: Mapping[str, Any]) -> None:
        """Show the id, and when the batch cannot be there in time."""
        for line in accepted_lines(batch_id, document):
            self._console.print(plain(line), style="dim")

    def entry(self, told: Told, after: float | None) -> None:
        """Show an item, and count it; show the rest."""
        if told.type == ITEM:
            self._show(told.data)
            return
        if isinstance(told.data.get("count"), int):
            self._bar.update(self._task, total=told.data["count"])
        for line in entry_lines(told, after):
            self._console.print(plain(line), style="dim")

    def attention(self, text: str) -> None:
        """Show it above the bar."""
        self._console.print(plain(attention_line(text)), style="yellow")

    def close(self) -> None:
        """Take the bar away: what it counted is said above it."""
        self._bar.stop()

    def _show(self, item: Mapping[str, Any]) -> None:
        from rich.text import Text

        line = item_line(item)
        name = plain(str(item.get("name", "")))
        self._console.print(Text.assemble((name, "bold"), plain(line)[len(name) :]))
        self._bar.advance(self._task)


def item_line(item: Mapping[str, Any]) -> str:
    """Return an item in a line.

    >>> item_line({"name": "Saltmere", "description": "A harbour.", "attributes": {"mood": "grey", "people": 900}})
    'Saltmere: A harbour. [mood: grey, people: 900]'
    """
    attributes = item.get("attributes") or {}
    told = ", ".join(f"{name}: {value}" for name, value in attributes.items())
    line = f"{item.get('name', '')}: {item.get('description', '')}" + (f" [{told}]" if told else "")
    return " ".join(line.split())


def accepted_lines(batch_id: str, document: Mapping[str, Any]) -> list[str]:
    """Return what is said of a request at once.

    >>> accepted_lines("7", {"promised": False, "detail": "expected 9.4 s: 600 requests per minute of openai:m"})
    ['batch 7', 'not within the promised time: expected 9.4 s: 600 requests per minute of openai:m']
    """
    if document.get("existing"):
        return [f"batch {batch_id} was there already; times are counted from when it was asked for first"]
    lines = [f"batch {batch_id}"]
    detail = str(document.get("detail") or "")
    if not document.get("promised", True):
        why = "not within the promised time" if document.get("measured", True) else "nothing can be promised yet"
        lines.append(f"{why}: {detail}" if detail else "without a promised time")
    return lines


def attention_line(text: str) -> str:
    """Return what is said of a batch that nobody makes.

    >>> attention_line("no live worker serves details.flows")
    'the batch waits: no live worker serves details.flows'
    """
    return f"the batch waits: {text}"


def entry_lines(told: Told, after: float | None) -> list[str]:
    """Return what is said of an entry that is no item; without `after` the times are those of the batch itself.

    >>> entry_lines(Told(9, "first_response", {"items": 5}), 1.234)
    ['first response: 5 items after 1.23 s']
    >>> entry_lines(Told(9, "first_response", {"items": 5, "seconds": 2.5}), None)
    ['first response: 5 items after 2.50 s']
    >>> entry_lines(Told(40, "completed", {"status": "completed", "delivered": 30, "count": 30, "calls": 3}), 3.5)
    ['completed: 30 of 30 items after 3.50 s; 3 calls']
    """
    if told.type == FIRST_RESPONSE:
        items, seconds = _counted(told.data.get("items")), told.data.get("seconds")
        return [f"first response: {items} items{_after(seconds if after is None else after)}"]
    if told.type == ENDED:
        return [_ending(told.data, after)]
    return []


def _ending(data: Mapping[str, Any], after: float | None) -> str:
    seconds = data.get("seconds") if after is None else after
    counts = [f"{_counted(data[name])} {name.replace('_', ' ')}" for name in FIGURES if data.get(name)]
    told = f"; {', '.join(counts)}" if counts else ""
    delivered, count = data.get("delivered", 0), data.get("count", 0)
    return f"{data.get('status', 'ended')}: {delivered} of {count} items{_after(seconds)}{told}"


#: What is said of an ended batch where it is not 0.
FIGURES = ("calls", "tokens", "rejected", "duplicates", "dead_letters")


def _counted(value: object) -> str:
    """Return a number, or how many entries a list has."""
    return f"{len(value) if isinstance(value, list) else value:,}" if isinstance(value, list | int) else "some"


def _after(seconds: float | None) -> str:
    return "" if seconds is None else f" after {seconds:.2f} s"
