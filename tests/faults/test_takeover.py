"""kill -9 in the middle of a drain under default settings, and another worker that takes over."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headrace import App
from headrace.engine.acks import Acks
from headrace.model.batch import BatchOutcome
from headrace.model.job import Completion
from headrace.settings import Settings
from tests.faults.checker import check, read_tables
from tests.faults.conftest import ON_EVERY_STORE, may_unshare
from tests.faults.links import Links
from tests.faults.site import Site
from tests.faults.tasks import effect, nap
from tests.waiting import wait_until

JOBS = 2_000
#: Seconds from a death to the run elsewhere, as promised.
PROMISED = 15.0
#: What may have ended and not be recorded at any moment: a tenth of a second's work.
MOST_UNACKED = 100


def defaults() -> dict[str, str]:
    """Return the environment that undoes the short intervals of the site."""
    settings = Settings()
    return {
        "HEADRACE_QUEUE_VISIBILITY_TIMEOUT": _text(settings.queue.visibility_timeout),
        "HEADRACE_WORKER_HEARTBEAT_INTERVAL": _text(settings.worker.heartbeat_interval),
        "HEADRACE_RECOVERY_CHECK_INTERVAL": _text(settings.recovery.check_interval),
        "HEADRACE_RECOVERY_AGGREGATE_INTERVAL": _text(settings.recovery.aggregate_interval),
        "HEADRACE_WORKER_SHUTDOWN_GRACE": _text(settings.worker.shutdown_grace),
    }


def _text(duration: timedelta) -> str:
    return f"{round(duration.total_seconds() * 1_000)}ms"


@dataclass
class Death:
    """What there was when the worker had died and its statements had ended: numbers of the jobs."""

    at: float
    started: set[int]
    ended: set[int]
    recorded: set[int]

    @property
    def unacked(self) -> set[int]:
        """Ended for the worker and not for the store: its gauge at the kill."""
        return self.ended - self.recorded


async def kill_in_mid_drain(site: Site, links: Links, *, others: set[int]) -> Death:
    """Kill the only worker when half of the jobs have ended; `others` are the connections that are not its own."""
    log = site.root / "effects"
    # Read as bytes: what this process computes meanwhile would slow the worker.
    await wait_until(lambda: log.exists() and log.read_bytes().count(b'"effect"') > JOBS // 2)
    site.workers[0].kill()
    at = time.time()

    async def gone() -> bool:
        # What its connections had received they finish.
        return await links.ours() <= others

    await wait_until(gone)
    final = (await read_tables(site.server.dsn, site.schema)).final
    recorded = {json.loads(row["args"])["kwargs"]["number"] for row in final}
    return Death(at, set(site.counts("start")), set(site.counts("effect")), recorded)


def restarts(site: Site, death: Death) -> dict[int, float]:
    """Return the numbers that started again after the death, and how many seconds after it."""
    again: dict[int, float] = {}
    for line in site.effects("start"):
        if line["number"] in death.started and line["at"] > death.at and line["pid"] != site.workers[0].pid:
            assert line["number"] not in again, "an orphan ran again twice"
            again[line["number"]] = line["at"] - death.at
    return again


@ON_EVERY_STORE
@pytest.mark.parametrize(
    "isolated",
    [
        pytest.param(False, id="on-this-host"),
        pytest.param(
            True,
            id="on-another-host",
            marks=[pytest.mark.slow, pytest.mark.skipif(not may_unshare(), reason="needs pid namespaces")],
        ),
    ],
)
async def test_another_worker_takes_a_drain_over(site: Site, app: App, links: Links, isolated: bool) -> None:
    """Nothing is lost, only what was not recorded runs again, each once, and all of it within 15 s of the death.

    The store and the log of effects, read at the death, say what had ended and was not recorded.
    """
    async with app:
        items = [{"number": number, "pause": 0.01} for number in range(JOBS)]
        batch = await app.submit(effect, items, spread=True)
    others = await links.ours()
    site.start_worker(isolated=isolated, environ=defaults()).wait_until_started()
    death = await kill_in_mid_drain(site, links, others=others)
    site.start_worker(environ=defaults())
    async with app:
        assert (await batch.wait(60)).outcome is BatchOutcome.SUCCEEDED
    again = restarts(site, death)
    print(
        f"recorded {len(death.recorded)}, running {len(death.started - death.ended)}, ended but unacked "
        f"{len(death.unacked)}; ran again: {len(again.keys() & death.ended)} ended, {len(again)} in all, "
        f"the last {max(again.values(), default=0.0):.2f} s after the kill"
    )
    # In the middle: what was claimed and not begun at the kill, if nothing else, was left to the other worker.
    assert len(death.recorded) < JOBS
    assert set(again) == death.started - death.recorded
    assert again.keys() & death.ended == death.unacked
    assert len(death.unacked) <= MOST_UNACKED
    assert max(again.values(), default=0.0) <= PROMISED
    assert set(site.counts("effect")) == set(range(JOBS))
    verdict = await check(site)
    assert verdict.clean, verdict


async def test_acks_are_sent_while_they_are_fresh(site: Site, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drain of 2,000 jobs of 10 ms on a real server: half of the completions wait less than 5 ms for their statement.

    That none does, while the store answers in time, is tested on virtual time: here the machine may be busy.
    """
    ended_at: dict[UUID, float] = {}
    first_sent_at: dict[UUID, float] = {}
    put = Acks.put

    def noting_put(acks: Acks, completion: Completion) -> None:
        ended_at[completion.job_id] = time.perf_counter()
        put(acks, completion)

    monkeypatch.setattr(Acks, "put", noting_put)
    app.settings = site.settings(**defaults())
    async with app.worker():
        jobs = app.runtime.stores.jobs

        def noting(send: Callable[..., Any]) -> Callable[..., Any]:
            def noted(session: UUID, completions: Sequence[Completion], *more: Any) -> Any:
                # A statement that could not be carried out is sent again.
                for completion in completions:
                    first_sent_at.setdefault(completion.job_id, time.perf_counter())
                return send(session, completions, *more)

            return noted

        # Alone, or with the next claim in the same round trip.
        for verb in ("complete_jobs", "exchange_jobs"):
            monkeypatch.setattr(jobs, verb, noting(getattr(jobs, verb)))
        batch = await app.submit(nap, [0.01] * JOBS)
        await batch.wait(60)
    waits = sorted(sent_at - ended_at[job_id] for job_id, sent_at in first_sent_at.items())
    middle, late, last = (1_000 * waits[round(part * (JOBS - 1))] for part in (0.5, 0.99, 1))
    print(f"from an ending to its statement: median {middle:.2f} ms, p99 {late:.2f} ms, most {last:.2f} ms")
    assert len(waits) == JOBS
    assert middle <= 5
