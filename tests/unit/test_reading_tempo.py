"""How often streams are read."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest

from headrace.providers.reading_tempo import FREE, LONGEST, ReadingTempo


@pytest.mark.parametrize(("streams", "seconds"), [(0, 0.0), (FREE, 0.0), (FREE + 20, 0.02), (FREE + 5_000, LONGEST)])
async def test_the_more_streams_the_longer_they_pause(streams: int, seconds: float) -> None:
    """A few are read as they come; however many there are, a pause stays short."""
    tempo = ReadingTempo()
    with ExitStack() as opened:
        for _ in range(streams):
            opened.enter_context(tempo.counted())
        assert tempo.seconds == pytest.approx(seconds)
        before = time.monotonic()
        await tempo.pause()
        assert time.monotonic() - before >= seconds * 0.9
    assert tempo.seconds == 0.0
