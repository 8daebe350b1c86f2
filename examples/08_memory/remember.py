"""Two users say something of themselves, each in their language; what is remembered of them. See README.md."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headrace.apps.memory.memory import Memory
from headrace.apps.memory.samples.model import answer
from headrace.testing.provider import ScriptedProvider

SAID = {
    "ada": [
        {"role": "user", "content": "My name is Ada and I live in Lyon."},
        {"role": "assistant", "content": "How do you like it there?"},
        {"role": "user", "content": "I like rye bread. I moved to Lyon. I work as a baker."},
    ],
    "wei": [
        {"role": "user", "content": "我叫王伟，我住在北京。"},
        {"role": "assistant", "content": "你平时喜欢做什么？"},
        {"role": "user", "content": "我喜欢绿茶，我最喜欢的运动是羽毛球。"},
    ],
}
LATER = [{"role": "user", "content": "I live in Marseille. Tomorrow I will visit my sister."}]


@asynccontextmanager
async def some_model() -> AsyncIterator[None]:
    """Use the model that the environment names, or a scripted one that understands a few kinds of sentences."""
    if os.environ.get("HEADRACE_LLM_MODEL"):
        yield
        return
    async with ScriptedProvider(answer=answer) as provider:
        os.environ["HEADRACE_LLM_MODEL"] = provider.model
        os.environ["HEADRACE_LLM_BASE_URL"] = provider.base_url
        os.environ["HEADRACE_LLM_API_KEY"] = provider.api_key
        yield


async def main() -> None:
    """Put messages in, wait until they are memory, and show it."""
    memory = Memory()
    async with some_model(), memory.app:
        await memory.set_up()
        async with memory.app.worker():
            runs = [(await memory.submit(user, said, key=f"{user}/1")).run for user, said in SAID.items()]
            for run in runs:
                await run.result("60s")
            await (await memory.submit("ada", LATER, key="ada/2")).run.result("60s")
            for user in SAID:
                await show(memory, user)


async def show(memory: Memory, user: str) -> None:
    """Print a user's profile, events, and a context for a prompt."""
    print(f"== {user}")
    for entry in await memory.profile(user):
        print(f"{entry.topic}/{entry.sub_topic}: {entry.content} (version {entry.version})")
    for event in reversed(await memory.events(user)):
        print(event.event_tip)
    print(await memory.context(user, budget=90))


if __name__ == "__main__":
    asyncio.run(main())
