"""A nightly report and a reminder per region, each once in the whole cluster. See README.md."""

from __future__ import annotations

from headrace import App, Context

app = App()


@app.cron("30 2 * * *", tz="Europe/Berlin", catch_up="one", concurrency=1)
async def nightly(ctx: Context) -> str:
    """Write the report of the day it was made for, however late it runs."""
    day = "today" if ctx.scheduled_at is None else ctx.scheduled_at.date().isoformat()
    return f"report of {day}"


@app.task
async def remind(region: str) -> str:
    """Be scheduled once for each region, with its name as argument."""
    return f"reminded {region}"


for name in ("north", "south"):
    app.schedule(remind, "0 9 * * 1-5", name=f"remind-{name}", tz="Europe/Berlin", args=[name])
