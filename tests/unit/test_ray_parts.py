"""The parts of the Ray executor, on steps in memory and a cluster that is made up."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from ray import exceptions

from headrace.executors.ray import executor as executing
from headrace.executors.ray import sight as seeing
from headrace.executors.ray import wanting, watch
from headrace.executors.ray.asking import MOST_BUNDLES, STALE_SECONDS, is_stale, part_of, total_of
from headrace.executors.ray.book import Book, Out
from headrace.executors.ray.cluster import reach
from headrace.executors.ray.errors import Fate, fate_of
from headrace.executors.ray.fitting import Node, room
from headrace.model.errors import ExecutorCrashedError, ExecutorLostError
from headrace.model.farm import BEGUN, ENDED, PAID, Fence
from headrace.ports.wire import encode_completion
from tests.unit.ray_parts import NODE, Site, done, site_of
from tests.unit.test_celery_watch import ended
from tests.waiting import wait_until


@pytest.fixture
async def site(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """Have one."""
    async with site_of(monkeypatch) as site:
        yield site


class TaskError(exceptions.RayTaskError):
    """An error of a task, as Ray makes it."""

    def __init__(self, cause: Exception) -> None:
        super().__init__("call", f"Traceback …\n{type(cause).__name__}: {cause}", cause)


@pytest.mark.parametrize(
    ("error", "fate", "words"),
    [
        (exceptions.WorkerCrashedError(), Fate.CRASHED, "its Ray worker process died"),
        (exceptions.OutOfMemoryError("no memory"), Fate.CRASHED, "ran out of memory"),
        (exceptions.NodeDiedError("gone"), Fate.LOST, "its Ray node is gone"),
        (exceptions.LocalRayletDiedError(), Fate.LOST, "the Ray node of its worker is gone"),
        (exceptions.OwnerDiedError("00", None, ""), Fate.LOST, "driver that sent it is gone"),
        (exceptions.ObjectLostError("00", None, ""), Fate.LOST, "lost with a Ray node"),
        (exceptions.ObjectFetchTimedOutError("00", None, ""), Fate.LOST, "cannot be fetched|lost with a Ray node"),
        (exceptions.TaskCancelledError(), Fate.LOST, "was cancelled in Ray"),
        (exceptions.RuntimeEnvSetupError("no pip"), Fate.UNFIT, "cannot set its environment up: .*no pip"),
        (exceptions.TaskUnschedulableError("no"), Fate.LOST, "cannot place it"),
        (TaskError(ModuleNotFoundError("shop")), Fate.UNFIT, "cannot run calls of this app: .*shop"),
        (exceptions.RaySystemError("a surprise"), Fate.LOST, "Ray failed"),
        (ConnectionError("gone"), Fate.LOST, "Ray failed: ConnectionError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_what_errors_of_ray_say(error: Exception, fate: Fate, words: str) -> None:
    """Each of them: a process died, something else is gone, or nothing can run there."""
    found, why = fate_of(error)
    assert found is fate
    assert re.search(words, why), why


def test_room_is_what_others_leave() -> None:
    """What is used beyond what is ours is of others; ours is counted as it is now."""
    used = Node("a", {"CPU": 4.0}, {"CPU": 0.0})
    needs = {"llm": {"CPU": 1.0}}

    def left(mine: int, peak: int) -> int:
        return room("llm", needs, [used], Counter(llm=mine), Counter(llm=peak))

    assert [left(0, 0), left(4, 4), left(0, 4), left(1, 4), left(1, 3), left(9, 4)] == [0, 0, 4, 3, 2, 0]


def test_room_is_of_whole_nodes() -> None:
    """Halves of two nodes are no node."""
    nodes = [Node(name, {"CPU": 4.0}, {"CPU": 2.0}) for name in "ab"]
    assert room("big", {"big": {"CPU": 3.0}}, nodes, Counter(), Counter()) == 0
    assert room("big", {"big": {"CPU": 2.0}}, nodes, Counter(), Counter()) == 2


async def test_the_book_remembers_the_most_of_two_looks() -> None:
    """A look may have seen what was out a moment ago."""
    book = Book()
    out = Out(Fence(uuid4(), 1, uuid4()), "llm", 1.0, 0.0)
    book.add(out)
    book.remove(out)
    book.remove(out)
    assert (+book.counts, book.peak) == (Counter(), Counter(llm=1))
    book.turn()
    assert book.peak == Counter(llm=1)
    book.turn()
    assert not book.peak


async def test_an_answer_is_a_completion(site: Site) -> None:
    """A call carries its fence and takes room until it ends."""
    running = site.run()
    future = await site.sent()
    need, word, _ = site.cluster.sent[0]
    assert (need, Fence.parse(word)) == ({"CPU": 1.0}, site.fence)
    assert site.executor.room("llm", {"llm": 1}) == 3
    future.set_result(encode_completion(done(site.fence)))
    assert await running == done(site.fence)
    assert site.executor.room("llm", {}) == 4


async def test_a_process_that_died_of_its_call_is_a_crash(site: Site) -> None:
    """With what it stored; without a sign nobody died of it."""
    running = site.run()
    site.begin()
    site.steps.kept[site.fence.job, PAID] = json.dumps({"attempt": 1})
    (await site.sent()).set_exception(exceptions.WorkerCrashedError())
    with pytest.raises(ExecutorCrashedError) as caught:
        await running
    assert caught.value.progressed


async def test_a_process_that_died_before_the_call_began_costs_nothing(site: Site) -> None:
    """Nor can the call begin any more."""
    running = site.run()
    (await site.sent()).set_exception(exceptions.WorkerCrashedError())
    with pytest.raises(ExecutorLostError, match="before it began") as caught:
        await running
    assert not caught.value.begun
    assert BEGUN in await site.steps.load_steps(site.fence.job)


async def test_an_end_that_was_kept_counts_though_its_process_died(site: Site) -> None:
    """A handler in a thread that does not end takes its process along."""
    running = site.run()
    site.begin()
    site.steps.kept[site.fence.job, ENDED] = ended(done(site.fence))
    (await site.sent()).set_exception(exceptions.WorkerCrashedError())
    assert await running == done(site.fence)


@pytest.mark.parametrize("begun", [True, False])
async def test_a_node_that_is_gone_is_nobodys_fault(site: Site, begun: bool) -> None:
    """What may run once runs again only if nobody had begun it, and then nobody will."""
    running = site.run()
    if begun:
        site.begin()
    (await site.sent()).set_exception(exceptions.NodeDiedError("gone"))
    with pytest.raises(ExecutorLostError, match="node is gone") as caught:
        await running
    assert caught.value.begun is begun


async def test_the_node_of_the_worker_is_gone(site: Site) -> None:
    """It connects anew, and what is out is lost: Ray says no more of it."""
    running = site.run()
    await site.sent()
    site.cluster.nodes = []
    with pytest.raises(ExecutorLostError, match="Ray failed: ConnectionError"):
        await running
    site.cluster.nodes = [NODE]
    await site.ready()
    assert site.cluster.connections >= 2


async def test_what_cannot_be_opened_is_not_claimed_for_a_while(site: Site) -> None:
    """It is nobody's fault, and comes again with the next one."""
    running = site.run()
    (await site.sent()).set_result(json.dumps({"not_begun": "no module named shop"}).encode())
    with pytest.raises(ExecutorLostError, match="no Ray process began the job: no module named shop") as caught:
        await running
    assert not caught.value.begun
    assert site.executor.room("llm", {}) == 0


async def test_a_cluster_that_takes_nothing_costs_nothing(site: Site) -> None:
    """The job goes back."""
    site.cluster.refuses = True
    with pytest.raises(ExecutorLostError, match="Ray does not take the job: away") as caught:
        await site.run()
    assert not caught.value.begun


async def test_a_call_that_nobody_begins_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it waits nothing is claimed; then it is signed for, and cancelled."""
    monkeypatch.setattr(watch, "SLOW_SECONDS", 0.02)
    running = site.run()
    await wait_until(lambda: site.executor.room("llm", {}) == 0)
    monkeypatch.setattr(watch, "LOST_SECONDS", 0.05)
    with pytest.raises(ExecutorLostError, match="no Ray process began the job") as caught:
        await running
    assert (caught.value.begun, site.cluster.cancelled[:1]) == (False, [False])


async def test_a_call_that_never_ends_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long after its timeout; it may have done what it was to do."""
    monkeypatch.setattr(watch, "SLOW_SECONDS", 0.02)
    monkeypatch.setattr(watch, "OVERDUE_SECONDS", 0.05)
    running = site.run(timeout=0.01)
    site.begin()
    with pytest.raises(ExecutorLostError, match="has not ended it long after its timeout") as caught:
        await running
    assert caught.value.begun


async def test_a_cancelled_call_takes_room_until_it_ends(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is interrupted, and after a while its process is ended."""
    monkeypatch.setattr(watch, "FORCE_SECONDS", 0.02)
    running = site.run()
    future = await site.sent()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (site.cluster.cancelled, site.executor.room("llm", {})) == ([False], 3)
    await wait_until(lambda: site.cluster.cancelled == [False, True])
    future.set_exception(exceptions.TaskCancelledError())
    await wait_until(lambda: site.executor.room("llm", {}) == 4)


async def test_a_call_that_was_stopped_there_waits_for_its_worker(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process may hear of a cancelled job first; the worker says what becomes of it."""
    running = site.run()
    (await site.sent()).set_result(b"{}")
    done_soon, _ = await asyncio.wait([running], timeout=0.05)
    assert not done_soon
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    monkeypatch.setattr(executing, "STOPPED_SECONDS", 0.01)
    running = site.run()
    await wait_until(lambda: len(site.cluster.sent) == 2)
    site.cluster.sent[1][2].set_result(b"{}")
    with pytest.raises(ExecutorLostError, match="does not own its job any more"):
        await running


async def test_what_is_wanted_is_asked_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request replaces the last one, so it holds what all queues want; none is made twice."""
    monkeypatch.setattr(wanting, "ASK_SECONDS", 0.05)
    async with site_of(monkeypatch) as site:
        site.executor.want("llm", 2)
        site.executor.want("cpu", 1)
        site.executor.want("llm", 3)
        await wait_until(lambda: site.cluster.wanted)
        assert site.cluster.wanted == [[{"CPU": 1.0}] * 4]
        site.executor.want("llm", 3)
        site.executor.want("cpu", 0)
        await wait_until(lambda: len(site.cluster.wanted) == 2)
        assert site.cluster.wanted[1] == [{"CPU": 1.0}] * 3
    assert site.cluster.wanted[2:] == [[]]


async def test_what_is_wanted_is_asked_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A head node that has begun again knows nothing of it."""
    monkeypatch.setattr(wanting, "ASK_SECONDS", 0.01)
    monkeypatch.setattr(wanting, "NOTE_SECONDS", 0.01)
    site.executor.want("llm", 1)
    await wait_until(lambda: len(site.cluster.wanted) > 2)
    assert site.cluster.wanted[:3] == [[{"CPU": 1.0}]] * 3


def test_workers_want_together_what_each_has_noted() -> None:
    """What one noted that died does not count, nor what is none; and there is a bound."""
    two, none = part_of([{"CPU": 1.0}, {"CPU": 1.0, "ssd": 0.5}], 100.0), part_of([], 100.0)
    assert total_of([two, none, two], 101.0) == [{"CPU": 1.0}, {"CPU": 1.0, "ssd": 0.5}] * 2
    assert total_of([two], 100.0 + STALE_SECONDS) == []
    for wrong in (b"", b"[]", b"7", b'{"at": "x", "wants": []}', b'{"at": 100, "wants": [[1, 2]]}'):
        assert total_of([wrong], 101.0) == []
        assert is_stale(wrong, 101.0)
    assert is_stale(none, 101.0)
    assert not is_stale(two, 101.0)
    many = part_of([{"CPU": 1.0}] * MOST_BUNDLES, 100.0)
    assert len(total_of([many, two], 101.0)) == MOST_BUNDLES


async def test_a_worker_begins_connected_or_soon_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connecting may stop the process for seconds: it is over before there is a lease, or goes on without it."""
    site = Site(monkeypatch)
    await site.executor.begin()
    assert site.cluster.connections == 1
    assert site.executor.room("llm", {}) == 4
    await site.executor.close()

    goes_on = threading.Event()
    monkeypatch.setattr(executing, "BEGIN_SECONDS", 0.05)
    for connect in (lambda: goes_on.wait(10), lambda: reach("127.0.0.1:1")):
        slow = Site(monkeypatch)
        monkeypatch.setattr(slow.cluster, "connect", connect)
        await slow.executor.begin()
        assert slow.executor.room("llm", {}) == 0
        goes_on.set()
        await slow.executor.close()


async def test_a_worker_keeps_its_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core of Ray has a handler of its own when it has connected; here it is one that ignores the signal."""
    site, loop, told = Site(monkeypatch), asyncio.get_running_loop(), asyncio.Event()
    monkeypatch.setattr(site.cluster, "connect", lambda: ctypes.CDLL(None).signal(signal.SIGTERM, signal.SIG_IGN))
    loop.add_signal_handler(signal.SIGTERM, told.set)
    try:
        await site.executor.begin()
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(5):
            await told.wait()
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        await site.executor.close()


async def test_a_cluster_that_is_away_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for again and again, and said once."""

    def away() -> None:
        raise ConnectionError("no cluster")

    site = Site(monkeypatch)
    connect = site.cluster.connect
    monkeypatch.setattr(site.cluster, "connect", away)
    assert site.executor.room("llm", {}) == 0
    await asyncio.to_thread(lambda: None)
    monkeypatch.setattr(site.cluster, "connect", connect)
    await site.ready()
    await site.executor.close()


async def test_a_head_node_that_is_silent_for_a_moment_costs_no_call(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is claimed meanwhile, and what is out stays out; only one that stays away is left."""

    def silent() -> list[Node]:
        raise ConnectionError("nobody answers")

    running = site.run()
    future = await site.sent()
    look = site.cluster.look
    monkeypatch.setattr(site.cluster, "look", silent)
    await wait_until(lambda: not site.executor.room("llm", {}))
    monkeypatch.setattr(site.cluster, "look", look)
    await site.ready()
    assert (site.cluster.connections, running.done()) == (1, False)
    monkeypatch.setattr(seeing, "GONE_SECONDS", 0.05)
    monkeypatch.setattr(site.cluster, "look", silent)
    await wait_until(lambda: site.cluster.connections > 1)
    future.cancel()
    with pytest.raises(ExecutorLostError):
        await running
