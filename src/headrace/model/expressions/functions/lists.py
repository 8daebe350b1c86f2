"""Functions of lists."""

from __future__ import annotations

from typing import Any

from headrace.model.expressions.budget import Run
from headrace.model.expressions.errors import Fault
from headrace.model.expressions.functions.fields import at_path, identity, path_of, sort_key
from headrace.model.expressions.functions.listing import Table
from headrace.model.expressions.operators import OPERATORS, equal
from headrace.model.expressions.values import need_list, need_text, number, to_number, to_whole
from headrace.model.expressions.writing import joined

LISTS = Table("Lists")
_SIGNS = ("==", "!=", "===", "!==", "<", "<=", ">", ">=")


def new_list(run: Run, count: int) -> None:
    """Count the memory of a list that is about to be made."""
    run.charge(56 + 8 * count)
    run.work(count / 4)


@LISTS.listed(
    "join", "The elements as texts, with another text between them.", ("['a', 'b', 3].join(' + ')", "a + b + 3")
)
def join(run: Run, values: Any, between: Any = ",") -> str:
    """Return one text."""
    return joined(run, need_list(values), need_text(between))


@LISTS.listed(
    "sort",
    'The elements in order, numbers before texts and null last; by a field, and "desc" for the other way round.',
    ("[{n: 2}, {n: 10}, {n: 1}].sort('n', 'desc')", [{"n": 10}, {"n": 2}, {"n": 1}]),
)
def sort(run: Run, values: Any, field: Any = None, direction: Any = "asc") -> list[Any]:
    """Return a list in order; equal elements stay as they were."""
    if direction not in ("asc", "desc"):
        raise Fault('sorts "asc" or "desc"')
    path = [] if field in (None, "") else path_of(field)
    new_list(run, len(need_list(values)) * 14)
    keys = [sort_key(run, at_path(one, path)) for one in run.each(values)]
    longest = max((len(key[1]) for key in keys if type(key[1]) is str), default=0)
    run.work(len(keys) * len(keys).bit_length() * (1 + longest / 1_000))
    order = sorted(range(len(keys)), key=keys.__getitem__, reverse=direction == "desc")
    return [values[index] for index in order]


@LISTS.listed(
    "unique",
    "The elements without those that were there before; by a field: the first element of each of its values.",
    ("[1, 2, 1].unique()", [1, 2]),
    also=("removeDuplicates",),
)
def unique(run: Run, values: Any, field: Any = None) -> list[Any]:
    """Return each element once."""
    path = [] if field is None else path_of(field)
    seen: set[Any] = set()
    found = []
    for value in run.each(need_list(values)):
        key = identity(run, at_path(value, path))
        if key not in seen:
            run.charge(160)
            seen.add(key)
            found.append(value)
    return found


@LISTS.listed("first", "The first element, or null; with a number, a list of so many.", ("[1, 2, 3].first()", 1))
def first(run: Run, values: Any, count: Any = None) -> Any:
    """Return the first of a list."""
    if count is None:
        return values[0] if need_list(values) else None
    new_list(run, min(len(need_list(values)), max(0, to_whole(count))))
    return values[: max(0, to_whole(count))]


@LISTS.listed("last", "The last element, or null; with a number, a list of so many.", ("[1, 2, 3].last(2)", [2, 3]))
def last(run: Run, values: Any, count: Any = None) -> Any:
    """Return the last of a list."""
    if count is None:
        return values[-1] if need_list(values) else None
    new_list(run, min(len(need_list(values)), max(0, to_whole(count))))
    return values[max(0, len(values) - max(0, to_whole(count))) :]


@LISTS.listed(
    "flat", "The elements of lists within the list, so many levels deep.", ("[1, [2, [3]]].flat()", [1, 2, [3]])
)
def flat(run: Run, values: Any, depth: Any = 1) -> list[Any]:
    """Return a flatter list."""
    values = need_list(values)
    for _ in range(min(max(to_whole(depth), 0), 16)):
        if not any(type(one) is list for one in run.each(values)):
            break
        made: list[Any] = []
        for one in run.each(values):
            more = one if type(one) is list else [one]
            run.charge(10 * len(more) + 16)
            run.work(len(more) / 4)
            made += more
        values = made
    new_list(run, len(values))
    return list(values)


@LISTS.listed(
    "pluck",
    "A field of each element, null where it has none; a dot goes into it.",
    ("[{a: {b: 1}}, {a: null}].pluck('a.b')", [1, None]),
)
def pluck(run: Run, values: Any, field: Any) -> list[Any]:
    """Return one field of each."""
    path = path_of(field)
    new_list(run, len(need_list(values)))
    return [at_path(one, path) for one in run.each(values)]


@LISTS.listed(
    "where",
    "The elements that have a value in a field, or one that compares so: where('n', '>', 1).",
    ("[{n: 1}, {n: 2}, {n: 3}].where('n', '>=', 2)", [{"n": 2}, {"n": 3}]),
)
def where(run: Run, values: Any, field: Any, sign: Any, value: Any = ...) -> list[Any]:
    """Return some of the elements."""
    if value is ...:
        sign, value = "==", sign
    if sign not in _SIGNS:
        raise Fault(f"compares with one of {' '.join(_SIGNS)}")
    path, compare = path_of(field), OPERATORS[sign]
    new_list(run, len(need_list(values)))
    return [one for one in run.each(values) if compare(run, at_path(one, path), value)]


@LISTS.listed("count", "How many elements there are; with a value, how many equal it.", ("[1, 2, 1].count(1)", 2))
def count(run: Run, values: Any, value: Any = ...) -> int:
    """Return a number of elements."""
    if value is ...:
        return len(need_list(values))
    return sum(equal(run, one, value) for one in run.each(need_list(values)))


@LISTS.listed("chunk", "The elements in lists of so many each.", ("[1, 2, 3].chunk(2)", [[1, 2], [3]]))
def chunk(run: Run, values: Any, size: Any) -> list[list[Any]]:
    """Return lists of a size."""
    width = to_whole(size)
    if width < 1:
        raise Fault("needs a size of at least 1")
    new_list(run, len(need_list(values)) + 9 * (len(values) // width + 1))
    return [values[start : start + width] for start in run.each(range(0, len(values), width))]


@LISTS.listed("compact", "The elements that are not null, and no empty texts.", ("[1, null, ''].compact()", [1]))
def compact(run: Run, values: Any) -> list[Any]:
    """Return what is there."""
    new_list(run, len(need_list(values)))
    return [one for one in run.each(values) if one is not None and one != ""]


@LISTS.listed("sum", "The sum of the numbers.", ("[1, 2, '3'].sum()", 6))
def total(run: Run, values: Any) -> float:
    """Return the sum."""
    added: float = 0
    for one in run.each(need_list(values)):
        added = number(added + to_number(one))
    return added


@LISTS.listed("average", "The mean of the numbers; null of none.", ("[1, 2, 6].average()", 3))
def average(run: Run, values: Any) -> float | None:
    """Return the mean."""
    return number(total(run, values) / len(values)) if need_list(values) else None


def _numbers(run: Run, values: tuple[Any, ...]) -> list[float]:
    given = values[0] if len(values) == 1 and type(values[0]) is list else list(values)
    new_list(run, 5 * len(given))
    return [to_number(one) for one in run.each(given)]


@LISTS.listed(
    "min",
    "The least of several numbers, or of a list; null of none.",
    ("[3, 1, 2].min()", 1),
    also=("Math.min", "$min"),
)
def least(run: Run, *values: Any) -> float | None:
    """Return the least."""
    return min(_numbers(run, values), default=None)


@LISTS.listed(
    "max",
    "The greatest of several numbers, or of a list; null of none.",
    ("Math.max(3, 1, 2)", 3),
    also=("Math.max", "$max"),
)
def greatest(run: Run, *values: Any) -> float | None:
    """Return the greatest."""
    return max(_numbers(run, values), default=None)


@LISTS.listed("Array.isArray", "Whether a value is a list.", ("Array.isArray([1])", True))
def is_list(run: Run, value: Any) -> bool:
    """Return whether it is one."""
    return type(value) is list
