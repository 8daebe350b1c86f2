"""The structure of a flow: what runs at all, in which order, and which nodes are the bodies of loops.

A flow may lead back into a node of the shape `loop`; everything its loop port leads to, until it comes back there, is
its body. Graphs of the engine have no cycles: a body is a block of its own. A node that is reached both from within a
loop and from outside of it is in both blocks, for it runs in each round and once more outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.apps.flows.components import components, in_order, reached
from headrace.apps.flows.form import MAIN, Connection, Flow
from headrace.nodes.base import NodeType, Shape

LOOP_PORT, DONE_PORT = "loop", "done"
#: Loops that a loop may stand in: a graph of the engine has eight levels.
MAX_LOOPS = 6


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A connection or a reference that cannot be kept to, and at which node."""

    node: str
    message: str


@dataclass(slots=True)
class Block:
    """Nodes that one graph has: those of a flow, or those of a loop's body."""

    #: Each after those that lead to it; a loop's header stands for the loop.
    names: list[str]
    #: Connections between them; in a body also those from the header.
    links: list[Connection]
    #: Bodies by header.
    loops: dict[str, Block] = field(default_factory=dict)
    #: Of a body: the loop's header, and the connections that lead back to it.
    header: str | None = None
    returns: list[Connection] = field(default_factory=list)
    #: Nodes that have to end before another one starts, though no connection says so: an expression does.
    after: dict[str, set[str]] = field(default_factory=dict)
    #: Of a body: nodes outside of it that it refers to.
    outer: set[str] = field(default_factory=set)

    @property
    def leaves(self) -> list[str]:
        """The nodes that lead to no other."""
        sources = {link.source for link in self.links}
        return [name for name in self.names if name not in sources]


def arrange(
    flow: Flow, types: Mapping[str, NodeType], refers: Callable[[str], Iterable[str]]
) -> tuple[Block, list[Misplaced]]:
    """Return the block of a flow, and what cannot be arranged. `refers`: the nodes that a node's expressions name."""
    arranger = _Arranger(flow, types)
    live = reached([name for name, kind in types.items() if _begins(flow, name, kind)], arranger.links)
    block = arranger.block(live, arranger.links)
    _Referring(flow, refers, arranger.faults, live).settle(block)
    return block, arranger.faults


def _begins(flow: Flow, name: str, kind: NodeType) -> bool:
    return kind.shape is Shape.TRIGGER and not flow.nodes[name].disabled


class _Arranger:
    """Finds the blocks of a flow, and what cannot be arranged."""

    def __init__(self, flow: Flow, types: Mapping[str, NodeType]) -> None:
        self._flow, self._types = flow, types
        self.links = [
            link for link in flow.connections
            if link.kind == MAIN and link.source in types and link.target in types and not self._is_idle(link)
        ]  # fmt: skip
        self.faults: list[Misplaced] = []

    def block(self, names: Iterable[str], links: Sequence[Connection], depth: int = 0) -> Block:
        """Return the block of nodes; connections that lead elsewhere are left out."""
        wanted = set(names)
        names = [name for name in self._flow.nodes if name in wanted]
        links = [link for link in links if link.source in names and link.target in names]
        headers = self._headers(names, links)
        bodies = {name: self._body(name, links) for name in headers}
        roots = [name for name in names if not any(link.target == name for link in links if link.source != name)]
        entries = [name for name in headers if not any(name in body for body in bodies.values())]
        outside = reached(roots + entries, [link for link in links if not self._enters_body(link, headers)])
        for name, body in bodies.items():
            self._check_apart(name, body, outside, links)
        block = Block([], [])
        block.loops = {name: self._loop(name, body, links, depth) for name, body in bodies.items() if name in outside}
        block.links = [
            link for link in links
            if link.source in outside and link.target in outside and not self._enters_body(link, headers)
            and not self._returns(link, bodies)
        ]  # fmt: skip
        inside = [name for name in names if name in outside]
        for circle in components(inside, block.links):
            if any(name in headers for name in circle):
                rule = "leads back into a loop from behind its end, by the port done; lead back from the port loop"
                self.faults.append(Misplaced(circle[0], f"{' → '.join([*circle, circle[0]])} {rule}"))
        block.names = in_order(inside, block.links)
        return block

    def _headers(self, names: Sequence[str], links: Sequence[Connection]) -> list[str]:
        """Return the outermost loops; a cycle that none of them heads is a fault."""
        headers = [name for name in names if self._is_loop(name)]
        for circle in components(names, links):
            entered = {link.target for link in links if link.target in circle and link.source not in circle}
            heads = [name for name in circle if self._is_loop(name) and (entered == {name} or not entered)]
            if not heads:
                self._blame(circle, entered)
            headers = [name for name in headers if name not in circle or name in heads[:1]]
        return headers

    def _blame(self, circle: Sequence[str], entered: set[str]) -> None:
        shown = " → ".join([*circle, circle[0]])
        loops = [name for name in circle if self._is_loop(name)]
        if not loops:
            why = "leads back to where it comes from, and no splitInBatches (Loop Over Items) stands in between"
            self.faults.append(Misplaced(circle[0], f"{shown}: {why}; put one there, for a flow has to come to an end"))
            return
        others = ", ".join(sorted(entered - {loops[0]}))
        rule = f"is part of the loop {loops[0]} and is led to from outside of it as well; lead to {loops[0]} instead"
        self.faults.append(Misplaced(sorted(entered - {loops[0]})[0] if others else circle[0], f"{others} {rule}"))

    def _is_loop(self, name: str) -> bool:
        return self._types[name].shape is Shape.LOOP and not self._flow.nodes[name].disabled

    def _is_idle(self, link: Connection) -> bool:
        """Whether a connection is of a disabled loop: that passes its items on by its first port alone."""
        idle = self._types[link.source].shape is Shape.LOOP and self._flow.nodes[link.source].disabled
        return idle and link.port != 0

    def _loop_port(self, name: str) -> int:
        node = self._flow.nodes[name]
        return self._types[name].ports(node.parameters, node.version).outputs.index(LOOP_PORT)

    def _enters_body(self, link: Connection, headers: Sequence[str]) -> bool:
        return link.source in headers and link.port == self._loop_port(link.source)

    @staticmethod
    def _returns(link: Connection, bodies: Mapping[str, set[str]]) -> bool:
        return link.target in bodies and link.source in bodies[link.target]

    def _body(self, header: str, links: Sequence[Connection]) -> set[str]:
        port = self._loop_port(header)
        first = [link.target for link in links if link.source == header and link.port == port and link.target != header]
        return reached(first, [link for link in links if header not in (link.source, link.target)])

    def _check_apart(self, header: str, body: set[str], outside: set[str], links: Sequence[Connection]) -> None:
        for link in links:
            if link.target == header and link.source in body and link.source in outside:
                rule = f"leads back to the loop {header} and is reached from outside of its body as well"
                self.faults.append(Misplaced(link.source, f"{link.source} {rule}; draw two nodes"))

    def _loop(self, header: str, body: set[str], links: Sequence[Connection], depth: int) -> Block:
        if depth >= MAX_LOOPS:
            self.faults.append(Misplaced(header, f"{header} stands in more than {MAX_LOOPS} loops"))
            return Block([], [], header=header)
        port = self._loop_port(header)
        block = self.block(body, links, depth + 1)
        entering = [link for link in links if link.source == header and link.port == port]
        block.header = header
        block.links = [link for link in entering if link.target in body] + block.links
        back = [link for link in links if link.target == header and link.source in block.names]
        block.returns = [link for link in entering if link.target == header] + back
        return block


@dataclass(slots=True)
class _Referring:
    """Sees to it that what expressions refer to has ended when they are evaluated."""

    flow: Flow
    refers: Callable[[str], Iterable[str]]
    faults: list[Misplaced]
    live: set[str]

    def settle(self, block: Block, around: frozenset[str] = frozenset()) -> None:
        """Note for each node of a block what it waits for; `around`: what is seen from outside of it."""
        visible = around | set(block.names) | ({block.header} if block.header else set())
        for name, body in block.loops.items():
            self.settle(body, visible - {name})
        for name in list(block.names):
            loop = block.loops.get(name)
            wanted = set(self.refers(name)) | (set() if loop is None else loop.outer)
            for other in sorted(wanted - {name}):
                self._refer(block, name, other, around)

    def _refer(self, block: Block, name: str, other: str, around: frozenset[str]) -> None:
        if other in block.names:
            self._put_after(block, name, other)
        elif other == block.header:
            pass  # what the round began with
        elif other in around:
            block.outer.add(other)
        else:
            self.faults.append(Misplaced(name, f"an expression refers to {other!r}, {self._why_not(other)}"))

    def _why_not(self, other: str) -> str:
        if other not in self.flow.nodes:
            return "and there is no node of that name"
        if other not in self.live:
            return "which no trigger leads to, so that it never runs"
        return "which is in the body of a loop: its items cannot be seen from here; use the loop's output"

    def _put_after(self, block: Block, name: str, other: str) -> None:
        ways = [(link.source, link.target) for link in block.links]
        ways += [(before, one) for one, befores in block.after.items() for before in befores]
        if name in _behind(other, ways):
            return
        if other in _behind(name, ways):
            self.faults.append(Misplaced(name, f"an expression refers to {other!r}, which comes behind it"))
            return
        block.after.setdefault(name, set()).add(other)
        pseudo = [Connection(one, 0, target) for one, target in [*ways, (other, name)]]
        block.names = in_order(block.names, pseudo)


def _behind(name: str, ways: Iterable[tuple[str, str]]) -> set[str]:
    """Return the nodes that ways lead to from a node."""
    found: set[str] = set()
    todo = [name]
    for one in todo:  # which grows
        fresh = {target for source, target in ways if source == one} - found
        found |= fresh
        todo += sorted(fresh)
    return found
