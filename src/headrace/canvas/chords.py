"""Groups too large to be nodes of their own, and what failed members do to what follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headrace.canvas.parts import Canvas, Given, Map, Signature
from headrace.canvas.references import input_
from headrace.model.errors import InvalidInputError
from headrace.model.graph.nodes import OnError

#: Parts of a group that are nodes of their own, and ...
MAX_MEMBERS = 500
#: ... calls of one task, which leaves room for other nodes beside them.
MAX_ALIKE = 400
#: Members that are counted, or whose errors are told, are nodes of their own beside the node that follows them.
MAX_COUNTED = MAX_MEMBERS - 1


def is_large(members: Sequence[Canvas], join: int | None = None, policy: OnError | None = None) -> bool:
    """Whether a group becomes one map: it has more parts than are nodes of their own.

    `join`, `policy`: of a chord. A map ends when all its entries have and has no entry for an error, so that a chord
    which needs either keeps its members as nodes. Raises InvalidInputError for more of these than a graph can have.
    """
    counted = join not in (None, len(members))
    if not counted and policy is not OnError.OUTPUT:
        return len(members) > MAX_MEMBERS or (len(members) > MAX_ALIKE and _are_alike(members))
    if len(members) <= MAX_COUNTED:
        return False
    if counted:
        rule = (
            f'must be "all" for more than {MAX_COUNTED} members: so many are one map, which waits for all of its '
            "entries; say how many of them may fail with map_(task, over=[…], max_failed=)"
        )
        raise InvalidInputError("join", rule, join)
    rule = (
        f'must be "stop" or "continue" for more than {MAX_COUNTED} members: so many are one map, which has null for '
        "an entry that failed"
    )
    raise InvalidInputError("on_error", rule, str(policy))


def spread(members: Sequence[Canvas], before: Any) -> Map:
    """Return one map over the arguments of calls that are alike. `before`: what stands before the group.

    Raises InvalidInputError where they differ in more than the values of their arguments.
    """
    calls = [member for member in members if isinstance(member, Signature)]
    if not _are_alike(members):
        rule = (
            f"must have at most {MAX_MEMBERS} parts; more only if all are calls of one task with the same "
            "options and number of arguments; else give each task its own map_(task, over=[…])"
        )
        raise InvalidInputError("group", rule, f"{len(members):,} parts")
    first = calls[0]
    lead = _lead(first, before)
    entries = [[*lead, *call.args, *(value for _, value in call.kwargs)] for call in calls]
    many = len(entries[0]) != 1
    slots = [input_[position] if many else input_ for position in range(len(entries[0]))]
    positional = len(slots) - len(first.kwargs)
    named = tuple((name, slots[positional + offset]) for offset, (name, _) in enumerate(first.kwargs))
    body = Signature(
        task=first.task, args=tuple(slots[:positional]), kwargs=named, immutable=True, settings=first.settings
    )
    return Map(body=body, over=[entry if many else entry[0] for entry in entries])


def _are_alike(members: Sequence[Canvas]) -> bool:
    first = members[0]
    return isinstance(first, Signature) and all(
        isinstance(member, Signature) and _shape(member) == _shape(first) for member in members
    )


def _shape(call: Signature) -> tuple[Any, ...]:
    # A call with a name or branches of its own has nothing that it is like.
    own = call.token if call.name is not None or call.branches else None
    names = tuple(name for name, _ in call.kwargs)
    return call.task, len(call.args), names, call.immutable, dict(call.settings), own


def _lead(call: Signature, before: Any) -> list[Any]:
    if call.immutable:
        return []
    if not isinstance(before, Given):
        return [before]
    return [input_] if before is Given.GIVEN and not call.args and not call.kwargs else []


def tolerant(part: Map, policy: OnError | None) -> Map:
    """Return a map of which any number of entries may fail where a chord's policy says so.

    The policy is for calls that say nothing themselves.
    """
    told = isinstance(part.body, Signature) and "on_error" in part.body.settings
    return replace(part, max_failed=None) if policy is OnError.CONTINUE and not told else part


def check_chord_of_map(join: int | None, policy: OnError | None) -> None:
    """Raise InvalidInputError for what a chord over a `map_` cannot have: a map ends when all its entries have."""
    if join is not None:
        rule = (
            'must be "all" for a map, which waits for all of its entries; say how many of them may fail with '
            "map_(…, max_failed=)"
        )
        raise InvalidInputError("join", rule, join)
    if policy is OnError.OUTPUT:
        rule = 'must be "stop" or "continue" for a map, which has null for an entry that failed'
        raise InvalidInputError("on_error", rule, str(policy))
