"""The pruner of the audit: on the leader alone, slice by slice."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from headrace.engine.loops import audit_pruner
from headrace.engine.loops.audit_pruner import AuditPruner
from headrace.engine.loops.leadership import Leadership
from headrace.model.audit import NewAction
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock

HOUR = timedelta(hours=1)


def new() -> tuple[NewAction, timedelta]:
    """Return an action that is done now."""
    return NewAction(uuid4(), "shop", "cancel_job", {}, 200), timedelta()


async def test_old_actions_leave_on_the_leader_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it leads nothing goes; then what is older than its retention does, slice by slice."""
    monkeypatch.setattr(audit_pruner, "SLICE", 2)
    clock = FakeClock()
    stores = open_memory_stores(clock)
    await stores.audit.note_actions([new() for _ in range(3)])
    clock.advance(HOUR)
    await stores.audit.note_actions([new()])
    leadership = Leadership(stores, uuid4())
    pruner = AuditPruner(stores.audit, leadership, keep=HOUR, interval=HOUR)
    left = []
    for leads in (False, True, True):
        if leads:
            await leadership.step()
        await pruner.step()
        left.append(len(await stores.audit.list_actions(limit=9)))

    assert left == [4, 2, 1]
