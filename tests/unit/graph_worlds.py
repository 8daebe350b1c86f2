"""Random graphs as JSON, a seed each, whose ends do not depend on what comes first.

Where a node starts before all its predecessors have ended it refers to none that may still run.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.unit.graph_making import MOST_DEPTH, Budget, GraphMaker
from tests.unit.graph_oracle import End, Oracle


@dataclass(frozen=True)
class World:
    """A graph, what a run of it is given, and what its waits wait for."""

    seed: int
    graph: dict[str, Any]
    given: Any
    #: The signal that comes; its key is made unique by `salt`.
    payload: Any
    salt: str

    @property
    def metadata(self) -> dict[str, Any]:
        """What the run is started with beside its input."""
        return {"signal": self.signal, "nobody": f"{self.signal}-never"}

    @property
    def signal(self) -> str:
        """The key of the signal that comes."""
        return f"signal-{self.seed}-{self.salt}"

    def expected(self) -> tuple[End, dict[str, End]]:
        """Return how the run has to end, and how each of its nodes."""
        oracle = Oracle({"metadata": self.metadata, "input": self.given}, {self.signal: self.payload})
        return oracle.play(self.graph, self.given), oracle.nodes


def make_world(seed: int, *, salt: str = "", most: int = 200) -> World:
    """Return the world of a seed; its graph has at most so many nodes."""
    chance = random.Random(seed)
    low, high = chance.choices([(1, 8), (9, 30), (31, 200)], [60, 35, 5])[0]
    budget = Budget(min(most, chance.randint(low, high)))
    graph = GraphMaker(chance, budget, MOST_DEPTH, is_root=True).make(budget.nodes)
    given = chance.choice([None, seed % 7, {"n": seed % 50, "list": [1, 2], "word": "red"}, [seed % 3, seed % 5]])
    return World(seed, graph, given, chance.choice([None, 7, {"n": 3}]), salt)
