"""Paths: where a node stands in a run. `a`, `s/a` in a graph within node s, `m[3]/a` in that of the fourth entry of m.

A path that ends in "/" is the end of what runs there: `/` of the run, `s/` of a graph within, `m[3]/` of one entry,
`m/` of all entries of a map. One that ends in "@" names what a graph was given: `m[3]@`; `m@` what the map m
began with.
"""

from __future__ import annotations


def join_path(scope: str, node_id: str) -> str:
    """Return the path of a node of the graph at `scope`.

    >>> join_path("", "a"), join_path("m[3]", "a")
    ('a', 'm[3]/a')
    """
    return f"{scope}/{node_id}" if scope else node_id


def scope_of(path: str) -> str:
    """Return the path of the graph that a node stands in.

    >>> scope_of("m[3]/a"), scope_of("a")
    ('m[3]', '')
    """
    return path.rpartition("/")[0]


def split_entry(scope: str) -> tuple[str, int | None]:
    """Return the path of the container of a scope, and the entry or round it is.

    >>> split_entry("s/m[3]"), split_entry("s")
    (('s/m', 3), ('s', None))
    """
    if not scope.endswith("]"):
        return scope, None
    container, _, index = scope[:-1].rpartition("[")
    return container, int(index)


def input_of(scope: str) -> str:
    """Return the path of what the graph at a scope within a run was given."""
    return f"{scope}@"


def end_of(scope: str) -> str:
    """Return the path of the end of the graph at a scope, or of all entries of a container."""
    return f"{scope}/"
