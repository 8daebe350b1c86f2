"""Where the boxes of a flow stand: as on the canvas, else in layers from left to right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

Place = tuple[float, float]

#: Of a box, and the least room between two.
WIDTH, HEIGHT, GAP = 172.0, 52.0, 28.0
_COLUMN, _ROW = WIDTH + 72.0, HEIGHT + 40.0
#: Of a canvas that is drawn larger than it is, so that boxes do not lie on each other; beyond it is not kept to.
_MOST_SCALE = 4.0
#: Pairs of boxes are looked at for that many.
_MOST_PAIRED = 600
_SWEEPS = 4


def place_boxes(
    names: Sequence[str], links: Sequence[tuple[str, str]], positions: Mapping[str, Place | None]
) -> dict[str, Place]:
    """Return the left upper corner of each box; the least is (0, 0).

    >>> place_boxes(["a", "b"], [("a", "b")], {})["b"][0] > WIDTH
    True
    """
    given = {name: place for name in names if (place := positions.get(name)) is not None}
    placed = _as_on_canvas(given) if len(given) == len(names) else None
    if placed is None:
        placed = _in_layers(names, links)
    left, top = (min((place[axis] for place in placed.values()), default=0.0) for axis in (0, 1))
    return {name: (x - left, y - top) for name, (x, y) in placed.items()}


def scale_of(places: Sequence[Place]) -> float | None:
    """Return how much larger than a canvas it is drawn, so that boxes stand apart; None: it cannot be.

    >>> scale_of([(0, 0), (100, 0)]), scale_of([(0, 0), (400, 0)]), scale_of([(0, 0), (0, 0)])
    (2.0, 1.0, None)
    """
    if len(places) > _MOST_PAIRED:
        return 1.0
    least = 1.0
    for one, other in combinations(places, 2):
        across, down = abs(one[0] - other[0]), abs(one[1] - other[1])
        ways = [room / apart for room, apart in ((WIDTH + GAP, across), (HEIGHT + GAP, down)) if apart]
        least = max(least, min(ways, default=_MOST_SCALE + 1))
    return least if least <= _MOST_SCALE else None


def _as_on_canvas(given: Mapping[str, Place]) -> dict[str, Place] | None:
    scale = scale_of(list(given.values()))
    return None if scale is None else {name: (x * scale, y * scale) for name, (x, y) in given.items()}


def _in_layers(names: Sequence[str], links: Sequence[tuple[str, str]]) -> dict[str, Place]:
    ahead = without_cycles(names, links)
    layers = layers_of(names, ahead)
    columns: list[list[str]] = [[] for _ in range(max(layers.values(), default=-1) + 1)]
    for name in names:
        columns[layers[name]].append(name)
    for _ in range(_SWEEPS):
        _sweep(columns, {(target, source) for source, target in ahead})
        _sweep(columns[::-1], ahead)
    tallest = max(map(len, columns), default=0)
    return {
        name: (number * _COLUMN, (row + (tallest - len(column)) / 2) * _ROW)
        for number, column in enumerate(columns)
        for row, name in enumerate(column)
    }


def without_cycles(names: Sequence[str], links: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return links of which none leads back: those that close a circle are left out."""
    behind: dict[str, list[str]] = {name: [] for name in names}
    for source, target in links:
        behind[source].append(target)
    targets = {target for source, target in links if source != target}
    kept: set[tuple[str, str]] = set()
    done: set[str] = set()
    for first in sorted(names, key=lambda name: name in targets):
        _walk(first, behind, done, kept)
    return kept


def _walk(first: str, behind: Mapping[str, list[str]], done: set[str], kept: set[tuple[str, str]]) -> None:
    """Go as deep as links lead, and keep those that lead to none of the nodes on the way."""
    way = {first: iter(behind[first])} if first not in done else {}
    while way:
        name, rest = next(reversed(way.items()))
        target = next(rest, None)
        if target is None:
            done.add(name)
            del way[name]
        elif target not in way:
            kept.add((name, target))
            if target not in done:
                way[target] = iter(behind[target])


def layers_of(names: Sequence[str], links: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return for each node how many links the longest way to it has."""
    before: dict[str, list[str]] = {name: [] for name in names}
    behind: dict[str, list[str]] = {name: [] for name in names}
    for source, target in links:
        before[target].append(source)
        behind[source].append(target)
    left = {name: len(before[name]) for name in names}
    layers = dict.fromkeys(names, 0)
    todo = [name for name in names if not left[name]]
    for name in todo:  # which grows
        for target in behind[name]:
            layers[target] = max(layers[target], layers[name] + 1)
            left[target] -= 1
            if not left[target]:
                todo.append(target)
    return layers


def _sweep(columns: Sequence[list[str]], before: set[tuple[str, str]]) -> None:
    """Sort each column by where those stand that its boxes are linked with in the columns gone through."""
    rows: dict[str, float] = {}
    linked: dict[str, list[str]] = {}
    for name, other in before:
        linked.setdefault(name, []).append(other)
    for column in columns:
        heights = {}
        for row, name in enumerate(column):
            seen = [rows[other] for other in linked.get(name, ()) if other in rows]
            heights[name] = sum(seen) / len(seen) if seen else row - len(column) / 2
        column.sort(key=heights.__getitem__)
        rows.update({name: row - len(column) / 2 for row, name in enumerate(column)})
