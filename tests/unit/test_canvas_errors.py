"""What people write wrongly is named with its rule, when it is written or when the graph is made."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from headrace import Backoff
from headrace.canvas import (
    build,
    chain,
    choose,
    chord,
    group,
    input_,
    loop,
    map_,
    pause,
    ref,
    signature,
    wait_signal,
    when,
)
from headrace.model.errors import InvalidInputError

fetch, parse, count, merge = map(signature, ["fetch", "parse", "count", "merge"])

ONE = parse.s(1)
MANY = [(parse if number % 2 else count).s(number) for number in range(501)]

WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing in a chain": (lambda: chain(), "chain must have at least one part"),
    "nothing in a group": (lambda: group([]), "group must have at least one part"),
    "an empty list": (lambda: chain([], merge.s()), "group must have at least one part"),
    "no part": (lambda: chain(fetch.s(), 3), "part must be a task's call"),
    "a class": (lambda: chain(type(ONE)), "part must be a task's call"),
    "an option": (lambda: parse.s().options(speed=3), "options must be among name, on_error, join"),
    "a name": (lambda: parse.s().options(name="a b"), "name must be 1 to 64 of the characters"),
    "a policy": (lambda: parse.s().options(on_error="ignore"), "on_error must be one of stop, continue, output"),
    "a join": (lambda: parse.s().options(join=0), 'join must be "all", "any" or how many'),
    "a time": (lambda: parse.s().options(timeout=0), "timeout must be more than 0"),
    "a retry": (lambda: parse.s().options(retry=3), "retry must be a mapping"),
    "a retry's field": (lambda: parse.s().options(retry={"tries": 3}), "retry must have only strategy, max_tries"),
    "a retry's strategy": (lambda: parse.s().options(retry={"strategy": "x"}), "retry.strategy must be one of fixed"),
    "a retry's classes": (lambda: parse.s().options(retry={"on": [3]}), "retry.on must be a list"),
    "a retry's jitter": (lambda: parse.s().options(retry={"jitter": 1}), "retry.jitter must be True or False"),
    "a policy of many": (
        lambda: parse.s().options(retry=Backoff().on(ValueError, None)),
        "retry of a node has one policy for all errors",
    ),
    "a port": (lambda: parse.s().port("main"), "port must match"),
    "an error without output": (
        lambda: parse.s().options(on_error="stop").on_failure(merge.s()),
        'on_error must be "output"',
    ),
    "a choice without a part": (lambda: choose(when().eq(1), ONE, when().eq(2)), "choose must have conditions and"),
    "a choice by a value": (lambda: choose(True, ONE), "choose must be a condition"),  # type: ignore[arg-type]
    "a condition on what runs know": (lambda: when("a").eq(input_["b"]), "when must compare with data"),
    "a path": (lambda: when(1.5), "when must have names and positions"),  # type: ignore[arg-type]
    "a condition in `and`": (lambda: bool(when("a").eq(1)), "condition is known only in a run"),
    "a map over text": (lambda: map_(parse, over="abc"), "over must be a list, or a reference"),
    "a map's failures": (lambda: map_(parse, max_failed=-1), "max_failed must be a whole number"),
    "a loop's bound": (lambda: loop(ONE, again=when().eq(1), most=0), "most must be a whole number"),
    "a key": (lambda: wait_signal(3), "key must be the text of a signal's key"),
    "no key": (lambda: wait_signal(), "key must be given"),
    "a wait's time": (lambda: pause("1s").options(timeout="2s"), "timeout is given where the wait is made"),
    "a pause": (lambda: pause(0), "time must be more than 0"),
    "a reference": (lambda: input_[1.5], "reference goes on with a name or a position"),  # type: ignore[index]
    "a reference in `if`": (
        lambda: bool(input_["x"]),
        "input_['x'] is known only in a run and cannot stand in an `if`",
    ),
    "a reference in `==`": (lambda: ONE.output == 1, "use when(…).eq(…)"),
    "a reference in `for`": (lambda: list(input_), "use map_(…, over=…)"),
    "a reference in `in`": (lambda: "a" in input_, "use when(…).contains(…)"),
    "a reference in `<`": (lambda: input_["x"] < 3, "use when(…).lt(…)"),
    "a reference in `>=`": (lambda: input_["x"] >= 3, "use when(…).lt(…), .le(…), .gt(…) or .ge(…)"),
    "a reference behind `<`": (lambda: 3 < input_["x"], "use when(…).lt(…)"),  # noqa: SIM300
    "a reference in a text": (lambda: f"{input_['id']}", "cannot stand in a text"),
    "a reference in str()": (lambda: "hello " + str(input_["id"]), "input_['id'] is known only in a run and cannot"),
    "a reference in %": (lambda: "%s" % input_, "cannot stand in a text"),  # noqa: UP031
    "a reference in a sum": (lambda: input_["n"] + 1, "cannot stand in a calculation: give it to a task"),
    "a text and a reference": (lambda: "hello " + input_["id"], "cannot stand in a calculation: give it to a task"),
    "a reference in len()": (lambda: len(input_["x"]), "cannot stand in len(): give it to a task"),
    "an attribute of a reference": (lambda: input_["x"].title, "what lies within it is input_['x']['title']"),
    "two of one name": (
        lambda: build(chain(ONE.options(name="a"), merge.s().options(name="a"))),
        "name must be that of one node",
    ),
    "an argument": (lambda: build(parse.s({1})), "node parse: args must be JSON data"),
    "a keyword argument": (lambda: build(parse.s(x=object())), "node parse: kwargs must be JSON data"),
    "a part as an argument": (lambda: build(parse.s(ONE)), "node parse: args must be JSON data"),
    "a key that is no text": (lambda: build(parse.s({1: 2})), "node parse: args must have mappings with text as keys"),
    "a template with a reference": (
        lambda: build(parse.s({"$literal": input_})),
        "node parse: args must not have a reference within an object with the key $literal",
    ),
    "a chord's join": (lambda: build(chord([ONE, ONE], merge.s(), join=3)), "join must be at most 2"),
    "a join of more than there are": (
        lambda: build(chain([ONE, ONE], merge.s().options(join=3))),
        "join of node merge must be at most 2",
    ),
    "a join of nothing": (lambda: build(merge.s().options(join=1)), "join of node merge must be at most 0"),
    "many parts that differ": (lambda: build(group(MANY)), "group must have at most 500 parts"),
    "many parts with names": (
        lambda: build(group([parse.s(one).options(name=f"p{one}") for one in range(501)])),
        "give each task its own map_(task, over=[…])",
    ),
    "a large chord that gives errors": (
        lambda: build(chord([parse.s(one) for one in range(501)], merge.s(), on_error="output")),
        'on_error must be "stop" or "continue" for more than 499 members',
    ),
    "a chord over a map that gives errors": (
        lambda: build(chord(map_(parse, over=[1, 2]), merge.s(), on_error="output")),
        'on_error must be "stop" or "continue" for a map',
    ),
    "a large chord that does not wait for all": (
        lambda: build(chord([parse.s(one) for one in range(500)], merge.s(), join=2)),
        "map_(task, over=[…], max_failed=)",
    ),
    "a large chord's join": (
        lambda: build(chord([parse.s(one) for one in range(501)], merge.s(), join=502)),
        "join must be at most 501",
    ),
    "a join of a map": (
        lambda: build(chord(map_(parse, over=[1, 2, 3]), merge.s(), join=2)),
        'join must be "all" for a map, which waits for all of its entries; say how many of them may fail',
    ),
    "a name that no node has": (
        lambda: build(parse.s(ref("other"))),
        "ref must name a node beside it, which are parse",
    ),
    "what stands twice": (lambda: build(chain(ONE, ONE, merge.s(ONE.output))), "reference stands more than once"),
    "itself": (lambda: build(parse.s(ref("parse"))), "node parse must not refer to itself"),
    "what follows": (
        lambda: build(chain(parse.s(ref("merge")), merge.s())),
        "node parse must not refer to itself, or to what follows it",
    ),
    "what may not have ended": (
        lambda: build(chain([ONE, count.s()], merge.s(fetch.s().output).options(join="any"))),
        "node merge waits for some of its predecessors only",
    ),
    "a node outside of a map": (
        lambda: build(chain(ONE, map_(count.s(ONE.output)))),
        "reference is outside of the map, loop or workflow within",
    ),
    "a node within a map": (
        lambda: build(chain(map_(chain(ONE, count.s())), merge.s(ONE.output))),
        "reference is outside of the map, loop or workflow within",
    ),
    "a position in a group": (
        lambda: build(chain(both := group(ONE, count.s()), merge.s(both.output[2]))),
        "reference must be a position in the 2 outputs",
    ),
    "tags": (lambda: build(ONE, tags="fast"), "tags must be a list of texts"),
    "a task's name": (lambda: build(signature("No name").s()), "graph.nodes[0].task must match"),
    "too many nodes": (
        lambda: build(chain(*[parse.s() for _ in range(501)])),
        "graph.nodes must have at most 500 nodes",
    ),
}


def test_a_reference_has_no_attributes_for_who_asks_whether_it_has() -> None:
    """It can be copied, and tools that look for attributes find none."""
    assert not hasattr(input_["x"], "title") and getattr(input_, "__fspath__", None) is None
    assert repr(copy.deepcopy(input_["x"])) == repr(pickle.loads(pickle.dumps(input_["x"]))) == "input_['x']"


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_named(name: str) -> None:
    """With the field and its rule."""
    write, message = WRONG[name]
    with pytest.raises(InvalidInputError) as caught:
        write()
    assert message in str(caught.value)
