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
