"""The watch and the sight of a Celery farm, on steps in memory and a broker that is made up."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from headrace.executors.celery import beat, sending, sight
from headrace.executors.celery.beat import Beat, Pulse
from headrace.executors.celery.judging import LOST_AT
from headrace.executors.celery.presence import Seen, encode_worker, look
from headrace.executors.celery.sending import Sender
from headrace.executors.celery.sight import SETTLE_SECONDS, Sight
from headrace.executors.celery.site import CelerySite
from headrace.executors.celery.watch import Out, Watch
from headrace.model.errors import ExecutorCrashedError, ExecutorLostError, FenceLostError, StoreUnavailableError
from headrace.model.farm import BEGUN, ENDED, Begun, FarmWorker, Fence, stored_sign
from headrace.model.job import Completion, JobState
from headrace.ports.wire import encode_completion
from tests.waiting import wait_until

SITE = CelerySite("redis://broker.example", "p")
WORKER = FarmWorker("w", "host", frozenset({"llm"}), 2, frozenset({11}), 100.0)


class Steps:
    """Steps of jobs, written once; the answers to some writes are lost."""

    def __init__(self) -> None:
        self.kept: dict[tuple[UUID, str], str] = {}
        self.lost_answers = 0
        self.fence_lost = False

    async def read_steps(self, wanted: list[tuple[UUID, str]]) -> dict[tuple[UUID, str], str]:
        """Return what there is."""
        return {one: self.kept[one] for one in wanted if one in self.kept}

    async def load_steps(self, job: UUID) -> dict[str, str]:
        """Return all of a job."""
        return {name: value for (one, name), value in self.kept.items() if one == job}

    async def save_step(self, job: UUID, *, attempt: int, session: UUID, name: str, value: str) -> str:
        """Store it once."""
        if self.fence_lost:
            raise FenceLostError
        stored = self.kept.setdefault((job, name), value)
        if self.lost_answers:
            self.lost_answers -= 1
            raise StoreUnavailableError("the answer was lost")
        return stored


def ended(completion: Completion) -> str:
    """Return the end of a call as a farm keeps it."""
    return json.dumps({"attempt": completion.attempt, **json.loads(encode_completion(completion))})


class Site:
    """A watch whose worker of the farm is alive."""

    def __init__(self) -> None:
        self.steps, self.sight = Steps(), Sight(None)  # type: ignore[arg-type]
        self.watch = Watch(None, self.steps, self.sight, lambda *_: None)  # type: ignore[arg-type]
        self.sight._roll.note({"w": WORKER}, asyncio.get_running_loop().time())

    def call(self, waited: float = 0.0) -> Out:
        """Return a call that has been out for so long."""
        out = self.watch.add(Fence(uuid4(), 1, uuid4()), "llm", 300.0)
        out.waiting.sent_at -= waited
        return out

    def begin(self, out: Out, pid: int = 11, steps: int = 0) -> None:
        """Let a process of the farm begin it."""
        self.steps.kept[out.fence.job, BEGUN] = Begun("w", pid, 50.0, "sign", 1, steps).text


async def test_a_call_that_is_given_up_can_not_be_begun() -> None:
    """It is signed for before anything else may happen to its job, so that no process begins it later."""
    site = Site()
    out = site.call(waited=LOST_AT)
    await site.watch._look()
    with pytest.raises(ExecutorLostError, match="no Celery worker began the job") as caught:
        await out.ended
    assert not caught.value.begun
    late = Begun("w", 11, 50.0, "late", 1).text
    stored = await site.steps.save_step(out.fence.job, attempt=1, session=out.fence.session, name=BEGUN, value=late)
    assert stored_sign(stored) == site.sight.id


async def test_a_call_that_begins_while_it_is_given_up_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The farm signs between the look and the giving up: the call is waited for, and ends as it ends."""
    site = Site()
    out = site.call(waited=LOST_AT)
    read = site.steps.read_steps

    async def slowly(wanted: list[tuple[UUID, str]]) -> dict[tuple[UUID, str], str]:
        found = await read(wanted)
        site.begin(out)
        return found

    monkeypatch.setattr(site.steps, "read_steps", slowly)
    await site.watch._look()
    await site.watch._look()
    assert not out.ended.done()
    end = Completion(out.fence.job, 1, JobState.SUCCEEDED, result="1")
    site.steps.kept[out.fence.job, ENDED] = ended(end)
    await site.watch._look()
    assert (await out.ended).result == "1"


async def test_giving_up_may_be_answered_late_or_by_nobody() -> None:
    """A sign whose answer was lost is found as ours; an attempt that lost its job is over."""
    site = Site()
    out = site.call(waited=LOST_AT)
    site.steps.lost_answers = 1
    with pytest.raises(StoreUnavailableError):
        await site.watch._look()
    await site.watch._look()
    with pytest.raises(ExecutorLostError) as caught:
        await out.ended
    assert not caught.value.begun
    other = site.call(waited=LOST_AT)
    site.steps.fence_lost = True
    await site.watch._look()
    with pytest.raises(ExecutorLostError, match="does not own its job"):
        await other.ended


@pytest.mark.parametrize("stored", [True, False])
async def test_a_crash_after_a_step_is_progress(stored: bool) -> None:
    """What the store has counts, and no note that may be lost."""
    site = Site()
    out = site.call()
    site.begin(out, pid=99, steps=1)
    site.steps.kept[out.fence.job, "before"] = "1"
    if stored:
        site.steps.kept[out.fence.job, "new"] = "2"
    await site.watch._look()
    with pytest.raises(ExecutorCrashedError) as caught:
        await out.ended
    assert caught.value.progressed is stored


async def test_an_end_that_cannot_be_read_is_the_trouble_of_one_call() -> None:
    """Its neighbours end as they ended."""
    site = Site()
    bad, good = site.call(), site.call()
    newer = json.loads(ended(Completion(bad.fence.job, 1, JobState.SUCCEEDED, result="1")))
    newer["completion"]["state"] = "of a newer version"
    site.steps.kept[bad.fence.job, ENDED] = json.dumps(newer)
    end = Completion(good.fence.job, 1, JobState.SUCCEEDED, result="2", port="left")
    site.steps.kept[good.fence.job, ENDED] = ended(end)
    await site.watch._look()
    with pytest.raises(ExecutorCrashedError, match="cannot be read"):
        await bad.ended
    assert ((await good.ended).result, (await good.ended).port) == ("2", "left")


async def test_what_is_left_of_an_earlier_attempt_is_nothing() -> None:
    """Neither its beginning nor its end is that of the next one."""
    site = Site()
    out = site.watch.add(Fence(uuid4(), 2, uuid4()), "llm", 300.0)
    site.begin(out, pid=99)
    site.steps.kept[out.fence.job, ENDED] = ended(Completion(out.fence.job, 1, JobState.SUCCEEDED, result="1"))
    await site.watch._look()
    assert not out.ended.done()


async def test_what_is_out_is_counted_by_queue() -> None:
    """That is what others are told."""
    site = Site()
    outs = [site.call() for _ in range(3)]
    site.watch.remove(outs[0].fence)
    assert site.sight.out == {"llm": 2}


class Broker:
    """Keys of a broker, as far as a look at who is alive needs them."""

    def __init__(self) -> None:
        self.workers = {"w": encode_worker(WORKER)}
        self.senders: dict[str, str] = {}

    @asynccontextmanager
    async def pipeline(self, **_: Any) -> AsyncIterator[Broker]:
        """Return itself."""
        yield self

    def smembers(self, _key: str) -> None:
        """Be asked for both."""

    def sadd(self, _key: str, one: str) -> None:
        """Hear of a sender."""
        self.senders.setdefault(one, "")

    def set(self, key: str, text: str, ex: int) -> None:
        """Hear what it says."""
        self.senders[key.rpartition(":")[2]] = text

    async def execute(self) -> list[list[str]]:
        """Answer with both."""
        return [list(self.workers), list(self.senders)]

    async def mget(self, keys: list[str]) -> list[str]:
        """Answer with what each said."""
        return [(self.workers | self.senders)[key.rpartition(":")[2]] for key in keys]


async def test_a_worker_that_cannot_be_understood_is_passed_over() -> None:
    """One of another version, on either side of the farm, keeps nobody from seeing the others."""
    broker = Broker()
    broker.workers |= {"x": "{}", "y": "no JSON", "z": "[1]"}
    broker.senders = {"a": '["llm"]', "b": '{"taken": {"llm": 2}}'}
    assert await look(broker, SITE) == Seen({"w": WORKER}, {"b": {"llm": 2}})


async def test_who_comes_to_others_waits_until_they_know_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first has the farm to itself at once; the second takes nothing that the first may just be taking."""
    broker, now = Broker(), [100.0]
    monkeypatch.setattr(sight, "_now", lambda: now[0])
    link: Any = type("Link", (), {"client": broker, "site": SITE})
    first, second = Sight(link), Sight(link)
    assert first.room("llm", {}) == 0
    await first._see()
    assert first.room("llm", {}) == 2
    first.out["llm"] = 2
    assert second.room("llm", {}) == 0
    await second._see()
    assert second.room("llm", {}) == 0
    now[0] += SETTLE_SECONDS
    await first._see()
    await second._see()
    assert second.room("llm", {}) == 0
    # It has more than its share, and takes no more until it has less.
    assert first.room("llm", {"llm": 1}) == 0
    first.out["llm"] = 0
    now[0] += SETTLE_SECONDS
    await first._see()
    await second._see()
    assert (first.room("llm", {}), second.room("llm", {})) == (1, 1)


class Heard:
    """A broker that hears a beat."""

    def __init__(self) -> None:
        self.closing: list[bool] = []

    def __enter__(self) -> Heard:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def pipeline(self, **_: Any) -> Heard:
        """Return itself."""
        return self

    def sadd(self, *_: Any) -> None:
        """Hear who."""

    def set(self, _key: str, text: str, **_: Any) -> None:
        """Hear what."""
        self.closing.append(json.loads(text)["closing"])

    def execute(self) -> None:
        """Do nothing more."""


def test_a_beat_says_whether_messages_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose consumer stands still is no room; one that never comes back ends, unless it is being stopped."""
    now, ended = [100.0], []
    monkeypatch.setattr(beat.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(beat.os, "_exit", ended.append)
    monkeypatch.setattr(beat.logging, "shutdown", lambda: None)
    pulse, heard = Pulse(), Heard()
    pulse.note()
    said = Beat(SITE, WORKER, lambda: [11], pulse)
    said._say(heard)
    now[0] += 6
    said._say(heard)
    pulse.note()
    said._say(heard)
    assert (heard.closing, ended) == ([False, True, False], [])
    now[0] += 6
    said._say(heard)
    now[0] += beat.HOPELESS_SECONDS + 1
    said._say(heard)
    assert ended == [1]
    said.close()
    said._say(heard)
    assert ended == [1]


async def test_a_broker_that_never_answers_keeps_no_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages to it are dropped after a while, and the sender can be closed."""
    monkeypatch.setattr(sending, "PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        site = CelerySite(f"redis://127.0.0.1:{server.getsockname()[1]}", "p")
        sender = Sender(site, site.celery(timedelta(minutes=5)))
        run = asyncio.create_task(sender.run())
        sender.send(Fence(uuid4(), 1, uuid4()), "llm")
        await wait_until(lambda: sender._away)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        await asyncio.wait_for(sender.close(), 5)
