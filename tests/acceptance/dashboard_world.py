"""An app in which something of everything happens, for whoever walks through its dashboard."""

from __future__ import annotations

import asyncio
from typing import Any

from headrace import App, Backoff, Context, chain, group

app = App()


@app.task(queue="mail", retry=Backoff.none())
async def send(text: str) -> str:
    """Send a text back, or fail with it."""
    if text.startswith("fail"):
        raise ValueError(text)
    return text


@app.task(queue="slow")
async def wait(seconds: float) -> float:
    """Take a while."""
    await asyncio.sleep(seconds)
    return seconds


@app.task
async def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@app.task
async def add(numbers: list[int]) -> int:
    """Add numbers up."""
    return sum(numbers)


@app.task
async def approve(number: Any, ctx: Context) -> Any:
    """Wait for somebody to say yes."""
    return await app.wait_for(f"approve/{ctx.job_id}", "10m")


@app.cron("0 3 * * *", name="nightly")
async def nightly() -> None:
    """Clean nothing."""


app.workflow("sums", chain(double.s(), group(double.s(), double.s()), add.s()))
app.workflow("approval", chain(double.s(), approve.s()))
