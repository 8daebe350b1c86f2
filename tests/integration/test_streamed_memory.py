"""A generator of any length is streamed at constant memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, resource, sys
from headrace import App

app = App()
COUNT = int(sys.argv[1])


@app.task
async def note(number: int) -> int:
    return number


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


async def main() -> None:
    async with app:
        await (await app.submit(note, iter(range(2_000)))).view()
        before = peak()
        batch = await app.submit(note, iter(range(COUNT)))
        view = await batch.view()
        print(view.state, view.total, peak() - before)


asyncio.run(main())
"""

#: KiB. A million items of this size are more than 100 MiB as texts alone.
LIMIT_KIB = 16 * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [50_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_stream_is_sealed_at_constant_memory(count: int, workplace: Path) -> None:
    """However many items a generator gives, the submitter holds one slice of them, and the batch is sealed."""
    command = [sys.executable, "-c", PROGRAM, str(count)]
    done = subprocess.run(command, cwd=workplace, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    state, total, grown = done.stdout.split()
    assert (state, int(total)) == ("sealed", count)
    assert int(grown) < LIMIT_KIB
