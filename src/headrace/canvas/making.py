"""What people write workflows with: `chain(fetch.s(url), group(parse.s(), count.s()), merge.s())`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.canvas.conditions import Clause, as_condition
from headrace.canvas.options import check_node_id, parse_join, parse_limit, parse_on_error
from headrace.canvas.parts import (
    GIVEN,
    Canvas,
    Chain,
    Choose,
    Chord,
    Group,
    Loop,
    Map,
    Signature,
    Sub,
    Wait,
    as_canvas,
)
from headrace.canvas.references import Made, Reference, Source
from headrace.model.errors import InvalidInputError
from headrace.model.graph.conditions import Condition
from headrace.model.graph.nodes import Graph
from headrace.model.numbers import check_whole


@dataclass(frozen=True, slots=True)
class TaskName:
    """A task by name alone, to write workflows where its function is not at hand."""

    name: str

    def s(self, *args: Any, **kwargs: Any) -> Signature:
        """Return a call whose first argument is what its predecessor gives, before `args`."""
        return Signature(task=self.name, args=args, kwargs=tuple(kwargs.items()))

    def si(self, *args: Any, **kwargs: Any) -> Signature:
        """Return a call with these arguments only, whatever its predecessor gives."""
        return Signature(task=self.name, args=args, kwargs=tuple(kwargs.items()), immutable=True)


def signature(task: str) -> TaskName:
    """Return a task by name: `signature("parse").s(2)` is what `parse.s(2)` is.

    >>> signature("parse").s(2).args
    (2,)
    """
    if not isinstance(task, str) or not task:
        raise InvalidInputError("task", "must be the name of a task", task)
    return TaskName(task)


def chain(*parts: Any) -> Chain:
    """Return parts that run one after another, each given what the one before it gave; also written `a | b`.

    What follows a group waits for all of it and is given the list of its outputs, in order.

    >>> from headrace.canvas import build
    >>> fetch, parse, count, merge = map(signature, ["fetch", "parse", "count", "merge"])
    >>> graph = build(chain(fetch.s("https://example.org"), group(parse.s(), count.s()), merge.s()))
    >>> [(edge.source, edge.target) for edge in graph.edges]
    [('fetch', 'parse'), ('fetch', 'count'), ('parse', 'merge'), ('count', 'merge')]
    >>> graph.nodes[3].args
    ([{'$node': 'parse'}, {'$node': 'count'}],)
    """
    if not parts:
        raise InvalidInputError("chain", "must have at least one part", parts)
    return Chain(parts=tuple(as_canvas(part) for part in parts))


def group(*members: Any) -> Group:
    """Return parts that run beside each other, each given what stands before the group; its output is a list.

    More than 400 calls of one task become one `map_` over their arguments; parts that differ may be 500 at most.
    """
    given = members[0] if len(members) == 1 and isinstance(members[0], list | tuple) else members
    if not given:
        raise InvalidInputError(
            "group", "must have at least one part; for a list known only in the run use map_", given
        )
    return Group(members=tuple(as_canvas(member) for member in given))


def chord(members: Any, callback: Any, *, join: str | int = "all", on_error: str | None = None) -> Chord:
    """Return a group with what follows it, and what failed members do to that.

    `join`: `callback` starts when "all", "any", or so many of the members led to it; its list has null for those that
    have not ended. `on_error`, for members that say nothing themselves: "stop" (default: the run fails in the end, even
    when enough others led to `callback`), "continue" (a failed member counts, with null in the list) or "output" (it
    counts, with {"kind", "message"} in the list). More than 499 members, and a `map_`, have only join="all", and no
    "output": a map waits for all of its entries, and its `max_failed` says how many may fail.

    >>> from headrace.canvas import build
    >>> ask, vote = signature("ask"), signature("vote")
    >>> build(chord([ask.s(1), ask.s(2), ask.s(3)], vote.s(), join=2)).nodes[3].options.join
    2
    """
    header = as_canvas(members)
    policy = None if on_error is None else parse_on_error(on_error)
    return Chord(header=header, callback=as_canvas(callback), join=parse_join(join), on_error=policy)


def map_(body: Any, *, over: Any = GIVEN, max_failed: int | None = 0) -> Map:
    """Return a part that runs `body`, a task or parts, for each entry of a list; its output is the list of outputs.

    `over`: the list, or a reference to one; default: what the predecessor gives. `max_failed`: so many entries may
    fail, None: any number; null stands for them.

    >>> from headrace.canvas import build
    >>> graph = build(chain(signature("find").s("*.pdf"), map_(signature("parse").s())))
    >>> graph.nodes[1].id, graph.nodes[1].over
    ('map-parse', {'$node': 'find'})
    """
    if over is not GIVEN and not isinstance(over, list | tuple | Reference):
        rule = 'must be a list, or a reference to one such as input_["pages"] or find.output'
        raise InvalidInputError("over", rule, over)
    if max_failed is not None:
        check_whole("max_failed", max_failed, least=0)
    return Map(body=as_canvas(body), over=over, max_failed=max_failed)


def loop(body: Any, *, again: Clause | Condition, most: int, start: Any = GIVEN) -> Loop:
    """Return a part that runs `body` again on its own output while `again` holds for that, at most `most` times.

    `start`: what its first round is given; default: what the predecessor gives. Its output is the last round's.

    >>> from headrace.canvas import build, when
    >>> build(loop(signature("improve").s(), again=when("score").lt(0.8), most=5)).nodes[0].most
    5
    """
    return Loop(body=as_canvas(body), again=as_condition("again", again), most=check_whole("most", most), start=start)


def choose(condition: Clause | Condition, part: Any, *more: Any, otherwise: Any = None) -> Choose:
    """Return a part that runs `part` if a condition holds for what its predecessor gives.

    `more`: further conditions, each with its part; the first that holds counts. Without `otherwise` what stands
    behind is passed over when none holds. Each part is given what stands before; the output is that of the part that
    ran.

    >>> from headrace.canvas import build, when
    >>> read, scan = signature("read"), signature("scan")
    >>> graph = build(chain(signature("fetch").s(), choose(when("kind").eq("pdf"), scan.s(), otherwise=read.s())))
    >>> [(edge.source, edge.target) for edge in graph.edges]
    [('fetch', 'scan'), ('fetch', 'read'), ('scan', 'chosen'), ('read', 'chosen')]
    """
    pairs = (condition, part, *more)
    if len(pairs) % 2:
        raise InvalidInputError(
            "choose", "must have conditions and parts in turn: choose(when(…), a, when(…), b)", pairs
        )
    cases = zip(pairs[::2], pairs[1::2], strict=True)
    return Choose(
        cases=tuple((as_condition("choose", holds), as_canvas(chosen)) for holds, chosen in cases),
        otherwise=None if otherwise is None else as_canvas(otherwise),
    )


def sub(body: Any, *, start: Any = GIVEN) -> Sub:
    """Return a part that runs parts as a workflow of its own, as one node: with one name, join and policy of errors.

    `start`: its input; default: what the predecessor gives.

    >>> from headrace.canvas import build
    >>> build(sub(chain(signature("a").s(), signature("b").s())).options(on_error="continue")).nodes[0].id
    'sub'
    """
    return Sub(body=body if isinstance(body, Graph) else as_canvas(body), start=start)


def wait_signal(*key: Any, timeout: float | str | timedelta | None = None) -> Wait:
    """Return a part that waits for a signal without a slot; its output is the signal's payload.

    `key`: texts, and references to texts, which make one together. A signal that does not come within `timeout` fails
    the part with kind "signal_timeout". A reference that gives null or an empty text fails it with "invalid_input".

    >>> from headrace.canvas import build, run_
    >>> build(wait_signal("approve-", run_["id"], timeout="2h")).nodes[0].signal
    {'$text': ['approve-', {'$run': ['id']}]}
    """
    for part in key:
        if not isinstance(part, Reference) and (not isinstance(part, str) or not part):
            raise InvalidInputError("key", "must be the text of a signal's key, or references to texts in it", part)
    if not key:
        raise InvalidInputError("key", "must be given", None)
    limit = None if timeout is None else parse_limit("timeout", timeout)
    return Wait(signal=key[0] if len(key) == 1 else Made("$text", key), timeout=limit)


def pause(time: float | str | timedelta) -> Wait:
    """Return a part that waits for a time without a slot; what follows is given what stands before it.

    >>> from headrace.canvas import build
    >>> build(pause("10m")).nodes[0].timeout
    datetime.timedelta(seconds=600)
    """
    return Wait(timeout=parse_limit("time", time))


def ref(part: Canvas | str) -> Reference:
    """Return a reference to the output of a part, or of the node of that name in the same workflow.

    >>> ref("parse")["pages"][0]
    ref('parse')['pages'][0]
    """
    if isinstance(part, Canvas):
        return part.output
    return Reference(Source.OUTPUT, check_node_id(part))
