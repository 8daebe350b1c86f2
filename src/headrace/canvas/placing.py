"""From parts to nodes and edges: each part is placed behind what stands before it, and says what comes behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headrace.canvas.chords import check_chord_of_map, is_large, spread, tolerant
from headrace.canvas.drafts import Draft, End, Flow, Sketch
from headrace.canvas.parts import (
    GIVEN,
    NOTHING,
    Canvas,
    Chain,
    Choose,
    Chord,
    Given,
    Group,
    Loop,
    Map,
    Signature,
    Step,
    Sub,
    Wait,
)
from headrace.canvas.references import Made, Reference, input_
from headrace.model.errors import InvalidInputError
from headrace.model.graph.conditions import Condition, Every, Never
from headrace.model.graph.nodes import (
    ERROR_PORT,
    Graph,
    LoopNode,
    MapNode,
    OnError,
    SubNode,
    TaskNode,
    ValueNode,
    WaitNode,
)


def sketch(body: Canvas, start: Flow, around: Sketch | None = None) -> Sketch:
    """Return a graph being made of parts."""
    made = Sketch(start) if around is None else around.within(start)
    made.end = place(made, body, start)
    return made


def place(graph: Sketch, part: Canvas, flow: Flow) -> Flow:
    """Add a part to a graph behind `flow`, and return what comes behind it."""
    match part:
        case Chain():
            return _place_chain(graph, part, flow)
        case Group():
            behind = _place_group(graph, part, flow)
        case Chord():
            behind = _place_chord(graph, part, flow)
        case Choose():
            behind = _place_choice(graph, part, flow)
        case Step():
            behind = _place_step(graph, part, flow)
        case _:
            raise TypeError(type(part))
    graph.mark(part.token, behind)
    return behind


def _place_chain(graph: Sketch, whole: Chain, flow: Flow) -> Flow:
    # Without recursion: a | b | c | … is a chain in a chain for every `|`.
    todo: list[tuple[Canvas, bool]] = [(whole, False)]
    while todo:
        part, done = todo.pop()
        if done:
            graph.mark(part.token, flow)
        elif isinstance(part, Chain):
            todo += [(part, True), *((one, False) for one in reversed(part.parts))]
        else:
            flow = place(graph, part, flow)
    return flow


# Groups


def _place_group(graph: Sketch, part: Group, flow: Flow) -> Flow:
    if is_large(part.members):
        return _place_spread(graph, part, flow)
    if len(part.members) > 1 and len(flow.ends) > 1:
        flow = _joined(graph, flow)
    return _beside([place(graph, member, flow) for member in part.members])


def _beside(flows: list[Flow]) -> Flow:
    return Flow([_value(flow) for flow in flows], tuple(end for flow in flows for end in flow.ends))


def _place_spread(graph: Sketch, part: Group, flow: Flow, policy: OnError | None = None) -> Flow:
    behind = place(graph, tolerant(spread(part.members, flow.value), policy), flow)
    for position, member in enumerate(part.members):
        graph.mark(member.token, replace(behind, value=behind.value[position]))
    return behind


def _place_chord(graph: Sketch, part: Chord, flow: Flow) -> Flow:
    header = part.header
    if isinstance(header, Map):
        check_chord_of_map(part.join, part.on_error)
        behind = place(graph, tolerant(header, part.on_error), flow)
    else:
        behind = _place_members(graph, part, flow)
    return place(graph, part.callback, behind)


def _place_members(graph: Sketch, part: Chord, flow: Flow) -> Flow:
    header, join = part.header, part.join
    members = header.members if isinstance(header, Group) else (header,)
    if join is not None and join > len(members):
        raise InvalidInputError("join", f"must be at most {len(members):,}, the number of members", join)
    if isinstance(header, Group) and is_large(members, join, part.on_error):
        behind = _place_spread(graph, header, flow, part.on_error)
    else:
        behind = _place_header(graph, part, members, flow)
    if isinstance(header, Group):
        graph.mark(header.token, behind)
    return behind


def _place_header(graph: Sketch, part: Chord, members: Sequence[Canvas], flow: Flow) -> Flow:
    header, join, policy = part.header, part.join, part.on_error
    if len(members) > 1 and len(flow.ends) > 1:
        flow = _joined(graph, flow)
    flows = [_place_member(graph, member, flow, policy) for member in members]
    counted = join is not None or any(end.port == ERROR_PORT for one in flows for end in one.ends)
    if counted:
        flows = [_joined(graph, one) if _is_several(one) else one for one in flows]
    behind = _beside(flows) if isinstance(header, Group) else flows[0]
    return replace(behind, need=(join or len(members)) if counted else None)


def _is_several(flow: Flow) -> bool:
    return len({end.draft for end in flow.ends}) > 1


def _place_member(graph: Sketch, member: Canvas, flow: Flow, policy: OnError | None) -> Flow:
    """Place a member of a chord; what fails in one of several nodes fails the member, so that it is one node then."""
    if policy in (None, OnError.STOP):
        return place(graph, member, flow)
    step = member if isinstance(member, Step) else Sub(body=member, title="member")
    step = replace(step, settings={"on_error": policy, **step.settings})
    behind = place(graph, step, flow)
    if step is not member and step.token is not member.token:
        graph.mark(member.token, behind)
    if step.settings["on_error"] is policy is OnError.OUTPUT:
        return replace(behind, ends=(*behind.ends, End(behind.ends[0].draft, ERROR_PORT)))
    return behind


def _joined(graph: Sketch, flow: Flow) -> Flow:
    """Return a flow of one way: a node that has the value, unless nothing stands before."""
    base = "joined" if flow.ends else "input"
    draft = Draft(ValueNode, base, templates={"value": _value(flow)}, fields={"given": True})
    behind = graph.add(draft, flow)
    return replace(behind, value=NOTHING) if flow.value is NOTHING else behind


def _value(flow: Flow) -> Any:
    return input_ if isinstance(flow.value, Given) else flow.value


# Choices


def _place_choice(graph: Sketch, part: Choose, flow: Flow) -> Flow:
    if not _is_decidable(flow):
        flow = _joined(graph, flow)
    end, passed, flows = flow.ends[0], list[Condition](), list[Flow]()
    for condition, chosen in part.cases:
        flows.append(place(graph, chosen, _when(flow, end, [*map(Never, passed), condition])))
        passed.append(condition)
    if part.otherwise is not None:
        flows.append(place(graph, part.otherwise, _when(flow, end, [*map(Never, passed)])))
    if len(flows) == 1:
        return flows[0]
    flows = [one if _is_decidable(one) else _joined(graph, one) for one in flows]
    ends = tuple(end for one in flows for end in one.ends)
    value = Made("$first", tuple(one.value for one in flows))
    draft = Draft(ValueNode, "chosen", templates={"value": value}, fields={"given": True})
    return graph.add(draft, Flow(NOTHING, ends, need=1))


def _is_decidable(flow: Flow) -> bool:
    """Whether the way on is one, from a node whose output is the value that conditions are about."""
    if len(flow.ends) != 1 or not flow.ends[0].plain or not isinstance(flow.value, Reference):
        return False
    return flow.value.of is flow.ends[0].draft and not flow.value.path


def _when(flow: Flow, end: End, parts: list[Condition]) -> Flow:
    condition = parts[0] if len(parts) == 1 else Every(tuple(parts))
    return replace(flow, ends=(replace(end, when=condition),))


# Nodes


def _place_step(graph: Sketch, part: Step, flow: Flow) -> Flow:
    draft = _draft(graph, part, flow)
    draft.name, draft.options = part.name, dict(part.settings)
    behind = graph.add(draft, flow)
    for port, target in part.branches:
        place(graph, target, replace(behind, ends=(End(draft, port),)))
    if isinstance(part, Wait) and part.signal is None:
        return replace(behind, value=input_ if flow.value is GIVEN else flow.value)
    return behind


def _draft(graph: Sketch, part: Step, flow: Flow) -> Draft:
    match part:
        case Signature():
            args, kwargs = _arguments(part, flow), dict(part.kwargs)
            return Draft(TaskNode, part.task, templates={"args": args, "kwargs": kwargs}, fields={"task": part.task})
        case Map():
            return _map_draft(graph, part, flow)
        case Loop():
            inner = sketch(part.body, Flow(input_), graph)
            fields = {"again": part.again, "most": part.most, "given": True}
            return Draft(LoopNode, "loop", templates=_start(part.start, flow), fields=fields, body=inner)
        case Sub():
            start = Flow(flow.value if part.start is GIVEN and isinstance(flow.value, Given) else input_)
            body = part.body if isinstance(part.body, Graph) else sketch(part.body, start, graph)
            return Draft(SubNode, part.title, templates=_start(part.start, flow), fields={"given": True}, body=body)
        case Wait():
            base = "pause" if part.signal is None else "wait"
            return Draft(WaitNode, base, templates={"signal": part.signal}, fields={"timeout": part.timeout})
        case _:
            raise TypeError(type(part))


def _arguments(part: Signature, flow: Flow) -> list[Any] | None:
    if part.immutable or flow.value is NOTHING:
        return list(part.args)
    if flow.value is GIVEN:
        return list(part.args) if part.args or part.kwargs else None
    return [flow.value, *part.args]


def _map_draft(graph: Sketch, part: Map, flow: Flow) -> Draft:
    if part.over is GIVEN and flow.value is NOTHING:
        raise InvalidInputError("over", "must be given: no part stands before this map_ that gives a list", None)
    over = _value(flow) if part.over is GIVEN else part.over
    base = f"map-{part.body.task}" if isinstance(part.body, Signature) else "map"
    inner = sketch(part.body, Flow(input_), graph)
    return Draft(MapNode, base, templates={"over": over}, fields={"max_failed": part.max_failed}, body=inner)


def _start(start: Any, flow: Flow) -> dict[str, Any]:
    """Return the template of the first input of a graph within."""
    return {"start": _value(flow) if start is GIVEN else start}
