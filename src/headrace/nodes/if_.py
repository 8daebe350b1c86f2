"""if: sends items to its first port where conditions hold, to its second where they do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.nodes import checking, comparisons, conditions
from headrace.nodes.base import Call, Fault, Items, Named, Ports, ours
from headrace.nodes.parameters import Parameters
from headrace.nodes.routing import route

#: The version from which on an edition of the rules of conditions is meant where none is written.
_EDITIONS = ((2.3, 3), (2.2, 2), (0, 1))


def edition_of(version: float) -> int:
    """Return the edition of the rules of conditions that a version of if and filter has.

    >>> edition_of(2), edition_of(2.2), edition_of(2.3)
    (1, 2, 3)
    """
    return next(edition for since, edition in _EDITIONS if version >= since)


def passes(at: Parameters, version: float, *, any_of: bool) -> bool:
    """Whether the conditions of if or filter hold at an item; `any_of` is what their first version has."""
    if version >= 2:
        return conditions.holds(at.get("conditions"), at, path="conditions", edition=edition_of(version))
    zone = conditions.zone_of(at.scope)
    return comparisons.holds(at.members("conditions"), zone, any_of=any_of, field=f"{at.field}.conditions")


def check_conditions(parameters: Mapping[str, Any], version: float) -> list[Fault]:
    """Return what of the conditions of if or filter cannot be done."""
    if version >= 2:
        return conditions.check(parameters.get("conditions"), "conditions")
    return comparisons.check(parameters.get("conditions", {}), "conditions")


class IfType(Named):
    """Each item goes one of two ways."""

    def ports(self, parameters: Mapping[str, Any], version: float) -> Ports:
        """Return the two ways."""
        return Ports(1, ("true", "false"))

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return wrong conditions, and a wrong word for how they are combined."""
        found = check_conditions(parameters, version)
        if version < 2:
            found += checking.one_of(parameters, "combineOperation", ("all", "any"), default="all", instead={})
        return found

    def run(self, call: Call) -> list[Items]:
        """Return the items for which the conditions hold, then the others."""

        def choose(at: Parameters) -> tuple[int]:
            any_of = call.version < 2 and at.one_of("combineOperation", ("all", "any"), "all") == "any"
            return (0 if passes(at, call.version, any_of=any_of) else 1,)

        return route(call, 2, choose)


TYPE = IfType("if", ours("if", "n8n-nodes-base.if"), (1, 2.3), "sends each item one of two ways")
