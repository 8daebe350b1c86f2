"""What is said of batches that nobody works on: by the desk, over HTTP, and on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from headrace.apps.details.attention import QUEUES, unserved, with_attention
from headrace.apps.details.commands import following
from headrace.apps.details.mode import REASON
from headrace.apps.details.names import INTAKE_QUEUE, SUBTASKS_QUEUE
from headrace.model.session import ProcessId, SessionView
from tests.unit.details_service import BATCH, PREFIX, FakeService, entries, fake_service
from tests.unit.test_service_details import PATH, details_served, make

NOW = datetime(2031, 1, 31, tzinfo=UTC)
NOBODY = "no live worker serves details.intake, details.flows, details.subtasks"


def session(queues: Iterable[str], *, alive: bool = True) -> SessionView:
    """Return a session that serves queues."""
    return SessionView(uuid4(), "here", ProcessId("here", 1, 1), dict.fromkeys(queues, 1), NOW, NOW, alive, 0, {})


@pytest.mark.parametrize(
    ("sessions", "expected"),
    [
        ([], QUEUES),
        ([session(QUEUES)], ()),
        ([session(QUEUES, alive=False)], QUEUES),
        ([session(QUEUES[:1]), session(["papers"]), session(QUEUES[2:])], QUEUES[1:2]),
    ],
)
def test_queues_that_nobody_serves(sessions: list[SessionView], expected: tuple[str, ...]) -> None:
    """Only live workers count, all of them together."""
    assert unserved(sessions) == expected


@pytest.mark.parametrize(
    ("status", "idle", "shown", "told"),
    [
        ("running", QUEUES, "waiting", True),
        ("waiting", QUEUES, "waiting", True),
        ("running", QUEUES[:1], "running", True),
        ("running", (), "running", False),
        ("completed", QUEUES, "completed", False),
        ("failed", QUEUES, "failed", False),
    ],
)
def test_what_is_shown_of_a_batch(status: str, idle: tuple[str, ...], shown: str, told: bool) -> None:
    """One that has begun and that nobody works on waits; of one that has ended nothing is said."""
    found = with_attention({"status": status, "count": 3}, idle)
    assert (found["status"], bool(found["attention"]), found["count"]) == (shown, told, 3)


async def test_without_a_worker_the_answers_say_so() -> None:
    """That of the request, and those about its batch."""
    async with details_served(worker=False) as (client, _):
        accepted = (await make(client)).json()
        assert accepted["attention"].startswith(NOBODY)
        assert "headrace worker headrace.apps.details.worker:app" in accepted["attention"]
        view = (await client.get(accepted["links"]["self"])).json()
        [row] = (await client.get(PATH)).json()["batches"]
        for found in (view, row):
            assert (found["status"], found["attention"]) == ("waiting", accepted["attention"])


async def test_a_request_says_whether_its_batch_was_there_already() -> None:
    """By its key; and whether what it foretells was measured."""
    async with details_served(worker=False) as (client, _):
        first, again = [(await make(client, headers={"Idempotency-Key": "k"}, count=50)).json() for _ in range(2)]
        assert (first["existing"], again["existing"]) == (False, True)
        assert (first["batch_id"], first["measured"]) == (again["batch_id"], again["measured"])
        assert (first["promised"], first["measured"]) == (False, False)


async def test_a_paused_queue_is_told_with_its_reason() -> None:
    """As after a change of mode that was cut off; that there are no parts in single-call mode is as it should be."""
    async with details_served() as (client, desk):
        await desk.app.pause(SUBTASKS_QUEUE, reason=REASON)
        await desk.app.pause(INTAKE_QUEUE, reason="the mode of details changes to single-call")
        accepted = (await make(client)).json()
        view = (await client.get(accepted["links"]["self"])).json()
        told = "details.intake is paused (the mode of details changes to single-call): `headrace queue resume"
        assert accepted["attention"].startswith(told) and view["attention"] == accepted["attention"]
        assert SUBTASKS_QUEUE not in view["attention"]


class Shown:
    """A display that notes what is said of attention."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def accepted(self, batch_id: str, document: Any) -> None:
        """Nothing is noted."""

    def entry(self, told: Any, after: float | None) -> None:
        """Nothing is noted."""

    def attention(self, text: str) -> None:
        """Note it."""
        self.said.append(text)

    def close(self) -> None:
        """Nothing to end."""


async def test_who_follows_a_silent_batch_is_told_why_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked while nothing comes, however often, and until something does."""
    from headrace.apps.details.commands.remote import RemoteDesk, new_client

    monkeypatch.setattr(following, "FIRST_SILENCE", 0.01)
    monkeypatch.setattr(following, "SILENCE", 0.01)
    # Streams that bring nothing, and then all of it.
    service = FakeService(entries(2), cuts=[0] * 5, answers={
        f"GET {PREFIX}/{BATCH}": [(404, {}), (200, {"attention": NOBODY}), (200, {"attention": NOBODY})],
    })  # fmt: skip
    shown = Shown()
    async with fake_service(service), new_client(service.url, None) as client:
        ending = await following.follow(RemoteDesk(client), BATCH, shown)
    assert ending["status"] == "completed"
    assert shown.said == [NOBODY]
    assert len([one for one in service.asked if one.path.endswith(BATCH)]) > 2
