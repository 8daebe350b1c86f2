"""`benchmarks/capacity.py` in short, on a real server: its figures are of the order that they must be."""

from __future__ import annotations

import pytest

from benchmarks import capacity_verbs, capacity_whole
from benchmarks.capacity import measure
from benchmarks.capacity_costs import JobCosts
from headrace.bench.server import own_server


async def test_a_short_run_counts_what_it_must() -> None:
    """Commits are counted; bytes and processor time are there and of their order."""
    with own_server() as server:
        report = await measure(server, capacity_verbs.SHORT, capacity_whole.SHORT)

    verbs = {(row["verb"], row["size"], row["payload"]): row for row in report["verbs"]}
    # A server commits for itself now and then, too.
    assert [verbs["enqueue", size, 0]["commits"] for size in (1, 10)] == pytest.approx([1, 0.1], rel=0.5)
    assert [verbs[verb, 1, 0]["commits"] for verb in ("claim", "end")] == pytest.approx([1, 1], rel=0.5)
    assert verbs["exchange", 10, 0]["dead_rows"] == 2
    assert verbs["answer from the memo", 1, 0]["commits"] < 0.5
    assert all(row["server_us"] > 0 and row["client_us"] > 0 for row in verbs.values())
    assert 100 < verbs["enqueue", 1, 0]["wal_bytes"] < 10_000
    assert verbs["exchange", 100, 1_000]["wal_bytes"] > verbs["exchange", 100, 0]["wal_bytes"] + 1_000

    drain = report["whole"]["drain, 400 slots"]
    assert 0 < drain["commits"][0] < 0.5
    assert drain["worker_us"][0] > 0 < report["disk"]["commit_ms"]
    plain, large = report["storage"]
    assert 100 < plain["ended_heap"] + plain["ended_indexes"] < large["ended_heap"]

    costs = JobCosts.of(report)
    assert costs.background >= 1
    assert costs.ended_bytes[1] > 0.5
