"""Whatever is written with the canvas makes a graph that can run."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.canvas import build, chain, choose, chord, group, input_, loop, map_, pause, signature, sub, when
from headrace.canvas.parts import Canvas
from headrace.model.graph.checks import check_graph
from headrace.model.graph.form import encode_graph, graph_form, parse_graph

NAMES = ["fetch", "parse", "papers.merge"]

CALLS = st.builds(
    lambda name, args, fixed: signature(name).si(*args) if fixed else signature(name).s(*args),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from([1, {"x": [None]}, input_["a"], {"$node": "x"}]), max_size=2),
    st.booleans(),
)


def _parts(inner: st.SearchStrategy[Canvas]) -> st.SearchStrategy[Canvas]:
    several = st.lists(inner, min_size=1, max_size=4)
    condition = st.sampled_from([when("a").eq(1), ~when().empty()])
    policies = st.sampled_from([None, "stop", "continue", "output"])
    return st.one_of(
        several.map(lambda parts: chain(*parts)),
        several.map(group),
        st.builds(lambda members, back, join, policy: chord(members, back, join=join, on_error=policy),
                  several, inner, st.sampled_from(["all", "any", 1]), policies),
        st.builds(lambda holds, a, b: choose(holds, a, otherwise=b), condition, inner, st.none() | inner),
        st.builds(lambda body: map_(body, over=[1, 2]), inner),
        st.builds(lambda body, again: loop(body, again=again, most=3), inner, condition),
        inner.map(sub),
        st.builds(lambda call, handler: call.on_failure(handler), CALLS, inner),
        st.builds(lambda call, target: call.port("other") >> target, CALLS, inner),
        st.builds(lambda first, then: chain(first, signature(then).s(first.output)), inner, st.sampled_from(NAMES)),
        st.just(pause("1s")),
    )  # fmt: skip


PARTS: st.SearchStrategy[Any] = st.recursive(CALLS, _parts, max_leaves=8)


@settings(max_examples=300, deadline=None)
@given(PARTS)
def test_what_is_built_passes_the_checks_and_its_json_is_the_same_graph(part: Any) -> None:
    """In and out of JSON it stays what it was, so that its hash says whether two workflows are the same."""
    graph = build(part)
    assert check_graph(graph) is graph
    read = parse_graph(graph_form(graph))
    assert encode_graph(read) == encode_graph(graph)
    assert build(part) == graph
