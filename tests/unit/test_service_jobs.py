"""The routes of jobs, batches, queues, schedules and dead letters, and what they refuse."""

from __future__ import annotations

import asyncio
from json import dumps
from typing import Any

import httpx2
import pytest

from headrace import App, Backoff, Context
from headrace.service import batches
from tests.unit.service_calls import JSON, code_of, served
from tests.waiting import wait_until

JOBS, BATCHES = "/api/v1/jobs", "/api/v1/batches"
NONE = "01980000-0000-7000-8000-000000000000"


def works() -> App:
    """Return an app with a task that doubles a number, one that fails, and one by the clock."""
    app = App("memory://")

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    @app.task(queue="weak", retry=Backoff.none())
    async def fail(number: int, *, bank: str = "old") -> int:
        if bank == "new":
            return number
        raise ValueError(f"cannot take {number}")

    @app.cron("0 3 * * *")
    async def nightly() -> None: ...

    return app


async def post(client: httpx2.AsyncClient, path: str, body: Any = None) -> httpx2.Response:
    """Send a body, or none, as writes have to be sent."""
    if body is None:
        return await client.post(path, headers=JSON)
    return await client.post(path, json=body)


async def get(client: httpx2.AsyncClient, path: str) -> Any:
    """Return the document of an address that must have one."""
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def ended(client: httpx2.AsyncClient, job: str) -> Any:
    """Return a job once it has ended."""
    while (document := await get(client, f"{JOBS}/{job}"))["finished_at"] is None:
        await asyncio.sleep(0.01)
    return document


async def test_a_job_is_made_worked_and_shown() -> None:
    """A submit answers 201 with the id and the address of the job, which tells of its result."""
    async with served(works()) as client:
        answer = await post(client, JOBS, {"task": "double", "args": [21], "priority": "high", "timeout": "30s"})
        assert (answer.status_code, answer.headers["location"]) == (201, f"{JOBS}/{answer.json()['job']}")
        document = await ended(client, answer.json()["job"])
        assert (document["state"], document["result"], document["priority"]) == ("succeeded", 42, 3)
        why = await get(client, f"{JOBS}/{document['id']}/explain")
        assert (why["job"], why["state"]) == (document["id"], "succeeded") and why["sentence"]


async def test_a_job_shows_what_its_handler_logged() -> None:
    """Lines come by attempt; one attempt is asked for by its number; a silent job has none, an unknown one is 404."""
    app = works()

    @app.task(retry=Backoff.fixed(0, max_attempts=2))
    async def talk(ctx: Context) -> None:
        ctx.log.info("attempt %d", ctx.attempt)
        if ctx.attempt == 1:
            raise ValueError("once")

    async with served(app) as client:
        jobs = [(await post(client, JOBS, {"task": task, "args": args})).json()["job"]
                for task, args in (("talk", []), ("double", [1]))]  # fmt: skip
        for job in jobs:
            await ended(client, job)
        document = await get(client, f"{JOBS}/{jobs[0]}/logs")
        assert document["job"] == jobs[0]
        found = [(one["attempt"], one["dropped"], one["lines"]) for one in document["attempts"]]
        for number, (attempt, dropped, [line]) in enumerate(found, 1):
            assert (attempt, dropped, line["level"], line["message"]) == (number, 0, "info", f"attempt {number}")
        assert len(found) == 2
        second = await get(client, f"{JOBS}/{jobs[0]}/logs?attempt=2")
        assert second["attempts"] == document["attempts"][1:]
        assert await get(client, f"{JOBS}/{jobs[1]}/logs") == {"job": jobs[1], "attempts": []}
        for path, status in ((f"{NONE}/logs", 404), ("x/logs", 422), (f"{jobs[0]}/logs?attempt=0", 422)):
            assert (await client.get(f"{JOBS}/{path}")).status_code == status


async def test_the_same_key_gives_the_same_job() -> None:
    """A key makes one job: 201, then 200 with the same body; with other arguments it is a conflict."""
    async with served(works(), worker=False) as client:
        body = {"task": "double", "args": [1]}
        first = await client.post(JOBS, json=body, headers={"idempotency-key": "k"})
        again = await post(client, JOBS, body | {"key": "k"})
        assert (first.status_code, again.status_code, again.json()) == (201, 200, first.json())
        other = await post(client, JOBS, {"task": "double", "args": [2], "key": "k"})
        assert (other.status_code, code_of(other)) == (409, "idempotency_conflict")


NO_JOBS: list[Any] = [
    ({"task": "double", "args": [float("nan")]}, 400, "invalid_json"),
    ({"task": "none", "args": [1]}, 422, "invalid_input"),
    ({"task": "../etc"}, 422, "invalid_name"),
    ({"task": "dоuble"}, 422, "invalid_name"),
    ({"task": "double", "args": [1], "queue": "a;b"}, 422, "invalid_name"),
    ({"task": "double", "args": [1], "queue": "nobody-knows"}, 422, "invalid_input"),
    ({"task": "double", "args": [1, 2]}, 422, "invalid_input"),
    ({"task": "double", "args": [1], "delay": -1}, 422, "invalid_input"),
    ({"task": "double", "args": [1], "delay": "367d"}, 422, "invalid_input"),
    ({"task": "double", "args": [1], "delay": 1, "run_at": "2031-01-31T12:00:00Z"}, 422, "invalid_input"),
    ({"task": "double", "args": [1], "run_at": "2031-01-31T12:00:00"}, 422, "invalid_input"),
    ({"task": "double", "args": [1], "run_at": "soon"}, 422, "invalid_input"),
    ({"task": "double", "args": [1], "priority": 10}, 422, "invalid_input"),
    ({"task": "double", "args": [1], "priority": "1"}, 422, "invalid_input"),
    ({"task": "double", "args": [1], "max_attempts": 101}, 422, "invalid_input"),
    ({"task": "double", "args": [1], "max_attempts": 2.5}, 422, "invalid_input"),
    ({"task": "double", "args": [1], "timeout": 0.5}, 422, "invalid_input"),
    ({"task": "double", "args": [1], "timeout": "25h"}, 422, "invalid_input"),
    ({"task": "double", "args": [1], "key": ""}, 422, "invalid_input"),
    ({"task": "double", "args": [1], "key": "k" * 256}, 409, "idempotency_conflict"),
    ({"task": "double", "args": ["x" * 300_000]}, 413, "payload_too_large"),
    ({"task": "double", "args": ["x" * (1 << 20)]}, 413, "payload_too_large"),
    ({"task": "double", "argz": [1]}, 422, "invalid_input"),
]


async def test_what_no_job_is_made_of() -> None:
    """Each wrong submit has its status and its code, and leaves nothing behind."""
    async with served(works(), worker=False) as client:
        for body, status, code in NO_JOBS:
            answer = await client.post(JOBS, content=dumps(body), headers=JSON)
            assert (answer.status_code, code_of(answer)) == (status, code), str(body)[:200]
        assert (await get(client, JOBS))["jobs"] == []


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({"run_at": "2031-01-31T12:00:00"}, "must be an instant with its offset, such as 2031-01-31T12:00:00Z"),
        ({"run_at": "soon"}, "must be an instant with its offset, such as 2031-01-31T12:00:00Z"),
        ({"run_at": "2999-01-31T12:00:00Z"}, "must be at most a year ahead"),
        *(({"timeout": value}, 'must be from 1s to 1d: seconds, or such as "90s" or "10m"')
          for value in (-1, 0.5, "25h", "40000d", "long")),
        *(({"delay": value}, 'must be from 0s to 366d: seconds, or such as "90s" or "10m"')
          for value in (-1, "367d", 1e300, "long")),
    ],
)  # fmt: skip
async def test_times_are_refused_in_words_of_http(body: dict[str, Any], rule: str) -> None:
    """With the same bounds whichever of them is broken, and the value as it was sent."""
    async with served(works(), worker=False) as client:
        answer = (await post(client, JOBS, {"task": "double", "args": [1], **body})).json()
        [[field, value]] = body.items()
        assert (answer["field"], answer["rule"]) == (field, rule)
        assert answer["detail"] == f"{field} {rule}, got {value!r}"


async def test_pages_of_jobs_and_their_filters() -> None:
    """Cursors lead through all jobs once; filters narrow the list; wrong ones are refused."""
    async with served(works(), worker=False) as client:
        made = [(await post(client, JOBS, {"task": "double", "args": [n]})).json()["job"] for n in range(5)]
        await post(client, JOBS, {"task": "fail", "args": [1]})
        seen, cursor = [], ""
        while cursor is not None:
            page = await get(client, f"{JOBS}?task=double&limit=2{cursor and f'&cursor={cursor}'}")
            seen += [job["id"] for job in page["jobs"]]
            cursor = page["next_cursor"]
        assert seen == made[::-1]
        assert len((await get(client, f"{JOBS}?queue=weak&state=ready"))["jobs"]) == 1
        for query in ("limit=201", "cursor=x", "state=lost", "queue=%27;drop", "owner=ann", f"batch={'x' * 40}"):
            assert (await client.get(f"{JOBS}?{query}")).status_code == 422, query


async def test_cancel_and_retry_of_a_job() -> None:
    """A waiting job is cancelled at once, and a cancelled one runs again as a new job, once."""
    async with served(works(), worker=False) as client:
        job = (await post(client, JOBS, {"task": "double", "args": [1], "delay": "1h"})).json()["job"]
        assert (await post(client, f"{JOBS}/{job}/cancel")).json() == {"job": job, "answer": "cancelled"}
        again = await post(client, f"{JOBS}/{job}/retry")
        assert (again.status_code, again.json()["retry_of"]) == (201, job)
        same = await post(client, f"{JOBS}/{job}/retry")
        assert (same.status_code, same.json()) == (200, again.json())
        for verb in ("cancel", "retry"):
            assert code_of(await post(client, f"{JOBS}/{NONE}/{verb}")) == "not_found"
            assert (await post(client, f"{JOBS}/seven/{verb}")).status_code == 422


async def test_a_batch_is_submitted_followed_and_read() -> None:
    """A batch answers 201, its replay 200; its results come in pages, and the last one says that it is complete."""
    async with served(works()) as client:
        body = {"task": "double", "items": [1, 2, 3], "key": "b"}
        first = await post(client, BATCHES, body)
        assert (first.status_code, first.json()["total"]) == (201, 3)
        again = await post(client, BATCHES, body)
        assert (again.status_code, again.json()) == (200, first.json())
        assert (await post(client, BATCHES, body | {"items": [1]})).status_code == 409
        place = f"{BATCHES}/{first.json()['batch']}"

        async def closed() -> bool:
            return (await get(client, place))["state"] == "closed"

        await wait_until(closed, message="the batch is not closed")
        found, page = {}, {"cursor": "", "complete": False}
        while not page["complete"]:
            page = await get(client, f"{place}/results?limit=2&cursor={page['cursor']}")
            found |= {item["index"]: item["result"] for item in page["items"]}
        assert found == {0: 2, 1: 4, 2: 6}
        assert (await get(client, place))["progress"]["percent"] == 100
        assert [batch["id"] for batch in (await get(client, BATCHES))["batches"]] == [first.json()["batch"]]


async def test_a_batch_is_paused_and_resumed() -> None:
    """The answers are the batch as it is then; one that is being cancelled is a conflict, a long reason refused."""
    async with served(works(), worker=False) as client:
        made = await post(client, BATCHES, {"task": "double", "items": [1, 2]})
        place = f"{BATCHES}/{made.json()['batch']}"
        paused = (await post(client, f"{place}/pause", {"reason": "an incident"})).json()
        assert (paused["state"], paused["paused_reason"], paused["progress"]["waiting"]) == ("sealed", "an incident", 2)
        assert (await get(client, BATCHES))["batches"][0]["paused_at"] == paused["paused_at"]
        assert (await post(client, f"{place}/pause")).json()["paused_reason"] is None
        assert (await post(client, f"{place}/pause", {"reason": "x" * 501})).status_code == 422
        assert (await post(client, f"{place}/resume")).json()["paused_at"] is None
        await post(client, f"{place}/cancel")
        assert (await post(client, f"{place}/pause")).status_code == 409


async def test_a_page_of_results_ends_before_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items beyond the size of a page come with the next one, and none is left out."""
    monkeypatch.setattr(batches, "MOST_PAGE", 1)
    async with served(works()) as client:
        batch = (await post(client, BATCHES, {"task": "double", "items": [1, 2, 3]})).json()["batch"]
        found, page = set(), {"cursor": "", "complete": False}
        async with asyncio.timeout(10):
            while not page["complete"]:
                page = await get(client, f"{BATCHES}/{batch}/results?cursor={page['cursor']}")
                assert len(page["items"]) <= 1
                await asyncio.sleep(0.001)  # lets the worker work
                found |= {item["index"] for item in page["items"]}
        assert found == {0, 1, 2}


NO_BATCHES: list[Any] = [
    ({"task": "double", "items": [0] * 10_001}, 413, "payload_too_large"),
    ({"task": "double", "items": "abc"}, 422, "invalid_input"),
    ({"task": "double"}, 422, "invalid_input"),
    ({"task": "double", "items": [1], "max_failed": -1}, 422, "invalid_input"),
    ({"task": "double", "items": [1], "on_close": "none"}, 422, "invalid_input"),
    ({"task": "double", "items": [1], "queue": "UPPER"}, 422, "invalid_name"),
]


async def test_what_no_batch_is_made_of() -> None:
    """Each wrong submit of a batch has its status and its code, and leaves nothing behind."""
    async with served(works(), worker=False) as client:
        for body, status, code in NO_BATCHES:
            answer = await post(client, BATCHES, body)
            assert (answer.status_code, code_of(answer)) == (status, code), str(body)[:200]
        assert (await get(client, BATCHES))["batches"] == []


async def test_every_wrong_item_is_told() -> None:
    """Wrong items are named by their positions, and nothing is stored, the right ones included."""
    async with served(works(), worker=False) as client:
        items = [{"number": 1}, 7, {"number": 2}, {"digits": 3}]
        answer = await post(client, BATCHES, {"task": "double", "items": items, "spread": True})
        assert (answer.status_code, code_of(answer)) == (422, "invalid_input")
        assert [fault["field"] for fault in answer.json()["errors"]] == ["item 1", "item 3"]
        assert (await get(client, JOBS))["jobs"] == []


async def test_a_queue_is_paused_resumed_retried_and_cleaned_up() -> None:
    """Operators find a queue by name, and each verb answers with what it did."""
    async with served(works()) as client:
        job = (await post(client, JOBS, {"task": "fail", "args": [1]})).json()["job"]
        await ended(client, job)
        place = "/api/v1/queues/weak"
        assert (await get(client, place))["failed"] == (await get(client, f"{place}/stats"))["failed"] == 1
        paused = await post(client, f"{place}/pause", {"reason": "upgrade"})
        assert paused.json() == {"queue": "weak", "paused": True, "closed": False, "reason": "upgrade"}
        assert (await post(client, f"{place}/retry")).json() == {"queue": "weak", "retried": 1}
        assert not (await post(client, f"{place}/resume")).json()["paused"]
        removed = await post(client, f"{place}/cleanup", {"retention": 0})
        assert removed.status_code == 200, removed.text
        assert {one["name"] for one in (await get(client, "/api/v1/queues"))["queues"]} >= {"weak"}


REFUSED: list[Any] = [
    ("queues/none/pause", None, 404, "not_found"),
    ("queues/none/resume", None, 404, "not_found"),
    ("queues/Bad/retry", None, 422, "invalid_name"),
    ("queues/weak/cleanup", None, 422, "invalid_input"),
    ("queues/weak/cleanup", {"retention": "soon"}, 422, "invalid_input"),
    ("schedules/none/pause", None, 404, "not_found"),
    ("schedules/Bad/run-now", None, 422, "invalid_name"),
    ("dead-letters/redrive", None, 422, "invalid_input"),
    ("dead-letters/redrive", {"owner": "ann"}, 422, "invalid_input"),
    ("dead-letters/redrive", {"queue": "none"}, 404, "not_found"),
    ("dead-letters/redrive", {"patch": {"more": 1}}, 422, "invalid_input"),
    ("dead-letters/redrive", {"since": "-1d"}, 422, "invalid_input"),
    (f"batches/{NONE}/cancel", None, 404, "not_found"),
    (f"batches/{NONE}/seal", None, 404, "not_found"),
    ("batches/seven/retry", None, 422, "invalid_input"),
    (f"batches/{NONE}/pause", None, 404, "not_found"),
    (f"batches/{NONE}/resume", None, 404, "not_found"),
    ("batches/seven/pause", None, 422, "invalid_input"),
]


async def test_what_operators_are_refused() -> None:
    """Names that there are not are 404, wrong ones 422."""
    async with served(works(), worker=False) as client:
        for path, body, status, code in REFUSED:
            answer = await post(client, f"/api/v1/{path}", body)
            assert (answer.status_code, code_of(answer)) == (status, code), path


async def test_dead_letters_are_grouped_and_run_again() -> None:
    """A dry run shows what would run, also as patched; a redrive makes it run."""
    async with served(works()) as client:
        for number in (1, 2):
            await ended(client, (await post(client, JOBS, {"task": "fail", "args": [number]})).json()["job"])
        listed = await get(client, "/api/v1/dead-letters?queue=weak")
        assert [(group["kind"], group["count"]) for group in listed["groups"]] == [("ValueError", 2)]
        body = {"task": "fail", "patch": {"kwargs": {"bank": "new"}}}
        shown = (await post(client, "/api/v1/dead-letters/redrive", body | {"dry_run": True})).json()
        assert (shown["redriven"], len(shown["patched"])) == (0, 1)
        assert (await post(client, "/api/v1/dead-letters/redrive", body)).json()["redriven"] == 2
        assert (await get(client, "/api/v1/dead-letters"))["count"] == 0


async def test_schedules_workers_and_pools_are_listed() -> None:
    """Schedules are paused, resumed and run at once; workers and pools are told."""
    async with served(works()) as client:
        place = "/api/v1/schedules"
        [schedule] = (await get(client, place))["schedules"]
        assert (schedule["name"], schedule["state"]) == ("nightly", "active")
        assert (await post(client, f"{place}/nightly/pause")).json() == {"schedule": "nightly", "paused": True}
        assert not (await post(client, f"{place}/nightly/resume")).json()["paused"]
        made = await post(client, f"{place}/nightly/run-now")
        assert (made.status_code, (await ended(client, made.json()["job"]))["task"]) == (201, "nightly")
        [worker] = (await get(client, "/api/v1/workers"))["workers"]
        assert worker["alive"] and "weak" in worker["queues"]
        assert (await get(client, "/api/v1/llm/pools"))["pools"] == []


async def test_metrics_tell_of_queues_workers_and_requests() -> None:
    """Figures are text for Prometheus; requests are counted by the template of their route alone."""
    async with served(works()) as client:
        for path in (f"{JOBS}/{NONE}", f"{JOBS}/seven", "/api/v1/none/1", "/api/v1/none/2"):
            await client.get(path)
        answer = await client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = answer.text.splitlines()
        assert "headrace_workers 1" in lines
        assert 'headrace_http_requests_total{route="/api/v1/jobs/{job_id}",method="GET",status="404"} 1' in lines
        assert 'headrace_http_requests_total{route="/api/v1/jobs/{job_id}",method="GET",status="422"} 1' in lines
        assert 'headrace_http_requests_total{route="none",method="GET",status="404"} 2' in lines
        assert any(line.startswith("headrace_queue_jobs{") for line in lines)
        names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
        assert len(names) == len(set(names)), "each metric is declared once"
