"""One client process of `quota.py`: calls a model through the gateway, plainly or as a worker of jobs.

Its store, limiter, model and quota are those of the environment (HEADRACE_…). It says "ready", waits for a line, works,
and says how much processor time that took, as a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from headrace import App
from headrace.wiring import migrate

WORKERS = 60
#: 500 tokens of prompt, by the provider's count of four characters each.
PROMPT_SIZE, MAX_TOKENS = 2_000, 1_000
POOL = "openai:scripted-model"

app = App()


@app.task(queue="asking", pools=[POOL], timeout="120s")
async def ask(number: int) -> int:
    """Ask once; return the length of the answer, so that the queue does not carry it too."""
    return len(await app.llm.complete(prompt(number), max_tokens=MAX_TOKENS))


def prompt(number: int) -> str:
    """Return a prompt of its own for each number, all of one length."""
    return f"{number:<8}{'word ' * PROMPT_SIZE}"[:PROMPT_SIZE]


async def call_plainly(workers: int, first: int, last: int) -> None:
    """Make calls, so many at a time."""
    supply = iter(range(first, last))
    async with app:
        await _started()
        await asyncio.gather(*(_call_one_by_one(supply) for _ in range(workers)))


async def _call_one_by_one(supply: Iterator[int]) -> None:
    for number in supply:
        await ask(number)


async def work(workers: int) -> None:
    """Work jobs, so many at a time, until told to stop."""
    async with app:
        await _started()
        async with app.worker(concurrency=workers):
            await asyncio.to_thread(sys.stdin.readline)


async def submit(calls: int) -> None:
    """Store so many jobs, and wait until all have succeeded."""
    async with app:
        batch = await app.submit(ask, range(calls))
        await _started()
        await batch.wait("150s")
        progress = await batch.progress()
        if progress.succeeded < calls:
            raise SystemExit(f"of {calls} jobs not all succeeded: {progress}")


async def prepare() -> None:
    """Make the store ready."""
    await migrate(app.settings)


async def hold() -> None:
    """Keep the embedded server running until told to stop."""
    async with app:
        await _started()


async def _started() -> None:
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


def main() -> None:
    """Run as `quota_client.py submit N`, `work N`, `hold`, `prepare`, or `call N FIRST LAST`."""
    verb, *numbers = sys.argv[1:]
    verbs: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
        "submit": submit,
        "work": work,
        "hold": hold,
        "prepare": prepare,
        "call": call_plainly,
    }
    asyncio.run(verbs[verb](*map(int, numbers)))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"cpu_seconds": used.ru_utime + used.ru_stime}), flush=True)


if __name__ == "__main__":
    main()
