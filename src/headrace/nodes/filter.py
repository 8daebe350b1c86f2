"""filter: keeps the items for which conditions hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.nodes import checking
from headrace.nodes.base import Call, Fault, Items, Named, Ports, ours
from headrace.nodes.if_ import check_conditions, passes
from headrace.nodes.parameters import Parameters
from headrace.nodes.routing import route


class FilterType(Named):
    """The other items go nowhere."""

    def ports(self, parameters: Mapping[str, Any], version: float) -> Ports:
        """Return the one way."""
        return Ports(1, ("kept",))

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return wrong conditions, and a wrong word for how they are combined."""
        found = check_conditions(parameters, version)
        if version < 2:
            found += checking.one_of(parameters, "combineConditions", ("AND", "OR"), default="AND", instead={})
        return found

    def run(self, call: Call) -> list[Items]:
        """Return the items for which the conditions hold."""

        def choose(at: Parameters) -> tuple[int, ...]:
            any_of = call.version < 2 and at.one_of("combineConditions", ("AND", "OR"), "AND") == "OR"
            return (0,) if passes(at, call.version, any_of=any_of) else ()

        return route(call, 1, choose)


TYPE = FilterType("filter", ours("filter", "n8n-nodes-base.filter"), (1, 2.3), "keeps items that fit conditions")
