"""switch: sends items to the port whose rule they fit, or to the one that an expression names.

Version 1 has four ports and rules that name one; from version 2 on each rule has a port of its own. Rules compare one
value of the node in versions 1 and 2, and have conditions as if has them from version 3 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.nodes import checking, comparisons, conditions
from headrace.nodes.base import Call, Fault, Items, Named, NodeError, Ports, ours
from headrace.nodes.checking import is_expression, written
from headrace.nodes.parameters import Parameters
from headrace.nodes.routing import count_of, route

_MODES = ("rules", "expression")
_TYPES = comparisons.TYPES
#: Where the rules are, and the number of ports of an expression, by version.
_RULES = {1: "rules.rules", 2: "rules.rules", 3: "rules.values"}
_COUNTS = {2: "outputsAmount", 3: "numberOutputs"}
_FIRST_PORTS = 4
_MAX_PORTS = 100


def _rules(parameters: Mapping[str, Any], version: float) -> list[Any]:
    found = written(parameters, _RULES[int(version)], [])
    return found if isinstance(found, list) else []


def _is_computed(parameters: Mapping[str, Any]) -> bool:
    return bool(written(parameters, "mode", "rules") == "expression")


def _has_extra(parameters: Mapping[str, Any], version: float) -> bool:
    return version >= 3 and written(parameters, "options.fallbackOutput") == "extra"


def _name(rule: Any, number: int) -> str:
    key = rule.get("outputKey") if isinstance(rule, Mapping) else None
    return key if isinstance(key, str) and key and not is_expression(key) else str(number)


class SwitchType(Named):
    """Each item goes to one port, to several with `allMatchingOutputs`, or to none."""

    def ports(self, parameters: Mapping[str, Any], version: float) -> Ports:
        """Return a port for each rule and one for all else, or as many as are asked for."""
        if version < 2:
            return Ports(1, tuple(map(str, range(_FIRST_PORTS))))
        if _is_computed(parameters):
            count = count_of(parameters, _COUNTS[int(version)], _FIRST_PORTS, least=1, most=_MAX_PORTS)
            return Ports(1, tuple(map(str, range(count))))
        names = [_name(rule, number) for number, rule in enumerate(_rules(parameters, version))]
        if _has_extra(parameters, version):
            name = written(parameters, "options.renameFallbackOutput")
            names.append(name if isinstance(name, str) and name else "Fallback")
        return Ports(1, tuple(names) or ("main",))

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return wrong rules, and ports that there are not."""
        wrong = checking.one_of(parameters, "mode", _MODES, default="rules", instead={})
        if wrong or not _is_computed(parameters):
            return wrong or _check_rules(parameters, version) + self._check_fallback(parameters, version)
        path = _COUNTS.get(int(version))
        return [] if path is None else _check_count(parameters, path)

    def _check_fallback(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        path, none = ("options.fallbackOutput", "none") if version >= 3 else ("fallbackOutput", -1)
        value, count = written(parameters, path, none), len(self.ports(parameters, version).outputs)
        if value in (none, "", None) or is_expression(value) or _has_extra(parameters, version):
            return []
        return checking.whole(parameters, path, least=0, most=count - 1)

    def run(self, call: Call) -> list[Items]:
        """Return the items of each port."""
        count = len(self.ports(call.parameters, call.version).outputs)

        def choose(at: Parameters) -> Iterable[int]:
            if _is_computed(call.parameters):
                return (_port(at, "output", 0 if call.version < 2 else -1, count),)
            found = _fitting(at, call.version, count)
            return found or _fallback(at, call.version, count)

        return route(call, count, choose)


def _check_count(parameters: Mapping[str, Any], path: str) -> list[Fault]:
    if is_expression(written(parameters, path)):
        return [Fault(path, f"must be written out, not computed: a whole number from 1 to {_MAX_PORTS}")]
    return checking.whole(parameters, path, least=1, most=_MAX_PORTS)


def _check_rules(parameters: Mapping[str, Any], version: float) -> list[Fault]:
    path = _RULES[int(version)]
    rules = _rules(parameters, version)
    if not rules:
        return [Fault(path, "must have at least one rule: all items would be lost")]
    if len(rules) > _MAX_PORTS:
        return [Fault(path, f"must have at most {_MAX_PORTS} rules, got {len(rules)}: use several nodes")]
    if version >= 3:
        found = [(rule.get("conditions") if isinstance(rule, Mapping) else None) for rule in rules]
        return [fault for at, one in enumerate(found) for fault in conditions.check(one, f"{path}[{at}].conditions")]
    faults = checking.one_of(parameters, "dataType", _TYPES, default="number", instead={})
    kind = written(parameters, "dataType", "number")
    for at, rule in enumerate(rules if not faults else ()):
        faults += comparisons.check_rule(kind, rule, f"{path}[{at}]")
    return faults


def _fitting(at: Parameters, version: float, count: int) -> list[int]:
    """Return the ports whose rules an item fits: the first one, or all where that is asked for."""
    path = _RULES[int(version)]
    several = version >= 3 and at.flag("options.allMatchingOutputs")
    found: list[int] = []
    for number, rule in enumerate(at.objects(path)):
        where = f"{path}[{number}]"
        if not _fits(at, rule, where, version):
            continue
        port = number if version >= 2 else _port(Parameters(rule, None, f"{at.field}.{where}"), "output", 0, count)
        found.append(port)
        if not several:
            break
    return found


def _fits(at: Parameters, rule: Any, path: str, version: float) -> bool:
    if version >= 3:
        edition = 3 if version >= 3.3 else 2 if version >= 3.2 else 1
        return conditions.holds(rule.get("conditions"), at, path=f"{path}.conditions", edition=edition)
    kind = at.one_of("dataType", _TYPES, "number")
    value = at.get("value1", comparisons.usual_value(kind))
    return comparisons.compare(kind, value, rule, conditions.zone_of(at.scope), field=f"{at.field}.{path}")


def _fallback(at: Parameters, version: float, count: int) -> tuple[int, ...]:
    path = "options.fallbackOutput" if version >= 3 else "fallbackOutput"
    value = at.get(path)
    if value in (None, "", "none", -1, "-1"):
        return ()
    return (count - 1,) if version >= 3 and value == "extra" else (_port(at, path, 0, count),)


def _port(at: Parameters, path: str, usual: int, count: int) -> int:
    """Return the number of a port. Raises NodeError for one that there is not."""
    port = at.whole(path, usual, least=-(2**31))
    if not 0 <= port < count:
        raise NodeError(f"{at.field}.{path} must be from 0 to {count - 1}, as the node has {count} ports, got {port}")
    return port


TYPE = SwitchType(
    "switch", ours("switch", "n8n-nodes-base.switch"), (1, 3.4), "sends each item to the port whose rule it fits"
)
