"""Processes that make memory die at any moment: the same is remembered, and no answer is paid twice."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from tests.faults.memory_kills import Gates, describe, run
from tests.faults.memory_line import chats, memory_line
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(600)


async def kept_undisturbed(folder: Path, users: int, each: int, seed: int) -> dict[str, list[tuple[object, ...]]]:
    """Return what is remembered where nobody dies."""
    async with memory_line(folder) as line:
        line.start()
        await line.insert(chats(users, each, Random(seed)))
        await line.settle()
        await line.flush_rest(users)
        return await line.kept()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_kills_at_random_moments_leave_no_trace(tmp_path: Path, seed: int) -> None:
    """40 users, 3 processes, 9 kills: the same is remembered; only what was under way at a kill is paid twice."""
    wanted = await kept_undisturbed(tmp_path, 40, 6, seed)
    async with memory_line(tmp_path, model=("--latency", "0.6")) as line:
        report = await run(line, users=40, each=6, kills=9, seed=seed)
        print(json.dumps(describe(report)))
        assert report.clean, describe(report)
        assert await line.kept() == wanted
        assert report.kills >= 6 and report.in_flight


async def test_a_kill_at_each_boundary_is_paid_once(tmp_path: Path) -> None:
    """Before the answers are kept, before all of it is stored, and right after: no call is made again, none is lost."""
    wanted = await kept_undisturbed(tmp_path, 1, 8, 1)
    assert len(wanted["flushes"]) >= 3
    async with memory_line(tmp_path) as line:
        gates = Gates(line)
        await gates.build()
        worker = line.start()
        for gate in (Gates.SAVE, Gates.COMMIT):
            await gates.close(gate)
            if gate == Gates.SAVE:
                await line.insert(chats(1, 8, Random(1)))
            at_gate = await gates.someone_at(gate)
            assert line.provider.stats().in_flight == 0
            worker.kill()
            worker = line.start()
            await gates.open(gate, at_gate)
        done = len(await line.memory.flushes("u-00", state="done"))

        async def another_done() -> bool:
            return len(await line.memory.flushes("u-00", state="done")) > done

        await wait_until(another_done, timedelta(seconds=60), message="another flush to be stored")
        worker.kill()
        line.start()
        await line.settle()
        await line.flush_rest(1)
        assert line.paid_twice() == 0
        assert await line.kept() == wanted
