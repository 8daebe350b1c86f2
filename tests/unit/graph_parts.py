"""Small parts of random graphs, as JSON."""

from __future__ import annotations

import random
from typing import Any

from tests.unit.graph_tasks import ALWAYS, ERRORS, WORDS


def make_condition(chance: random.Random, port: str = "main", *, deep: bool = True) -> dict[str, Any]:
    """Return a condition on what leaves a node by a port."""
    if deep and chance.random() < 0.2:
        parts = [make_condition(chance, port, deep=False) for _ in range(2)]
        return chance.choice([{"all": parts}, {"any": parts}, {"not": parts[0]}])
    if port == "error":
        return {"path": ["kind"], "op": "in", "value": ["ValueError", "failed", "entries_failed"]}
    return chance.choice(
        [
            {"path": ["n"], "op": "lt", "value": chance.randint(30, 90)},
            {"path": "n", "op": "ge", "value": chance.randint(10, 70)},
            {"path": "word", "op": "in", "value": list(WORDS[:2])},
            {"path": ["word"], "op": "eq", "value": "blue"},
            {"path": "list.0", "op": "exists"},
            {"op": "truthy"},
        ]
    )


def make_failure(chance: random.Random) -> dict[str, Any]:
    """Return the part of a plan that says how a task fails, and when."""
    how = chance.choices([*ERRORS, "retry", "fail", "cancel"], [4, 4, 4, 2, 2, 1])[0]
    if how in ("fail", "cancel") or chance.random() < 0.5:
        return {"how": how, "fails_below": chance.choice([30, 60, 100])}
    return {"how": how, "fails": chance.choice([1, 1, 2, 3, ALWAYS])}


def make_rule(chance: random.Random) -> dict[str, Any]:
    """Return the retry policy of a node; its waits are short."""
    rule: dict[str, Any] = {"strategy": "fixed", "base": chance.choice([0, 0.002]), "jitter": False}
    rule["max_tries"] = chance.choice([1, 2, 3, 5])
    if chance.random() < 0.3:
        rule["on"] = chance.choice([["ValueError"], ["LookupError", "OSError"]])
    return rule
