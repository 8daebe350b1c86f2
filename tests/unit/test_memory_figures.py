"""Memory: figures of each kind of work, alerts about them, and what Prometheus reads."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headrace import App, Backoff
from headrace.apps.memory.alerts import FEED, OVER, RAISED, Alert, alerts_of, tell_alerts
from headrace.apps.memory.cache import ResultCache
from headrace.apps.memory.exposition import CACHE_METRICS, KIND_METRICS, expose, expose_memory
from headrace.apps.memory.figures import SLOTS, WINDOW, Figures, KindFigures, figures_of, memory_figures, slots_of
from headrace.apps.memory.opening import KINDS, PROCESS
from headrace.memory_settings import MemorySettings
from headrace.model.job import JobState, JobView
from headrace.model.session import ProcessId, SessionView
from headrace.settings import Settings, use_store
from tests.unit.service_calls import served, shop

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md"


def job(
    state: JobState, seconds: float | None = None, *, ago: float = 0, failures: int = 0, crashes: int = 0
) -> JobView:
    """A job whose last attempt took so long and ended so long ago; without a time it has not ended."""
    ended = None if seconds is None else NOW - timedelta(seconds=ago)
    begun = None if ended is None or seconds is None else ended - timedelta(seconds=seconds)
    return JobView(
        UUID(int=1), "t", PROCESS, state, 3, 1, failures, crashes, 6, NOW, None, begun, ended, None, None, None, None,
        None, None, None, False,
    )  # fmt: skip


def test_latencies_and_errors_are_of_what_ended_lately() -> None:
    """Last attempts of jobs that ended in the window; failures of those that wait for their next try count too."""
    jobs = [job(JobState.SUCCEEDED, seconds) for seconds in (1, 2, 3, 4)]
    jobs += [
        job(JobState.FAILED, 10, failures=2),
        job(JobState.SCHEDULED, failures=1, crashes=1),
        job(JobState.SUCCEEDED, 500, ago=WINDOW.total_seconds() + 1, failures=3),
    ]
    found = figures_of("process", None, jobs, NOW, depth=7, slots=12)
    assert (found.avg_latency_ms, found.p50_latency_ms, found.p99_latency_ms) == (4_000, 3_000, 10_000)
    assert found.error_rate == 0.5  # 2 + 1 + 1 failed, 4 succeeded
    assert (found.queue_depth, found.pool_size, found.jobs, found.throughput_per_min) == (7, 12, 5, 0.0)


def test_where_nothing_ended_there_is_no_latency() -> None:
    """None, and not zero: nothing was measured."""
    found = figures_of("process", None, [], NOW)
    assert found == KindFigures("process")
    assert found.avg_latency_ms is None


def session(slots: dict[str, int], stats: Mapping[str, Any] | None = None, *, alive: bool = True) -> SessionView:
    """A worker."""
    process = ProcessId("host", 1, 1)
    return SessionView(UUID(int=1), "host", process, slots, NOW, NOW, alive, 0, dict(stats or {}))


def test_slots_are_those_of_live_workers_as_they_are_now() -> None:
    """Slots that grew or shrank, else those that a worker began with; the dead have none."""
    elastic = {SLOTS: {PROCESS: {"size": 45, "min": 10}}}
    workers = [
        session({PROCESS: 20, "other": 3}),
        session({PROCESS: 20}, elastic),
        session({PROCESS: 20}, elastic, alive=False),
        session({"other": 3}, elastic),
        session({PROCESS: 1}, {SLOTS: "what it should not be"}),
    ]
    assert slots_of(PROCESS, workers) == 20 + 45 + 1


def app_of(**memory: Any) -> App:
    """An app with jobs of the kind process, under `[memory]` settings."""
    settings = replace(Settings(), memory=replace(MemorySettings(), **memory))
    app = App(settings=use_store(settings, "memory://"))

    @app.task(queue=PROCESS, retry=Backoff.fixed(max_attempts=2, delay="10ms"))
    async def work(fails: bool) -> str:
        if fails:
            raise ValueError("wrong")
        return "right"

    return app


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """One that has worked off three jobs that succeeded and one that failed twice."""
    app = app_of(alert_error_rate=0.3)
    async with app.worker(concurrency=7):
        batch = await app.submit(the_task(app), [False] * 3 + [True])
        await batch.wait()
        yield app


def the_task(app: App) -> Any:
    """The one task of an app."""
    [name] = [task.name for task in app.registry]
    return app.find_task(name)


async def test_figures_of_an_app_are_those_of_its_jobs(app: App) -> None:
    """Throughput, latency, errors, depth and slots of real jobs; kinds without jobs have zeros; the cache counts."""
    cache = ResultCache(app)
    await cache.put("key", "text")
    await cache.get("key")
    found = await memory_figures(app)
    by_kind = {one.kind: one for one in found.kinds}
    assert list(by_kind) == list(KINDS)
    process = by_kind["process"]
    assert (process.jobs, process.pool_size, process.queue_depth) == (4, 7, 0)
    assert process.error_rate == 0.4  # two of five attempts
    assert process.avg_latency_ms is not None
    assert process.p50_latency_ms is not None
    assert 0 <= process.p50_latency_ms <= (process.p99_latency_ms or 0) < 60_000
    assert by_kind["storage"] == KindFigures("storage")
    said = found.to_json()
    assert said["kinds"]["process"]["error_rate"] == 0.4
    assert (said["cache"]["hits"], said["cache"]["hit_rate"]) == (1, 1.0)


async def test_jobs_that_wait_are_the_depth() -> None:
    """Ready ones, and those that wait for their time."""
    app = app_of(enable_caching=False)
    async with app:
        task = the_task(app)
        await task.enqueue_many([False, False])
        await task.options(run_at=datetime.now(UTC) + timedelta(hours=1)).enqueue(False)
        found = await memory_figures(app, Tables())
    assert {one.kind: one.queue_depth for one in found.kinds} == {"consume": 0, "buffer": 0, "process": 3, "storage": 0}
    assert found.cache is None
    assert found.to_json()["counts"] == {"idle": 3}


class Tables:
    """Counts as the tables give them."""

    async def counts(self) -> Mapping[str, int]:
        """Three idle rows."""
        return {"idle": 3}


FIGURES = Figures(
    NOW,
    (
        KindFigures("consume", queue_depth=10_000),
        KindFigures("buffer", queue_depth=9_999, error_rate=0.1, avg_latency_ms=30_000.0),
        KindFigures("process", error_rate=0.11, avg_latency_ms=30_000.1),
    ),
)


def test_alerts_are_above_their_marks() -> None:
    """Depth from its mark on, error rate and latency above theirs, each for its kind."""
    found = alerts_of(FIGURES, MemorySettings())
    assert [(alert.kind, alert.figure) for alert in found] == [
        ("consume", "depth"), ("process", "error_rate"), ("process", "latency")
    ]  # fmt: skip
    assert str(found[1]) == "error_rate of process is 0.11, above 0.1"


async def test_an_alert_is_told_once_when_it_begins_and_once_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    """In the log and in the feed, however often somebody looks."""
    caplog.set_level(logging.INFO, "headrace.memory")
    app = app_of()
    calm = Figures(NOW, ())
    async with app:
        assert [alert.figure for alert in await tell_alerts(app, FIGURES)] == ["depth", "error_rate", "latency"]
        assert len(await tell_alerts(app, FIGURES)) == 3
        await asyncio.gather(*(tell_alerts(app, FIGURES) for _ in range(5)))
        assert await asyncio.gather(*(tell_alerts(app, calm) for _ in range(5))) == [[]] * 5
        assert await tell_alerts(app, calm) == []
        entries = await app.feed(FEED).read()
    assert [entry.type for entry in entries] == [RAISED] * 3 + [OVER] * 3
    assert Alert(**entries[0].data) == Alert("consume", "depth", 10_000, 10_000)
    said = [record.getMessage() for record in caplog.records if record.name == "headrace.memory"]
    # Those who look at the same moment may each say so.
    assert len({line for line in said if line.startswith("alert: ")}) == 3
    assert len({line for line in said if line.startswith("alert is over: ")}) == 3


async def test_what_prometheus_reads_is_documented_and_true(app: App) -> None:
    """Every name is in the reference; values are those of the figures; what was not measured is left out."""
    text = await expose_memory(app)
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    samples = {name: float(value) for name, _, value in lines}
    assert samples['memory_error_rate{kind="process"}'] == 0.4
    assert samples['memory_pool_size{kind="process"}'] == 7
    assert samples['memory_queue_depth{kind="consume"}'] == 0
    assert samples['memory_alert{kind="process",figure="error_rate"}'] == 1
    assert samples['memory_alert{kind="storage",figure="error_rate"}'] == 0
    assert samples["memory_cache_hits_total"] == 0
    assert 'memory_avg_latency_ms{kind="storage"}' not in samples
    names = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    assert len(names) == len(KIND_METRICS) + len(CACHE_METRICS) + 1
    reference = REFERENCE.read_text(encoding="utf-8")
    assert [name for name in names if f"`{name}" not in reference] == []


async def test_figures_are_looked_at_anew_at_intervals_only() -> None:
    """However often Prometheus asks; an app of another kind has none."""
    app = app_of(metrics_interval=timedelta(hours=1))
    async with app:
        first = await expose_memory(app)
        await the_task(app).enqueue(False)
        assert await expose_memory(app) == first
    eager = app_of(metrics_interval=timedelta(microseconds=1))
    async with eager:
        first = await expose_memory(eager)
        await the_task(eager).enqueue(False)
        assert await expose_memory(eager) != first
    other = App("memory://")
    async with other:
        assert await expose_memory(other) == ""


async def test_a_service_of_memory_tells_its_figures() -> None:
    """Over HTTP, in one scrape with the others; a service of another app has none of them."""
    async with served(app_of()) as client:
        text = (await client.get("/metrics")).text
    assert 'memory_queue_depth{kind="process"} 0' in text.splitlines()
    assert "headrace_workers " in text
    async with served(shop()) as client:
        assert "memory_" not in (await client.get("/metrics")).text


def test_counts_of_tables_are_told() -> None:
    """Rows and flushes by their words."""
    assert 'memory_items{what="idle"} 3' in expose(replace(FIGURES, counts={"idle": 3}), MemorySettings())
