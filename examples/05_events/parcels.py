"""Orders are packed: a task asks for parts by events, an agent answers, and the task goes on. See README.md."""

from __future__ import annotations

import asyncio
import sys

from headrace import App
from headrace.events import Agent, AgentContext, Event, OnError

app = App()
STOCK = {"rope": 3, "lamp": 1, "tent": 2}


def give_up(event: Event, error: Exception) -> OnError:
    """Say what becomes of a request whose handler raised: what is not in stock is not there a second later either."""
    return OnError.DEAD_LETTER if isinstance(error, LookupError) else OnError.RETRY


keeper = Agent(app, "store_keeper", aliases=["keeper"], classify=give_up)


@keeper.on("Shop.Order.PartWanted")
async def fetch(event: Event, ctx: AgentContext) -> None:
    """Fetch one part; the event that follows is stored with the note that this one was handled."""
    part = event.payload["part"]
    if part not in STOCK:
        raise LookupError(f"there is no {part}")
    ctx.emit("Shop.Order.PartFetched", {"part": part, "shelf": STOCK[part]})


@app.task
async def pack(order: str, parts: list[str]) -> str:
    """Ask for the parts of an order, wait for all answers without a slot, and say what is in the parcel."""
    for part in parts:
        await app.emit("Shop.Order.PartWanted", {"part": part}, aggregate_id=order, correlation_id=order)
    resumed = await app.wait_for_events(
        order,
        "Shop.Order.PartFetched",
        count=len(parts),
        request_types=("Shop.Order.PartWanted",),
        timeout="10m",
    )
    fetched = [f"{event.payload['part']} from shelf {event.payload['shelf']}" for event in resumed.events]
    missing = [dead.event.payload["part"] for dead in resumed.dead]
    return f"{order}: {', '.join(fetched)}" + (f"; missing: {', '.join(missing)}" if missing else "")


async def main(order: str) -> None:
    """Pack an order in this process: it works the job, the relay, the agent and the callback service."""
    async with app.worker():
        job = await pack.options(key=order).enqueue(order, ["rope", "lamp", "sofa", "tent"])
        print(await job.result("2m"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "o-1"))
