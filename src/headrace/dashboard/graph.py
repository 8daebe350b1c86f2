"""Where the boxes and the lines of a drawn graph stand. Pure: what a box says and looks like is for who draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headrace.apps.flows.drawing.layout import HEIGHT, WIDTH, Place, layers_of, place_boxes, without_cycles
from headrace.apps.flows.drawing.svg import curve

__all__ = ["HEIGHT", "WIDTH", "Drawing", "Line", "draw", "fold"]

MARGIN = 12.0
#: Room beside and below boxes for lines that lead back.
_ROUND = (36.0, 24.0)
#: Boxes of a layer stand closer than on a canvas.
_CLOSER = 0.76
#: Places on the way of lines that lead over layers; beyond it they go straight, and perhaps behind boxes.
MOST_TURNS = 500
#: So many boxes that stand for the same in the same place are drawn as one.
MOST_ALIKE = 8

Link = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Line:
    """A line between two boxes, by their numbers. `way` is a path of SVG."""

    source: int
    target: int
    way: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A graph that was laid out: the left upper corner of each box, and the lines."""

    width: float
    height: float
    corners: tuple[Place, ...]
    lines: tuple[Line, ...]


def draw(
    names: Sequence[str], links: Sequence[Link], positions: Mapping[str, Place | None] | None = None,
    exits: Sequence[float] | None = None,
) -> Drawing:  # fmt: skip
    """Lay a graph out from left to right: each box in a layer behind all that lead to it, with few lines that cross.

    `positions`: where people put the boxes; it is kept to where each has one. `exits`: how far down its box each line
    begins, from 0 to 1. The same graph is always drawn the same.

    >>> drawn = draw(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    >>> [corner[0] for corner in drawn.corners] == sorted(corner[0] for corner in drawn.corners), len(drawn.lines)
    (True, 3)
    """
    put = positions or {}
    ways: dict[Link, list[str]] = {}
    if names and all(put.get(name) is not None for name in names):
        places = place_boxes(names, links, put)
    else:
        places, ways = _layered(names, links)
    # Lines that lead back go round their boxes and below them.
    side, below = _ROUND if any(places[one][0] < places[other][0] + WIDTH for other, one in links) else (MARGIN, 0.0)
    places = {name: (x + side, y + MARGIN) for name, (x, y) in places.items()}
    corners = tuple(places[name] for name in names)
    numbers = {name: number for number, name in enumerate(names)}
    lines = []
    for (source, target), down in zip(links, exits or [0.5] * len(links), strict=True):
        turns = [places[turn] for turn in ways.get((source, target), [])]
        way = _way(places[source], turns, places[target], down)
        lines.append(Line(numbers[source], numbers[target], way))
    width = max((x for x, _ in corners), default=0.0) + WIDTH + side
    height = max((y for _, y in corners), default=0.0) + HEIGHT + MARGIN + below
    return Drawing(width, height, corners, tuple(lines))


def _layered(names: Sequence[str], links: Sequence[Link]) -> tuple[dict[str, Place], dict[Link, list[str]]]:
    """Return places in layers; a line over several layers has a place of its own in each, so that it hides no box."""
    ahead = without_cycles(names, links)
    layers = layers_of(names, ahead)
    turns: list[str] = []
    ways: dict[Link, list[str]] = {}
    chained: list[Link] = []
    for number, link in enumerate(links):
        source, target = link
        between = range(layers[source] + 1, layers[target]) if link in ahead else range(0)
        # No id of a node has a line feed.
        way = [f"\n{number}.{layer}" for layer in between] if len(turns) + len(between) <= MOST_TURNS else []
        turns += way
        ways[link] = way
        chained += pairwise([source, *way, target])
    places = place_boxes([*names, *turns], chained, {})
    return {name: (x, y * _CLOSER) for name, (x, y) in places.items()}, ways


def _way(source: Place, turns: Sequence[Place], target: Place, down: float) -> str:
    parts = []
    here = (source[0] + WIDTH, source[1] + HEIGHT * down)
    for x, y in turns:
        parts += [curve(here, (x, y + HEIGHT / 2), below=0), f"H{x + WIDTH:g}"]
        here = (x + WIDTH, y + HEIGHT / 2)
    end = (target[0], target[1] + HEIGHT / 2)
    return "".join([*parts, curve(here, end, below=max(source[1], target[1]) + HEIGHT)])


def fold(names: Sequence[str], links: Sequence[Link], kinds: Mapping[str, str]) -> list[list[str]]:
    """Return the names in groups, each of which is one box: many of one kind between the same neighbours are one.

    >>> few, many = "ab", [f"m{number}" for number in range(40)]
    >>> links = [("a", one) for one in many] + [(one, "b") for one in many]
    >>> [len(group) for group in fold(["a", *many, "b"], links, dict.fromkeys([*few, *many], "task"))]
    [1, 40, 1]
    """
    before: dict[str, list[str]] = {name: [] for name in names}
    behind: dict[str, list[str]] = {name: [] for name in names}
    for source, target in dict.fromkeys(links):
        before[target].append(source)
        behind[source].append(target)
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for name in names:
        alike.setdefault((kinds[name], tuple(before[name]), tuple(behind[name])), []).append(name)
    groups = [[group] if len(group) > MOST_ALIKE else [[name] for name in group] for group in alike.values()]
    return [one for some in groups for one in some]
