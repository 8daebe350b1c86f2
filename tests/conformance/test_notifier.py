"""Notifier: hints that something changed."""

from __future__ import annotations

import asyncio
import threading

from headrace.model.job import JobSpec, NewJob
from tests.conformance.scenario import ARGS, Scenario
from tests.waiting import wait_until


async def test_a_hint_reaches_its_subscriber(on: Scenario) -> None:
    """A subscriber hears the topic, also of hints of its own process."""
    heard: list[str] = []
    await on.stores.notifier.subscribe(heard.append)
    on.stores.notifier.hint("queue:default")

    await wait_until(lambda: heard == ["queue:default"])


async def test_every_subscriber_hears(on: Scenario) -> None:
    """Several subscribers all hear each topic."""
    heard: list[tuple[int, str]] = []
    for number in range(3):
        await on.stores.notifier.subscribe(lambda topic, number=number: heard.append((number, topic)))  # type: ignore[misc]
    on.stores.notifier.hint("done")
    on.stores.notifier.hint("queue:a")

    await wait_until(lambda: set(heard) == {(n, topic) for n in range(3) for topic in ("done", "queue:a")})


async def test_a_hint_calls_on_the_loop_of_its_subscriber(on: Scenario) -> None:
    """Given in another thread, a hint is heard in the thread of the subscriber's event loop."""
    heard: list[tuple[str, int]] = []
    await on.stores.notifier.subscribe(lambda topic: heard.append((topic, threading.get_ident())))
    await asyncio.to_thread(on.stores.notifier.hint, "done")

    await wait_until(lambda: heard == [("done", threading.get_ident())])


async def test_hints_of_one_moment_are_coalesced(on: Scenario) -> None:
    """A thousand hints of one topic at once wake a subscriber a few times at most, and at least once."""
    heard: list[str] = []
    await on.stores.notifier.subscribe(heard.append)
    for _ in range(1_000):
        on.stores.notifier.hint("queue:busy")
    on.stores.notifier.hint("queue:last")

    await wait_until(lambda: "queue:last" in heard)
    await wait_until(lambda: "queue:busy" in heard)
    assert heard.count("queue:busy") <= 3


async def test_a_hint_after_a_hint_was_heard_is_heard_again(on: Scenario) -> None:
    """Coalescing swallows no later change: each hint that follows one heard is heard itself."""
    heard: list[str] = []
    await on.stores.notifier.subscribe(heard.append)
    for count in range(1, 4):
        on.stores.notifier.hint("done")
        await wait_until(lambda count=count: len(heard) == count)  # type: ignore[misc]


async def test_a_hint_given_while_hearing_one_is_heard(on: Scenario) -> None:
    """A subscriber that hints the same topic again from its callback hears that as well."""
    heard: list[str] = []

    def echo(topic: str) -> None:
        heard.append(topic)
        if len(heard) < 3:
            on.stores.notifier.hint(topic)

    await on.stores.notifier.subscribe(echo)
    on.stores.notifier.hint("done")

    await wait_until(lambda: len(heard) == 3)


async def test_a_stopped_subscriber_hears_nothing(on: Scenario) -> None:
    """After stopping, once or twice, nothing more arrives; others go on."""
    gone: list[str] = []
    heard: list[str] = []
    stop = await on.stores.notifier.subscribe(gone.append)
    await on.stores.notifier.subscribe(heard.append)
    stop()
    stop()
    on.stores.notifier.hint("done")

    await wait_until(lambda: heard == ["done"])
    assert gone == []


async def test_a_hint_without_subscribers_is_allowed(on: Scenario) -> None:
    """Hinting never raises: not without subscribers, not after closing."""
    on.stores.notifier.hint("done")
    await on.stores.notifier.close()
    on.stores.notifier.hint("done")


async def test_a_closed_notifier_tells_nothing(on: Scenario) -> None:
    """After closing, which is allowed twice, no subscriber is called."""
    heard: list[str] = []
    await on.stores.notifier.subscribe(heard.append)
    await on.stores.notifier.close()
    await on.stores.notifier.close()
    on.stores.notifier.hint("done")
    await asyncio.sleep(0)

    assert heard == []


async def test_a_failing_subscriber_keeps_no_hint_from_others(on: Scenario) -> None:
    """An error in one callback is that subscriber's own: the next hint reaches everyone, itself included."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)
    calls: list[str] = []
    heard: list[str] = []

    def fail(topic: str) -> None:
        calls.append(topic)
        raise ValueError(topic)

    await on.stores.notifier.subscribe(fail)
    await on.stores.notifier.subscribe(heard.append)
    for count in (1, 2):
        on.stores.notifier.hint("done")
        await wait_until(lambda count=count: len(calls) == len(heard) == count)  # type: ignore[misc]


async def test_the_insert_of_jobs_hints_their_queues(on: Scenario) -> None:
    """One job, and a job that comes with others: whoever listens hears of each queue, once the jobs can be claimed."""
    heard: list[str] = []
    await on.stores.notifier.subscribe(heard.append)
    await on.stores.jobs.insert_jobs([NewJob(JobSpec("work", queue="alone"), ARGS)])
    await wait_until(lambda: heard == ["queue:alone"])
    await on.stores.jobs.insert_jobs([NewJob(JobSpec("work", queue=name), ARGS) for name in ("a", "b", "a")])
    await wait_until(lambda: sorted(heard) == ["queue:a", "queue:alone", "queue:b"])
