"""Which server to ask: the one named, the primary that sentinels name, or the cluster's owner of our slot.

All keys of a namespace carry one hash tag, so in a cluster too there is one server to ask at a time.
"""

from __future__ import annotations

import binascii
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from headrace.model.errors import ConfigError, HeadraceError, StoreUnavailableError
from headrace.stores.redis.addresses import Address, Kind, Login, Node
from headrace.stores.redis.faults import RefusedError, shown, unreachable
from headrace.stores.redis.wire import Entry, Wire, connect

SLOTS = 16_384
#: A sentinel or cluster node that does not answer within this is passed over.
ASK_WITHIN = timedelta(seconds=2)
_NAMED = {Kind.SENTINEL: "a sentinel", Kind.CLUSTER: "a node of a cluster"}


class Finder:
    """Finds the server to ask. It remembers the nodes of a cluster: those that the address names may all be gone."""

    def __init__(self, address: Address, root: str) -> None:
        self._address, self._slot = address, slot_of(root)
        self._cluster: tuple[Node, ...] = ()

    async def find(self) -> Node:
        """Return the server to ask now. Raises StoreUnavailableError."""
        address = self._address
        if address.kind is Kind.SERVER:
            return address.nodes[0]
        if address.kind is Kind.SENTINEL:
            return await _first(
                address, address.nodes, address.sentinel_login, lambda wire: _ask_sentinel(wire, address)
            )
        nodes = tuple(dict.fromkeys([*address.nodes, *self._cluster]))
        return await _first(address, nodes, address.login, self._ask_cluster)

    async def _ask_cluster(self, wire: Wire) -> Node | None:
        ranges = await wire.ask(("CLUSTER", "SLOTS"))
        owner = next((held[0] for first, last, *held in ranges if first <= self._slot <= last), None)
        if owner is None:
            return None
        self._cluster = tuple(
            dict.fromkeys(_cluster_node(facts, wire.node) for _, _, *held in ranges for facts in held)
        )
        return _cluster_node(owner, wire.node)


async def _first(
    address: Address, nodes: tuple[Node, ...], login: Login, ask: Callable[[Wire], Awaitable[Node | None]]
) -> Node:
    """Ask one node after another until one knows."""
    entry = Entry(login, address.tls, wait=ASK_WITHIN, timeout=ASK_WITHIN, setting=address.setting)
    last: HeadraceError | None = None
    for node in nodes:
        try:
            wire = await connect(node, entry)
            try:
                if (found := await ask(wire)) is not None:
                    return found
            except RefusedError as error:
                raise ConfigError(
                    f"{address.setting} must name {_NAMED[address.kind]}, as its scheme says, got {node}, which is "
                    f"none: {shown(error.answer)}. Write redis://HOST:PORT for a server of its own"
                ) from None
            finally:
                await wire.close()
        except (StoreUnavailableError, ConfigError) as error:
            # What does not pass by itself is the better word where nobody knows.
            if last is None or not error.transient:
                last = error
    if last is not None and not last.transient:
        raise last
    what = f"no sentinel knows a primary of {address.service!r}" if address.service else "no node knows our slot"
    raise unreachable(address.shown, what, address.setting) from last


async def _ask_sentinel(wire: Wire, address: Address) -> Node | None:
    answer = await wire.ask(("SENTINEL", "GET-MASTER-ADDR-BY-NAME", address.service))
    return Node(str(answer[0]), int(answer[1])) if answer else None


def _cluster_node(facts: list[Any], asked: Node) -> Node:
    host, port, _, *rest = facts
    if host == "?":  # it has no name; its address stands beside
        beside = rest[0] if rest else []
        host = dict(zip(beside[::2], beside[1::2], strict=True)).get("ip")
    # None means the one that was asked.
    return Node(host or asked.host, int(port))


def slot_of(root: str) -> int:
    """Return the cluster's slot of the keys of a namespace; `root` is its name in braces.

    >>> slot_of("{user1000}") == slot_of("{user1000}:ready:default")
    True
    """
    start = root.find("{")
    end = root.find("}", start + 1)
    tag = root[start + 1 : end] if 0 <= start < end - 1 else root
    return binascii.crc_hqx(tag.encode(), 0) % SLOTS
