"""merge: makes one list of items of several inputs: one after another, side by side, or by what they have in common.

Version 1 has other modes: see `merge_first`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.nodes import checking, merge_first
from headrace.nodes.base import Call, Fault, Item, Items, Named, NodeError, Ports, ours
from headrace.nodes.checking import written
from headrace.nodes.joining import How, Joined, join
from headrace.nodes.merging import Clash, Source, check_clash, clash_of, combined, sources_of
from headrace.nodes.parameters import Parameters
from headrace.nodes.routing import count_of

Sources = Sequence[Sequence[Source]]
Mode = Callable[[Parameters, Sources], Items]

_MODES = ("append", "combine", "chooseBranch")
_NO_SQL = {"combineBySql": "use mode combine with combineBy combineByFields, then set, filter, sort and aggregate"}
_JOINS = ("keepMatches", "keepNonMatches", "keepEverything", "enrichInput1", "enrichInput2")
_FROM = ("both", "input1", "input2")
_OUTPUTS = ("specifiedInput", "input1", "input2", "empty")
_MULTIPLE = ("all", "first")
_MAX_INPUTS = 10
_MAX_ITEMS = 1_000_000


def _append(at: Parameters, sources: Sources) -> Items:
    return [source.passed() for each in sources for source in each]


def _by_position(at: Parameters, sources: Sources) -> Items:
    """Return the first items of all inputs as one, then the second ones."""
    clash = clash_of(at)
    lengths = [len(each) for each in sources]
    most = max(lengths) if at.flag("options.includeUnpaired") else min(lengths)
    last = len(sources) - 1 if clash.preferred is None else min(clash.preferred, len(sources) - 1)
    return [
        combined([each[index] for each in (*sources, sources[last]) if index < len(each)], clash)
        for index in range(most)
    ]


def _all_pairs(at: Parameters, sources: Sources) -> Items:
    """Return each item of the first input with each of the second."""
    clash = clash_of(at)
    outer, inner = sources[:2]
    if clash.preferred == 0:
        outer, inner = inner, outer
    if len(outer) * len(inner) > _MAX_ITEMS:
        raise NodeError(
            f"{len(outer)} × {len(inner)} items are more than {_MAX_ITEMS} combinations: filter the inputs first, "
            "or combine by fields"
        )
    return [combined((one, other), clash) for one in outer for other in inner]


def _by_fields(at: Parameters, sources: Sources) -> Items:
    """Return the items that have equal values in some fields as one, and what else `joinMode` asks for."""
    left, right = sources[:2]
    mode, of = at.one_of("joinMode", _JOINS, _JOINS[0]), at.one_of("outputDataFrom", _FROM, "both")
    if not left or not right:
        return [source.passed() for source in _one_sided(left, right, mode, of)]
    clash = clash_of(at)
    found = join(left, right, _how(at))
    if mode == "keepNonMatches":
        return _unmatched(found, of)
    suffixed = (lambda source: source.suffixed().passed()) if clash.suffix else Source.passed
    matched = _matched(found, "both" if mode.startswith("enrich") else of, _ordered(clash, mode), clash)
    left_over = found.left if mode in ("keepEverything", "enrichInput1") else []
    right_over = found.right if mode in ("keepEverything", "enrichInput2") else []
    return matched + [suffixed(source) for source in (*left_over, *right_over)]


def _how(at: Parameters) -> How:
    """Return how items are compared. Raises NodeError where no field is named."""
    if _has_pairs(at.raw):
        pairs = [
            (str(pair.get("field1", "")), str(pair.get("field2", ""))) for pair in at.objects("mergeByFields.values")
        ]
    else:
        pairs = [(name, name) for name in at.names("fieldsToMatchString")]
    if not pairs or any(not name for pair in pairs for name in pair):
        raise NodeError(f"{at.field}.fieldsToMatchString must name the fields that items are matched by")
    return How(
        pairs,
        dots=not at.flag("options.disableDotNotation"),
        fuzzy=at.flag("options.fuzzyCompare"),
        first_only=at.one_of("options.multipleMatches", _MULTIPLE, "all") == "first",
    )


def _has_pairs(parameters: Mapping[str, Any]) -> bool:
    """Whether the fields to match have names of their own in each input: always in version 2."""
    return written(parameters, "advanced", False) is True or "fieldsToMatchString" not in parameters


def _one_sided(left: Sequence[Source], right: Sequence[Source], mode: str, of: str) -> Sequence[Source]:
    """Return what is left where one of the inputs has no items."""
    if mode == "keepMatches":
        return []
    sides = {"enrichInput1": left, "enrichInput2": right}
    if mode == "keepNonMatches":
        sides = {"input1": left, "input2": right}
    return sides.get(of if mode == "keepNonMatches" else mode, [*left, *right])


def _unmatched(found: Joined, of: str) -> Items:
    """Return the items without a match; those of both inputs say where they are from, in `_source`."""
    if of != "both":
        return [source.passed() for source in (found.left if of == "input1" else found.right)]
    return [
        {**source.passed(), "json": {**source.json, "_source": f"input{source.port + 1}"}}
        for source in (*found.left, *found.right)
    ]


def _ordered(clash: Clash, mode: str) -> Callable[[Source, Source], Sequence[Source]]:
    """Return what puts the item behind that comes over the other."""
    first_over = mode == "enrichInput2" if clash.usual else clash.preferred == 0
    return (lambda one, other: (other, one)) if first_over else (lambda one, other: (one, other))


def _matched(found: Joined, of: str, ordered: Callable[[Source, Source], Sequence[Source]], clash: Clash) -> list[Item]:
    if of == "input1":
        return [source.passed() for source, _ in found.matched]
    if of == "input2":
        return [source.passed() for source in found.matched_right]
    if sum(len(matches) for _, matches in found.matched) > _MAX_ITEMS:
        raise NodeError(f"more than {_MAX_ITEMS} pairs of items match: match by more fields")
    return [combined(ordered(one, other), clash) for one, matches in found.matched for other in matches]


def _chosen(at: Parameters, sources: Sources) -> Items:
    """Return the items of one input, or one empty item, if both of the first two inputs have some."""
    if not all(sources[:2]):
        return []
    output = at.one_of("output", _OUTPUTS, _OUTPUTS[0])
    if output == "empty":
        return [{"json": {}, "pairedItem": [source.pair for each in sources[:2] for source in each]}]
    named = {"input1": 1, "input2": 2}.get(output)
    number = named or at.whole("useDataOfInput", 1, least=1, most=len(sources))
    return [source.passed() for source in sources[number - 1]]


_COMBINE: dict[str, Mode] = {
    "combineByFields": _by_fields, "mergeByFields": _by_fields,
    "combineByPosition": _by_position, "mergeByPosition": _by_position,
    "combineAll": _all_pairs, "multiplex": _all_pairs,
}  # fmt: skip
_BY_MODE: dict[str, Mode] = {"append": _append, "chooseBranch": _chosen}


def _combine_by(version: float) -> tuple[str, tuple[str, ...], str]:
    """Return where it stands what is combined by, the words for it, and which one is meant where none is written."""
    path, names = ("combineBy", "combine") if version >= 3 else ("combinationMode", "merge")
    words = (f"{names}ByFields", f"{names}ByPosition", "combineAll" if version >= 3 else "multiplex")
    return path, words, words[0]


class MergeType(Named):
    """It runs as soon as one of its inputs has items and the others have ended."""

    def ports(self, parameters: Mapping[str, Any], version: float) -> Ports:
        """Return two inputs, from version 3 on as many as are asked for."""
        return Ports(count_of(parameters, "numberInputs", 2, least=2, most=_MAX_INPUTS) if version >= 3 else 2)

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return modes that there are not, and SQL."""
        if version < 2:
            return merge_first.check(parameters)
        faults = checking.one_of(parameters, "mode", _MODES, default="append", instead=_NO_SQL)
        if version >= 3:
            faults += checking.whole(parameters, "numberInputs", least=2, most=_MAX_INPUTS)
        mode = written(parameters, "mode", "append")
        if mode == "chooseBranch":
            faults += _check_output(parameters)
        if faults or mode != "combine":
            return faults
        path, words, usual = _combine_by(version)
        faults += checking.one_of(parameters, path, words, default=usual, instead={})
        faults += check_clash(parameters, self.ports(parameters, version).inputs)
        by_fields = written(parameters, path, usual).endswith("ByFields") if not faults else False
        return faults + (_check_fields(parameters) if by_fields else [])

    def run(self, call: Call) -> list[Items]:
        """Return the items that those of the inputs become."""
        at, sources = call.at(), sources_of(call, self.ports(call.parameters, call.version).inputs)
        if call.version < 2:
            return [merge_first.run(at, sources)]
        mode = at.one_of("mode", _MODES, "append")
        if mode != "combine":
            return [_BY_MODE[mode](at, sources)]
        path, words, usual = _combine_by(call.version)
        return [_COMBINE[at.one_of(path, words, usual)](at, sources)]


def _check_output(parameters: Mapping[str, Any]) -> list[Fault]:
    if checking.is_expression(written(parameters, "output")):
        return []
    return checking.one_of(parameters, "output", _OUTPUTS, default=_OUTPUTS[0], instead={})


def _check_fields(parameters: Mapping[str, Any]) -> list[Fault]:
    faults = checking.one_of(parameters, "joinMode", _JOINS, default=_JOINS[0], instead={})
    faults += checking.one_of(parameters, "outputDataFrom", _FROM, default="both", instead={})
    faults += checking.one_of(parameters, "options.multipleMatches", _MULTIPLE, default="all", instead={})
    if not _has_pairs(parameters):
        return faults + checking.named(parameters, "fieldsToMatchString", "the fields that items are matched by")
    pairs = written(parameters, "mergeByFields.values")
    named = isinstance(pairs, list) and pairs and all(_is_pair(pair) for pair in pairs)
    return (
        faults if named else [*faults, Fault("mergeByFields.values", "must be pairs of field1 and field2, none empty")]
    )


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, Mapping) and all(
        isinstance(pair.get(name), str) and pair[name] for name in ("field1", "field2")
    )


TYPE = MergeType("merge", ours("merge", "n8n-nodes-base.merge"), (1, 3.2), "makes one list of items of several inputs")
