"""Fair shares, caps, keys, rates and breakers on PostgreSQL with real worker processes.

Workers poll once a minute here: whatever is quick is so without a poll.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import Batch
from headrace.model.fairness import jain_index
from headrace.settings import load_settings
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.server import shared_server
from tests.integration import limit_tasks as tasks
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = timedelta(seconds=60)


@dataclass
class Site:
    """A schema with worker processes, and the log of their attempts."""

    schema: str
    root: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """What this test's app and its workers are told."""
        return {
            "HEADRACE_URL": shared_server().dsn,
            "HEADRACE_QUEUE_SCHEMA": self.schema,
            "HEADRACE_WORKER_POLL_INTERVAL": "60s",
        }

    def start(self, count: int, *queues: str) -> None:
        """Start worker processes of some queues, NAME:SLOTS."""
        options = [word for queue in queues for word in ("--queue", queue)]
        command = [sys.executable, "-m", "headrace", "worker", "tests.integration.limit_tasks:app", "--json", *options]
        own = {**self.environment, tasks.LOG: str(self.root / "log"), tasks.TARGET: str(self.root / "target")}
        for _ in range(count):
            with (self.root / f"out{len(self.workers)}").open("wb") as out:
                self.workers.append(
                    subprocess.Popen(command, cwd=ROOT, env={**os.environ, **own}, stdout=out, stderr=out)
                )

    async def started(self) -> None:
        """Wait until all workers have a session."""
        outs = [self.root / f"out{number}" for number in range(len(self.workers))]
        await wait_until(lambda: all('"started"' in out.read_text() for out in outs), message="workers to start")

    def lines(self, kind: str) -> list[Any]:
        """Return [value, from, to, pid] of the attempts of a kind, in the order of their starts."""
        found = [line[1:] for line in tasks.read_log(str(self.root / "log")) if line[0] == kind]
        return sorted(found, key=lambda line: float(line[1]))


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A site whose app is open as a client."""
    async with empty_schema() as schema:
        async with stores_on(schema, None):
            pass  # fills the schema
        made = Site(schema, tmp_path)
        tasks.app.__dict__["settings"] = load_settings(environ=made.environment, file=Path("/nonexistent"))
        try:
            async with tasks.app:
                yield made
        finally:
            _end(made.workers)
            del tasks.app.__dict__["settings"]


def _end(workers: list[subprocess.Popen[bytes]]) -> None:
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
    for worker in workers:
        try:
            worker.wait(20)
        except subprocess.TimeoutExpired:
            worker.kill()


async def closed(*batches: Batch) -> None:
    """Wait until batches are closed."""
    for batch in batches:
        await batch.wait(timeout=PATIENCE)


def most_at_once(lines: list[Any]) -> int:
    """Return how many attempts ran at one moment."""
    steps = sorted([(begin, 1) for _, begin, _, _ in lines] + [(end, -1) for _, _, end, _ in lines])
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


@pytest.mark.slow
async def test_eight_batches_have_equal_shares(site: Site) -> None:
    """Eight batches of 200 wait; of the first half of all starts each has its eighth, over three processes."""
    batches = [await tasks.app.submit(tasks.share, [str(number)] * 200) for number in range(8)]
    site.start(3, "fair:8")
    await closed(*batches)
    counts = Counter(name for name, *_ in site.lines("share")[:800])
    assert jain_index([float(counts[str(number)]) for number in range(8)]) >= 0.95


@pytest.mark.slow
async def test_a_small_batch_overtakes_two_of_10000(site: Site) -> None:
    """Ten items that come after 20,000 are done as soon as they have had their third of the starts."""
    large = [await tasks.app.submit(tasks.share, [name] * 10_000) for name in "ab"]
    site.start(2, "fair:5")
    await wait_until(lambda: len(site.lines("share")) > 200)
    small = await tasks.app.submit(tasks.share, ["small"] * 10)
    before = time.time()
    await closed(small)
    starts = [(name, begin) for name, begin, *_ in site.lines("share") if begin >= before]
    last = max(index for index, (name, _) in enumerate(starts) if name == "small")
    # Its third of the starts, and what two processes had admitted before they looked again.
    assert last < 3 * 10 + 4 * 10
    for batch in large:
        await batch.cancel()


async def test_a_cap_holds_over_three_processes(site: Site) -> None:
    """Three processes of ten slots each run three jobs of the task at once, and never four."""
    site.start(3, "narrow:10")
    await site.started()
    batch = await tasks.app.submit(tasks.narrow, range(90))
    await closed(batch)
    lines = site.lines("narrow")
    assert len(lines) == 90
    assert most_at_once(lines) == 3


async def test_a_cap_is_overridden_while_workers_run(site: Site) -> None:
    """Workers heed another cap within a second, and the declared one again."""
    site.start(2, "narrow:10")
    await site.started()
    await tasks.app.limits.set_cap("task:narrow", 1)
    batch = await tasks.app.submit(tasks.narrow, range(120))
    await wait_until(lambda: len(site.lines("narrow")) >= 20)
    assert most_at_once(site.lines("narrow")) == 1
    await tasks.app.limits.set_cap("task:narrow", 6)
    changed = time.time()
    await closed(batch)
    later = [line for line in site.lines("narrow") if line[1] > changed]
    assert most_at_once([line for line in later if line[1] < changed + 1]) == 6


async def test_a_chain_behind_a_cap_of_one_waits_for_no_poll(site: Site) -> None:
    """Between the end of a job and the start of the next lie milliseconds, in one process and across two."""
    site.start(2, "chain:1")
    await site.started()
    batch = await tasks.app.submit(tasks.link, range(100))
    await closed(batch)
    lines = site.lines("link")
    assert most_at_once(lines) == 1
    gaps = sorted(begin - end for (_, _, end, _), (_, begin, _, _) in itertools.pairwise(lines))
    assert gaps[len(gaps) // 2] < 0.1
    assert gaps[-1] < 0.4


async def test_one_at_a_time_keeps_the_order_over_failures(site: Site) -> None:
    """Jobs of one key run in their order, each until it has ended, whichever process takes it."""
    site.start(2, "ordered:5")
    await site.started()
    calls = tasks.ordered.options(concurrency_key="user-1")
    handles = [await calls.enqueue(number) for number in range(10)]
    for handle in handles:
        await handle.result(timeout=PATIENCE)
    expected = [number for number in range(10) for _ in range(3 if number % 2 else 1)]
    lines = site.lines("ordered")
    assert [number for number, *_ in lines] == expected
    assert most_at_once(lines) == 1


@pytest.mark.slow
async def test_a_rate_is_held_and_reached_by_three_processes(site: Site) -> None:
    """With 20/s and a burst of 1 there are at most 20 starts in any second, and nearly as many."""
    site.start(3, "rated:5")
    await site.started()
    batch = await tasks.app.submit(tasks.rated, range(80))
    await closed(batch)
    starts = [begin for _, begin, _, _ in site.lines("rated")]
    rate = (len(starts) - 1) / (starts[-1] - starts[0])
    assert 14 <= rate <= 20.5
    # A start is seen a little after its admission: at the borders of a second that may be one more.
    assert max(sum(first <= other < first + 1 for other in starts) for first in starts) <= 23


@pytest.mark.slow
async def test_a_weight_acts_within_a_second(site: Site) -> None:
    """Of two fair keys one gets four times the weight: in the second after the change it has four fifths."""
    site.start(2, "keys:4")
    batches = [await tasks.app.submit(tasks.keyed, [key] * 4_000, fair_key=key) for key in "ab"]
    await wait_until(lambda: len(site.lines("keyed")) > 300)
    await tasks.app.limits.set_weight("keys", "a", 4.0)
    changed = time.time()
    await wait_until(lambda: site.lines("keyed")[-1][1] > changed + 2)
    lines = site.lines("keyed")
    before = Counter(name for name, begin, *_ in lines if begin < changed)
    after = Counter(name for name, begin, *_ in lines if changed + 1 < begin)
    assert 0.45 <= before["a"] / before.total() <= 0.55
    assert 0.75 <= after["a"] / after.total() <= 0.85
    for batch in batches:
        await batch.cancel()


@pytest.mark.slow
async def test_a_breaker_lets_one_probe_pass_per_cooldown(site: Site) -> None:
    """While the target is down three processes try it once per cooldown; when it is up again all jobs end at once."""
    site.start(3, "guarded:5")
    await site.started()
    batch = await tasks.app.submit(tasks.guarded, range(200))
    await wait_until(lambda: site.lines("guarded"))
    began = site.lines("guarded")[0][1]
    await wait_until(lambda: time.time() > began + 2.5)
    tried = [begin for _, begin, _, _ in site.lines("guarded")]
    first = [begin for begin in tried if begin < began + 0.35]
    probes = [begin for begin in tried if begin >= began + 0.35]
    # Those that had started when it opened: at most all slots twice over.
    assert len(first) <= 30
    assert 2 <= len(probes) <= 6
    assert all(later - earlier >= 0.35 for earlier, later in itertools.pairwise(probes))
    (site.root / "target").touch()
    up = time.time()
    await closed(batch)
    assert time.time() - up < 5
