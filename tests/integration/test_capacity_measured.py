"""`benchmarks/capacity.py` in short, on a real server: its figures are of the order that they must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks import capacity_verbs, capacity_whole
from benchmarks.capacity import measure, store
from benchmarks.capacity_check import check
from benchmarks.capacity_costs import JobCosts
from benchmarks.capacity_meter import open_site
from benchmarks.capacity_verbs import Verbs
from headrace.bench.server import own_server
from tests.integration.own_databases import own_database


def bear_out(rows: list[Mapping[str, Any]]) -> None:
    """Check the figures of verbs: counts closely (a server commits for itself now and then), the rest by its order."""
    verbs = {(row["verb"], row["size"], row["payload"]): row for row in rows}
    assert [verbs["enqueue", size, 0]["commits"] for size in (1, 10)] == pytest.approx([1, 0.1], rel=0.5)
    assert [verbs[verb, 1, 0]["commits"] for verb in ("claim", "end")] == pytest.approx([1, 1], rel=0.5)
    assert verbs["exchange", 10, 0]["dead_rows"] == 2
    assert verbs["answer from the memo", 1, 0]["commits"] < 0.5
    # Of few small calls no more is left than what looking costs; these are large.
    assert verbs["submit a batch", 1_000, 0]["server_us"] > 0 < verbs["submit a batch", 1_000, 0]["client_us"]
    assert 100 < verbs["enqueue", 1, 0]["wal_bytes"] < 10_000
    assert verbs["exchange", 100, 1_000]["wal_bytes"] > verbs["exchange", 100, 0]["wal_bytes"] + 1_000


async def test_the_verbs_cost_what_they_must() -> None:
    """One short round of all verbs, and what a job takes on disk."""
    async with own_database() as dsn, open_site(dsn) as site:
        verbs = Verbs(site, capacity_verbs.SHORT)
        plain, large = [await store(verbs, 100, payload) for payload in (0, 1_000)]
        await verbs.round()
        await verbs.prune()

    bear_out(verbs.measured.to_json())
    assert 100 < plain["ended_heap"] + plain["ended_indexes"] < large["ended_heap"]


@pytest.mark.slow
async def test_a_short_run_gives_what_the_simulation_needs() -> None:
    """All of it, with workers and a durable server: costs can be made of it, and predictions compared with it."""
    with own_server() as server:
        report = await measure(server, capacity_verbs.SHORT, capacity_whole.SHORT)

    bear_out(report["verbs"])
    drain = report["whole"]["drain, 400 slots"]
    assert 0 < drain["commits"][0] < 0.5
    assert drain["worker_us"][0] > 0 < report["disk"]["commit_ms"]
    costs = JobCosts.of(report)
    assert costs.background >= 1
    assert costs.ended_bytes[1] > 0.5
    assert {row["predicted"] > 0 < row["measured"] for row in check(report, costs)} == {True}
