"""What operators change of limits, and how limits are told: the command line and the HTTP service share it.

A name that nothing uses is refused unless it is forced: a slip of the keyboard would be a limit of nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.app import App
from headrace.engine.operations import find_queue
from headrace.model.admission import CapView, LimitsView, RateView
from headrace.model.breaker import BreakerState
from headrace.model.errors import NotFoundError
from headrace.model.limits import Rate, queue_cap

#: Kinds of limits, as they are listed.
KINDS = ("caps", "rates", "breakers", "shares")
_CAPS = "task:NAME, queue:NAME or key:QUEUE:KEY"
_OF_A_QUEUE = ("queue:", "key:")
_CAP_KINDS = ("task:", *_OF_A_QUEUE)


async def read_limits(
    app: App, *, internal: bool = False, most_shares: int | None = None
) -> tuple[LimitsView, datetime]:  # fmt: skip
    """Return what `app.limits.show` does, and the store's time."""
    info = await app.runtime.stores.inspect.store_info()
    found = await app.limits.show(internal=internal, most_shares=most_shares)
    return found, info.now or datetime.now(UTC)


def limits_document(view: LimitsView, now: datetime) -> dict[str, list[dict[str, Any]]]:
    """Return limits by kind, as JSON-able values but for their instants and durations."""
    return {
        "caps": [_fields(cap, "key", "cap", "running", "declared", "override") for cap in view.caps],
        "rates": [
            _fields(rate, "name", "rate", "level", "closed_until", "declared", "override")
            | {"free_in": free_in(rate, now)}
            for rate in view.rates
        ],
        "breakers": [
            {"key": one.key, "state": one.record.state, "record": one.record, "rule": one.rule} for one in view.breakers
        ],
        "shares": [_fields(share, "queue", "fair_key", "weight", "finish") for share in view.shares],
    }


def _fields(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def free_in(view: RateView, now: datetime) -> timedelta | None:
    """Return how long until a job of one unit may pass; None where the level is not known."""
    if view.level is None:
        return None
    closed = timedelta() if view.closed_until is None else max(view.closed_until - now, timedelta())
    return closed if view.rate is None else max(closed, view.rate.missing(view.level, 1.0))


async def set_cap(app: App, name: str, cap: int, *, force: bool, forcing: str) -> str:
    """Set a cap; return for which jobs alone it holds, or nothing. `forcing`: how a name is forced, for the error.

    Raises NotFoundError, InvalidInputError.
    """
    caps = [known.key for known in (await app.limits.show(most_shares=0)).caps if _is_named(name, known)]
    if not force:
        queues = await _queue_limits(app)
        keyed = name.startswith("key:") and queue_cap(name.split(":")[1]) in queues
        hint = _only("concurrency", name) + (forcing if name.startswith(_CAP_KINDS) else f"; a cap is named {_CAPS}")
        _check_known("cap", name, [*caps, *queues, *([name] if keyed else [])], hint=hint)
    await app.limits.set_cap(name, cap, force=force)
    await _hint_all(app, name)
    return "" if name in caps else _only("concurrency", name)


async def set_rate(app: App, name: str, rate: Rate, *, force: bool, forcing: str) -> str:
    """Set a rate limit; return as `set_cap` does. Raises NotFoundError, InvalidInputError, StoreUnavailableError."""
    rates = [known.name for known in (await app.limits.show(most_shares=0)).rates if _is_named(name, known)]
    if not force:
        _check_known("rate limit", name, [*rates, *await _queue_limits(app)], hint=_only("rate_limit", name) + forcing)
    await app.limits.set_rate(name, rate, force=force)
    await _hint_all(app, name)
    return "" if name in rates else _only("rate_limit", name)


async def set_weight(app: App, queue: str, fair_key: str, weight: float, *, force: bool) -> None:
    """Set the weight of a fair key in a queue. Raises NotFoundError, InvalidInputError."""
    if not force:
        await find_queue(app.runtime.stores.inspect, queue)
    await app.limits.set_weight(queue, fair_key, weight)


async def set_breaker(app: App, name: str, state: BreakerState) -> None:
    """Open a breaker for its cooldown, or close it. Raises NotFoundError naming those there are."""
    _check_known("breaker", name, [one.key for one in (await app.limits.show(most_shares=0)).breakers])
    await app.limits.set_breaker(name, state)
    await _hint_all(app, name)


async def reset(app: App, name: str, *, closing: str) -> dict[str, int | Rate | None]:
    """Return to what is declared for the cap and the rate limit of a name; return that, by kind.

    `closing`: how a breaker is closed, for the error. Raises NotFoundError.
    """
    view = await app.limits.show(most_shares=0)
    caps, rates = {cap.key: cap for cap in view.caps}, {rate.name: rate for rate in view.rates}
    broken = any(one.key == name for one in view.breakers)
    hint = f"; {closing} closes the breaker of that name" if broken else ""
    _check_known("cap or rate limit", name, [*caps, *rates], hint=hint)
    declared: dict[str, int | Rate | None] = {}
    if name in caps:
        await app.limits.set_cap(name, None)
        declared["cap"] = caps[name].declared
    if name in rates:
        await app.limits.set_rate(name, None)
        declared["rate"] = rates[name].declared
    await _hint_all(app, name)
    return declared


async def forget(app: App, name: str) -> list[str]:
    """Remove the cap, the rate limit and the breaker of a name; return which it was. Raises NotFoundError."""
    found = await app.limits.forget(name)
    await _hint_all(app, name)
    return [kind for kind in ("cap", "rate", "breaker") if kind in found]


async def _queue_limits(app: App) -> list[str]:
    """Return the names under which queues that are there can be limited, declared or not."""
    return [queue_cap(queue.name) for queue in await app.runtime.stores.inspect.queue_stats()]


def _is_named(name: str, limit: CapView | RateView) -> bool:
    """Whether a limit that the store knows is one of which jobs may know: of tasks only those that declare it are."""
    return limit.declared is not None or not name.startswith("task:")


def _only(option: str, name: str) -> str:
    """Return for which jobs the limit of a task holds; nothing for other limits."""
    return f"; it holds only for jobs whose task declares {option}=" if name.startswith("task:") else ""


def _check_known(what: str, name: str, known: Iterable[str], *, hint: str = "") -> None:
    names = set(known)
    if name not in names:
        raise NotFoundError(f"no {what} {name!r}; there are: {', '.join(sorted(names)) or 'none'}{hint}")


async def _hint_all(app: App, name: str) -> None:
    """Let workers of every queue look at once that a limit may concern: those of one queue are told with the change."""
    if name.startswith(_OF_A_QUEUE):
        return
    for queue in await app.runtime.stores.inspect.queue_stats():
        app.runtime.stores.notifier.hint(f"queue:{queue.name}")
