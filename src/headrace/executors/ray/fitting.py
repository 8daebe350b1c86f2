"""How many more jobs fit on the nodes of a cluster: pure rules over what was seen of them last."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

#: Amounts of a resource by its name, as Ray names it.
Amounts = Mapping[str, float]
#: Ray counts in ten-thousandths.
_TINY = 1e-5


@dataclass(frozen=True, slots=True)
class Node:
    """A node that lives: what it has, and how much of that nobody uses."""

    id: str
    total: Amounts
    free: Amounts


def wanted(need: Amounts, nodes: Iterable[Node]) -> dict[str, float]:
    """Return what is asked for a job: shares of GPUs only where some node has one.

    >>> wanted({"CPU": 1.0, "GPU": 0.5}, [Node("a", {"CPU": 4.0}, {})])
    {'CPU': 1.0}
    """
    gpus = any(node.total.get("GPU", 0.0) > 0 for node in nodes)
    return {name: amount for name, amount in need.items() if name != "GPU" or gpus}


def in_words(need: Amounts) -> str:
    """Return a need in words.

    >>> in_words({"CPU": 1.0, "ssd": 0.5})
    '1 CPU, 0.5 ssd'
    """
    return ", ".join(f"{amount:g} {name}" for name, amount in need.items())


def fits(need: Amounts, left: Amounts) -> int:
    """Return how often a need fits into what is left.

    >>> fits({"CPU": 0.5, "ssd": 1.0}, {"CPU": 4.0, "ssd": 3.0}), fits({"CPU": 1.0}, {"CPU": -0.5})
    (3, 0)
    """
    counts = (math.floor((left.get(name, 0.0) + _TINY) / amount) for name, amount in need.items() if amount > 0)
    return max(0, min(counts, default=0))


def capacity(need: Amounts, nodes: Sequence[Node]) -> int:
    """Return how many jobs the nodes could run at once if nobody else used them.

    >>> capacity({"CPU": 3.0}, [Node(name, {"CPU": 4.0}, {}) for name in "ab"])
    2
    """
    return sum(fits(need, node.total) for node in nodes)


def room(
    queue: str, needs: Mapping[str, Amounts], nodes: Sequence[Node], mine: Counter[str], peak: Counter[str]
) -> int:
    """Return how many more jobs of a queue fit beside `mine`, by queue, and what others use.

    What others use is what is used beyond `peak`: the most that was ours, by queue, around the time of the last look,
    which may or may not have seen all of it.

    >>> nodes = [Node("a", {"CPU": 4.0}, {"CPU": 1.0}), Node("b", {"CPU": 4.0}, {"CPU": 4.0})]
    >>> needs = {"llm": {"CPU": 1.0}, "big": {"CPU": 4.0}}
    >>> room("llm", needs, nodes, Counter(llm=2), Counter(llm=2)), room("big", needs, nodes, Counter(), Counter())
    (5, 1)
    """
    left = _beside_others(needs, nodes, peak)
    for name, count in sorted(mine.items(), key=lambda item: -_size(needs.get(item[0], {}))):
        _place(needs.get(name, {}), count, left)
    return sum(fits(needs[queue], one) for one in left)


def _beside_others(needs: Mapping[str, Amounts], nodes: Sequence[Node], peak: Counter[str]) -> list[dict[str, float]]:
    """Return what each node has beside what others use; what is ours is taken for used where most is."""
    ours: Counter[str] = Counter()
    for name, count in peak.items():
        for resource, amount in needs.get(name, {}).items():
            ours[resource] += amount * count  # type: ignore[assignment]  # floats
    left = []
    for node in sorted(nodes, key=_share_used, reverse=True):
        rest = dict(node.total)
        for resource, total in node.total.items():
            used = max(0.0, total - node.free.get(resource, 0.0))
            of_ours = min(used, ours[resource])
            ours[resource] -= of_ours  # type: ignore[assignment]
            rest[resource] = total - (used - of_ours)
        left.append(rest)
    return left


def _share_used(node: Node) -> float:
    total = node.total.get("CPU", 0.0)
    return (total - node.free.get("CPU", 0.0)) / total if total else 0.0


def _size(need: Amounts) -> float:
    return sum(need.values())


def _place(need: Amounts, count: int, left: list[dict[str, float]]) -> None:
    """Take what so many jobs need, where they fit; what fits nowhere is taken from the first node all the same."""
    for one in left:
        here = min(count, fits(need, one))
        _take(need, here, one)
        count -= here
    if count and left:
        _take(need, count, left[0])


def _take(need: Amounts, count: int, one: dict[str, float]) -> None:
    for resource, amount in need.items():
        one[resource] = one.get(resource, 0.0) - amount * count
