"""The app of the pictures in the documentation: towns are described, mails are sent, orders are approved."""

from __future__ import annotations

import asyncio
from typing import Any

from headrace import App, Backoff, Context, chain, group

app = App()
#: Seconds that a call takes about.
PACE = 0.4


@app.task(queue="llm", retry=Backoff.none())
async def describe(town: str, ctx: Context) -> str:
    """Describe a town; a few fail, as models do."""
    ctx.log.info("asking for %s", town)
    number = int(town.split()[-1])
    await asyncio.sleep((0.5 + number % 7 / 6) * PACE)
    if number % 29 == 7:
        raise ValueError(f"the answer for {town} is no description")
    if number % 61 == 11:
        raise TimeoutError("no answer within 20 s")
    return f"{town} lies at a river and is known for its mills."


@app.task(queue="mail")
async def send(address: str) -> str:
    """Send a mail."""
    await asyncio.sleep(0.05)
    return address


@app.task
async def check(order: Any) -> dict[str, Any]:
    """Check an order."""
    return {"order": order, "valid": True}


@app.task
async def price(order: Any) -> float:
    """Price an order."""
    await asyncio.sleep(0.3)
    return 12.5


@app.task
async def stock(order: Any) -> int:
    """Look whether it is there."""
    await asyncio.sleep(1.2)
    return 3


@app.task
async def approve(parts: Any, ctx: Context) -> Any:
    """Wait for somebody to say yes."""
    return await app.wait_for(f"approve/{ctx.job_id}", "10m")


@app.task
async def ship(answer: Any) -> str:
    """Ship it."""
    return "on its way"


@app.cron("0 3 * * *", name="nightly-report")
async def report() -> None:
    """Report nothing."""


app.workflow("order", chain(check.s(), group(price.s(), stock.s()), approve.s(), ship.s()))
