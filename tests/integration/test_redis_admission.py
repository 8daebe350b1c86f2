"""Admission on Redis, where one call takes several scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace import App
from headrace.model.errors import StoreUnavailableError
from headrace.settings import load_settings
from headrace.stores.redis.admission import ADMITTED_PART
from tests.backends.redis import empty_site
from tests.waiting import wait_until

JOBS = 3 * ADMITTED_PART


async def test_what_a_later_script_started_without_an_answer_runs_too(monkeypatch: Any) -> None:
    """The answer of the second script of an admission is lost: all jobs run, those of the first and second at once."""
    async with empty_site() as site:
        environ = {"HEADRACE_URL": site.url, "HEADRACE_QUEUE_STREAM_PREFIX": site.prefix}
        app, done = App(settings=load_settings(environ=environ, file=Path("missing.toml"))), list[int]()

        @app.task(concurrency=JOBS)
        async def work(number: int) -> None:
            done.append(number)

        async with app:
            await work.enqueue_many(range(JOBS))
            namespace = app.runtime.stores.admission._namespace  # type: ignore[union-attr]
            run, parts = namespace.run, list[int]()

            async def lossy(verb: str, /, *words: Any) -> Any:
                answer = await run(verb, *words)
                if verb == "admit_jobs" and answer[0]:
                    parts.append(len(answer[1]))
                    if len(parts) == 2:
                        raise StoreUnavailableError
                return answer

            monkeypatch.setattr(namespace, "run", lossy)
            async with app.worker(concurrency=JOBS):
                await wait_until(lambda: len(done) >= JOBS)
        assert parts[:2] == [ADMITTED_PART, ADMITTED_PART]
        assert sorted(done) == list(range(JOBS))
