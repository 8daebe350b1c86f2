"""The desk of details: it takes requests, says what to expect, and tells what became of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID
from weakref import WeakKeyDictionary

from headrace.apps.details.abandoned import end_abandoned, flow_of, kept_end, kwargs_of
from headrace.apps.details.agents import register_agents
from headrace.apps.details.attention import Attention
from headrace.apps.details.ending import end_early
from headrace.apps.details.flow import register_tasks
from headrace.apps.details.means import Means, plain_item
from headrace.apps.details.mode import read_mode, set_mode
from headrace.apps.details.names import ENDED, FIRST_RESPONSE, INTAKE_TASK, ITEM
from headrace.apps.details.paces import Paces
from headrace.apps.details.planning import Plan, Terms, make_plan
from headrace.apps.details.priorities import priority_class
from headrace.apps.details.request import DetailsRequest, parse_request
from headrace.apps.details.rooms import Rooms
from headrace.apps.details.sessions import session_of
from headrace.apps.details.warming import warming
from headrace.model.errors import HeadraceError, NotFoundError, StoreUnavailableError
from headrace.model.job import JobView
from headrace.model.names import check_key
from headrace.model.payload import encode_json, hash_text

if TYPE_CHECKING:
    from headrace import App
    from headrace.feeds import Feed
    from headrace.model.sentence import Sentence

#: By app, for those who have the app alone, such as its service.
_DESKS: WeakKeyDictionary[App, Details] = WeakKeyDictionary()

#: How often it is looked whether somebody still goes on with a batch that is followed, and when first.
WATCH_SECONDS, FIRST_WATCH_SECONDS = 5.0, 0.5


@dataclass(frozen=True, slots=True)
class Accepted:
    """What is said to whoever asked, at once."""

    batch_id: str
    correlation_id: str
    expected_seconds: float
    #: Whether the times are promised.
    promised: bool
    #: What was reckoned with, and which limit binds.
    detail: str
    #: Whether the pace of the model was measured, where the times depend on it; else a slow one is assumed.
    measured: bool = True
    #: Whether the batch was there already: the key was used before.
    existing: bool = False
    #: What keeps the batch from being made, as far as that is seen at once.
    attention: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as the service answers it."""
        return asdict(self)


class Details:
    """Takes requests for details; made by `register`."""

    def __init__(self, app: App, *, concurrency: int | None = None) -> None:
        self.app, self.means, self._paces, self._rooms = app, Means(app), Paces(app), Rooms(app)
        self._attention = Attention(app)
        self._intake = register_tasks(app, self.means)
        most = app.settings.details.agent_concurrency if concurrency is None else concurrency
        self.agents = register_agents(app, self.means, concurrency=most)

    async def submit(self, request: DetailsRequest | Mapping[str, Any], key: str | None = None) -> Accepted:
        """Take a request and say what to expect; it is durable then.

        The same `key` with the same request gives the same batch. Raises InvalidInputError naming the field, also for
        a webhook that nothing would sign, ConflictError for another request of the key, StoreUnavailableError.
        """
        if not isinstance(request, DetailsRequest):
            if key is not None and isinstance(request, Mapping) and request.get("session_id") is None:
                # Asked again the request must be the same one.
                request = {**request, "session_id": session_of(check_key("key", key))}
            request = parse_request(request, first_response=self.app.settings.details.first_response)
        await self.app.check_webhook(request.webhook)
        told, made = request.to_json(), await self._plan(request)
        plan = _plan_json(made)
        call = self._intake.options(priority=priority_class(request.priority))
        job = call.new_job((), {"request": told, "plan": plan})
        if key is not None:
            # What was reckoned with differs from one time to the next: the request alone is what the key stands for.
            body = hash_text(INTAKE_TASK, encode_json(told, field="request"))
            job = replace(job, key=check_key("key", key), body_hash=body)
        stored = await self.app.runtime.client.enqueue(job)
        if stored != job.id:
            plan = kwargs_of(await self._job(stored))["plan"]
        else:
            self._rooms.take(made.calls)
        return Accepted(
            str(stored), str(stored), plan["expected_seconds"], plan["promised"], plan["detail"],
            plan.get("measured", True), stored != job.id, await self._attention.words(),
        )  # fmt: skip

    async def _plan(self, request: DetailsRequest) -> Plan:
        pace, room, promised = await self._paces.current(), await self._rooms.current(), self.app.settings.details
        terms = Terms(promised.deadline.total_seconds(), promised.first_response_deadline.total_seconds())
        return make_plan(request, pace.now, room, terms, pace.base)

    def feed(self, batch_id: str) -> Feed:
        """Return the feed of a batch: `accepted`, `item` …, `first_response`, `completed`."""
        return self.means.feed(batch_id)

    async def find(self, batch_id: str) -> dict[str, Any]:
        """Return what was asked for and promised. Raises NotFoundError, InvalidInputError for what is no id."""
        return _shown(await self._job(self.app.batch(batch_id).id))

    async def cancel(self, batch_id: str) -> dict[str, Any]:
        """Cancel a batch, unless it has ended, and return what is known of it; what it has delivered stays.

        Calls of the model that are under way are not taken back. Raises as `view`.
        """
        job = await self._job(self.app.batch(batch_id).id)
        if await self.means.ending(str(job.id)) is None:
            for one in [job.id, *flow_of(job)]:
                await self.app.job(one).cancel()
            # The request may have begun meanwhile.
            for one in flow_of(await self._job(job.id)):
                await self.app.job(one).cancel()
            await end_early(self.means, kwargs_of(job), str(job.id), "cancelled")
        return await self.view(batch_id)

    async def check_feed(self, batch_id: str) -> None:
        """Raise HeadraceError for a batch that has ended and whose feed was removed: nothing comes of it any more."""
        job = await self._job(self.app.batch(batch_id).id)
        if await self.feed(str(job.id)).end() or await kept_end(self.means, job) is None:
            return
        await end_abandoned(self.means, job)
        if not await self.feed(str(job.id)).end():
            rule = "has no entries: what it had was removed, as entries older than keep_feeds are"
            raise HeadraceError(f"the feed of batch {job.id} {rule}; `headrace details show {job.id}` tells its end")

    @asynccontextmanager
    async def watched(self, batch_id: str) -> AsyncIterator[asyncio.Task[None]]:
        """See to it within the block that the feed of a batch ends, also where its jobs end without doing so."""
        task = asyncio.create_task(self._watch(self.app.batch(batch_id).id), name="headrace-details-watch")
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _watch(self, job_id: UUID) -> None:
        over, pause = False, FIRST_WATCH_SECONDS
        while not over:
            await asyncio.sleep(pause)
            pause = WATCH_SECONDS
            with suppress(StoreUnavailableError):
                over = await self._is_over(await self._job(job_id))

    async def _is_over(self, job: JobView) -> bool:
        """Whether a batch has ended; one whose jobs were cancelled, or failed for good, is ended here."""
        return await end_abandoned(self.means, job) is not None or await self.means.ending(str(job.id)) is not None

    async def view(self, batch_id: str) -> dict[str, Any]:
        """Return what is known of a batch. Raises NotFoundError, InvalidInputError for what is no id."""
        job = await self._job(self.app.batch(batch_id).id)
        entries, status = await self._entries(str(job.id)), None
        if not any(one.type == ENDED for one in entries):
            status = await end_abandoned(self.means, job)
            entries = entries if status is None else await self._entries(str(job.id))
        kept = None if entries else await kept_end(self.means, job)
        # It may have ended between the two looks.
        entries = entries if kept is None else await self._entries(str(job.id))
        end = next((place for place, one in enumerate(entries) if one.type == ENDED), len(entries))
        # What comes behind the end counts no more.
        ended, entries = (entries[end].data if end < len(entries) else kept or {}), entries[:end]
        items = [plain_item(one.data) for one in entries if one.type == ITEM]
        seconds = (one.data["seconds"] for one in entries if one.type == FIRST_RESPONSE)
        first = next(seconds, ended.get("first_response_seconds"))
        begun = {"status": status or ("running" if entries else "waiting"), "delivered": len(items)}
        told = dict(ended) | {"first_response_seconds": first, "items": items}
        return await self._attention.on(_shown(job) | begun | told)

    async def attention(self) -> list[Sentence]:
        """Return what keeps batches from being made now, a sentence each. Raises StoreUnavailableError."""
        return await self._attention.sentences()

    async def latest(self, limit: int = 50) -> list[dict[str, Any]]:
        """Return batches, the newest first, without their items."""
        jobs = await self.app.runtime.stores.inspect.list_jobs(task=INTAKE_TASK, limit=limit)
        return [await self.outline(job) for job in jobs]

    async def outline(self, job: JobView) -> dict[str, Any]:
        """Return what is known of the batch of an intake's job, without its items: only the end of its feed is read."""
        feed = self.feed(str(job.id))
        end, shown, ended = await feed.end(), _shown(job), await self.means.ending(str(job.id))
        if ended is None and not end:
            ended = await kept_end(self.means, job)
        if ended is not None:
            return await self._attention.on(shown | dict(ended))
        # Before the items stands that it was accepted, and among them that the first response is there.
        first = min(shown["count"], shown["first_response"])
        status = "running" if end else "waiting"
        delivered = max(0, end - 1 - (end > first + 1))
        return await self._attention.on(shown | {"status": status, "delivered": delivered})

    async def mode(self) -> str:
        """Return how batches that begin now are made: "normal" or "single-call"."""
        return await read_mode(self.app)

    async def set_mode(self, mode: str, progress: Callable[[str], None] | None = None) -> str:
        """Change how batches are made, once all that were begun have ended; see `mode.set_mode`."""
        return await set_mode(self.app, mode, progress)

    async def _entries(self, batch_id: str) -> list[Any]:
        found: list[Any] = []
        while page := await self.feed(batch_id).read(found[-1].seq if found else 0, 1_000):
            found += page
        return found

    async def _job(self, job_id: UUID) -> JobView:
        job = await self.app.runtime.stores.inspect.get_job(job_id)
        if job is None or job.task != INTAKE_TASK:
            raise NotFoundError(f"no batch of details {job_id}; `headrace details list` shows those there are")
        return job


def register(app: App, *, concurrency: int | None = None) -> Details:
    """Add the tasks and agents of details to an app and return their desk; its workers and agents start warm.

    `concurrency`: parts that each agent writes at once; default `[details] agent_concurrency`.

    >>> from headrace import App
    >>> details = register(App("memory://"))
    >>> [agent.id for agent in details.agents]
    ['characterexpert', 'worldbuilder']
    """
    _DESKS[app] = Details(app, concurrency=concurrency)
    app.lifespan = warming(app.lifespan)
    return _DESKS[app]


def desk_of(app: App) -> Details | None:
    """Return the desk of an app; None for an app without details.

    >>> from headrace import App
    >>> desk_of(App("memory://")) is None
    True
    """
    return _DESKS.get(app)


def _plan_json(plan: Plan) -> dict[str, Any]:
    told = {name: value for name, value in asdict(plan).items() if name != "calls"}
    return {**told, "sizes": list(plan.sizes), "asked_at": round(time.time(), 3)}


def _shown(job: JobView) -> dict[str, Any]:
    kwargs = kwargs_of(job)
    request, plan = kwargs["request"], kwargs["plan"]
    return {
        "batch_id": str(job.id), "correlation_id": str(job.id), **request,
        **{name: plan[name] for name in ("expected_seconds", "promised", "detail")},
        "submitted_at": job.created_at.isoformat(),
    }  # fmt: skip
