"""What gates cost: a plain queue beside a gated one, fair shares, and keys beside one with a deep backlog.

Each drain is that of `drain.py`: one worker process, from the first job seen done to the last, all on one server. What
is compared is measured there and back again, so that a machine that grows slower spoils neither side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.bench.contenders.ours import Headrace
from headrace.bench.drain import drain_filled
from headrace.bench.order import Order

#: Jobs behind the key that is taken.
BEHIND = 50_000
NO_GATE: list[dict[str, Any]] = [{}]
SHARES = [{"fair_key": f"share{number}"} for number in range(8)]
KEYS = [{"concurrency_key": f"key{number}", "key_limit": 10} for number in range(20)]
TAKEN: dict[str, Any] = {"concurrency_key": "taken", "key_limit": 1}


async def gated(contender: Headrace, order: Order) -> dict[str, float]:
    """Measure drains of `order.jobs` jobs each: plain, of fair shares, of keys; then beside a key that is taken."""
    plain = [await _rate(contender, order, "noop", NO_GATE)]
    fair = [await _rate(contender, order, "shared", SHARES)]
    keys = [await _rate(contender, order, "keyed", KEYS)]
    # The first of them starts and does not end; the others wait behind it.
    waiting = await contender.submit("hold", BEHIND, **TAKEN)
    keys_beside = [await _rate(contender, order, "keyed", KEYS) for _ in range(2)]
    plain_beside = [await _rate(contender, order, "noop", NO_GATE) for _ in range(2)]
    await waiting.cancel()
    plain.append(await _rate(contender, order, "noop", NO_GATE))
    fair.append(await _rate(contender, order, "shared", SHARES))
    keys.append(await _rate(contender, order, "keyed", KEYS))
    return {
        "plain": _mean(plain),
        "beside": _mean(plain_beside) / _mean(plain),
        "fair": _mean(fair) / _mean(plain),
        "keys": _mean(keys) / _mean(plain),
        "behind": _mean(keys) / _mean(keys_beside),
    }


async def _rate(contender: Headrace, order: Order, task: str, gates: Sequence[dict[str, Any]]) -> float:
    before = await contender.done()
    await contender.enqueue_behind(task, order.jobs, gates)
    return (await drain_filled(contender, order, before=before))["per_second"]


def _mean(rates: Sequence[float]) -> float:
    return sum(rates) / len(rates)
