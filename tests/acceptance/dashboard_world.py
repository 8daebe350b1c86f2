"""An app in which something of everything happens, for whoever walks through its dashboard."""

from __future__ import annotations

import asyncio
from typing import Any

from headrace import App, Backoff, Breaker, Context, Limit, chain, group
from headrace.apps.flows import tasks as flow_tasks
from headrace.model.event import Event, Outgoing

app = App()
flow_tasks.register(app)


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


@app.task(queue="llm", concurrency=4, limits=[Limit("answers", "600/m", burst=5)], breaker=Breaker("provider"))
async def ask(text: str, ctx: Context) -> str:
    """Ask a model, and say what it said."""
    ctx.log.info("asked %s", text)
    answer = await app.llm.using(tenant="acme").complete(text, max_tokens=200)
    ctx.log.warning("it said %s", answer[:200])
    return answer


@app.task
async def tell(text: str, ctx: Context) -> None:
    """Tell of something, once so that no bus takes it, and wait for an answer that does not come."""
    event = await app.emit("Shop.Order.Paid", {"text": text}, aggregate_id="o-1", correlation_id=f"answer/{text}")
    refused = Outgoing("no topic of any bus!", "o-1", Event(event.type, event.aggregate_type, "o-1", {"text": text}))
    await app.event_stores.outbox.insert_events([refused])
    await app.handles.register(f"answer/{text}", "Shop.Order.Sent", timeout="1h")


@app.cron("0 3 * * *", name="nightly")
async def nightly() -> None:
    """Clean nothing."""


@app.task(retry=Backoff.none())
async def check(number: int) -> int:
    """Refuse what is odd."""
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


_EACH = {
    "nodes": [
        {"id": "read", "kind": "value", "value": {"$input": []}},
        {"id": "each", "kind": "map", "over": {"$node": "read"}, "max_failed": None, "body": {
            "nodes": [
                {"id": "double", "task": "double", "args": [{"$input": []}]},
                {"id": "check", "task": "check", "args": [{"$input": []}]},
            ],
            "edges": [{"from": "double", "to": "check"}],
        }},
        {"id": "ask", "kind": "wait", "signal": "publish", "timeout": "1h"},
        {"id": "pause", "task": "wait", "args": [60]},
        {"id": "publish", "task": "send", "args": ["published"]},
    ],
    "edges": [
        {"from": "read", "to": "each"}, {"from": "each", "to": "ask"}, {"from": "read", "to": "pause"},
        {"from": "ask", "to": "publish"}, {"from": "pause", "to": "publish"},
    ],
}  # fmt: skip

app.workflow("publishing", _EACH)
app.workflow("branches", group(chain(check.s(), double.s()), chain(double.s(), double.s(), double.s())) | add.s())
app.workflow("sums", chain(double.s(), group(double.s(), double.s()), add.s()))
app.workflow("approval", chain(double.s(), approve.s()))
