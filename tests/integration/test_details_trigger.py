"""Details that go over to single-call mode by themselves while requests keep coming."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.apps.details.mode import SINGLE, read_mode
from headrace.details_settings import DetailSettings
from headrace.testing.provider import ChatRequest
from tests.integration.details_world import Names, details_on
from tests.waiting import wait_until


@dataclass
class Moody(Names):
    """A model that writes nothing until it is told to."""

    is_mute: bool = True

    def __call__(self, request: ChatRequest) -> str:
        """Write what is asked for, or an empty list."""
        return '{"items": []}' if self.is_mute else super().__call__(request)


async def test_no_request_is_lost_when_the_mode_changes_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batches that failed ended; those that were asked for meanwhile begin in the new mode, and all of them end."""
    monkeypatch.setattr("headrace.apps.details.writing.PAUSES", (0.001, 0.002))
    model, terms = Moody(), DetailSettings(single_call_at=0.5, single_call_window=2)
    async with details_on("memory", tmp_path, model, details=terms) as world:
        failed = [(await world.details.submit({"type": "skill", "count": 3})).batch_id for _ in range(2)]
        for batch_id in failed:
            assert (await world.entries(batch_id))[-1].data["status"] == "failed"
        model.is_mute = False
        asked = [(await world.details.submit({"type": "skill", "count": 11})).batch_id for _ in range(4)]

        async def changed() -> bool:
            return await read_mode(world.app) == SINGLE

        await wait_until(changed)
        asked.append((await world.details.submit({"type": "skill", "count": 11})).batch_id)
        for batch_id in asked:
            assert (await world.entries(batch_id))[-1].data["status"] == "completed"
        items = [entry.data for entry in await world.entries(asked[-1]) if entry.type == "item"]
        assert len({item["subtask_id"] for item in items}) == 1
