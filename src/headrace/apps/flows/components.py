"""What graph theory has to say of connections: what is reached, in which order, and what lies on cycles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

from headrace.apps.flows.form import Connection


def reached(first: Iterable[str], links: Sequence[Connection]) -> set[str]:
    """Return the nodes that links lead to from some nodes, these included.

    >>> sorted(reached(["a"], [Connection("a", 0, "b"), Connection("c", 0, "d")]))
    ['a', 'b']
    """
    behind: dict[str, list[str]] = {}
    for link in links:
        behind.setdefault(link.source, []).append(link.target)
    todo = list(dict.fromkeys(first))
    found = set(todo)
    for name in todo:  # which grows
        fresh = [target for target in behind.get(name, ()) if target not in found]
        found.update(fresh)
        todo += fresh
    return found


def in_order(names: Sequence[str], links: Sequence[Connection]) -> list[str]:
    """Return nodes so that each comes after those that lead to it; where there is a cycle, as they are.

    >>> in_order(["b", "a"], [Connection("a", 0, "b")])
    ['a', 'b']
    """
    sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(names, ()))
    for link in links:
        if link.source in names and link.target in names:
            sorter.add(link.target, link.source)
    try:
        return list(sorter.static_order())
    except CycleError:
        return list(names)


def components(names: Sequence[str], links: Sequence[Connection]) -> list[list[str]]:
    """Return the sets of nodes that lie on cycles together, each in the order of `names`.

    >>> components(["a", "b", "c"], [Connection("a", 0, "b"), Connection("b", 0, "a"), Connection("b", 0, "c")])
    [['a', 'b']]
    """
    ahead = {name: reached([name], links) for name in names}
    loops = {link.source for link in links if link.source == link.target}
    found: list[list[str]] = []
    seen: set[str] = set()
    for name in names:
        if name in seen:
            continue
        circle = [other for other in names if other in ahead[name] and name in ahead[other]]
        seen.update(circle)
        if len(circle) > 1 or name in loops:
            found.append(circle)
    return found


def port_towards(name: str, other: str, links: Sequence[Connection]) -> int:
    """Return the port of a node that leads to another one, by the shortest way; the first one where there is none.

    >>> port_towards("if", "end", [Connection("if", 1, "set"), Connection("set", 0, "end")])
    1
    """
    todo = [other]
    seen = {other}
    for one in todo:  # which grows
        for link in sorted((link for link in links if link.target == one), key=lambda link: link.input):
            if link.source == name:
                return link.port
            if link.source not in seen:
                seen.add(link.source)
                todo.append(link.source)
    return 0
