"""What finding the items of a streamed answer costs: 50 items, 13.7 kB, 3,400 chunks of four characters.

    python benchmarks/stream_parser.py [--items 50] [--chunk 4] [--rounds 30] [--json FILE]

The scanner is measured alone and with the validation of each item by pydantic, in processor time (the least of the
rounds); beside it, where it is installed, ijson's push parser, and json.loads of the whole text at its end.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from headrace.llm.element_scanner import ElementScanner


class Place(BaseModel):
    """One item."""

    name: str
    style: str
    description: str
    tags: list[str]
    people: int
    ruler: str | None


def answer_of(items: int) -> str:
    """A streamed answer's text."""
    places = [
        {
            "name": f"Frost Keep {number}", "style": "nordic, cold and old", "tags": ["keep", "ice"], "ruler": None,
            "description": 'A keep on a hill of "old ice" that ' + "x" * 120, "people": number,
        } for number in range(items)
    ]  # fmt: skip
    return json.dumps({"items": places})


def scanned(chunks: Sequence[str]) -> tuple[int, int | None]:
    """The number of elements, and the chunk that closed the first."""
    scanner, found, first = ElementScanner(), 0, None
    for number, chunk in enumerate(chunks, start=1):
        if elements := scanner.feed(chunk):
            found, first = found + len(elements), first or number
    return found, first


def validated(chunks: Sequence[str]) -> tuple[int, int | None]:
    """The same with each element read by its model."""
    scanner, found, first = ElementScanner(), 0, None
    for number, chunk in enumerate(chunks, start=1):
        for element in scanner.feed(chunk):
            Place.model_validate_json(element.text)
            found, first = found + 1, first or number
    return found, first


def at_the_end(chunks: Sequence[str]) -> tuple[int, int | None]:
    """The whole text at once, when it is there."""
    return len(json.loads("".join(chunks))["items"]), len(chunks)


def by_ijson(chunks: Sequence[str]) -> tuple[int, int | None]:
    """ijson's push parser."""
    import ijson  # type: ignore[import-not-found,import-untyped,unused-ignore]

    elements: list[Any] = ijson.sendable_list()
    parser, found, first = ijson.items_coro(elements, "items.item"), 0, None
    for number, chunk in enumerate(chunks, start=1):
        parser.send(chunk.encode())
        if elements:
            found, first = found + len(elements), first or number
            del elements[:]
    return found, first


def measure(items: int, chunk: int, rounds: int) -> dict[str, Any]:
    """The figures of every way that is there."""
    text = answer_of(items)
    chunks = [text[begin : begin + chunk] for begin in range(0, len(text), chunk)]
    ways = {"scanner": scanned, "scanner and validation": validated, "json.loads at the end": at_the_end}
    if _has_ijson():
        ways["ijson"] = by_ijson
    return {
        "characters": len(text), "chunks": len(chunks), "items": items,
        "ways": {name: _timed(way, chunks, rounds, items) for name, way in ways.items()},
    }  # fmt: skip


def _timed(
    way: Callable[[Sequence[str]], tuple[int, int | None]], chunks: Sequence[str], rounds: int, items: int
) -> dict[str, float]:
    times, first = [], 0
    for _ in range(rounds):
        began = time.process_time()
        found, at = way(chunks)
        times.append((time.process_time() - began) * 1000)
        assert found == items
        first = at or 0
    return {"least_ms": min(times), "p50_ms": statistics.median(times), "first_item_at": first / len(chunks)}


def _has_ijson() -> bool:
    from importlib.util import find_spec

    return find_spec("ijson") is not None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=50)
    parser.add_argument("--chunk", type=int, default=4, help="characters of a chunk")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    figures = measure(options.items, options.chunk, options.rounds)
    print(f"{figures['items']} items, {figures['characters']:,} characters, {figures['chunks']:,} chunks")
    print(f"  {'':<26}{'least':>9}{'p50':>9}   first item after")
    for name, way in figures["ways"].items():
        print(
            f"  {name:<26}{way['least_ms']:>6.2f} ms{way['p50_ms']:>6.2f} ms   {way['first_item_at']:.1%} of the stream"
        )
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
