"""AuditStore: who did what, and when."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from headrace.model.audit import NewAction, noted
from headrace.model.ids import uuid7s
from headrace.ports.audit_store import AuditStore
from tests.conformance.scenario import DAY, SECOND, Scenario

KEPT = 90 * DAY
NOW = timedelta()


@pytest.fixture
def audit(on: Scenario) -> AuditStore:
    """Return the audit of the backend."""
    return on.stores.audit


def new(operation: str = "cancel_job", who: str = "shop", **more: Any) -> NewAction:
    """Return an action to note."""
    return NewAction(more.pop("id", None) or uuid4(), who, operation, {"job_id": "7"}, 200, **more)


async def listed(audit: AuditStore, **which: Any) -> list[str]:
    """Return the operations of the newest actions."""
    return [action.operation for action in await audit.list_actions(limit=100, **which)]


async def test_an_action_is_noted_as_it_was(on: Scenario, audit: AuditStore) -> None:
    """With everything that is known of it, at the time of the store less its age, to the microsecond."""
    whole = NewAction(
        uuid4(), "nightly – é:x", "pause_queue", {"name": "llm", "path": "a/b – é"}, 409, uuid4(), "192.0.2.7",
        '{"reason":"\\u0000 – é","force":true}', "page",
    )  # fmt: skip
    bare = NewAction(uuid4(), "local", "retry_job", {}, 0)
    on.clock.advance(DAY)
    await audit.note_actions([(whole, timedelta(microseconds=1)), (bare, SECOND)])
    await audit.note_actions([])

    now = on.clock.now()
    assert await audit.list_actions(limit=9) == [
        noted(whole, now - timedelta(microseconds=1)), noted(bare, now - SECOND),
    ]  # fmt: skip


async def test_an_action_is_noted_once(on: Scenario, audit: AuditStore) -> None:
    """Again, as after an answer that was lost, it is left as it stands, beside others that are new."""
    action = new()
    await audit.note_actions([(action, NOW)])
    [stored] = await audit.list_actions(limit=9)
    on.clock.advance(SECOND)
    await audit.note_actions([(new("retry_job"), NOW), (action, NOW)])

    assert await listed(audit) == ["retry_job", "cancel_job"]
    assert (await audit.list_actions(limit=9))[1] == stored
    assert await listed(audit, who="shop", operation="cancel_job") == ["cancel_job"]


async def test_pages_follow_one_another(on: Scenario, audit: AuditStore) -> None:
    """Newest first, those of one moment by their ids; nothing comes twice and nothing is left out."""
    for _ in range(3):
        await audit.note_actions([(new(id=action_id), NOW) for action_id in uuid7s(3)])
        on.clock.advance(SECOND)
    whole = await audit.list_actions(limit=100)
    assert [action.place for action in whole] == sorted((action.place for action in whole), reverse=True)

    pages, before = [], None
    while len(pages) < 12 and (page := await audit.list_actions(before=before, limit=2, who="shop")):
        pages += page
        before = page[-1].place
    assert pages == whole
    assert await audit.list_actions(before=(on.clock.now(), uuid4()), limit=100) == whole


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ({}, ["d", "c", "b", "a"]),
        ({"who": "shop"}, ["d", "b", "a"]),
        ({"operation": "c"}, ["c"]),
        ({"who": "shop", "operation": "b"}, ["b"]),
        ({"who": "shop", "operation": "c"}, []),
        ({"who": "nobody"}, []),
        ({"operation": ""}, []),
    ],
)
async def test_actions_are_asked_for_by_name(
    on: Scenario, audit: AuditStore, which: dict[str, str], expected: list[str]
) -> None:
    """Of somebody, of an operation, or both; names are taken as they are."""
    for operation in "abcd":
        await audit.note_actions([(new(operation, "shop" if operation != "c" else "Shop"), NOW)])
        on.clock.advance(SECOND)

    assert await listed(audit, **which) == expected
    before = (await audit.list_actions(limit=1))[0].place
    assert await listed(audit, before=before, **which) == [name for name in expected if name != "d"]


async def test_old_actions_are_removed(on: Scenario, audit: AuditStore) -> None:
    """Counted from when they were done, the oldest first, up to a limit; questions by name find none of them either."""
    await audit.note_actions([(new("old"), 2 * SECOND), (new("older"), 3 * SECOND)])
    on.clock.advance(KEPT - 3 * SECOND)
    await audit.note_actions([(new("young"), NOW)])
    assert await audit.prune_actions(older_than=KEPT, limit=9) == 1
    assert await listed(audit) == ["young", "old"]
    on.clock.advance(2 * KEPT)

    assert [await audit.prune_actions(older_than=KEPT, limit=1) for _ in range(3)] == [1, 1, 0]
    assert [await listed(audit, **which) for which in ({}, {"who": "shop"}, {"operation": "old"})] == [[]] * 3


async def test_many_are_noted_and_removed_part_by_part(on: Scenario, audit: AuditStore) -> None:
    """More than one script of a store takes."""
    await audit.note_actions([(new(), NOW) for _ in range(230)])
    on.clock.advance(KEPT)

    assert len(await audit.list_actions(limit=1_000)) == 230
    assert await audit.prune_actions(older_than=KEPT, limit=1_000) == 230


async def test_a_term_that_is_over_removes_nothing(on: Scenario, audit: AuditStore) -> None:
    """One that is current does."""
    await audit.note_actions([(new(), NOW)])
    on.clock.advance(KEPT)
    term = await on.term()
    on.clock.advance(2 * DAY)
    current = await on.term()

    assert await audit.prune_actions(older_than=KEPT, limit=9, term=term) == 0
    assert await audit.prune_actions(older_than=KEPT, limit=9, term=current) == 1
