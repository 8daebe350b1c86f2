"""Resume handles: `app.handles`, and the wait of a task for events."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headrace.engine.context import CURRENT
from headrace.engine.events.waiting import HANDLES, DeadRequest, HandleWaits, Resumed, outcome
from headrace.engine.retrying import with_retries
from headrace.model.agent_ids import canonical_id
from headrace.model.durations import parse_duration
from headrace.model.errors import (
    ConfigError,
    InvalidInputError,
    NotFoundError,
)
from headrace.model.event import Event, check_event
from headrace.model.names import check_key
from headrace.model.numbers import check_whole
from headrace.model.payload import encode_json
from headrace.model.resume_handle import (
    TOKEN_PREFIX,
    HandleState,
    HandleView,
    NewHandle,
    NotedEvent,
    hash_token,
    is_handle_token,
    new_token,
    no_handle,
)

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.ports.handle_store import HandleStore

__all__ = ["DeadRequest", "ResumeHandle", "ResumeHandles", "Resumed", "new_handle", "wait_for_events"]

#: Most events that one handle waits for.
MOST_EVENTS = 10_000
#: Most types, and most agents, of one handle.
MOST_TYPES = 100

_TARGET = re.compile(r"[a-z][a-z0-9_]{0,31}:[!-~]{1,200}")


@dataclass(frozen=True, slots=True)
class ResumeHandle:
    """A handle as it stood when it was read."""

    view: HandleView
    #: Whoever has it can end the wait, once; only where the handle was made by this very call, and never shown again.
    token: str | None = field(default=None, repr=False)
    _store: HandleStore | None = field(default=None, repr=False, compare=False)

    @property
    def correlation_id(self) -> str:
        """What belongs together."""
        return self.view.correlation_id

    @property
    def state(self) -> HandleState:
        """`waiting`, `resolved`, `expired` or `cancelled`."""
        return self.view.state

    @property
    def payload(self) -> Any:
        """What came with the token."""
        return json.loads(self.view.payload or "null")

    async def events(self) -> list[NotedEvent]:
        """Return what has come for it so far: events, and requests that became dead letters."""
        assert self._store is not None
        return list(await self._store.noted_events(self.correlation_id))

    async def outcome(self) -> Resumed:
        """Return what the wait came to. Raises HandleExpiredError, HandleCancelledError, ConfigError while it waits."""
        assert self._store is not None
        if not self.state.final:
            raise ConfigError(f"handle {self.correlation_id!r} still waits: read it again with app.handles.show(…)")
        return await outcome(self._store, self.view)


class ResumeHandles:
    """What paused work waits for, one handle per correlation id: `app.handles`.

    The first of result, timeout, cancel and token ends a handle, and wakes who waits; what comes later changes nothing.

    >>> from headrace import App
    >>> async def main() -> None:
    ...     async with App("memory://") as app:
    ...         handle = await app.handles.register("c-1", "Shop.Order.Paid", timeout="1h", token=True)
    ...         resolved = await app.handles.resolve(handle.token, {"paid": True})
    ...         print(resolved.state, resolved.payload)
    >>> import asyncio; asyncio.run(main())
    resolved {'paid': True}
    """

    def __init__(self, app: App) -> None:
        self._app = app

    @property
    def _store(self) -> HandleStore:
        return self._app.event_stores.handles

    async def register(  # noqa: PLR0913 - keyword-only, each with its default
        self, correlation_id: str, *types: str, timeout: float | str | timedelta, count: int = 1,
        request_types: Sequence[str] = (), agents: Sequence[str] = (), target: str = "", token: bool | str = False,
    ) -> ResumeHandle:  # fmt: skip
        """Store a handle that is resolved once `count` events of `types` have come, before or after this.

        `timeout` from now on. A request of `request_types` that becomes a dead letter, of one of `agents` where these
        are given, counts as one that has come. `target`: who is woken beside the tasks that wait, "prefect:ID of a flow
        run". `token`: True makes one, by which anybody can end the wait: it is returned only by the call that makes the
        handle; a handler that may run again makes one in a step instead (`headrace.new_token`) and gives it here.
        `count` 0: by its token alone.

        Again with the same types, count, agents and target it returns the handle as it is, which keeps its first time
        and token. Raises ConflictError where these differ, InvalidInputError, ConfigError where there is no outbox.
        """
        given = _token(token)
        made = new_handle(
            self._app, correlation_id, types, timeout=timeout, count=count, request_types=request_types, agents=agents,
            target=_checked_target(target), token_hash=hash_token(given) if given else "",
        )  # fmt: skip
        if not made.expect_count and not given:
            raise InvalidInputError("count", "must be at least 1, or 0 with a token, which alone ends the wait", count)
        store, shown = self._store, given or None
        if token is True and await with_retries(lambda _: store.get_handle(correlation_id)) is not None:
            shown = None
        view = await with_retries(lambda _: store.register_handle(made))
        self._app.runtime.stores.notifier.hint(HANDLES)
        return ResumeHandle(view, shown, store)

    async def show(self, correlation_id: str) -> ResumeHandle:
        """Return a handle. Raises NotFoundError."""
        check_key("correlation_id", correlation_id)
        store = self._store
        view = await with_retries(lambda _: store.get_handle(correlation_id))
        if view is None:
            raise no_handle(correlation_id)
        return ResumeHandle(view, None, store)

    async def cancel(self, correlation_id: str) -> ResumeHandle:
        """End a waiting handle: whoever waits gets HandleCancelledError. One that has ended stays as it is.

        Raises NotFoundError.
        """
        check_key("correlation_id", correlation_id)
        store = self._store
        return ResumeHandle(await with_retries(lambda _: store.cancel_handle(correlation_id)), None, store)

    async def resolve(self, token: str, payload: Any = None) -> ResumeHandle:
        """End a waiting handle by its token, with any JSON. The same payload again returns the handle as it is.

        Raises NotFoundError for an unknown token, ConflictError when anything else ended it before, HandleExpiredError.
        """
        if not isinstance(token, str) or not is_handle_token(token):
            raise InvalidInputError("token", f"must be what register() gave, which begins with {TOKEN_PREFIX}", "…")
        text, store = encode_json(payload, field="payload"), self._store
        view = await with_retries(lambda _: store.resolve_by_token(hash_token(token), text))
        return ResumeHandle(view, None, store)

    async def list(self, *, waiting: bool = True, limit: int = 100) -> Sequence[ResumeHandle]:
        """Return handles, the newest first; all of them with `waiting=False`."""
        check_whole("limit", limit, most=10_000)
        store = self._store
        views = await with_retries(lambda _: store.list_handles(waiting=_flag(waiting, "waiting"), limit=limit))
        return [ResumeHandle(view, None, store) for view in views]


async def wait_for_events(app: App, correlation_id: str, types: Sequence[str], **facts: Any) -> Resumed:
    """Return what `App.wait_for_events` does."""
    if CURRENT.get() is None:
        raise ConfigError("app.wait_for_events works within a task: elsewhere there is no job that could wait")
    handles, stores = app.event_stores.handles, app.runtime.stores
    waits = HandleWaits(handles, stores.signals, app.runtime.means.clock, stores.notifier)
    return await waits.wait(new_handle(app, correlation_id, types, **facts))


def new_handle(app: App, correlation_id: str, types: Sequence[str], **facts: Any) -> NewHandle:
    """Return a checked handle to register. Raises InvalidInputError naming field, rule and value."""
    count = check_whole("count", facts["count"], least=0, most=MOST_EVENTS)
    expected = _checked_types("types", types)
    if count and not expected:
        rule = "must name at least one type such as Genesis.Session.DetailBatchCreated, or count must be 0"
        raise InvalidInputError("types", rule, types)
    timeout = parse_duration(facts["timeout"], field="timeout")
    if not timeout:
        raise InvalidInputError("timeout", "must be longer than zero", facts["timeout"])
    agents = {_agent_id(app, name) for name in _texts("agents", facts["agents"])}
    return NewHandle(
        check_key("correlation_id", correlation_id), expected, count, timeout,
        request_types=_checked_types("request_types", facts["request_types"]), agents=tuple(sorted(agents)),
        token_hash=facts.get("token_hash", ""), target=facts.get("target", ""),
    )  # fmt: skip


def _agent_id(app: App, name: str) -> str:
    """Return the canonical id of an agent, which another app may declare."""
    own = canonical_id(name)
    try:
        return app.agent_ids.resolve(name)
    except NotFoundError:
        return own


def _checked_types(field: str, types: Sequence[str]) -> tuple[str, ...]:
    for one in _texts(field, types):
        check_event(Event(one, "Any", "any"))
    return tuple(sorted(set(types)))


def _texts(field: str, values: object) -> Sequence[str]:
    if not isinstance(values, list | tuple) or not all(isinstance(one, str) for one in values):
        raise InvalidInputError(field, "must be a list of texts", values)
    if len(values) > MOST_TYPES:
        raise InvalidInputError(field, f"must be at most {MOST_TYPES}", len(values))
    return values


def _checked_target(target: object) -> str:
    if not isinstance(target, str) or (target and not _TARGET.fullmatch(target)):
        raise InvalidInputError("target", 'must be "" or KIND:WHAT, such as "prefect:ID of a flow run"', target)
    return target


def _token(token: object) -> str:
    """Return the token that is asked for, or given; "" for none."""
    given = new_token() if token is True else token or ""
    if not isinstance(given, str) or (given and not is_handle_token(given)):
        raise InvalidInputError("token", "must be True, or made by headrace.new_token()", "(not shown)")
    return given


def _flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInputError(field, "must be True or False", value)
    return value
