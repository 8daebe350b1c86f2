"""`headrace memory figures`: how much of each kind of work is done, how fast, and what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from headrace.apps.flows.commands.telling import json_option, tell, tell_json, tell_table
from headrace.apps.memory.commands.opening import carry_out

if TYPE_CHECKING:
    from headrace.apps.memory.memory import Memory

COLUMNS = ("KIND", "PER MINUTE", "MEAN MS", "P50 MS", "P99 MS", "ERRORS", "WAITING", "SLOTS")


@click.command()
@json_option
def figures(as_json: bool) -> None:
    """Show figures of each kind of work, of all processes together: those of the last minutes.

    \b
    Examples:
      headrace memory figures
      headrace memory figures --json
    """
    found = carry_out(_figures)
    if as_json:
        tell_json(found)
        return
    tell_table(COLUMNS, [_row(kind, one) for kind, one in found["kinds"].items()])
    tell(", ".join(f"{name}: {count:,}" for name, count in found["counts"].items()) or "the tables are empty")
    cache = found["cache"]
    if cache is not None:
        tell(f"cache: {cache['entries']:,} entries, {100 * cache['hit_rate']:.0f} % hits")


async def _figures(memory: Memory) -> dict[str, Any]:
    from headrace.apps.memory.figures import memory_figures
    from headrace.apps.memory.means import TABLES

    return (await memory_figures(memory.app, TABLES)).to_json()


def _row(kind: str, one: dict[str, Any]) -> tuple[object, ...]:
    return (
        kind, one["throughput_per_min"], one["avg_latency_ms"], one["p50_latency_ms"], one["p99_latency_ms"],
        f"{100 * one['error_rate']:.1f} %", one["queue_depth"], one["pool_size"],
    )  # fmt: skip
