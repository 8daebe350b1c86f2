"""Details on a store, with a scripted model: what the tests of their flow share."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from dataclasses import replace as changed
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace import App
from headrace.apps.details.abandoned import SWEEP_TASK
from headrace.apps.details.desk import Details, register
from headrace.apps.details.states import BatchState, rebuild
from headrace.feeds import FeedEntry
from headrace.settings import QueueSettings, load_settings
from headrace.testing.provider import ChatRequest, Fault, ScriptedProvider
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.server import shared_server
from tests.waiting import wait_until

STORES = ("memory", "postgres")


@dataclass
class Names:
    """A model that counts: each item it writes has another name, but for those it is told to write again."""

    #: Names that begin the answer of the first ask of each part.
    repeated: Sequence[str] = ()
    written: int = 0
    asked: list[str] = field(default_factory=list)

    def __call__(self, request: ChatRequest) -> str:
        """Write as many items as are asked for."""
        prompt = request.messages[-1][1]
        self.asked.append(prompt)
        count = int(re.findall(r"Count: (\d+)", prompt)[-1])
        first = re.search(r"Request \S+/0$", prompt) is not None
        names = [*(self.repeated if first else ())][:count]
        while len(names) < count:
            self.written += 1
            names.append(_word(self.written))
        return json.dumps({"items": [{"name": name, "description": "d", "attributes": {}} for name in names]})


def _word(number: int) -> str:
    """Return a name that is unlike those of other numbers, whatever the rule."""
    syllables = ("ba", "ke", "du", "mi", "zo", "ru", "fa", "le", "go", "shi", "vy", "ny")
    digest = (number * 2_654_435_761) % 12**6
    return "".join(syllables[digest // 12**place % 12] for place in range(6)).capitalize()


@dataclass
class World:
    """An app that works, its desk and its model."""

    app: App
    details: Details
    provider: ScriptedProvider

    async def entries(self, batch_id: str) -> list[FeedEntry]:
        """Return the feed of a batch once it has ended."""
        found: list[FeedEntry] = []

        async def ended() -> bool:
            found[:] = await self.details.feed(batch_id).read(0, 1_000)
            return any(entry.type == "completed" for entry in found)

        await wait_until(ended, timedelta(seconds=20), message="the batch to end")
        return found

    async def figures(self) -> list[FeedEntry]:
        """Return the figures of the batches that ended, once there are any: they are kept behind the end's event."""
        feed = self.app.feed("details.done")
        return await wait_until(feed.read, timedelta(seconds=20), message="the figures behind the end")

    async def rebuilt(self, batch_id: str, session_id: str) -> BatchState:
        """Return the state of a batch by its domain events alone, once these tell its end."""

        async def found() -> BatchState | None:
            events = await self.app.event_stores.outbox.list_events(aggregate_id=session_id, limit=1_000)
            state = rebuild(batch_id, events)
            return state if state.status != "running" else None

        state = await wait_until(found)
        assert state is not None
        return state

    async def sweep(self) -> None:
        """Run the job of every minute once."""
        await (await self.app.find_task(SWEEP_TASK).enqueue()).result(timeout=10)

    async def give_up(self, batch_id: str) -> None:
        """Run that job until it gives up the departure of a batch that is waited for, which stays unanswered."""

        async def given_up() -> bool:
            await self.sweep()
            handle = await self.app.event_stores.handles.get_handle(batch_id)
            return handle is not None and handle.state.final

        await wait_until(given_up, timedelta(seconds=20), message="the wait to be given up")

    async def make(self, **request: Any) -> tuple[str, list[FeedEntry]]:
        """Ask for a batch and return its id and its feed."""
        accepted = await self.details.submit({"type": "skill", "count": 12, **request})
        return accepted.batch_id, await self.entries(accepted.batch_id)


@asynccontextmanager
async def details_on(
    store: str, folder: Path, answer: Callable[[ChatRequest], str] | None = None, faults: Sequence[Fault] = (),
    **settings: Any,
) -> AsyncIterator[World]:  # fmt: skip
    """Open an app with details and a worker; `settings`: tables other than the usual ones."""
    if store == "postgres":
        async with empty_schema() as schema, stores_on(schema, None):
            queue = QueueSettings(type="postgres", url=shared_server().dsn, schema=schema)
            async with _opened(queue, folder, (answer or Names(), faults), settings) as world:
                yield world
    else:
        async with _opened(QueueSettings(type="memory"), folder, (answer or Names(), faults), settings) as world:
            yield world


@asynccontextmanager
async def _opened(
    queue: QueueSettings, folder: Path, script: tuple[Callable[[ChatRequest], str], Sequence[Fault]],
    changes: Mapping[str, Any],
) -> AsyncIterator[World]:  # fmt: skip
    answer, faults = script
    async with ScriptedProvider(answer=answer, faults=faults) as provider:
        environ = {**provider.environment, "HEADRACE_LLM_REQUESTS_PER_MINUTE": "60000"}
        settings = changed(load_settings(environ=environ, file=folder / "none.toml"), queue=queue, **changes)
        app = App(settings=settings)
        details = register(app)
        async with app.worker():
            yield World(app, details, provider)


def names_of(entries: Sequence[FeedEntry]) -> list[str]:
    """Return the names that were delivered."""
    return [entry.data["name"] for entry in entries if entry.type == "item"]
