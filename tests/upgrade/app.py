"""An app of both releases, and what a client of each sends: it is started by `PYTHONPATH`, and imports no tests."""

import asyncio
import json
import os
import sys
from pathlib import Path

import headrace
from headrace import App, Backoff, Context, chain, group
from headrace.events import Agent, AgentContext, Event

#: The folder of the package that runs, which says whose release it is.
RELEASE = str(Path(headrace.__file__).parent)
HERE = Path(__file__).parent

app = App()
app.queue("capped", concurrency=2, rate_limit="600/m", fair="key")
#: Events lie in PostgreSQL.
HAS_EVENTS = os.environ["HEADRACE_URL"].startswith("postgresql")


def note(event: str, **facts: object) -> None:
    """Append what a handler did to the log of effects."""
    line = json.dumps({"event": event, "release": RELEASE, "pid": os.getpid(), **facts})
    with (HERE / "effects").open("a") as log:
        log.write(line + "\n")


@app.task
async def double(number: int) -> int:
    note("double", number=number)
    return 2 * number


@app.task
async def pair(left: int, right: int) -> int:
    return left - right


@app.task(retry=Backoff.fixed("20ms", max_attempts=3))
async def flaky(ctx: Context) -> int:
    """Fail once, after a step that is kept."""
    step = await ctx.step("pid", os.getpid)
    if ctx.attempt == 1:
        raise ValueError("not yet")
    return step


@app.task(queue="capped")
async def capped(number: int) -> int:
    return number


@app.task
async def bill(order: str, ctx: Context) -> str:
    """Emit, and wait without a slot for what an agent answers and for a signal."""

    async def place() -> bool:
        await app.emit("Shop.Order.Placed", {"n": 1}, aggregate_id=order, correlation_id=order)
        return True

    billed = 2
    if HAS_EVENTS:
        await ctx.step("placed", place)
        resumed = await app.wait_for_events(order, "Shop.Order.Billed", timeout="2m")
        billed = resumed.events[0].payload["n"]
    return f"{billed} {await app.wait_for(f'go-{order}', timeout='2m')}"


async def on_placed(event: Event, ctx: AgentContext) -> None:
    ctx.emit("Shop.Order.Billed", {"n": event.payload["n"] + 1})


if HAS_EVENTS:
    Agent(app, "biller").on("Shop.Order.Placed")(on_placed)


@app.task(queue="hold")
async def hold(name: str) -> str:
    """Run until a file exists."""
    note("held", name=name)
    while not (HERE / f"{name}.go").exists():
        await asyncio.sleep(0.02)
    return RELEASE


@app.task(queue="meet")
async def meet(name: str) -> str:
    """Run until a worker of each release runs one."""
    (HERE / f"{name}.{Path(RELEASE).parent.name}").touch()
    while len(list(HERE.glob(f"{name}.*"))) < 2:
        await asyncio.sleep(0.02)
    return RELEASE


@app.task
async def report(batch_id: str) -> int:
    results = [item.result async for item in app.batch(batch_id).results()]
    note("closed", batch=batch_id)
    return sum(results)


app.workflow("sums", chain(double.s(), group(double.s(), double.s())))


async def send(token: str) -> dict[str, object]:
    """Send one of everything and return the results."""
    run = await app.start("sums", 3)
    jobs = [
        await flaky.enqueue(),
        await double.options(key="shared").enqueue(77),
        await pair.options(key="shared").enqueue(right=2, left=9),
        await double.options(run_at="100ms", priority="bulk").enqueue(8),
        await bill.enqueue(token),
        *[
            await capped.options(fair_key=f"tenant-{n % 2}", concurrency_key="one").enqueue(n)
            for n in range(4)
        ],
    ]  # fmt: skip
    batch = await app.submit(double, range(20), key=token, on_close=report)
    again = await app.submit(double, range(20), key=token, on_close=report)
    await app.signal(f"go-{token}", "went")
    results = [await job.result("60s") for job in jobs]
    await batch.wait("60s")
    return {
        "release": RELEASE, "results": results[1:], "run": await run.result("60s"),
        "shared": [str(job.id) for job in jobs[1:3]], "batch": [str(batch.id), str(again.id)],
        "succeeded": (await batch.progress()).succeeded,
    }  # fmt: skip


async def main(token: str) -> None:
    async with app:
        print(json.dumps(await send(token)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
