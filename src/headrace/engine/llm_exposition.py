"""Figures of model calls as Prometheus reads them: its text format, by the names of docs/reference/metrics.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.engine.llm_queries import ModelFigures, PoolView
from headrace.model.money import to_dollars
from headrace.model.spend import SpendRow


def _today(value: Callable[[SpendRow], float]) -> Callable[[PoolView], float]:
    return lambda pool: value(pool.today) if pool.today is not None else 0.0


#: Kind, meaning and value of each metric of a pool.
METRICS: dict[str, tuple[str, str, Callable[[PoolView], float]]] = {
    "headrace_llm_pool_in_flight": ("gauge", "Calls in flight.", lambda pool: pool.in_flight),
    "headrace_llm_pool_waiting": ("gauge", "Calls that wait for the quota.", lambda pool: pool.waiting),
    "headrace_llm_pool_closed_seconds": (
        "gauge", "For how much longer nothing passes.", lambda pool: pool.closed.total_seconds(),
    ),
    "headrace_llm_pool_waits": ("gauge", "Calls of live processes that had to wait.", lambda pool: pool.waits),
    "headrace_llm_pool_waited_seconds": (
        "gauge", "How long these waited together.", lambda pool: pool.waited.total_seconds(),
    ),
    "headrace_llm_pool_rate_limited": ("gauge", "429s that live processes met.", lambda pool: pool.refused),
    "headrace_llm_pool_overloaded": ("gauge", "Refusals for overload that they met.", lambda pool: pool.overloaded),
    "headrace_llm_pool_calls_today": ("gauge", "Paid calls of this day (UTC).", _today(lambda row: row.usage.calls)),
    "headrace_llm_pool_input_tokens_today": (
        "gauge", "Tokens of their prompts.", _today(lambda row: row.usage.input_tokens),
    ),
    "headrace_llm_pool_output_tokens_today": (
        "gauge", "Tokens of their answers.", _today(lambda row: row.usage.output_tokens),
    ),
    "headrace_llm_pool_spent_usd_today": (
        "gauge", "Money of those with a known price.", _today(lambda row: float(to_dollars(row.usage.cost_nano))),
    ),
    "headrace_llm_pool_unpriced_calls_today": (
        "gauge", "Paid calls whose price is not known.", _today(lambda row: row.usage.unpriced),
    ),
    "headrace_llm_pool_orphaned_calls_today": (
        "gauge", "Calls that may have been paid for nothing.", _today(lambda row: row.orphaned),
    ),
    "headrace_llm_pool_orphaned_usd_today": (
        "gauge", "What these may have cost at most.", _today(lambda row: float(to_dollars(row.orphaned_nano))),
    ),
}  # fmt: skip
FLOW = "headrace_llm_pool_flow_per_minute"
PURPOSES = "headrace_llm_calls_by_purpose_today"
HITS = "headrace_llm_memo_hits"


def expose_models(figures: ModelFigures) -> str:
    """Return the figures of model calls.

    >>> print(expose_models(ModelFigures([], [], 3)).splitlines()[-1])
    headrace_llm_memo_hits 3
    """
    return "\n".join(_lines(figures)) + "\n"


def _lines(figures: ModelFigures) -> Iterator[str]:
    for name, (kind, meaning, value) in METRICS.items():
        yield from _head(name, kind, meaning)
        for pool in figures.pools:
            yield f'{name}{{pool="{_label(pool.name)}"}} {float(value(pool)):g}'
    yield from _head(FLOW, "gauge", "What flows of a quota that is known or learnt.")
    for pool in figures.pools:
        for dimension, flow in sorted(pool.flows.items()):
            yield f'{FLOW}{{pool="{_label(pool.name)}",dimension="{dimension}"}} {60 * flow:g}'
    yield from _head(PURPOSES, "gauge", "Paid calls of this day (UTC): first asks, repairs, items asked again.")
    for row in figures.purposes:
        yield f'{PURPOSES}{{purpose="{row.name}"}} {row.usage.calls}'
    yield from _head(HITS, "gauge", "Asks of live processes that cost nothing.")
    yield f"{HITS} {figures.memo_hits}"


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def _label(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
