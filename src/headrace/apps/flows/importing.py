"""Storing many flows: which of them can run, what became of each, and why the others cannot."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headrace import App, InvalidInputError
from headrace.apps.flows.checks import Checked, Find, Problem, check_flow
from headrace.apps.flows.form import Flow, parse_flow
from headrace.apps.flows.naming import workflow_name
from headrace.apps.flows.sources import Source, Sources, either
from headrace.apps.flows.starting import alarm_of
from headrace.apps.flows.storing import finder, flow_of, graph_of, store_flow, stored_flows
from headrace.model.graph.form import encode_graph
from headrace.nodes.registry import find_type

#: Of an entry of a list.
_INDEX = re.compile(r"\[\d+\]")
IMPORTED, UNCHANGED, WOULD = "imported", "unchanged", "would be imported"
#: It has the name of another one; and it has reasons of its own.
REFUSED, CANNOT = "refused", "cannot run"


@dataclass(slots=True)
class Imported:
    """What became of one flow."""

    source: Source
    state: str
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    version: int | None = None
    checked: Checked | None = None

    @property
    def runs(self) -> bool:
        """Whether it can run, were it not for its name."""
        return self.state != CANNOT

    @property
    def stored(self) -> bool:
        """Whether it is in the store now, or would be but for a dry run."""
        return self.state not in (CANNOT, REFUSED)

    def to_json(self) -> dict[str, Any]:
        """Return it for machines."""
        flow = self.source.flow
        return {
            "file": self.source.place, "flow": self.source.name or None, "state": self.state,
            "workflow": workflow_name(self.source.name) if self.stored else None, "version": self.version,
            "active": None if flow is None else flow.active,
            "problems": [problem.to_json() for problem in self.problems], "notes": self.notes,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reason:
    """Why flows cannot run, how many of them, and what to use instead."""

    what: str
    flows: int
    instead: str = ""
    #: What is said of one of them.
    example: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it for machines."""
        more = {"instead": self.instead or None} if self.instead or not self.example else {"example": self.example}
        return {"what": self.what, "flows": self.flows, **more}


async def import_flows(
    app: App, sources: Sources, *, activate: bool = False, dry: bool = False, whole: bool = False
) -> list[Imported]:  # fmt: skip
    """Store the flows that can run, unless `dry`, and return what became of each.

    Flows that others run are looked for among them, then in the store. `activate`: schedules and webhooks start them.
    `whole`: store none unless all can be.
    """
    known = await stored_flows(app)
    given = [_switched_on(source) if activate else source for source in sources.flows]
    clashes = _clashes(given)
    find = either(finder({one.flow.name: one.flow for one in given if one.flow is not None}), finder(known))
    found = [
        _judged(source, find, [*clashes.get(number, ()), *_taken(source, known)]) for number, source in enumerate(given)
    ]
    able = [done for done in found if done.stored]
    kept_out = whole and len(able) < len(found)
    for done in able:
        await _store(app, done, find, dry=dry or kept_out)
    return found


def unstorable(checked: Checked) -> list[Problem]:
    """Return why the store would not take a flow that can run, such as that it is too large."""
    try:
        encode_graph(graph_of(checked), field="the flow with its graph")
    except InvalidInputError as error:
        return [Problem(f"cannot be stored: {error}")]
    return []


def _switched_on(source: Source) -> Source:
    if source.flow is None:
        return source
    return replace(source, flow=parse_flow(source.flow.document() | {"active": True}))


def _judged(source: Source, find: Find, clashes: Sequence[Problem]) -> Imported:
    if source.flow is None:
        assert source.fault is not None
        fault = source.fault
        return Imported(source, CANNOT, [Problem(f"{fault.rule}, got {fault.value!r:.80}", field=fault.field)])
    checked = check_flow(source.flow, find)
    problems = checked.problems or unstorable(checked)
    notes = [str(note) for note in checked.notes]
    state = CANNOT if problems else REFUSED if clashes else IMPORTED
    return Imported(source, state, [*clashes, *problems], notes, checked=checked)


def _clashes(sources: Sequence[Source]) -> dict[int, list[Problem]]:
    """Return the flows that would be stored under the same name, each with those it shares it with."""
    by_name: dict[str, list[int]] = {}
    for number, source in enumerate(sources):
        if source.flow is not None:
            by_name.setdefault(workflow_name(source.flow.name), []).append(number)
    found = {}
    for name, numbers in by_name.items():
        for number in numbers if len(numbers) > 1 else ():
            others = ", ".join(f"{sources[one].name!r} ({sources[one].place})" for one in numbers if one != number)
            rule = f"would be stored as {name}, and so would {others}; give one of them another name"
            found[number] = [Problem(rule, field="flow.name")]
    return found


def _taken(source: Source, known: Mapping[str, Flow]) -> list[Problem]:
    """Return whether another flow has the name that this one would be stored by."""
    if source.flow is None:
        return []
    name = workflow_name(source.flow.name)
    other = known.get(name)
    if other is None or other.name == source.flow.name:
        return []
    rule = f"would be stored as {name}, which the stored flow {other.name!r} is; give this one another name"
    return [Problem(rule, field="flow.name")]


async def _store(app: App, done: Imported, find: Find, *, dry: bool) -> None:
    assert done.checked is not None
    flow = done.checked.flow
    alarm, why = alarm_of(flow, find)
    done.notes += [f"flow.settings.errorWorkflow: {why}"] if why else []
    graph = graph_of(done.checked, alarm=alarm)
    before = await app.runtime.stores.workflows.get_workflow(workflow_name(flow.name))
    if before is not None and before.snapshot == encode_graph(graph)[1]:
        done.state, done.version = UNCHANGED, before.version
        return
    if before is not None and not flow.active and (old := flow_of(before)) is not None and old.active:
        done.notes.append("is switched off by this: it was active, and its file does not say so; see --activate")
    if dry:
        done.state = WOULD
    else:
        done.version = (await store_flow(app, graph)).version


def missing_types(found: Iterable[Imported]) -> list[Reason]:
    """Return the node types that there are none of here, those of the most flows first."""
    hints: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for one in found:
        missing = {problem.type: problem.instead for problem in one.problems if _is_missing(one, problem)}
        counts.update(missing.keys())
        hints |= missing
    return [Reason(kind, count, hints[kind]) for kind, count in sorted(counts.items(), key=_most_first)]


def other_reasons(found: Iterable[Imported]) -> list[Reason]:
    """Return what else keeps flows from running: the field of each node type, or the rule of the whole flow."""
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for one in found:
        reasons = {_what(problem): problem.message for problem in one.problems if not _is_missing(one, problem)}
        counts.update(reasons.keys())
        examples = reasons | examples
    return [Reason(what, count, example=examples[what]) for what, count in sorted(counts.items(), key=_most_first)]


def _most_first(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


def _is_missing(one: Imported, problem: Problem) -> bool:
    node = None if one.source.flow is None else one.source.flow.nodes.get(problem.node)
    return node is not None and find_type(node.type, node.parameters) is None


def _what(problem: Problem) -> str:
    """Return what is wrong, the same for all flows in which it is: not which entry of a list it is."""
    field = _INDEX.sub("[]", problem.field)
    if not problem.type:
        return field
    inside = field.removeprefix("flow.nodes[]").removeprefix(".")
    return f"{problem.type}, {inside}" if inside else problem.type
