"""Random graphs for tests of their JSON form: of every kind of node, with every member."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from headrace.model.graph.conditions import Condition, Every, Never, Some, Test
from headrace.model.graph.holding import OPS
from headrace.model.graph.nodes import (
    Edge,
    Graph,
    LoopNode,
    MapNode,
    Node,
    NodeOptions,
    OnError,
    OnOpen,
    RetryRule,
    SubNode,
    TaskNode,
    ValueNode,
    WaitNode,
)

_NAMES = st.text("abcXYZ019_-", min_size=1, max_size=6)
_DURATIONS = st.integers(1, 10**15).map(lambda count: timedelta(microseconds=count))
_PATHS = st.lists(st.text("a.é", max_size=3) | st.integers(-3, 3), max_size=3).map(tuple)
_DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.just("é."),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "$node"]), inner, max_size=2),
    max_leaves=4,
)
_TESTS: st.SearchStrategy[Condition] = st.builds(Test, _PATHS, st.sampled_from(sorted(OPS)), _DATA)


def _joined(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    parts = st.lists(inner, max_size=2).map(tuple)
    return st.builds(Every, parts) | st.builds(Some, parts) | st.builds(Never, inner)


CONDITIONS: st.SearchStrategy[Condition] = st.recursive(_TESTS, _joined, max_leaves=4)
_RETRIES = st.builds(
    RetryRule,
    st.sampled_from(["fixed", "linear"]),
    st.integers(1, 9),
    _DURATIONS,
    _DURATIONS,
    st.booleans(),
    st.lists(_NAMES, max_size=2).map(tuple),
)


def _options(*, timeout: bool = True) -> st.SearchStrategy[NodeOptions]:
    return st.builds(
        NodeOptions,
        st.sampled_from(OnError),
        st.none() | st.integers(1, 3),
        st.none() | _RETRIES,
        st.none() | _DURATIONS if timeout else st.none(),
        st.none() | st.integers(0, 9),
        st.integers(1, 3),
        st.none() | _DURATIONS,
        st.none() | st.sampled_from(OnOpen),
    )


#: A template that was written, be it as null, or was not.
_WRITTEN: st.SearchStrategy[tuple[Any, bool]] = st.just((None, False)) | st.tuples(_DATA, st.just(True))
_OVER = _DATA.filter(lambda data: data is not None)


def _plain_nodes() -> st.SearchStrategy[Node]:
    kwargs = st.dictionaries(_NAMES, _DATA, max_size=2).map(lambda given: tuple(sorted(given.items(), key=_first)))
    args = st.none() | st.lists(_DATA, max_size=2).map(tuple)
    tasks = st.builds(TaskNode, _NAMES, _NAMES, args, kwargs, _options())
    values = st.builds(lambda name, one, options: ValueNode(name, *one, options), _NAMES, _WRITTEN, _options())
    waits = st.builds(WaitNode, _NAMES, _DATA, st.none() | _DURATIONS, _options(timeout=False))
    return tasks | values | waits


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]


def _containers(body: st.SearchStrategy[Graph]) -> st.SearchStrategy[Node]:
    maps = st.builds(MapNode, _NAMES, _OVER, body, st.none() | st.integers(0, 3), _options())
    loops = st.builds(
        lambda name, inner, again, most, one: LoopNode(name, inner, again, most, *one),
        _NAMES, body, CONDITIONS, st.integers(1, 9), _WRITTEN,
    )  # fmt: skip
    subs = st.builds(
        lambda name, inner, one, options: SubNode(name, inner, *one, options), _NAMES, body, _WRITTEN, _options()
    )
    return maps | loops | subs


def _graphs(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Graph]:
    edges = st.builds(Edge, _NAMES, _NAMES, st.sampled_from(["main", "error", "yes"]), st.none() | CONDITIONS)
    return st.builds(
        lambda inside, between, output, tags, handler: Graph(inside, between, *output, tags, handler),
        st.lists(nodes, max_size=3).map(tuple),
        st.lists(edges, max_size=2).map(tuple),
        _WRITTEN,
        st.lists(_NAMES, max_size=2).map(tuple),
        st.none() | _NAMES,
    )


#: Graphs of any form; few of them mean anything.
GRAPHS: st.SearchStrategy[Graph] = _graphs(_plain_nodes() | _containers(_graphs(_plain_nodes())))
