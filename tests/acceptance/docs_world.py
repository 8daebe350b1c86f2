"""What the commands of the how-tos find: an app, jobs that failed, a batch, a schedule, runs, limits, events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from headrace import App, Backoff, Context, Limit, Task, chain
from headrace.model.breaker import BreakerRule
from headrace.model.limits import Declared, Rate
from headrace.model.session import Role
from tests.unit.cli_runner import CommandLine, as_client, working
from tests.waiting import wait_until_sync

#: The modules that the pages name.
SHOP = """from headrace import App
from tests.acceptance.docs_world import tasks_of

app = App()
tasks_of(app)
"""
EVENT = ("Genesis.Session.Requested", "{}", "--aggregate-id", "g-1", "--correlation-id", "s-1")


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks that the world enqueues."""

    summarise: Task[Any, Any]
    send: Task[Any, Any]


def tasks_of(app: App) -> Tasks:
    """Give an app the tasks, the schedule and the workflow that the pages name."""

    @app.task(queue="llm", retry=Backoff.fixed("10ms", max_attempts=2))
    async def summarise(text: str, ctx: Context, *, model: str = "large") -> str:
        ctx.log.info("asking %s", model)
        if model != "small":
            raise ValueError(f"{model} has no answer")
        return text[:20]

    @app.task(queue="llm", concurrency=3, limits=[Limit("openai", "60/m", burst=2)])
    async def render(text: str) -> str:
        return text

    @app.task(queue="mail")
    async def send(address: str) -> str:
        return address

    @app.task(retry=Backoff.none())
    async def fetch(page: dict[str, Any]) -> str:
        if "url" not in page:
            raise ValueError("there is no url")
        return str(page["url"])

    @app.cron("0 3 * * *")
    async def nightly() -> None: ...

    app.workflow("digest", chain(fetch.s(), render.s()))
    return Tasks(summarise, send)


def fill(headrace: CommandLine) -> dict[str, str]:
    """Let all of it be there, and return ids and positions by what they are of."""
    app, found = headrace.app(), dict[str, str]()
    tasks = tasks_of(app)

    async def begin() -> None:
        stores = app.runtime.stores
        assert stores.admission is not None and stores.schedules is not None
        await stores.schedules.declare_schedules(app.declarations())
        limits = {"task:render": 3, "task:removed": 1}, {"openai": Rate.parse("60/m", burst=2)}
        await stores.admission.declare_limits(Declared(*limits, {"openai": BreakerRule()}))
        job, run = await tasks.summarise.enqueue("a text"), await app.start("digest", {})
        found.update(job=str(job.id), run=str(run.id))

    def both_ended() -> bool:
        job, run = headrace.json("job", "show", found["job"]), headrace.json("run", "show", found["run"])
        return (job["state"], run["state"]) == ("failed", "failed")

    async def go_on() -> None:
        batch = await app.submit(tasks.send, ["ann", "bea"])
        await app.handles.register("s-1", timeout="2d", count=0, token=True)
        found.update(batch=str(batch.id), parked=str(await _park(app)))

    as_client(app, begin)
    with working(app):
        wait_until_sync(both_ended)
    headrace.text("events", "emit", *EVENT)
    as_client(app, go_on)
    [found["fingerprint"]] = [
        group["fingerprint"] for group in headrace.json("dlq", "list", "--task", "summarise")["groups"]
    ]
    return found


async def _park(app: App) -> int:
    """Park the event that waits in the outbox, and return its position."""
    outbox = app.event_stores.outbox
    term = await app.runtime.stores.sessions.lead(uuid4(), lease=timedelta(minutes=1), role=Role.RELAY)
    assert term is not None
    [row] = await outbox.waiting_events(limit=10)
    await outbox.park_events([(row.position, "too large for the topic")], term=term)
    return row.position
