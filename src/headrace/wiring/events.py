"""The part of the wiring that is for events: it turns `[events]` into a bus, and an app into what works with it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from headrace.engine.events.agent_runner import AgentRunner
from headrace.engine.events.batch_runner import BatchRunner
from headrace.engine.events.callbacks import Callbacks
from headrace.engine.events.consumer import Consumer, ConsumerOptions
from headrace.engine.events.host import CallbackWatch, EventHost
from headrace.engine.events.parts import EventParts
from headrace.engine.loops.handle_sweeper import HandleSweeper
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.engine.loops.relay import Relay, RelayOptions
from headrace.engine.loops.waking import WakeLoop
from headrace.engine.telemetry import Telemetry
from headrace.model.emitting import NO_OUTBOX
from headrace.model.errors import ConfigError
from headrace.model.session import Role
from headrace.ports.bus import Bus
from headrace.ports.handle_cache import HandleCache
from headrace.ports.stores import EventStores
from headrace.ports.waker import Waker
from headrace.settings import Settings
from headrace.wiring.ray_agents import keeps_agents, make_agents_loop

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.events.agent import Agent

#: Members of the callback service share this group.
CALLBACK_GROUP = "headrace.callback"
#: Handles that a member of the callback service resolves at once.
CALLBACK_CONCURRENCY = 16


def make_event_host(
    app: App, resources: Any, parts: EventParts | None = None, *, telemetry: Telemetry | None = None
) -> EventHost:
    """Return what does a part of the work with events in this process; None: what a worker does, by `[worker]`.

    Raises ConfigError where agents are to work and the store has no outbox.
    """
    runtime, settings = app.runtime, app.settings
    # A process that was told its part runs them itself, and so does the actor.
    keeps = parts is None and bool(app.agents) and keeps_agents(settings)
    parts = parts or _parts_of_worker(settings)
    agents = [app.agents[own] for own in (app.agents if parts.agents is None else parts.agents)]
    if runtime.stores.events is None:
        if agents or keeps or parts.callback_at_once:
            raise ConfigError(NO_OUTBOX)
        parts = EventParts()
    maker = _Maker(app, telemetry or Telemetry(), resources)
    return EventHost(
        runtime.stores.notifier,
        [maker.agent(agent) for agent in agents] + ([maker.callback] if parts.callback_at_once else []),
        [*(maker.wake_loops() if parts.callback else []), *([make_agents_loop(app)] if keeps else [])],
        relay=maker.relay() if parts.relay else None,
        callback=maker.watched_callback() if parts.callback and not parts.callback_at_once else None,
        close=maker.stack.aclose,
    )


def _parts_of_worker(settings: Settings) -> EventParts:
    worker = settings.worker
    here = worker.agents_enabled and not settings.ray.agents
    return EventParts(worker.relay_enabled, None if here else (), worker.callback_enabled)


def open_bus(settings: Settings, stores: EventStores, notifier: Any) -> Bus:
    """Return the bus that `[events]` names; nothing is connected yet. Raises ConfigError."""
    events = settings.events
    if events.bus == "kafka":
        try:
            from headrace.buses.kafka import KafkaBus
        except ImportError:
            raise ConfigError("events.bus kafka needs a package more: pip install 'headrace[kafka]'") from None
        return KafkaBus(events)
    from headrace.buses.stored import StoreBus

    return StoreBus(
        stores.log, notifier, partitions=events.partitions, lease=events.member_lease, poll=events.poll_interval
    )


class _Maker:
    """Makes the parts over one bus, which is opened with the first that needs it."""

    def __init__(self, app: App, telemetry: Telemetry, resources: Any) -> None:
        self._app, self._telemetry, self._resources = app, telemetry, resources
        self.stack = AsyncExitStack()

    @property
    def _stores(self) -> EventStores:
        return self._app.event_stores

    @cached_property
    def bus(self) -> Bus:
        bus = open_bus(self._app.settings, self._stores, self._app.runtime.stores.notifier)
        self.stack.push_async_callback(bus.close)
        return bus

    def relay(self) -> tuple[Leadership, Loop]:
        events, stores = self._app.settings.events, self._app.runtime.stores
        leadership = Leadership(stores, uuid4(), role=Role.RELAY)
        options = RelayOptions(events.relay_batch, events.format, events.source, events.poll_interval)
        return leadership, Relay(self._stores.outbox, self.bus, leadership, self._telemetry, options)

    def agent(self, agent: Agent) -> Consumer:
        settings, inbox = self._app.settings, self._stores.inbox
        timeout = agent.definition.timeout or settings.worker.max_processing_time
        definition = replace(agent.definition, timeout=timeout)
        context = partial(agent.context, emission=self._app.emission, can_write=inbox.writes, resources=self._resources)
        runner = AgentRunner(definition, inbox, context, self._telemetry, settings.events.dead_letter_suffix)
        options = ConsumerOptions(
            definition.group, agent.topics, definition.concurrency, ordered=definition.ordered, gather=definition.gather
        )  # fmt: skip
        return Consumer(self.bus, options, runner.take, together=BatchRunner(runner).take)

    @cached_property
    def callback(self) -> Consumer:
        events = self._app.settings.events
        service = Callbacks(self._stores.handles, self.cache, self._telemetry, events.dead_letter_suffix)
        options = ConsumerOptions(CALLBACK_GROUP, events.watched_topics, CALLBACK_CONCURRENCY)
        return Consumer(self.bus, options, service.take)

    def watched_callback(self) -> tuple[Consumer, CallbackWatch]:
        return self.callback, CallbackWatch(self._stores.handles, self.callback)

    def wake_loops(self) -> Sequence[Loop]:
        handles = self._stores.handles
        return [
            HandleSweeper(handles, self._telemetry, cache=self.cache),
            WakeLoop(handles, self._wakers(), self._telemetry),
        ]

    @cached_property
    def cache(self) -> HandleCache | None:
        settings = self._app.settings
        if not settings.limits.url:
            return None
        from headrace.stores.redis import make_handle_cache

        cache = make_handle_cache(settings.limits.url, prefix=settings.queue.stream_prefix)
        self.stack.push_async_callback(cache.close)
        return cache

    def _wakers(self) -> dict[str, Waker]:
        events = self._app.settings.events
        if not events.prefect_api_url:
            return {}
        from headrace.outbound.prefect import PrefectWaker

        waker = PrefectWaker(events.prefect_api_url, events.prefect_api_key)
        self.stack.push_async_callback(waker.close)
        return {waker.kind: waker}
