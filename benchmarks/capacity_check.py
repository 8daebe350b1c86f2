"""How far predictions are from what was measured: composed costs beside whole jobs, and speeds of a quiet machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.capacity_costs import JobCosts, Load, Work, alone_costs, whole_costs
from benchmarks.capacity_day import MINUTES, Fleet, Server, Traffic, exchange_size, simulate

RESULTS = Path(__file__).parent / "results"
#: Far more than one worker on two cores gets through.
FLOOD = 300_000 * 86_400
#: The same hour after hour.
FLAT = (1.0,) * 24


def check(measured: Mapping[str, Any], costs: JobCosts) -> list[dict[str, Any]]:
    """Return what was predicted and what was measured, of costs in the same run and of speeds in the published one."""
    published = json.loads((RESULTS / "all.json").read_text("utf-8"))
    commit_ms = json.loads((RESULTS / "workflows.json").read_text("utf-8"))["figures"]["commit"]
    return [*_costs(measured, costs), *_speeds(measured, costs, published, _middle(commit_ms))]


def _middle(rounds: list[Mapping[str, float]]) -> float:
    values = sorted(one["ms a step"] for one in rounds)
    return values[len(values) // 2]


def _costs(measured: Mapping[str, Any], costs: JobCosts) -> list[dict[str, Any]]:
    """Compare the costs of verbs, put together, with those of whole jobs in the same run."""
    whole = {name: whole_costs(arm) for name, arm in measured["whole"].items()}
    rows = []
    for name in ("drain, 400 slots", "drain, 10 slots"):
        arm, size = whole[name], 1 / whole[name]["commits"]
        rows.append(_row(f"{name}: log, bytes a job", costs.exchanges.at(size).wal_bytes, arm["wal_bytes"]))
    # Of the drain before it the factor `background` is made.
    server_us = costs.exchanges.at(size).server_us * costs.background
    rows.append(_row(f"{name}: server, µs a job", server_us, arm["server_us"]))
    flood, brisk, idle = whole["64 callers and a worker"], whole["one by one, brisk"], whole["nothing, a second"]
    size = 2 / flood["commits"]
    both = costs.enqueue.at(size) + costs.exchanges.at(size)
    rows.append(_row("64 callers and a worker: log, bytes a job", both.wal_bytes, flood["wal_bytes"]))
    rows.append(
        _row("64 callers and a worker: server, µs a job", both.server_us * costs.background, flood["server_us"])
    )
    lone = alone_costs(whole)
    alone = costs.enqueue.at(1) + costs.work.at(1)
    for figure, what in (("wal_bytes", "log, bytes"), ("server_us", "server, µs")):
        rows.append(_row(f"one by one, 50 a second: {what} a job", getattr(alone, figure), getattr(lone, figure)))
    met = exchange_size(brisk["rate"], Server(fsyncs=1000 / measured["disk"]["commit_ms"]), rtt_ms=0)
    some = costs.enqueue.at(1) + costs.work.at(met)
    for figure, what in (("commits", "commits"), ("wal_bytes", "log, bytes"), ("server_us", "server, µs")):
        found = brisk[figure] - idle[figure] / brisk["rate"]
        rows.append(_row(f"one by one, {brisk['rate']:.0f} a second: {what} a job", getattr(some, figure), found))
    return rows


def _speeds(
    measured: Mapping[str, Any], costs: JobCosts, published: Mapping[str, Any], commit_ms: float
) -> list[dict[str, Any]]:
    """Compare simulated drains with those of the published run on a quiet machine.

    The machine's own speed is taken from one figure of that run, the server's time in the bare loop of our statements.
    """
    found = {(one["workload"], one["contender"]): one["figures"] for one in published["results"]}
    speed = found["drain", "raw-ours"]["server_us"]["median"] / costs.work.at(100).server_us
    quiet = costs.scaled(speed)
    server = Server(cores=2, usable=1.0, fsyncs=1000 / commit_ms)
    rows = []
    for contender, slots in (("headrace-400", 400), ("headrace", 10)):
        figure = found["drain", contender]["per_second"]["median"]
        rows.append(_row(f"quiet machine: drain with {slots} slots, jobs/s", drain_rate(quiet, server, slots), figure))
    single = next(row for row in measured["verbs"] if (row["verb"], row["size"], row["payload"]) == ("enqueue", 1, 0))
    one = 1e6 / (sum(least for least, _ in single["spread"].values()) * speed + commit_ms * 1000)
    rows.append(_row("quiet machine: enqueue one by one, jobs/s", one, found["enqueue", "headrace"]["one"]["median"]))
    return rows


def drain_rate(costs: JobCosts, server: Server, slots: int) -> float:
    """Return how many jobs a second one worker beside its server ends in the simulation, of more than it can."""
    fleet = Fleet(1, server, workers=1, slots=slots, handler_seconds=0.0, rtt_ms=0.0, beside=True)
    stored = replace(costs, enqueue=Work({}), work=costs.exchanges, prune=Load())
    traffic = Traffic(FLOOD, payload=0, curve=FLAT, burst=0.0, tenants=1)
    return simulate(stored, traffic, fleet).total("ended") / MINUTES / 60


def _row(what: str, predicted: float, measured: float) -> dict[str, Any]:
    return {
        "what": what, "predicted": round(predicted, 2), "measured": round(measured, 2),
        "error": round(predicted / measured - 1, 3),
    }  # fmt: skip
