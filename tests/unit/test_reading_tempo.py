"""How often streams are read."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest

from headrace.providers.reading_tempo import DENSE, FREE, LONGEST, Gathering, ReadingTempo


@pytest.mark.parametrize(("streams", "seconds"), [(0, 0.0), (FREE, 0.0), (FREE + 20, 0.01), (FREE + 5_000, LONGEST)])
def test_the_more_streams_the_longer_they_pause(streams: int, seconds: float) -> None:
    """A few are read as they come; however many there are, a pause stays short."""
    tempo = ReadingTempo()
    with ExitStack() as opened:
        for _ in range(streams):
            opened.enter_context(tempo.counted())
        assert tempo.seconds == pytest.approx(seconds)
    assert tempo.seconds == 0.0


async def test_what_came_during_a_pause_is_given_with_the_next_piece() -> None:
    """Of a dense stream: it pauses behind a piece that was waited for, and not behind those that lay ready."""
    tempo = ReadingTempo()
    gathering = Gathering(tempo)
    with ExitStack() as opened:
        for _ in range(FREE + 60):
            opened.enter_context(tempo.counted())
        assert not gathering.holds_back()
        before = time.monotonic()
        await gathering.pause()
        assert time.monotonic() - before >= 0.029
        for is_dense in (False, True):
            for _ in range(DENSE):
                gathering._resumed = time.monotonic()
                assert gathering.holds_back() is is_dense
                if not is_dense:
                    before = time.monotonic()
                    await gathering.pause()
                    assert time.monotonic() - before < 0.029, "it lay ready"
            gathering._resumed = 0.0
            assert not gathering.holds_back(), "it was waited for"
            await gathering.pause()
        gathering._resumed = 0.0
        assert not gathering.holds_back()
        await gathering.pause()
        gathering._resumed = time.monotonic()
        assert not gathering.holds_back(), "nothing lay ready behind the last pause: the next one may be far"


async def test_few_streams_do_not_pause() -> None:
    """Then nothing is waited for, and nothing held back."""
    gathering = Gathering(ReadingTempo())
    for _ in range(3):
        assert not gathering.holds_back()
        await gathering.pause()
