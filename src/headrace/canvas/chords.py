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


def is_large(members: Sequence[Canvas]) -> bool:
    """Whether a group has more parts than may be nodes of their own."""
    return len(members) > MAX_MEMBERS or (len(members) > MAX_ALIKE and _are_alike(members))


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


def tolerant(part: Map, join: int | None, policy: OnError | None) -> Map:
    """Return a map of which as many entries may fail as a chord's policy says."""
    if policy is OnError.OUTPUT:
        rule = 'must be "stop" or "continue" for a map, which more than 400 calls of one task are'
        raise InvalidInputError("on_error", rule, str(policy))
    if policy is OnError.CONTINUE and join is None:
        return replace(part, max_failed=None)
    if join is None:
        return part
    if not isinstance(part.over, list | tuple):
        rule = 'must be "all" for a map over a list known only in the run: say how many may fail, map_(…, max_failed=)'
        raise InvalidInputError("join", rule, join)
    if join > len(part.over):
        raise InvalidInputError("join", f"must be at most {len(part.over):,}, the number of members", join)
    return replace(part, max_failed=len(part.over) - join)
