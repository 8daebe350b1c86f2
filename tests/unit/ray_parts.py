"""A Ray executor on steps in memory and a cluster that is made up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import uuid4

import pytest

from headrace.executors.ray import executor as executing
from headrace.executors.ray import sight as seeing
from headrace.executors.ray import watch
from headrace.executors.ray.executor import RayExecutor
from headrace.executors.ray.fitting import Amounts, Node
from headrace.executors.ray.site import RaySite
from headrace.model.farm import BEGUN, Begun, Fence
from headrace.model.job import ClaimedJob, Completion, JobState
from headrace.ports.executor import Call
from tests.unit.test_celery_watch import Steps
from tests.waiting import wait_until

NODE = Node("n" * 56, {"CPU": 4.0}, {"CPU": 4.0})


class Cluster:
    """A cluster that is made up."""

    here = NODE.id

    def __init__(self, _site: Any = None) -> None:
        self.nodes, self.sent, self.cancelled = [NODE], list[tuple[Amounts, str, Future[bytes]]](), list[bool]()
        self.wanted: list[list[Mapping[str, float]]] = []
        self.refuses = False
        self.connections = 0

    def connect(self) -> None:
        """Connect."""
        self.connections += 1

    def disconnect(self) -> None:
        """Leave."""

    def look(self) -> list[Node]:
        """Return its nodes."""
        return self.nodes

    def send(self, need: Amounts, word: str) -> tuple[Any, Future[bytes]]:
        """Take a call."""
        if self.refuses:
            raise ConnectionError("away")
        future: Future[bytes] = Future()
        self.sent.append((need, word, future))
        return object(), future

    def cancel(self, _ref: Any, *, force: bool) -> None:
        """Note it."""
        self.cancelled.append(force)

    def want(self, bundles: list[Mapping[str, float]]) -> None:
        """Note it."""
        self.wanted.append(bundles)


class Site:
    """An executor on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster, self.steps = Cluster(), Steps()
        monkeypatch.setattr(executing, "Cluster", lambda _site: self.cluster)
        for module in (seeing, watch):
            monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
        monkeypatch.setattr(seeing, "CONNECT_SECONDS", 0.01)
        site = RaySite("auto", "headrace", {}, "entry", "secret luggage")
        self.executor = RayExecutor(site, cast("Any", self.steps), lambda queue: queue == "llm", lambda _: {"CPU": 1.0})
        self.fence = Fence(uuid4(), 1, uuid4())

    async def ready(self) -> None:
        """Wait until it has looked."""
        await wait_until(lambda: self.executor.room("llm", {}))

    def run(self, timeout: float = 60.0) -> asyncio.Task[Any]:
        """Run a call."""
        job = cast("ClaimedJob", _Job(self.fence))
        call = Call(job, self.fence.session, timeout, "m:f", lambda: None, lambda: None)
        return asyncio.create_task(self.executor.run(call))

    async def sent(self) -> Future[bytes]:
        """Return what the cluster owes for the first call."""
        await wait_until(lambda: self.cluster.sent)
        return self.cluster.sent[0][2]

    def begin(self, steps: int = 0) -> None:
        """Sign for the call, as a process does."""
        self.steps.kept[self.fence.job, BEGUN] = Begun("n", 1, 0.0, "sign", 1, steps).text


class _Job:
    """What an executor asks of a job."""

    def __init__(self, fence: Fence) -> None:
        self.id, self.attempt, self.queue = fence.job, fence.attempt, "llm"


@asynccontextmanager
async def site_of(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """Open an executor and close it."""
    site = Site(monkeypatch)
    try:
        await site.ready()
        yield site
    finally:
        await site.executor.close()


def done(fence: Fence) -> Completion:
    """Return an end of a call."""
    return Completion(fence.job, fence.attempt, JobState.SUCCEEDED, result="7")
