"""A flow as Mermaid text, which many places that show Markdown draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.apps.flows.drawing.picture import ERROR, Box, Line, Picture
from headrace.apps.flows.form import MAIN
from headrace.nodes.base import Shape

#: Signs that mean nothing in a label, beside letters and digits.
_PLAIN = frozenset(" ,()/→")
_AROUND: Mapping[Shape | None, tuple[str, str]] = {
    Shape.TRIGGER: ("([", "])"),
    Shape.LOOP: ("[[", "]]"),
    Shape.FLOW: ("[[", "]]"),
}
_STYLES = {
    "ran": "fill:#e3f4e6,stroke:#2f8f4e,color:#12331d",
    "empty": "fill:#f2f2f2,stroke:#8a8a8a,color:#333333",
    "failed": "fill:#fde4e1,stroke:#c4382b,color:#5b120b",
    "skipped": "fill:#f7f7f7,stroke:#b5b5b5,color:#777777,stroke-dasharray:4 3",
    "going": "fill:#e1eefb,stroke:#2b6cb0,color:#12304f",
    "disabled": "fill:#f7f7f7,stroke:#b5b5b5,color:#777777,stroke-dasharray:2 3",
}
#: The class of each state of a node.
CLASSES = {
    "ran": "ran", "no items": "empty", "failed": "failed", "skipped": "skipped", "cancelled": "skipped",
    "running": "going", "waiting": "going",
}  # fmt: skip


def to_mermaid(picture: Picture) -> str:
    """Return the text of a flow chart; it ends with a line feed.

    >>> print(to_mermaid(Picture("A", (Box("Go", "manual", Shape.TRIGGER), Box("Set", "set")), (Line("Go", "Set"),))))
    flowchart LR
      n0(["Go<br/>manual"])
      n1["Set<br/>set"]
      n0 --> n1
    <BLANKLINE>
    """
    ids = {box.name: f"n{number}" for number, box in enumerate(picture.boxes)}
    lines = ["flowchart LR", *(f"  {_box(ids[box.name], box)}" for box in picture.boxes)]
    lines += [f"  {_line(ids, line)}" for line in picture.lines]
    errors = [str(number) for number, line in enumerate(picture.lines) if line.kind == ERROR]
    if errors:
        lines.append(f"  linkStyle {','.join(errors)} stroke:#c4382b,color:#c4382b")
    lines += [f"  classDef {name} {_STYLES[name]}" for name in _used(picture)]
    return "\n".join(lines) + "\n"


def _box(name: str, box: Box) -> str:
    begin, end = _AROUND.get(box.shape, ("[", "]"))
    text = [box.name, box.type, *filter(None, [", ".join(filter(None, [box.state, box.remark]))])]
    kind = class_of(box)
    return f'{name}{begin}"{"<br/>".join(map(escaped, text))}"{end}' + (f":::{kind}" if kind else "")


def class_of(box: Box) -> str:
    """Return the class of how a box looks, an empty text for the usual."""
    return "disabled" if box.disabled else CLASSES.get(box.state, "")


def _line(ids: Mapping[str, str], line: Line) -> str:
    arrow = "-->" if line.kind == MAIN else "-.->"
    label = f'|"{escaped(line.label)}"| ' if line.label else " "
    return f"{ids[line.source]} {arrow}{label}{ids[line.target]}"


def _used(picture: Picture) -> Iterator[str]:
    found = {class_of(box) for box in picture.boxes}
    return (name for name in _STYLES if name in found)


def escaped(text: str) -> str:
    """Return text that a quoted label shows as it is: every sign that could mean something is written by its number.

    >>> escaped('1. Say "hi"; [end]')
    '1#46; Say #34;hi#34;#59; #91;end#93;'
    """
    return "".join(one if one.isalnum() or one in _PLAIN else _sign(one) for one in " ".join(text.split()))


def _sign(sign: str) -> str:
    return f"#{ord(sign)};" if sign.isprintable() else "#65533;"
