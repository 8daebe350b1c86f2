"""However memory is run, alone or by several, with shared calls and a cache or without: the same is remembered."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from headrace.model.calls import CallState
from tests.faults.memory_line import MemoryLine, chats, memory_line

USERS, EACH = 8, 6
pytestmark = pytest.mark.timeout(300)
Kept = dict[str, list[tuple[object, ...]]]
#: Settings of `[memory]`, and how many processes run it; the first is the one that the others are compared with.
VARIANTS = (
    ({"enable_batching": "false", "enable_caching": "false"}, 1),
    ({}, 3),
    ({"enable_batching": "true", "enable_caching": "false", "batch_mode": "large"}, 1),
    ({"enable_batching": "false", "enable_caching": "true"}, 2),
    ({"batch_window": "0s", "batch_mode": "small", "max_batch_size": "2"}, 2),
)


async def made(line: MemoryLine, processes: int) -> Kept:
    """Run so many processes, let users speak, and return what is remembered."""
    for _ in range(processes):
        line.start()
    said = chats(USERS, EACH, Random(9))
    for first in range(0, len(said), 4):
        await line.insert(said[first : first + 4])
    await line.settle()
    await line.flush_rest(USERS)
    assert await line.unordered() == []
    return await line.kept()


@pytest.mark.slow
async def test_all_variants_remember_the_same(tmp_path: Path) -> None:
    """With calls of the model that several users share there are fewer of them, and the same comes of it."""
    found, shared = [], []
    for settings, processes in VARIANTS:
        async with memory_line(tmp_path, **settings) as line:
            found.append(await made(line, processes))
            shared.append(len(line.provider.calls("Task: shared ")))
            assert line.paid_twice() == 0
    for kept, variant in zip(found, VARIANTS, strict=True):
        assert kept == found[0], variant
    assert [bool(count) for count in shared] == [False, True, True, False, True]


@pytest.mark.slow
async def test_a_quota_is_kept_and_each_paid_call_is_in_the_ledger(tmp_path: Path) -> None:
    """With a quota that binds no call is refused, handlers leave their slots while they wait, and all is accounted."""
    quota = "requests_per_minute=240,tokens_per_minute=200000,burst=2s"
    async with memory_line(tmp_path) as line:
        wanted = await made(line, 1)
    environ = {"HEADRACE_LLM_REQUESTS_PER_MINUTE": "240", "HEADRACE_LLM_TOKENS_PER_MINUTE": "200000"}
    async with memory_line(tmp_path, model=("--quota", quota), environ=environ) as line:
        assert await made(line, 2) == wanted
        stats = line.provider.stats()
        assert stats.rate_limited == 0
        took = stats.last_accepted_at["monotonic"] - stats.first_accepted_at["monotonic"]
        assert took >= 0.8 * (stats.calls - 8) / 4  # it did bind: four calls a second, and eight at once to begin with
        ledger = line.memory.app.runtime.stores.budgets
        calls = await ledger.list_calls(state=CallState.SETTLED, limit=10_000)
        assert len(calls) == stats.paid == stats.calls
        assert sum(call.usage.input_tokens for call in calls) == stats.tokens["input"]
        assert sum(call.usage.output_tokens for call in calls) == stats.tokens["output"]
        assert all(call.usage.cost_nano > 0 for call in calls)
