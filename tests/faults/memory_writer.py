"""Writers in a process of their own: they insert what users say, and check and flush their buffers all the while.

`python -m tests.faults.memory_writer USERS EACH NUMBER…`, a number for each who writes; settings
come from the environment.
"""

from __future__ import annotations

import asyncio
import sys
from random import Random
from uuid import NAMESPACE_URL, uuid5

from headrace.apps.memory.memory import Memory


async def write(users: int, each: int, *numbers: int) -> None:
    """Say, check and flush at once, some of it twice."""
    memory, chance = Memory(), Random(numbers[0])
    async with memory.app:

        async def say(number: int, user_id: str, place: int) -> None:
            await asyncio.sleep(chance.uniform(0, 0.5))
            said = f"I like Assam{number}x{place}. I live in Lyon{number}x{place}."
            blob_id = uuid5(NAMESPACE_URL, f"{user_id}/{number}/{place}")
            for _ in range(chance.choice((1, 1, 2))):
                await memory.insert(user_id, [{"role": "user", "content": said}], blob_id=blob_id)
            await chance.choice((memory.check, memory.flush))(user_id)

        await asyncio.gather(
            *(
                say(number, f"u-{user:02}", place)
                for number in numbers
                for user in range(users)
                for place in range(each)
            )
        )


if __name__ == "__main__":
    asyncio.run(write(*map(int, sys.argv[1:])))
