"""What becomes of chains, groups, chords, maps, loops and waits: nodes, edges and templates."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from headrace import Backoff, Done
from headrace.canvas import (
    Canvas,
    build,
    chain,
    chord,
    group,
    index_,
    input_,
    loop,
    map_,
    pause,
    ref,
    run_,
    signature,
    sub,
    wait_signal,
    when,
)
from headrace.model.graph.nodes import (
    Edge,
    Graph,
    LoopNode,
    MapNode,
    OnError,
    OnOpen,
    RetryRule,
    SubNode,
    TaskNode,
    ValueNode,
    WaitNode,
)
from tests.unit.canvas_runs import GraphFailed, Runner, fail, shown

fetch, parse, count, merge, store = map(signature, ["fetch", "parse", "count", "merge", "store"])


def edges(graph: Graph) -> list[tuple[str, str]]:
    """Return the ends of the edges of a graph."""
    return [(edge.source, edge.target) for edge in graph.edges]


def task(graph: Graph, name: str) -> TaskNode:
    """Return a task's node."""
    [node] = [node for node in graph.nodes if node.id == name]
    assert isinstance(node, TaskNode)
    return node


def node(name: str) -> dict[str, Any]:
    """Return the template of a node's output."""
    return {"$node": name}


def result(graph: Graph, given: Any = None, **tasks: Any) -> Any:
    """Return the output of a run; tasks that are not given show their arguments."""
    named = dict.fromkeys(["fetch", "parse", "count", "merge", "store"], shown) | tasks
    return Runner(graph, named, given).output()


def test_a_chain_gives_each_call_the_output_before_it_first() -> None:
    """As in the example everybody knows: predecessor, own arguments, keywords."""
    graph = build(chain(fetch.s("u"), parse.s(2, strict=True), store.si(7)))

    assert edges(graph) == [("fetch", "parse"), ("parse", "store")]
    assert task(graph, "fetch").args == ("u",)
    assert task(graph, "parse").args == (node("fetch"), 2)
    assert task(graph, "parse").kwargs == (("strict", True),)
    assert task(graph, "store").args == (7,)
    assert not graph.has_output


def test_the_first_call_without_arguments_is_given_the_input() -> None:
    """The engine gives it; one that is immutable gets nothing, keywords alone are arguments, too."""
    assert task(build(fetch.s()), "fetch").args is None
    assert task(build(fetch.si()), "fetch").args == ()
    assert task(build(fetch.s(url="u")), "fetch").args == ()
    assert result(build(chain(fetch.s(), parse.s(1))), "in") == [["in"], 1]


def test_a_bar_makes_a_chain_of_any_length() -> None:
    """`a | b` is `chain(a, b)`, lists are groups, and hundreds of bars are no recursion."""
    assert build(fetch.s("u") | parse.s() | store.s()) == build(chain(fetch.s("u"), parse.s(), store.s()))
    assert build(fetch.s("u") | [parse.s(), count.s()]) == build(chain(fetch.s("u"), group(parse.s(), count.s())))
    assert build([parse.s(), count.s()] | merge.s()) == build(chain(group([parse.s(), count.s()]), merge.s()))
    long: Canvas = fetch.s("u")
    for _ in range(499):
        long = long | parse.s()
    assert len(build(long).nodes) == 500


def test_ids_are_the_names_of_tasks_with_numbers_and_chosen_names_win() -> None:
    """Also where a chosen name comes later or has a number, and where a task's name is long or has dots."""
    graph = build(
        chain(parse.s(), parse.s(), store.s().options(name="parse"), parse.s().options(name="parse-3"), parse.s())
    )
    assert [one.id for one in graph.nodes] == ["parse-2", "parse-4", "parse", "parse-3", "parse-5"]
    dotted = signature("papers.ex.tract").s()
    assert [one.id for one in build(dotted | dotted).nodes] == ["papers-ex-tract", "papers-ex-tract-2"]
    long = signature("x" * 64).s()
    assert [one.id for one in build(long | long).nodes] == ["x" * 64, "x" * 62 + "-2"]


def test_what_follows_a_group_joins_it() -> None:
    """The list of outputs comes first; a group at the end gives that list."""
    graph = build(chain(fetch.s("u"), group(parse.s(), chain(count.s(), store.s())), merge.s("x")))

    assert edges(graph) == [
        ("fetch", "parse"),
        ("fetch", "count"),
        ("count", "store"),
        ("parse", "merge"),
        ("store", "merge"),
    ]
    assert task(graph, "merge").args == ([node("parse"), node("store")], "x")
    assert build(group(parse.s(1), count.s(2))).output == [node("parse"), node("count")]
    assert result(graph) == [[[["u"]], [[["u"]]]], "x"]


def test_between_two_groups_stands_one_node() -> None:
    """Every start gets the whole list without an edge from each to each."""
    graph = build(chain(group(fetch.s(1), fetch.s(2)), group(parse.s(), count.s()), merge.s()))

    assert [one.id for one in graph.nodes] == ["fetch", "fetch-2", "joined", "parse", "count", "merge"]
    assert len(graph.edges) == 6
    assert graph.nodes[2] == ValueNode("joined", [node("fetch"), node("fetch-2")], given=True)
    assert result(graph) == [[[[[1], [2]]], [[[1], [2]]]]]


def test_a_group_of_one_gives_a_list_of_one() -> None:
    """However many members there are, what follows gets a list."""
    assert task(build(chain(group(parse.s(1)), merge.s())), "merge").args == ([node("parse")],)


@pytest.mark.parametrize(("join", "kept"), [("all", None), ("any", 1), (2, 2), (3, None)])
def test_a_chord_starts_when_enough_members_led_to_it(join: str | int, kept: int | None) -> None:
    """All is as without a word; so is as many as there are."""
    graph = build(chord([parse.s(1), parse.s(2), parse.s(3)], merge.s(), join=join))
    assert task(graph, "merge").options.join == kept
    assert task(graph, "merge").args == ([node("parse"), node("parse-2"), node("parse-3")],)


def test_a_failed_member_follows_the_policy_of_its_chord() -> None:
    """Stop fails the run, continue puts null in the list, output the error."""
    members = [parse.s(1), count.s(2)]

    with pytest.raises(GraphFailed):
        result(build(chord(members, merge.s())), count=fail)
    assert result(build(chord(members, merge.s(), on_error="continue")), count=fail) == [[[1], None]]
    graph = build(chord(members, merge.s(), on_error="output"))
    assert result(graph, count=fail) == [[[1], {"kind": "ValueError", "message": "broken"}]]
    assert result(graph) == [[[1], [2]]]
    assert [(edge.source, edge.port) for edge in graph.edges] == [
        ("parse", "main"),
        ("parse", "error"),
        ("count", "main"),
        ("count", "error"),
    ]


def test_a_member_of_several_nodes_fails_as_one() -> None:
    """Where the policy is not stop, it is a node with a graph within; its own word on errors wins."""
    lone = fetch.s(1).options(on_error="stop")
    graph = build(chord([chain(fetch.s(3), count.s()), lone], merge.s(), on_error="continue"))

    assert isinstance(graph.nodes[0], SubNode) and graph.nodes[0].options.on_error is OnError.CONTINUE
    assert [one.id for one in graph.nodes[0].body.nodes] == ["fetch", "count"]
    assert task(graph, "fetch").options.on_error is OnError.STOP
    assert result(graph) == [[[[3]], [1]]]
    assert result(graph, count=fail) == [[None, [1]]]


def test_a_chord_with_several_ways_on_joins_once() -> None:
    """The number of members counts at the node between, not at each start."""
    graph = build(chord([parse.s(1), parse.s(2)], group(merge.s(), store.s()), join="any"))
    assert [(one.id, one.options.join) for one in graph.nodes][2:] == [("joined", 1), ("merge", None), ("store", None)]
    nested = build(chord([group(parse.s(1), parse.s(2)), count.s(3)], merge.s(), join="any"))
    assert task(nested, "merge").args == ([node("joined"), node("count")],)
    assert edges(nested)[-2:] == [("joined", "merge"), ("count", "merge")]


def test_thousands_of_calls_of_one_task_become_a_map() -> None:
    """Over their arguments, with their options; references to members lead into its list."""
    members = [parse.s(number, mode="fast").options(timeout="9s") for number in range(5_000)]
    graph = build(chain(fetch.s("u"), chord(members, merge.s(members[3].output))))

    spread = graph.nodes[1]
    assert isinstance(spread, MapNode) and spread.id == "map-parse"
    assert len(spread.over) == 5_000 and spread.over[4] == [node("fetch"), 4, "fast"]
    body = task(spread.body, "parse")
    assert body.args == ({"$input": [0]}, {"$input": [1]})
    assert body.kwargs == (("mode", {"$input": [2]}),)
    assert body.options.timeout == timedelta(seconds=9)
    assert task(graph, "merge").args == (node("map-parse"), {"$node": "map-parse", "path": [3]})
    assert result(graph)[1] == [["u"], 3, {"mode": "fast"}]


def test_a_large_group_of_one_argument_is_a_list_of_entries() -> None:
    """Without a predecessor the entry is the argument."""
    graph = build(group([parse.s(one) for one in range(501)]))
    [spread] = graph.nodes
    assert isinstance(spread, MapNode)
    assert spread.over == list(range(501)) and task(spread.body, "parse").args == ({"$input": []},)
    assert result(graph)[500] == [500]


@pytest.mark.parametrize(
    ("join", "policy", "failed"), [("all", None, 0), ("all", "continue", None), (601, "continue", None)]
)
def test_the_policy_of_a_large_chord_is_how_many_entries_may_fail(
    join: str | int, policy: str | None, failed: int | None
) -> None:
    """Also of a chord over a map; as many as there are is all of them."""
    [spread, _] = build(chord([parse.s(one) for one in range(601)], merge.s(), join=join, on_error=policy)).nodes
    [mapped, _] = build(chord(map_(parse.s(), over=list(range(601))), merge.s(), on_error=policy)).nodes
    assert isinstance(spread, MapNode) and isinstance(mapped, MapNode)
    assert spread.max_failed == mapped.max_failed == failed


def test_a_large_chord_of_calls_that_say_what_a_failure_does_is_one_of_these() -> None:
    """As in a small one, their own word on errors wins."""
    members = [parse.s(one).options(on_error="stop") for one in range(401)]
    [spread, _] = build(chord(members, merge.s(), on_error="continue")).nodes
    assert isinstance(spread, MapNode) and spread.max_failed == 0


@pytest.mark.parametrize("many", [400, 401, 499])
def test_a_join_means_the_same_whatever_the_number_of_members(many: int) -> None:
    """Calls of one task are nodes of their own where what follows starts before they have all ended."""
    members = [parse.s(one) for one in range(many)]
    for join in (1, many - 1):
        made = build(chord(members, merge.s(), join=join))
        assert len(made.nodes) == many + 1 and task(made, "merge").options.join == join
    assert result(build(chord(members, merge.s(), join=2, on_error="continue")), parse=fail) == [[None] * many]
    told = build(chord(members, merge.s(), on_error="output"))
    assert result(told, parse=fail) == [[{"kind": "ValueError", "message": "broken"}] * many]


def test_a_map_runs_over_what_stands_before_it_or_over_what_is_said() -> None:
    """Its body is given the entry first; a task without a call stands for its call."""
    graph = build(chain(fetch.s("u"), map_(parse.s(2, n=index_), max_failed=3), store.s()))
    mapped = graph.nodes[1]
    assert isinstance(mapped, MapNode)
    assert (mapped.id, mapped.over, mapped.max_failed) == ("map-parse", node("fetch"), 3)
    assert task(mapped.body, "parse").args == ({"$input": []}, 2)
    assert task(mapped.body, "parse").kwargs == (("n", {"$index": True}),)
    assert build(map_(parse, over=["a", "b"])).nodes[0] == MapNode("map-parse", ["a", "b"], build(parse.s(input_)))
    assert build(map_(parse)).nodes[0].over == {"$input": []}  # type: ignore[union-attr]
    assert build(map_(parse, over=input_["urls"])).nodes[0].over == {"$input": ["urls"]}  # type: ignore[union-attr]
    assert result(graph, fetch=lambda _: ["a", "b"]) == [[["a", 2, {"n": 0}], ["b", 2, {"n": 1}]]]


def test_the_body_of_a_map_may_be_a_workflow_of_its_own() -> None:
    """Its output is that of its last part, a list where that is a group."""
    graph = build(map_(chain(fetch.s(), group(parse.s(), count.s())), over=[1, 2]))
    [mapped] = graph.nodes
    assert isinstance(mapped, MapNode) and mapped.id == "map"
    assert mapped.body.output == [node("parse"), node("count")]
    assert result(graph) == [[[[1]], [[1]]], [[[2]], [[2]]]]


def test_a_loop_runs_on_its_own_output() -> None:
    """The first round is given what stands before, or `start`."""
    graph = build(chain(fetch.s(1), loop(parse.s(), again=when().lt(4), most=9)))
    looped = graph.nodes[1]
    assert isinstance(looped, LoopNode)
    assert (looped.start, looped.given, looped.most) == (node("fetch"), True, 9)
    assert task(looped.body, "parse").args == ({"$input": []},)
    assert result(graph, fetch=lambda one: one, parse=lambda one: one + 1) == 4
    assert build(loop(parse.s(), again=when().lt(4), most=9, start=2)).nodes[0].start == 2  # type: ignore[union-attr]


def test_parts_as_one_node() -> None:
    """A graph of JSON is one, too."""
    inner = build(chain(fetch.s(), parse.s(2)))
    graph = build(chain(store.s(0), sub(inner, start={"x": 5}).options(name="inner"), inner))
    assert graph.nodes[1:] == (
        SubNode("inner", inner, {"x": 5}, given=True),
        SubNode("sub", inner, node("inner"), given=True),
    )
    assert result(build(sub(chain(fetch.s("u"), parse.s(2))))) == [["u"], 2]


def test_waits_for_signals_and_times() -> None:
    """After a signal comes its payload; after a pause what was there before."""
    graph = build(chain(fetch.s("u"), pause("10m"), parse.s(), wait_signal("ok-", run_["id"], timeout="2h"), store.s()))
    assert graph.nodes[1] == WaitNode("pause", timeout=timedelta(minutes=10))
    assert task(graph, "parse").args == (node("fetch"),)
    assert graph.nodes[3] == WaitNode("wait", {"$text": ["ok-", {"$run": ["id"]}]}, timedelta(hours=2))
    assert task(graph, "store").args == (node("wait"),)
    assert task(build(pause(1) | parse.s()), "parse").args == ({"$input": []},)
    assert build(wait_signal(input_["key"])).nodes[0].signal == {"$input": ["key"]}  # type: ignore[union-attr]


def test_options_become_those_of_the_node() -> None:
    """Times as people write them, retry as a policy, a mapping or a rule."""
    retry = {"strategy": "fixed", "max_tries": 3, "base": "5s", "on": [ValueError, "Busy"]}
    options: dict[str, Any] = {
        "on_error": "continue", "retry": retry,
        "timeout": "90s", "priority": "high", "version": 2, "estimate": "2m", "on_open": "skip",
    }  # fmt: skip
    kept = task(build(parse.s().options(**options).options(name="p")), "p").options
    assert kept.on_error is OnError.CONTINUE and kept.on_open is OnOpen.SKIP
    assert kept.retry == RetryRule("fixed", 3, timedelta(seconds=5), on=("ValueError", "Busy"))
    assert (kept.timeout, kept.priority, kept.version) == (timedelta(seconds=90), 3, 2)
    assert kept.estimate == timedelta(minutes=2)
    fixed = parse.s().options(retry=Backoff.fixed("3s", max_attempts=5))
    second = timedelta(seconds=3)
    assert task(build(fixed), "parse").options.retry == RetryRule("fixed", 5, second, second, jitter=False)
    assert task(build(chain([fetch.s(1), fetch.s(2)], merge.s().options(join="any"))), "merge").options.join == 1


def test_a_handler_follows_by_the_port_of_errors() -> None:
    """It is given the error; what follows the part itself is passed over, and the run does not fail."""
    graph = build(chain(fetch.s("u").on_failure(store.s("lost")), parse.s()))

    assert task(graph, "fetch").options.on_error is OnError.OUTPUT
    assert graph.edges == (Edge("fetch", "store", "error"), Edge("fetch", "parse"))
    assert graph.output == node("parse")
    stored: list[Any] = []
    assert result(graph, fetch=fail, store=lambda *args: stored.extend(args)) is None
    assert stored == [{"kind": "ValueError", "message": "broken"}, "lost"]
    assert result(graph) == [["u"]]


def test_other_ports_lead_elsewhere() -> None:
    """A task chooses one by `Done(port=)`."""
    graph = build(chain((parse.s(1).port("spam") >> count.s()).port("odd") >> store.s(), merge.s()))
    assert [(edge.port, edge.target) for edge in graph.edges] == [
        ("spam", "count"),
        ("odd", "store"),
        ("main", "merge"),
    ]
    runner = Runner(graph, {"parse": lambda _: Done("x", port="spam"), "count": shown})
    assert runner.output() is None
    assert runner.outputs == {"parse": "x", "count": ["x"]}


def test_references_stand_anywhere_and_bring_edges() -> None:
    """Parts that are referred to and stand nowhere are added, once; the order is made where it was not said."""
    page = fetch.s("u")
    head, body = parse.si(page.output["head"]), parse.si({"b": [page.output["body"][0]]})
    graph = build(merge.si(head.output, body.output, last=ref(page)["size"]))

    assert sorted(edges(graph)) == [
        ("fetch", "merge"),
        ("fetch", "parse"),
        ("fetch", "parse-2"),
        ("parse", "merge"),
        ("parse-2", "merge"),
    ]
    assert task(graph, "merge").args == (node("parse"), node("parse-2"))
    assert task(graph, "merge").kwargs == (("last", {"$node": "fetch", "path": ["size"]}),)
    assert task(graph, "parse-2").args == ({"b": [{"$node": "fetch", "path": ["body", 0]}]},)


def test_a_reference_means_the_copy_with_options_too() -> None:
    """And where the order is said already it adds nothing."""
    page = fetch.s("u")
    graph = build(chain(page.options(name="page", timeout="9s"), parse.s(), store.s(page.output, ref("parse")["x"])))
    assert edges(graph) == [("page", "parse"), ("parse", "store")]
    assert task(graph, "store").args == (node("parse"), node("page"), {"$node": "parse", "path": ["x"]})


def test_references_to_chains_and_groups() -> None:
    """A chain's output is that of its last part; of a group there is a list, whose members are found by position."""
    both, line = group(parse.s(1), count.s(2)), fetch.s("u") | parse.s()
    graph = build(chain(both, store.si(both.output, both.output[1]["n"], line.output["x"])))
    assert task(graph, "store").args == (
        [node("parse"), node("count")],
        {"$node": "count", "path": ["n"]},
        {"$node": "parse-2", "path": ["x"]},
    )
    assert ("parse-2", "store") in edges(graph)


def test_the_output_of_the_run_may_be_made_of_references() -> None:
    """Parts that are only there are added, too."""
    graph = build(fetch.s("u"), output={"n": count.s(1).output, "in": input_["x"], "run": run_["id"]})
    assert graph.output == {"n": node("count"), "in": {"$input": ["x"]}, "run": {"$run": ["id"]}}
    assert [one.id for one in graph.nodes] == ["fetch", "count"]
    assert result(graph, {"x": 3}) == {"n": [1], "in": 3, "run": "run-1"}
    assert build(fetch.s("u"), output=None).has_output


def test_data_that_looks_like_a_template_stays_data() -> None:
    """Who passes on data of others cannot be made to read the run; models are dumped, tuples are lists."""

    class Page(BaseModel):
        url: str

    data = {"$node": "fetch"}
    graph = build(fetch.s(data, [{"$input": 3}], Page(url="u"), (1, 2)))
    assert task(graph, "fetch").args == ({"$literal": data}, [{"$literal": {"$input": 3}}], {"url": "u"}, [1, 2])
    assert result(graph) == [data, [{"$input": 3}], {"url": "u"}, [1, 2]]


def test_tags_and_the_workflow_for_failures_are_kept() -> None:
    """They are the graph's."""
    graph = build(fetch.s(), tags=["schedule:node_level"], on_failure="tell")
    assert (graph.tags, graph.on_failure) == (("schedule:node_level",), "tell")
