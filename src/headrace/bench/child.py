"""The process that measures one contender once: reads an order from standard input and answers on standard output.

Its own process, so that what one contender imports, allocates and leaves behind touches no other.
"""

from __future__ import annotations

import sys
from importlib import import_module

from headrace.bench.catalogue import CONTENDERS, WORKLOADS
from headrace.bench.contenders.base import Contender, UnsupportedError
from headrace.bench.ending import run_in_order
from headrace.bench.order import Answer, Order


def main() -> None:
    """Carry out one order."""
    order = Order.from_json(sys.stdin.read())
    try:
        # The blocks that end workers are left in order.
        answer = Answer(figures=run_in_order(measure(order)))
    except UnsupportedError as error:
        answer = Answer(missing=str(error))
    except Exception as error:  # whatever a job system raises is its result
        answer = Answer(failed=f"{type(error).__name__}: {error}")
    sys.stdout.flush()
    print(f"\n{answer.to_line()}", flush=True)  # noqa: T201 - the answer to the parent


async def measure(order: Order) -> dict[str, float]:
    """Return the figures of one order."""
    entry = CONTENDERS[order.contender]
    loop = entry.loops.get(order.workload)
    if loop is not None:
        figures: dict[str, float] = await _load(loop)(order)
        return figures
    if not entry.target:
        raise UnsupportedError(f"{order.contender} has no {order.workload}")
    contender: Contender = _load(entry.target)(order)
    await contender.set_up()
    await contender.open()
    try:
        figures = await _load(WORKLOADS[order.workload].target)(contender, order)
    finally:
        await contender.close()
    return figures


def _load(target: str):  # type: ignore[no-untyped-def] # a function or class by name
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


if __name__ == "__main__":
    main()
