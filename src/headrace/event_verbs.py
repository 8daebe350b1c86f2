"""What the façade does with events and feeds: emit them, know agents, wait for what they bring, follow feeds."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

from headrace.engine.context import CURRENT
from headrace.engine.retrying import with_retries
from headrace.model.agent_ids import AgentIds
from headrace.model.emitting import NO_OUTBOX, Emission, EventOptions, check_options, stable_id
from headrace.model.errors import ConfigError
from headrace.model.names import check_key

if TYPE_CHECKING:
    from datetime import timedelta

    from headrace.events.agent import Agent
    from headrace.feeds import Feed
    from headrace.model.event import Event, Outgoing
    from headrace.ports.stores import EventStores
    from headrace.resume_handles import Resumed, ResumeHandles

#: Ids of events with a key of their own, outside of tasks, lie below this.
_KEYED = UUID("0c7c7d0a-0f0b-5b7c-9d55-5f0f6a1f2b60")


class EventVerbs:
    """The part of `App` that is for events and feeds."""

    @cached_property
    def agent_ids(self) -> AgentIds:
        """The canonical ids and aliases of the app's agents."""
        return AgentIds()

    @cached_property
    def agents(self) -> dict[str, Agent]:
        """The app's agents by canonical id."""
        return {}

    def feed(self: Any, name: str) -> Feed:
        """Return a feed: a durable, ordered log that many may append to and follow. It needs not be made before.

        `name`: 1 to 255 printable characters, such as "orders:north". Raises InvalidInputError.
        """
        from headrace.feeds import Feed

        return Feed(self, name)

    @property
    def emission(self: Any) -> Emission:
        """How this app's events are made."""
        events = self.settings.events
        return Emission(events.topic, events.max_bytes, available=self.settings.queue.type != "redis")

    @property
    def event_stores(self: Any) -> EventStores:
        """What the open store has for events. Raises ConfigError where it has nothing."""
        stores: EventStores | None = self.runtime.stores.events
        if stores is None:
            raise ConfigError(NO_OUTBOX)
        return stores

    async def emit(
        self: Any, type: str, payload: Any = None, *, key: str | None = None, connection: Any = None,
        **options: Unpack[EventOptions],
    ) -> Event:  # fmt: skip
        """Put an event into the outbox and return it; from there it leaves at least once, in order per aggregate.

        `type`: "Domain.Aggregate.Event"; `payload`: any JSON. Needs `aggregate_id`; see `EventOptions`. `connection`:
        the caller's asyncpg, psycopg or SQLAlchemy connection: the event then leaves iff its transaction commits.
        Within a task the event leaves at once, and not again when the handler runs again and says the same; give it a
        `key`, unique in the handler, where the payload may differ then: the first one stands. Elsewhere a `key` makes
        it leave once for all who use the key with this type. Raises InvalidInputError naming field and rule,
        PayloadTooLargeError, ConfigError where the store has no outbox, StoreUnavailableError.

        >>> from headrace import App
        >>> app = App("memory://")
        >>> async def main() -> None:
        ...     async with app:
        ...         event = await app.emit("Shop.Order.Paid", {"cents": 1200}, aggregate_id="o-1")
        ...         print(event.aggregate_type)
        >>> import asyncio; asyncio.run(main())
        ShopOrder
        """
        check_options(options)
        context, event_id = CURRENT.get(), None
        if context is not None:
            event_id = context.event_id(type, payload, options, key)
            options = context.event_options(options)
        elif key is not None:
            event_id = stable_id(_KEYED, f"event {type} key {check_key('key', key)}")
        made: Outgoing = self.emission.make(type, payload, options, event_id=event_id)
        if connection is not None:
            await self.emit_on(connection, [made])
        else:
            outbox = self.event_stores.outbox
            await with_retries(lambda _: outbox.insert_events([made]))
        assert made.event is not None
        return made.event

    @cached_property
    def handles(self) -> ResumeHandles:
        """What paused work waits for: `register`, `show`, `list`, `cancel`, `resolve`."""
        from headrace.resume_handles import ResumeHandles

        return ResumeHandles(self)  # type: ignore[arg-type]

    async def wait_for_events(
        self: Any, correlation_id: str, *types: str, timeout: float | str | timedelta, count: int = 1,
        request_types: tuple[str, ...] = (), agents: tuple[str, ...] = (),
    ) -> Resumed:  # fmt: skip
        """Within a task: wait until `count` events of these types have come with a correlation id, without a slot.

        They may have come before. The handler then runs again from its first line, as with `wait_for`. A request of
        `request_types` that becomes a dead letter (of one of `agents`, where these are given) counts as one that has
        come, and is in `Resumed.dead`. Raises HandleExpiredError after `timeout`, HandleCancelledError, ConflictError
        when the correlation id waits for something else, ConfigError outside of a task.
        """
        from headrace.resume_handles import wait_for_events

        return await wait_for_events(
            self, correlation_id, types, timeout=timeout, count=count, request_types=request_types, agents=agents
        )
