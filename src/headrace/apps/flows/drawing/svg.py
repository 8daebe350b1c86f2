"""A flow as SVG that needs nothing else: no scripts, no fonts, light and dark by what the reader's screen asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from unicodedata import east_asian_width
from xml.sax.saxutils import escape, quoteattr

from headrace.apps.flows.drawing.layout import HEIGHT, WIDTH, Place, place_boxes, scale_of
from headrace.apps.flows.drawing.mermaid import class_of
from headrace.apps.flows.drawing.picture import ERROR, Box, Line, Note, Picture
from headrace.apps.flows.form import MAIN
from headrace.nodes.base import Shape

_MARGIN = 40.0
#: Widths of a text, in letters.
_NAME, _TYPE, _LABEL = 23, 27, 24
#: What XML cannot say.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = """
svg { font: 13px system-ui, sans-serif; }
.page { fill: #ffffff; } text { fill: #1d2530; } .small { font-size: 11px; fill: #5b6675; }
.box { fill: #f4f6f9; stroke: #8894a5; stroke-width: 1.4; } .trigger .box { stroke-width: 2.4; }
.line { fill: none; stroke: #8894a5; stroke-width: 1.5; } .tip { fill: #8894a5; }
.error .line { stroke: #c4382b; stroke-dasharray: 6 3; } .error text { fill: #c4382b; }
.other .line { stroke-dasharray: 2 4; }
.note { fill: #fdf6d8; stroke: #d9c977; }
.ran .box { fill: #e3f4e6; stroke: #2f8f4e; } .failed .box { fill: #fde4e1; stroke: #c4382b; }
.going .box { fill: #e1eefb; stroke: #2b6cb0; } .empty .box { stroke-dasharray: 5 3; }
.skipped, .disabled { opacity: .62; } .skipped .box, .disabled .box { stroke-dasharray: 2 3; }
@media (prefers-color-scheme: dark) {
.page { fill: #14181f; } text { fill: #e6eaf0; } .small { fill: #a3afbf; }
.box { fill: #222933; stroke: #76859a; } .line { stroke: #76859a; } .tip { fill: #76859a; }
.error .line { stroke: #ef7a6d; } .error text { fill: #ef7a6d; }
.note { fill: #383216; stroke: #6d6329; }
.ran .box { fill: #17331f; stroke: #4fb872; } .failed .box { fill: #431c18; stroke: #ef7a6d; }
.going .box { fill: #17304a; stroke: #63a4e8; }
}
""".strip()


def to_svg(picture: Picture) -> str:
    """Return the drawing as a document of XML, positions as on the canvas where every node has one."""
    names = [box.name for box in picture.boxes]
    positions = {box.name: box.position for box in picture.boxes}
    places = place_boxes(names, [(line.source, line.target) for line in picture.lines], positions)
    notes = _placed_notes(picture, places)
    body = [*(_note(note, place) for note, place in notes), *_lines(picture.lines, places)]
    body += [_box(box, places[box.name]) for box in picture.boxes]
    frame = _frame([*_corners(places.values()), *(corner for note, place in notes for corner in _room(note, place))])
    return "\n".join([*_head(picture.title, frame), *body, "</svg>", ""])


def _head(title: str, frame: tuple[float, float, float, float]) -> list[str]:
    view = " ".join(f"{value:g}" for value in frame)
    x, y, width, height = (f"{value:g}" for value in frame)
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}" width="{width}" height="{height}" role="img">',
        f"<title>{_text(title)}</title>",
        f"<style>{_STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>',
        f'<rect class="page" x="{x}" y="{y}" width="{width}" height="{height}"/>',
    ]


def _frame(corners: Sequence[Place]) -> tuple[float, float, float, float]:
    """Return what is seen: left, top, width, height."""
    across, down = [x for x, _ in corners] or [0.0], [y for _, y in corners] or [0.0]
    left, top = min(across) - _MARGIN, min(down) - _MARGIN
    return left, top, max(across) + _MARGIN - left, max(down) + 2 * _MARGIN - top


def _corners(places: Iterable[Place]) -> Iterator[Place]:
    for x, y in places:
        yield x, y
        yield x + WIDTH, y + HEIGHT


def _text(value: str) -> str:
    return escape(_FORBIDDEN.sub("\ufffd", value))


def cut(value: str, most: int) -> str:
    """Return a text of one line that takes the room of `most` letters at most; wide signs take that of two.

    >>> cut("Fetch the prices", 9), cut("价格价格", 6)
    ('Fetch th…', '价格…')
    """
    taken, line = 0, " ".join(value.split())
    for place, sign in enumerate(line):
        width = 2 if east_asian_width(sign) in "WF" else 1
        if taken + width > most - (place < len(line) - 1):
            return f"{line[:place]}…"
        taken += width
    return line


def _box(box: Box, place: Place) -> str:
    x, y = place
    middle = x + WIDTH / 2
    second = ", ".join(filter(None, [box.type if not box.state else box.state, box.remark]))
    classes = " ".join(filter(None, ["node", "trigger" if box.shape is Shape.TRIGGER else "", class_of(box)]))
    whole = f"{box.name} ({box.type}){', disabled' if box.disabled else ''}{', ' + box.state if box.state else ''}"
    round_ = HEIGHT / 2 if box.shape is Shape.TRIGGER else 8
    return (
        f"<g class={quoteattr(classes)}><title>{_text(whole)}</title>"
        f'<rect class="box" x="{x:g}" y="{y:g}" width="{WIDTH:g}" height="{HEIGHT:g}" rx="{round_:g}"/>'
        f'<text x="{middle:g}" y="{y + 22:g}" text-anchor="middle">{_text(cut(box.name, _NAME))}</text>'
        f'<text class="small" x="{middle:g}" y="{y + 40:g}" text-anchor="middle">{_text(cut(second, _TYPE))}</text></g>'
    )


def _lines(lines: Sequence[Line], places: Mapping[str, Place]) -> Iterator[str]:
    """Yield the lines; those that leave a box for several others leave it below each other by their labels."""
    labels: dict[str, list[str]] = {}
    for line in lines:
        known = labels.setdefault(line.source, [])
        if line.label not in known:
            known.append(line.label)
    for line in lines:
        known = labels[line.source]
        shift = HEIGHT * (known.index(line.label) + 1) / (len(known) + 1)
        yield _line(line, places[line.source], places[line.target], shift)


def _line(line: Line, source: Place, target: Place, shift: float) -> str:
    x, y = source[0] + WIDTH, source[1] + shift
    end_x, end_y = target[0] - 2, target[1] + HEIGHT / 2
    kind = {MAIN: "edge", ERROR: "edge error"}.get(line.kind, "edge other")
    label = "" if not line.label else (
        f'<text class="small" x="{x + 6:g}" y="{y - 4:g}">{_text(cut(line.label, _LABEL))}</text>'
    )  # fmt: skip
    path = curve((x, y), (end_x, end_y), below=max(source[1], target[1]) + HEIGHT)
    return f'<g class="{kind}"><path class="line" d="{path}" marker-end="url(#tip)"/>{label}</g>'


def curve(begin: Place, end: Place, *, below: float) -> str:
    """Return the way of a line; one that leads back goes below both boxes."""
    (x, y), (end_x, end_y) = begin, end
    if end_x >= x:
        bend = max((end_x - x) / 2, 24)
        return f"M{x:g} {y:g}C{x + bend:g} {y:g} {end_x - bend:g} {end_y:g} {end_x:g} {end_y:g}"
    low, side = below + 26, 34
    return (
        f"M{x:g} {y:g}C{x + side:g} {y:g} {x + side:g} {low:g} {x:g} {low:g}"
        f"L{end_x:g} {low:g}C{end_x - side:g} {low:g} {end_x - side:g} {end_y:g} {end_x:g} {end_y:g}"
    )


def _placed_notes(picture: Picture, places: Mapping[str, Place]) -> list[tuple[Note, Place]]:
    """Return notes with where they stand; none where the boxes do not stand as on the canvas."""
    canvas = [box.position for box in picture.boxes if box.position is not None]
    scale = scale_of(canvas)
    if scale is None or len(canvas) < len(picture.boxes):
        return []
    left, top = (min((place[axis] for place in canvas), default=0.0) for axis in (0, 1))
    return [
        (
            Note(note.text, note.position, (note.size[0] * scale, note.size[1] * scale)),
            ((note.position[0] - left) * scale, (note.position[1] - top) * scale),
        )
        for note in picture.notes
    ]


def _room(note: Note, place: Place) -> Iterator[Place]:
    yield place
    yield place[0] + note.size[0], place[1] + note.size[1]


def _note(note: Note, place: Place) -> str:
    x, y = place
    width, height = note.size
    rows = [row for row in note.text.splitlines() if row.strip()][: max(int(height / 16) - 1, 1)]
    most = max(int(width / 6.2), 4)
    shown = "".join(
        f'<text class="small" x="{x + 8:g}" y="{y + 18 + 16 * number:g}">{_text(cut(row, most))}</text>'
        for number, row in enumerate(rows)
    )
    return (
        f'<g><title>{_text(note.text)}</title><rect class="note" x="{x:g}" y="{y:g}" width="{width:g}" '
        f'height="{height:g}" rx="4"/>{shown}</g>'
    )
