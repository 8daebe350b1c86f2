"""How often streams are read."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack

import pytest

from headrace.providers.reading_tempo import FREE, LONGEST, ReadingTempo


@pytest.mark.parametrize(("streams", "seconds"), [(0, 0.0), (FREE, 0.0), (FREE + 20, 0.01), (FREE + 5_000, LONGEST)])
def test_the_more_streams_the_longer_they_pause(streams: int, seconds: float) -> None:
    """A few are read as they come; however many there are, a pause stays short."""
    tempo = ReadingTempo()
    with ExitStack() as opened:
        for _ in range(streams):
            opened.enter_context(tempo.counted())
        assert tempo.seconds == pytest.approx(seconds)
    assert tempo.seconds == 0.0


async def test_what_came_during_a_pause_is_read_without_another() -> None:
    """A pause is made once behind a piece that was waited for, and none behind those that lay ready."""
    tempo = ReadingTempo()
    with ExitStack() as opened:
        for _ in range(FREE + 60):
            opened.enter_context(tempo.counted())
        before = time.monotonic()
        resumed = await tempo.pause(0.0)
        assert resumed - before >= 0.029
        assert await asyncio.wait_for(tempo.pause(time.monotonic()), 5) <= time.monotonic()
        lying = time.monotonic()
        assert await tempo.pause(lying) == lying, "it lay ready"


async def test_few_streams_do_not_pause() -> None:
    """Then nothing is waited for."""
    assert await ReadingTempo().pause(0.0) == 0.0
