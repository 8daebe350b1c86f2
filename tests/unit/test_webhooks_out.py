"""Webhooks out: who is sent what, how often, and what is not asked at all."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headrace import App, Backoff, chain
from headrace.engine.operations import retry_job
from headrace.engine.queries import show_job
from headrace.model.errors import ConfigError, ConflictError, InvalidInputError, PayloadTooLargeError
from headrace.model.job import JobError, JobState
from headrace.model.targets import ForbiddenTargetError
from headrace.webhook_settings import WebhookSettings, check_webhooks
from headrace.webhooks import delivery, verify
from tests.unit.service_calls import code_of, served
from tests.unit.webhook_site import NEW, OK, OLD, Receiver, add_flows, receiver, sending_app, status
from tests.waiting import wait_until


async def ended(app: App, job_id: UUID) -> JobState:
    """Return how a job ended."""
    return (await app.runtime.waiters.final(job_id)).state


async def error_of(app: App, job_id: UUID) -> JobError:
    """Return what a job failed with."""
    error = (await app.runtime.waiters.final(job_id)).error
    assert error is not None
    return error


async def came(site: Receiver, count: int = 1) -> None:
    """Wait until so many messages came."""
    await wait_until(lambda: len(site.came) >= count)


async def test_a_closed_batch_is_told_once_and_signed() -> None:
    """The message names the batch with its counts, and the receiver can verify it."""
    app = sending_app()
    async with receiver() as site, app.worker():
        batch = await app.submit(app.find_task("double"), [1, 2, 3], webhook=site.url, key="k")
        await came(site)
        [message] = site.came
        assert verify(message.headers, message.body, NEW) == message.headers["webhook-id"]
        document = message.document
        assert document["type"] == "batch.closed"
        data = document["data"]
        assert (data["id"], data["key"], data["task"], data["state"]) == (str(batch.id), "k", "double", "closed")
        assert (data["outcome"], data["total"], data["succeeded"], data["failed"]) == ("succeeded", 3, 3, 0)
        assert document["timestamp"] == data["closed_at"]
        assert message.headers["content-type"] == "application/json"


async def test_the_webhook_belongs_to_what_a_key_stands_for() -> None:
    """The same key with another webhook is a conflict, of batches and of runs."""
    app = sending_app()
    app.workflow("twice", chain(app.find_task("double").s()))
    async with app:
        task, urls = app.find_task("double"), [f"http://127.0.0.1:{port}/" for port in (81, 82)]
        await app.submit(task, [1], webhook=urls[0], key="k")
        await app.start("twice", 1, webhook=urls[0], key="k")
        with pytest.raises(ConflictError):
            await app.submit(task, [1], webhook=urls[1], key="k")
        with pytest.raises(ConflictError):
            await app.start("twice", 1, webhook=urls[1], key="k")


async def test_a_callback_and_a_webhook_do_not_go_together() -> None:
    """A batch has one of both, and the error says what to do."""
    app = sending_app()
    async with app:
        double = app.find_task("double")
        with pytest.raises(InvalidInputError, match=r"headrace\.webhooks\.delivery"):
            await app.submit(double, [1], webhook="http://127.0.0.1:81/", on_close=double)


@pytest.mark.parametrize(("mode", "given", "state"), [
    ("workflow_level", 3, "succeeded"), ("node_level", 3, "succeeded"),
    ("workflow_level", -1, "failed"), ("node_level", -1, "failed"),
])  # fmt: skip
async def test_the_end_of_a_run_is_told_once(mode: str, given: int, state: str) -> None:
    """Whether one job runs the graph or many, and whether it succeeds; a second message never comes."""
    app = sending_app()
    _with_mode(app, mode)
    add_flows(app)
    async with receiver() as site, app.worker():
        run = await app.start("positive", given, webhook=site.url)
        await came(site)
        data = site.came[0].document["data"]
        assert (data["id"], data["workflow"], data["state"]) == (str(run.id), "positive", state)
        assert (data["error"] is None) == (state == "succeeded")
        assert site.came[0].document["type"] == "run.ended"
        assert await _queue_is_empty(app)
        assert len(site.came) == 1


async def test_a_cancelled_run_is_told_too() -> None:
    """The store ends it by itself, so the message is stored with the request, and waits for the end."""
    app = sending_app()
    add_flows(app)
    async with receiver() as site, app.worker():
        run = await app.start("waiting", 1, webhook=site.url)
        await wait_until(lambda: _parked(app))
        await run.cancel()
        await run.cancel()
        await came(site)
        assert site.came[0].document["data"]["state"] == "cancelled"
        assert await _queue_is_empty(app)
        assert len(site.came) == 1


async def test_a_run_that_ended_before_its_cancel_is_told_once() -> None:
    """A cancel that comes too late adds no message."""
    app = sending_app()
    add_flows(app)
    async with receiver() as site, app.worker():
        run = await app.start("positive", 1, webhook=site.url)
        await came(site)
        await run.cancel()
        assert await _queue_is_empty(app)
        assert len(site.came) == 1


async def test_a_message_is_tried_again_as_it_was() -> None:
    """Id and body stay; redirects are not followed, and no other answer than 2xx is taken for one."""
    answers = [
        status(500),
        status(302, "location: /elsewhere"),
        status(404),
        status(429, "retry-after: 1"),
        status(200),
    ]
    app = sending_app()
    async with receiver(*answers) as site, app.worker():
        job = await delivery(app, site.url, "order.packed", {"parcels": 2})
        assert await ended(app, job) is JobState.SUCCEEDED
        assert len(site.came) == len(answers)
        assert len({(message.headers["webhook-id"], message.body) for message in site.came}) == 1
        assert site.came[0].document["data"] == {"parcels": 2}
        for message in site.came:
            verify(message.headers, message.body, NEW)


async def test_two_secrets_sign_while_one_is_exchanged() -> None:
    """A receiver that has either of them can verify the message."""
    app = sending_app(secrets=(NEW, OLD))
    async with receiver() as site, app.worker():
        await delivery(app, site.url, "order.packed", None)
        await came(site)
        message = site.came[0]
        assert len(message.headers["webhook-signature"].split(" ")) == 2
        for secret in (NEW, OLD):
            verify(message.headers, message.body, secret)


async def test_a_receiver_that_is_gone_is_asked_once() -> None:
    """410 ends the delivery, as cancelled."""
    app = sending_app()
    async with receiver(status(410)) as site, app.worker():
        job = await delivery(app, site.url, "order.packed", None)
        assert await ended(app, job) is JobState.CANCELLED
        assert len(site.came) == 1


async def test_what_is_never_taken_becomes_a_dead_letter() -> None:
    """After `retry_for` the job has failed, and says why without the path, which may hold a secret."""
    app = sending_app(retry_for=timedelta(milliseconds=60))
    async with receiver(status(503)) as site, app.worker():
        job = await delivery(app, site.url, "order.packed", None)
        assert await ended(app, job) is JobState.FAILED
        message = (await error_of(app, job)).message
        assert "503" in message
        assert "token" not in message
        assert len(site.came) > 1
        assert [group.task for group in (await app.dead_letters.list()).groups] == ["headrace_webhook"]


async def test_a_slow_receiver_holds_nothing() -> None:
    """An answer that drips is left after `timeout`, and its message tried again."""

    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        while True:
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.01)

    app = sending_app(timeout=timedelta(milliseconds=150))
    async with receiver(drip, status(200)) as site, app.worker():
        job = await delivery(app, site.url, "order.packed", None)
        assert await ended(app, job) is JobState.SUCCEEDED
        assert len(site.came) == 2


async def test_a_large_answer_is_left_after_its_beginning() -> None:
    """What a receiver says does not matter: 64 KiB of it are read, and a 200 is one."""
    size = 5_000_000
    answer = f"HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n".encode() + b"x" * size
    app = sending_app()
    async with receiver(answer) as site, app.worker():
        job = await delivery(app, site.url, "order.packed", None)
        assert await ended(app, job) is JobState.SUCCEEDED
        assert len(site.came) == 1


@pytest.mark.parametrize("url", [
    "file:/etc/passwd", "gopher://example.com/", "https://user:pass@example.com/", "http://2130706433/",
    "http://0xA9FEA9FE/", "http://[::ffff:169.254.169.254]/", "http://localhost./", "http://localhost:8080/",
    "http://169.254.169.254/latest", "http://10.0.0.1/", "https://example.com:22/", "http://[fd00::1]/", "hook", "",
])  # fmt: skip
async def test_targets_that_are_not_on_the_web_are_refused_before_anything_is_stored(url: str) -> None:
    """Whatever way they are written; with `allow_private` addresses where clouds keep secrets stay closed."""
    app = sending_app(allow_private=False)
    async with app:
        with pytest.raises(ForbiddenTargetError):
            await app.submit(app.find_task("double"), [1], webhook=url)
        with pytest.raises(ForbiddenTargetError):
            await delivery(app, url, "order.packed", None)
    async with sending_app() as private:
        if "169.254" in url or "://" not in url:
            with pytest.raises(ForbiddenTargetError):
                await delivery(private, url, "order.packed", None)


async def test_a_name_that_leads_to_a_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the message is taken, and again when it is sent: the name may have another address by then."""
    found = ["10.1.2.3"]

    async def resolve(host: str, port: int) -> list[str]:
        assert host == "hooks.example"
        return found

    monkeypatch.setattr("headrace.outbound.client.resolve_host", resolve)
    app = sending_app(allow_private=False, retry_for=timedelta(microseconds=1))
    async with app:
        with pytest.raises(ForbiddenTargetError, match=r"hooks\.example"):
            await delivery(app, "https://hooks.example/", "order.packed", None)
        found[:] = ["8.8.8.8"]
        job = await delivery(app, "https://hooks.example/", "order.packed", None)
        found[:] = ["127.0.0.1"]
        async with app.worker():
            assert await ended(app, job) is JobState.FAILED
            assert "must not lead to" in (await error_of(app, job)).message


async def test_what_cannot_be_a_message_is_refused() -> None:
    """No secret, a type of other signs or of Headrace's own, too much data, a key with other data."""
    async with App("memory://") as plain:
        with pytest.raises(InvalidInputError, match="secrets"):
            await delivery(plain, "https://8.8.8.8/", "order.packed", None)
    app = sending_app()
    async with app:
        url = "http://127.0.0.1:81/"
        with pytest.raises(InvalidInputError, match="type"):
            await delivery(app, url, "order packed", None)
        for own in ("batch.closed", "run.ended"):
            with pytest.raises(InvalidInputError, match="type must not be one that Headrace sends"):
                await delivery(app, url, own, {"parcels": 2})
        with pytest.raises(PayloadTooLargeError):
            await delivery(app, url, "order.packed", "x" * 65_600)
        first = await delivery(app, url, "order.packed", 1, key="o-1")
        assert await delivery(app, url, "order.packed", 1, key="o-1") == first
        with pytest.raises(ConflictError):
            await delivery(app, url, "order.packed", 2, key="o-1")


def _with_mode(app: App, mode: str) -> None:
    scheduler = app.settings.scheduler
    hybrid = replace(scheduler.hybrid, default_mode=mode)
    app.settings = replace(app.settings, scheduler=replace(scheduler, hybrid=hybrid))


async def _parked(app: App) -> bool:
    jobs = await app.runtime.stores.inspect.list_jobs(state=JobState.PARKED, limit=10)
    return bool(jobs)


async def _queue_is_empty(app: App) -> bool:
    """Wait until no delivery is left."""

    async def look() -> bool:
        live = await app.runtime.stores.inspect.live_jobs("webhooks")
        return not any(live.values())

    return await wait_until(look)


async def test_webhooks_are_asked_for_over_http() -> None:
    """Of batches and runs; what must not be asked is refused with its own code before anything is stored."""
    app = sending_app()
    app.workflow("twice", chain(app.find_task("double").s()))
    async with receiver() as site, served(app) as client:
        bodies: dict[str, dict[str, Any]] = {
            "/api/v1/batches": {"task": "double", "items": [1, 2]},
            "/api/v1/runs": {"workflow": "twice", "input": 1},
        }
        for path, body in bodies.items():
            answer = await client.post(path, json={**body, "webhook": "http://169.254.169.254/"})
            assert (answer.status_code, code_of(answer)) == (422, "forbidden_target")
            assert (await client.get(path)).json()[path.rpartition("/")[2]] == []
            answer = await client.post(path, json={**body, "webhook": site.url})
            assert answer.status_code == 201, answer.text
        await came(site, 2)
        assert {message.document["type"] for message in site.came} == {"batch.closed", "run.ended"}


def test_a_cloud_keeps_its_secrets_from_private_networks() -> None:
    """What `allow_private` opens has not the addresses where clouds give out credentials, of IPv6 either."""
    rules = WebhookSettings(allow_private=True).targets
    for url in ("http://[fd00:ec2::254]/latest", "http://[fd20:ce::254]/", "http://169.254.169.254/latest"):
        with pytest.raises(ForbiddenTargetError):
            rules.check(target := rules.parse(url, field="webhook"), [target.host], field="webhook")
    mine = rules.parse("http://[fd12:3456::7]/hook", field="webhook")
    rules.check(mine, ["fd12:3456::7"], field="webhook")


def test_tries_last_as_long_as_messages_are_tried() -> None:
    """Else a dead letter would come long before the time that is configured."""
    with pytest.raises(ConfigError, match=r"webhooks.longest_retry must be at least 43m12s, or the tries are used up"):
        check_webhooks(WebhookSettings(longest_retry=timedelta(minutes=5)))
    check_webhooks(WebhookSettings(longest_retry=timedelta(minutes=5), retry_for=timedelta(hours=2)))


async def test_where_a_message_goes_is_shown_without_its_secrets() -> None:
    """Whoever may read jobs sees the site alone."""
    app = sending_app()
    async with app:
        job = await delivery(app, "http://127.0.0.1:8999/hook?key=secret", "order.packed", None)
        view, _ = await show_job(app.runtime.stores.inspect, job)
    assert "secret" not in str(view.args) and "http://127.0.0.1:8999/…" in str(view.args)


async def test_each_round_of_a_batch_has_a_message_of_its_own() -> None:
    """A receiver that leaves out the ids that it has must still hear of the second round."""
    app, failed = sending_app(), set[int]()

    @app.task(retry=Backoff.none())
    async def second(number: int) -> int:
        if number not in failed:
            failed.add(number)
            raise ValueError("not yet")
        return number

    async with receiver() as site, app.worker():
        batch = await app.submit(second, [1], webhook=site.url)
        await came(site)
        await batch.retry_failed()
        await came(site, 2)
        assert [message.document["data"]["round"] for message in site.came] == [1, 2]
        assert len({message.headers["webhook-id"] for message in site.came}) == 2


async def test_a_message_of_a_round_that_is_over_tells_of_that_round() -> None:
    """Though it is delivered while the next one runs; both have ids of their own."""
    app, failed, gate = sending_app(), set[int](), asyncio.Event()

    @app.task(retry=Backoff.none())
    async def second(number: int) -> int:
        if number not in failed:
            failed.add(number)
            raise ValueError("not yet")
        await gate.wait()
        return number

    async with receiver() as site, app.worker():
        await app.pause("webhooks")
        batch = await app.submit(second, [1, 2], webhook=site.url)
        await batch.wait("10s")
        await batch.retry_failed()
        await app.resume("webhooks")
        await came(site)
        gate.set()
        await came(site, 2)
        told = [message.document["data"] for message in site.came]
        assert [(data["state"], data["round"], data["outcome"], data["failed"]) for data in told] == [
            ("closed", 1, "failed", 2), ("closed", 2, "succeeded", 0),
        ]  # fmt: skip
        assert len({message.headers["webhook-id"] for message in site.came}) == 2


@pytest.mark.parametrize("key", [None, "order-7"])
async def test_a_dead_letter_that_is_sent_again_keeps_its_id(key: str | None) -> None:
    """With a key and without one: the receiver may have it already."""
    # Over when the first answer comes, however fast that is.
    app = sending_app(retry_for=timedelta(microseconds=1))
    async with receiver(status(503), OK) as site, app.worker():
        job = await delivery(app, site.url, "order.packed", None, key)
        assert await ended(app, job) is JobState.FAILED
        again = await retry_job(app.runtime.stores, job)
        assert await ended(app, again) is JobState.SUCCEEDED
        assert len({message.headers["webhook-id"] for message in site.came}) == 1


def test_the_least_wait_that_is_allowed_lasts() -> None:
    """Few messages are given up before their time, though waits are drawn by lot."""
    retry_for, draw, early = timedelta(hours=24), random.Random(1), 0
    policy = Backoff.exponential(max_attempts=100, base="5s", cap=retry_for * 3 / 100)
    check_webhooks(WebhookSettings(longest_retry=policy.cap, retry_for=retry_for))
    for _ in range(200):
        waited = (policy.delay(failures=number, random=draw.random()) for number in range(1, 100))
        early += sum(waited, timedelta()) < retry_for
    assert early <= 2
