"""The log of actions: it makes nobody wait, loses nothing it need not, and says what it lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from headrace.model.audit import NewAction
from headrace.model.errors import StoreUnavailableError
from headrace.model.ids import uuid7
from headrace.service import audit_log
from headrace.service.audit_log import MOST_AT_ONCE, AuditLog
from headrace.stores.memory import open_memory_stores
from tests.waiting import wait_until


class Fickle:
    """An audit that fails while it is told to, and remembers how many it was given at once."""

    def __init__(self) -> None:
        self.inner = open_memory_stores().audit
        self.error: Exception | None = None
        self.sizes: list[int] = []

    async def note_actions(self, actions: Sequence[tuple[NewAction, timedelta]]) -> None:
        """Note actions."""
        self.sizes.append(len(actions))
        if self.error is not None:
            raise self.error
        await self.inner.note_actions(actions)

    async def count(self) -> int:
        """Return how many there are."""
        return len(await self.inner.list_actions(limit=100_000))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Fickle:
    """Return an audit, which is asked again soon."""
    monkeypatch.setattr(audit_log, "AGAIN_SECONDS", 0.01)
    return Fickle()


def log_on(store: Fickle, *, most: int = 10_000) -> AuditLog:
    """Return a log that writes to an audit."""
    return AuditLog(lambda: store, most=most)  # type: ignore[arg-type, return-value]


def note(log: AuditLog, count: int = 1) -> None:
    """Note actions."""
    for _ in range(count):
        log.note(NewAction(uuid7(), "shop", "cancel_job", {}, 200))


async def test_many_actions_are_few_writes(store: Fickle) -> None:
    """Those that come together are written together, in parts that are bounded; all by themselves."""
    log = log_on(store)
    note(log, MOST_AT_ONCE + 5)
    await wait_until(lambda: log.noted == MOST_AT_ONCE + 5)
    note(log)
    await wait_until(lambda: log.noted == MOST_AT_ONCE + 6)

    assert store.sizes == [MOST_AT_ONCE, 5, 1]
    assert (await store.count(), log.dropped) == (MOST_AT_ONCE + 6, 0)


async def test_actions_wait_while_the_store_is_away(store: Fickle, caplog: pytest.LogCaptureFixture) -> None:
    """That is told once; what does not fit is dropped and counted, and the log says how many."""
    store.error = StoreUnavailableError("away")
    log = log_on(store, most=10)
    note(log, 13)
    await wait_until(lambda: len(store.sizes) > 3)
    store.error = None
    await wait_until(lambda: log.noted == 10)

    assert (await store.count(), log.dropped) == (10, 3)
    assert [record.message for record in caplog.records] == [
        "actions cannot be noted in the audit now: away", "3 actions were dropped: the audit lacks them",
    ]  # fmt: skip


async def test_what_no_store_takes_keeps_nothing_back(store: Fickle) -> None:
    """It is dropped, and what comes after it is written."""
    store.error = ValueError("a mistake of ours")
    log = log_on(store)
    note(log, 2)
    await wait_until(lambda: log.dropped == 2)
    store.error = None
    note(log)
    await wait_until(lambda: log.noted == 1)

    assert await store.count() == 1


async def test_the_end_writes_what_waits(store: Fickle) -> None:
    """At once; of a store that is away it takes the answer, and drops what is left."""
    log = log_on(store)
    note(log, 3)
    await log.close()
    assert (await store.count(), log.noted) == (3, 3)
    away = log_on(store)
    store.error = StoreUnavailableError("away")
    note(away, 2)
    await asyncio.wait_for(away.close(), 20)

    assert (away.noted, away.dropped, len(store.sizes)) == (0, 2, 2)
    await away.close()
    assert away.dropped == 2
