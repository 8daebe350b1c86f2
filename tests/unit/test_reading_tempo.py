"""How often streams are read."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from headrace.providers.reading_tempo import FREE, LONGEST, ReadingTempo


@pytest.mark.parametrize(
    ("streams", "seconds"),
    [(0, 0.0), (FREE, 0.0), (FREE + 20, LONGEST / 4), (FREE + 30, LONGEST / 2), (FREE + 5_000, LONGEST)],
)
async def test_the_more_streams_the_longer_they_pause(streams: int, seconds: float) -> None:
    """A few are read as they come; however many there are, a pause stays short, and ends at an instant of all."""
    tempo = ReadingTempo()
    with ExitStack() as opened:
        for _ in range(streams):
            opened.enter_context(tempo.counted())
        assert tempo.seconds == pytest.approx(seconds)
        before = asyncio.get_running_loop().time()
        await tempo.pause()
        if seconds:
            assert asyncio.get_running_loop().time() // seconds > before // seconds
    assert tempo.seconds == 0.0


async def test_a_loop_that_wakes_too_early_wakes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvloop does, by up to a millisecond: the next pause ends at the next instant all the same."""
    loop, tempo, early = asyncio.get_running_loop(), ReadingTempo(), 0.02
    call_at = loop.call_at
    monkeypatch.setattr(loop, "call_at", lambda when, *given: call_at(when - early, *given))
    with ExitStack() as opened:
        for _ in range(FREE + 5_000):
            opened.enter_context(tempo.counted())
        ends = []
        for _ in range(3):
            await tempo.pause()
            ends.append((loop.time() + early) // LONGEST)
    assert len(set(ends)) == 3
