"""Functions of texts and lists alike, and of any value."""

from __future__ import annotations

from typing import Any

from headrace.model.expressions.budget import Run
from headrace.model.expressions.errors import Fault
from headrace.model.expressions.functions.listing import Table
from headrace.model.expressions.functions.lists import new_list
from headrace.model.expressions.moments import Moment
from headrace.model.expressions.operators import same
from headrace.model.expressions.searching import check_search
from headrace.model.expressions.values import kind, need_text, text_size, to_whole, truthy, width
from headrace.model.expressions.writing import to_text

EITHER = Table("Texts, lists and any value")


def _row(value: Any) -> Any:
    if type(value) is not str and type(value) is not list:
        raise Fault(f"needs a text or a list, got {kind(value)}")
    return value


def _position(run: Run, values: list[Any], value: Any) -> int:
    found = (index for index, one in enumerate(run.each(values)) if same(run, one, value))
    return next(found, -1)


@EITHER.listed(
    "includes", "Whether a text has another in it, or a list an element.", ("'headrace'.includes('race')", True)
)
def includes(run: Run, value: Any, other: Any) -> bool:
    """Return whether it is in there."""
    if type(_row(value)) is list:
        return _position(run, value, other) >= 0
    check_search(run, value, need_text(other))
    return other in value


@EITHER.listed(
    "indexOf", "The position of a text or of an element; -1 where it is not.", ("['a', 'b'].indexOf('b')", 1)
)
def index_of(run: Run, value: Any, other: Any) -> int:
    """Return the first position."""
    if type(_row(value)) is list:
        return _position(run, value, other)
    check_search(run, value, need_text(other))
    return int(value.find(other))


@EITHER.listed("lastIndexOf", "The last position of a text or of an element; -1.", ("'a.b.c'.lastIndexOf('.')", 3))
def last_index_of(run: Run, value: Any, other: Any) -> int:
    """Return the last position: looked for from behind, since only searches forwards take time in proportion."""
    if type(_row(value)) is list:
        new_list(run, len(value))
        behind = _position(run, value[::-1], other)
        return -1 if behind < 0 else len(value) - 1 - behind
    check_search(run, value, need_text(other))
    run.charge(text_size(value) + text_size(other))
    behind = value[::-1].find(other[::-1])
    return -1 if behind < 0 else len(value) - behind - len(other)


@EITHER.listed(
    "slice",
    "The part from one position up to, but not with, another; negative ones count from the end.",
    ("[1, 2, 3, 4].slice(1, -1)", [2, 3]),
)
def part_of(run: Run, value: Any, start: Any = 0, end: Any = None) -> Any:
    """Return a part."""
    bounds = slice(to_whole(start), None if end is None else to_whole(end))
    size = len(range(*bounds.indices(len(_row(value)))))
    if type(value) is list:
        new_list(run, size)
    else:
        run.charge(80 + size * width(value))
    return value[bounds]


@EITHER.listed(
    "concat",
    "A list with the elements of others, or with other values, behind it; a text with others.",
    ("[1].concat([2, 3], 4)", [1, 2, 3, 4]),
)
def concat(run: Run, value: Any, *others: Any) -> Any:
    """Return one behind the other."""
    if type(_row(value)) is str:
        texts = [value, *(to_text(run, one) for one in others)]
        run.charge(80 + 4 * sum(map(len, texts)))
        return "".join(texts)
    made: list[Any] = []
    for one in (value, *others):
        more = one if type(one) is list else [one.iso if type(one) is Moment else one]
        new_list(run, 2 * len(more))
        made += more
    return made


@EITHER.listed("reverse", "A list or a text the other way round.", ("[1, 2, 3].reverse()", [3, 2, 1]))
def reverse(run: Run, value: Any) -> Any:
    """Return it the other way round."""
    if type(_row(value)) is list:
        new_list(run, len(value))
    else:
        run.charge(text_size(value))
    return value[::-1]


@EITHER.listed(
    "at", "The element or character at a position; a negative one counts from the end.", ("['a', 'b'].at(-1)", "b")
)
def element_at(run: Run, value: Any, index: Any) -> Any:
    """Return one of it, or null."""
    at = to_whole(index)
    return value[at] if -len(_row(value)) <= at < len(value) else None


def _empty(value: Any) -> bool:
    return value is None or (type(value) in (str, list, dict) and len(value) == 0)


@EITHER.listed(
    "isEmpty", "Whether a value is null, or a text, list or object with nothing in it.", ("''.isEmpty()", True)
)
def is_empty(run: Run, value: Any) -> bool:
    """Return whether nothing is there."""
    return _empty(value)


@EITHER.listed("isNotEmpty", "Whether there is something in a text, list or object.", ("[0].isNotEmpty()", True))
def is_not_empty(run: Run, value: Any) -> bool:
    """Return whether something is there."""
    return not _empty(value)


@EITHER.listed(
    "ifEmpty", "The value, or another one if it is empty.", ("''.ifEmpty('none')", "none"), also=("$ifEmpty",)
)
def if_empty(run: Run, value: Any, other: Any) -> Any:
    """Return the first that is there."""
    return other if _empty(value) else value


@EITHER.listed("$if", "One value if a condition is true, otherwise another.", ("$if(2 > 1, 'yes', 'no')", "yes"))
def choose(run: Run, test: Any, yes: Any, no: Any = None) -> Any:
    """Return one of two."""
    return yes if truthy(test) else no
