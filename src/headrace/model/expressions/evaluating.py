"""From tree to value: a walk that counts each step, and knows plain data alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.model.expressions.budget import Run
from headrace.model.expressions.errors import Fault
from headrace.model.expressions.functions.dates import MEMBERS
from headrace.model.expressions.moments import Moment
from headrace.model.expressions.operators import OPERATORS, UNARY
from headrace.model.expressions.searching import check_size
from headrace.model.expressions.syntax import (
    Binary,
    Call,
    Chain,
    Choice,
    Elements,
    Index,
    Literal,
    Logic,
    Member,
    Members,
    Method,
    OtherNode,
    Part,
    Pieces,
    Root,
    Unary,
)
from headrace.model.expressions.values import is_number, kind, number, truthy
from headrace.model.expressions.views import ROOTS, Facts, InputView, OtherItems
from headrace.model.expressions.writing import joined, to_text

_VIEWS = (InputView, OtherItems, Facts)


class _Stopped:
    """What a chain is from a `?.` behind null on."""


_STOPPED = _Stopped()


def value_of(run: Run, part: Part) -> Any:
    """Return the value of a node of the tree. Raises Fault with the offset at which it goes wrong."""
    run.step()
    mark = run.used
    value = _EVALUATE[type(part)](run, part)
    if run.used != mark:
        run.keep(mark, value)
    return value


def data_of(run: Run, part: Part) -> Any:
    """Return the value of a node as data that can stand in a list or an object: dates become texts."""
    value = value_of(run, part)
    if type(value) is Moment:
        return value.iso
    if isinstance(value, _VIEWS):
        raise Fault(f"{value.name} is no value: use one of its members", part.start)
    return value


def _literal(run: Run, part: Literal) -> Any:
    return part.value


def _root(run: Run, part: Root) -> Any:
    try:
        return ROOTS[part.name](run)
    except Fault as fault:
        _place(fault, part)
        raise


def _other_node(run: Run, part: OtherNode) -> Any:
    return OtherItems(part.name, part.numbered)


def _place(fault: Fault, part: Part, name: str = "") -> None:
    """Give a fault the offset of a node, and the name of a function, unless it has an offset already."""
    if fault.offset is None:
        fault.offset = part.start
        fault.rule = name + fault.rule


def _member(run: Run, part: Member) -> Any:
    inner = value_of(run, part.inner)
    if type(inner) is dict:
        return inner.get(part.name)
    if inner is _STOPPED or (inner is None and part.optional):
        return _STOPPED
    if inner is None:
        raise _of_null(part, part.name)
    try:
        return _special(run, inner, part.name)
    except Fault as fault:
        _place(fault, part)
        raise


def _of_null(part: Member | Index, name: Any) -> Fault:
    shown = f"`{name[:40]}`" if type(name) is str else "that"
    rule = f"is null and has no member {shown}: write ?. before it where it may be missing"
    return Fault(rule, part.inner.start, part.inner.end)


def _special(run: Run, value: Any, name: str) -> Any:
    """Return a member of what is no object."""
    if isinstance(value, _VIEWS):
        return value.member(run, name)
    if type(value) is Moment:
        if name not in MEMBERS:
            raise Fault(f"a date has no `{name}`; it has {', '.join(MEMBERS)}")
        return MEMBERS[name](value.at)
    if name == "length" and (type(value) is str or type(value) is list):
        return len(value)
    return None


def _index(run: Run, part: Index) -> Any:
    inner = value_of(run, part.inner)
    if inner is _STOPPED or (inner is None and part.optional):
        return _STOPPED
    key = value_of(run, part.key)
    if inner is None:
        raise _of_null(part, key)
    try:
        return _at_key(run, inner, key)
    except Fault as fault:
        _place(fault, part)
        raise


def _at_key(run: Run, value: Any, key: Any) -> Any:
    if (type(value) is list or type(value) is str) and is_number(key):
        at = number(key)
        return value[at] if type(at) is int and 0 <= at < len(value) else None
    if type(key) is not str and not is_number(key):
        raise Fault(f"what stands in [ ] has to be a name or a number, got {kind(key)}")
    name = to_text(run, key)
    check_size(name)
    return value.get(name) if type(value) is dict else _special(run, value, name)


def _call(run: Run, part: Call) -> Any:
    arguments = [_argument(run, one) for one in part.arguments]
    try:
        return part.function.call(run, *arguments)
    except Fault as fault:
        _place(fault, part, f"{part.function.name}(): ")
        raise


def _argument(run: Run, part: Part) -> Any:
    value = value_of(run, part)
    if isinstance(value, _VIEWS):
        raise Fault(f"{value.name} is no value: use one of its members", part.start)
    return value


def _method(run: Run, part: Method) -> Any:
    inner = value_of(run, part.inner)
    if inner is _STOPPED or (inner is None and part.optional):
        return _STOPPED
    arguments = [_argument(run, one) for one in part.arguments]
    try:
        if isinstance(inner, InputView | OtherItems):
            return inner.method(run, part.name, arguments)
        if part.function is None or isinstance(inner, Facts):
            raise Fault(f"is for $input and $('Node'), got {kind(inner)}")
        return part.function.call(run, inner, *arguments)
    except Fault as fault:
        _place(fault, part, f"{part.name}(): ")
        raise


def _chain(run: Run, part: Chain) -> Any:
    value = value_of(run, part.inner)
    return None if value is _STOPPED else value


def _unary(run: Run, part: Unary) -> Any:
    value = _argument(run, part.operand)
    if part.operator == "!":
        return not truthy(value)
    try:
        return UNARY[part.operator](run, value)
    except Fault as fault:
        _place(fault, part)
        raise


def _binary(run: Run, part: Binary) -> Any:
    """Evaluate a row such as a + b + c from the left, without going deeper for each operator."""
    row: list[Binary] = []
    first: Part = part
    while isinstance(first, Binary):
        row.append(first)
        first = first.left
    mark = run.used
    value = _argument(run, first)
    for one in reversed(row):
        run.step()
        right = _argument(run, one.right)
        try:
            value = OPERATORS[one.operator](run, value, right)
        except Fault as fault:
            _place(fault, one.right)
            raise
        run.keep(mark, value)
    return value


def _logic(run: Run, part: Logic) -> Any:
    """Evaluate a row such as a && b && c from the left, as far as needed."""
    row: list[Logic] = []
    first: Part = part
    while isinstance(first, Logic):
        row.append(first)
        first = first.left
    value = _argument(run, first)
    for one in reversed(row):
        run.step()
        if _goes_on(one.operator, value):
            value = _argument(run, one.right)
    return value


def _goes_on(operator: str, value: Any) -> bool:
    if operator == "??":
        return value is None
    return truthy(value) == (operator == "&&")


def _choice(run: Run, part: Choice) -> Any:
    return value_of(run, part.yes if truthy(_argument(run, part.test)) else part.no)


def _elements(run: Run, part: Elements) -> Any:
    run.charge(56 + 48 * len(part.elements))
    return [data_of(run, one) for one in part.elements]


def _members(run: Run, part: Members) -> Any:
    run.charge(64 + 144 * len(part.members))
    return {name: data_of(run, one) for name, one in part.members}


def _pieces(run: Run, part: Pieces) -> Any:
    return text_of_pieces(run, part.pieces)


def text_of_pieces(run: Run, pieces: list[Part]) -> str:
    """Return the texts of values, one behind the other."""
    values = []
    for piece in pieces:
        value = value_of(run, piece)
        if isinstance(value, _VIEWS):
            raise Fault(f"{value.name} is no value: use one of its members", piece.start)
        values.append(value if type(value) is str else to_text(run, value))
    return joined(run, values, "")


_EVALUATE: dict[type[Part], Callable[[Run, Any], Any]] = {
    Literal: _literal,
    Root: _root,
    OtherNode: _other_node,
    Member: _member,
    Index: _index,
    Call: _call,
    Method: _method,
    Chain: _chain,
    Unary: _unary,
    Binary: _binary,
    Logic: _logic,
    Choice: _choice,
    Elements: _elements,
    Members: _members,
    Pieces: _pieces,
}
