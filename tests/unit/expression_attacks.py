"""What no hostile expression may do: break out of plain data, take long, take much memory, or fail in another way.

usage: python -m tests.unit.expression_attacks [how many]     (prints a summary; exit code 1 if one broke a rule)
"""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from time import perf_counter, thread_time
from typing import Any
from zoneinfo import ZoneInfo

from headrace.model.expressions.errors import ExpressionError, ExpressionLimitError
from headrace.model.expressions.evaluation import evaluate
from headrace.model.expressions.scope import NodeView, Scope
from tests.unit.expression_attack_list import BY_HAND
from tests.unit.expression_grammar import attacks

MAX_SECONDS, MAX_BYTES = 0.05, 1_000_000
#: What a trace of memory shows beyond the values: frames, the tree of a new expression, objects that are cached.
TRACE_MARGIN = 60_000
#: Parts of the texts that Python's own objects show of themselves: none may come out.
LEAKS = (
    "<class",
    "<function",
    "<built-in",
    "<bound",
    "<module",
    "object at 0x",
    "headrace.",
    "datetime.",
    "mappingproxy",
)
#: What only attributes of Python's objects lead to, as the globals of the function that finds nodes.
CANARY = "canary-7f3a"


def make_scope() -> Scope:
    """Return what the expressions see: data under names that mean something to Python and to JavaScript."""
    secret = {"value": "s", "__class__": {"__init__": {"__globals__": ["plain data"]}}, "constructor": "plain data"}
    record = {
        **{"a": 1, "b": "text", "c": [1, 2, 3], "d": {"e": {"f": None}}, "secret": secret},
        **{"long": "ab" * 20_000, "wide": "äß€😀" * 2_000, "rows": [{"n": n % 97, "t": f"t{n}"} for n in range(2_000)]},
        **{"deep": deep_list(200), "big": 10**300, "json": '{"a": [1, 2, {"b": null}]}', "date": "2026-03-29T02:30:00"},
    }
    items = [{"json": record}, {"json": {"a": 2}}]
    node = NodeView("A", items, items[0])
    now = datetime(2026, 3, 1, 9, tzinfo=ZoneInfo("Europe/Berlin"))
    return Scope(items[0], 0, items, lambda name: node, {"v": "w"}, now, {"id": "r1", "mode": "manual"})


def deep_list(depth: int) -> list[Any]:
    """Return lists within each other."""
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


@dataclass
class Tally:
    """What became of the expressions."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    largest: int = 0
    slowest: str = ""
    broken: list[str] = field(default_factory=list)

    def add(self, text: str, scope: Scope, *, shown: bool = True) -> None:
        """Evaluate one, and note what it broke; `shown`: look through what comes out, too."""
        spent, outcome, result = timed(text, scope)
        if spent > MAX_SECONDS:  # other processes may have been in the way: it counts if it is slow again
            spent = min(spent, *(timed(text, scope)[0] for _ in range(4)))
        if spent > MAX_SECONDS:  # and if the time was its own
            spent = min(spent, *(worked(text, scope) for _ in range(3)))
        if spent > max(self.seconds, default=0.0):
            self.slowest = text[:300]
        self.seconds.append(spent)
        self.outcomes[outcome] += 1
        if spent > MAX_SECONDS:
            self.broken.append(f"{spent * 1000:.1f} ms: {text[:300]}")
        if outcome == "other":
            self.broken.append(f"{result!r}: {text[:300]}")
        elif outcome == "value" and shown:
            self.judge(text, result)
        elif CANARY in str(result):
            self.broken.append(f"an error shows what it must not: {text[:300]}")

    def judge(self, text: str, result: Any) -> None:
        try:
            made = json.dumps(result, ensure_ascii=False, allow_nan=False)
            size = len(made.encode())
        except (ValueError, TypeError, RecursionError) as error:
            self.broken.append(f"{error!r}: {text[:300]}")
            return
        self.largest = max(self.largest, size)
        if size > MAX_BYTES or not is_plain(result):
            self.broken.append(f"{size} bytes, or no plain data: {text[:300]}")
        if any(leak in made for leak in (CANARY, *LEAKS) if leak not in text):
            self.broken.append(f"a Python object shows: {text[:300]}")

    def summary(self) -> str:
        """Return the figures."""
        times = sorted(self.seconds)
        late = times[min(len(times) - 1, int(len(times) * 0.999))]
        counts = ", ".join(f"{name} {count}" for name, count in sorted(self.outcomes.items()))
        return (
            f"{len(times)} expressions: {counts}\n"
            f"time: median {times[len(times) // 2] * 1e6:.0f} us, p99.9 {late * 1000:.2f} ms, "
            f"max {times[-1] * 1000:.2f} ms\n"
            f"largest result: {self.largest} bytes\nslowest: {self.slowest}\nrules broken: {len(self.broken)}"
        )


def timed(text: str, scope: Scope) -> tuple[float, str, Any]:
    """Return how long one takes, how it ends ("value", an error's code, "other") and what comes out."""
    began = perf_counter()
    try:
        result: Any = evaluate(text, scope)
        outcome = "value"
    except ExpressionLimitError as error:
        result, outcome = error, "expr_limit"
    except ExpressionError as error:
        result, outcome = error, "expression"
    except BaseException as error:  # whatever else comes out is what is looked for
        result, outcome = error, "other"
    return perf_counter() - began, outcome, result


def worked(text: str, scope: Scope) -> float:
    """Return how much time of the processor one takes."""
    began = thread_time()
    timed(text, scope)
    return thread_time() - began


def is_plain(value: Any) -> bool:
    """Whether a value is JSON of the very types, and not of others that look like them."""
    if type(value) is dict:
        return all(type(name) is str and is_plain(one) for name, one in value.items())
    if type(value) is list:
        return all(is_plain(one) for one in value)
    return value is None or type(value) in (str, int, float, bool)


def run_attacks(count: int, seed: int = 7) -> Tally:
    """Evaluate so many, with the collector of garbage off: its pauses are not theirs."""
    scope, tally = make_scope(), Tally()
    before = json.dumps(scope.items, default=str)
    gc.disable()
    try:
        for number, text in enumerate(attacks(count, seed)):
            tally.add(text, scope)
            if number % 1_000 == 999:
                gc.collect(0)
    finally:
        gc.enable()
    if json.dumps(scope.items, default=str) != before:
        tally.broken.append("the data of the scope was changed")
    return tally


def peak_of(text: str, scope: Scope) -> int:
    """Return how many bytes an evaluation holds at most beyond what was there before it, its parsing left out."""
    timed(text, scope)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        ended = timed(text, scope)
        _, peak = tracemalloc.get_traced_memory()
        del ended
    finally:
        tracemalloc.stop()
    return peak - before


def main(arguments: list[str]) -> int:
    """Run, print, and return the exit code."""
    tally = run_attacks(int(arguments[0]) if arguments else 3_000)
    print(tally.summary())
    for line in tally.broken[:40]:
        print("BROKEN", line)
    scope = make_scope()
    peaks = sorted((peak_of(text, scope), text[:200]) for text in attacks(len(BY_HAND) + 2_000, seed=5))
    print(f"memory: peak {peaks[-1][0]} bytes of {len(peaks)} traced: {peaks[-1][1]}")
    return 1 if tally.broken or peaks[-1][0] > MAX_BYTES + TRACE_MARGIN else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
