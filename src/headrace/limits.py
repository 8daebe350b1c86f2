"""Limits at run time: what people get as `app.limits`."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from headrace.engine.context import CURRENT
from headrace.engine.grants import redeclare
from headrace.engine.late_limiter import soon
from headrace.engine.levels import list_limits
from headrace.engine.registry import Registry
from headrace.model.admission import LimitKind, LimitsView
from headrace.model.breaker import BreakerState
from headrace.model.durations import parse_duration
from headrace.model.errors import InvalidInputError, LimitTimeoutError, NotFoundError, StoreUnavailableError
from headrace.model.limits import LONGEST_CLOSING, Declared, Rate, check_cost, check_gate_key, check_weight
from headrace.model.names import check_name
from headrace.model.queue import check_cap
from headrace.model.quota import is_pool_bucket
from headrace.ports.admission import Admission
from headrace.ports.limiter import Limiter

if TYPE_CHECKING:
    from headrace.runtime import Runtime

T = TypeVar("T")

#: Where the wait would be too long, one looks again and again for a while before saying so: claimers hold units for a
#: moment and give back what they do not need.
_LOOK_AGAIN, _DOUBT = 0.02, 0.5
#: A limiter that says "now" and gives nothing is asked again after this long.
_LEAST_WAIT = 0.001


class Limits:
    """Shows and changes limits while workers run, and takes from rate limits inside handlers.

    >>> from headrace import App, Limit
    >>> app = App("memory://")
    >>> @app.task(concurrency=3, limits=[Limit("api", "100/s")])
    ... async def fetch(url: str) -> int:
    ...     return 200
    >>> async def main() -> None:
    ...     async with app.worker():
    ...         await app.limits.set_cap("task:fetch", 1)
    ...         [cap] = (await app.limits.show()).caps
    ...         print(cap.key, cap.declared, cap.cap)
    >>> import asyncio; asyncio.run(main())
    task:fetch 3 1
    """

    def __init__(self, runtime: Callable[[], Runtime], registry: Registry) -> None:
        self._runtime, self._registry = runtime, registry

    async def show(self, *, internal: bool = False, most_shares: int | None = None) -> LimitsView:
        """Return caps, rates, breakers and shares as they stand, each kind by name.

        Levels are those of the server that counts rates; while it is away, they are None. `internal`: with the buckets
        in which calls of models are counted; their names begin with "llm:", "pool:" or "jobs:". `most_shares`: of the
        shares only the first so many.
        """
        view = await list_limits(self._runtime().stores, self._limiter, most_shares=most_shares)
        return view if internal else replace(view, rates=tuple(r for r in view.rates if not is_pool_bucket(r.name)))

    async def set_cap(self, key: str, cap: int | None, *, force: bool = False) -> None:
        """Set how many jobs run at once under "task:NAME", "queue:NAME" or "key:QUEUE:KEY", for running workers too.

        0 stops them; None returns to what is declared in code or settings. "key:QUEUE:KEY" is the `concurrency_key` KEY
        of a queue: the cap holds in place of the `key_limit` of its jobs, and above 1 they no longer run one by one.
        Jobs of a task come under a cap only where the task declares `concurrency=`: NotFoundError where it does not,
        unless `force` sets it for when it does. Raises InvalidInputError.
        """
        _check_cap_name(key)
        checked = None if cap is None else check_cap(cap, field="cap", least=0)
        if checked is not None and not force:
            await self._check_declared(key, "concurrency")
        await self._admission.set_cap(key, checked)
        self._hint(key)

    async def set_rate(
        self, name: str, rate: Rate | str | None, *, burst: float | None = None, force: bool = False
    ) -> None:
        """Set a rate limit, such as "60/m", for running workers too; None returns to what is declared.

        None also opens what `close` closed. Where a server beside the store counts rates and does not answer, the
        change is stored all the same: StoreUnavailableError says what is left to do.
        `name`: that of a `Limit`, or "task:NAME" or "queue:NAME" for a `rate_limit=`. Jobs of a task come under
        "task:NAME" only where the task declares one: NotFoundError where it does not, unless `force` sets it for when
        it does. Raises InvalidInputError.
        """
        _check_bucket(name)
        if rate is None and burst is not None:
            raise InvalidInputError("rate", "must be given where burst is", None)
        parsed = None if rate is None else Rate.parse(rate, burst=burst)
        if parsed is not None and not force:
            await self._check_declared(name, "rate_limit")
        await self._admission.set_rate(name, parsed)
        try:
            if self._beside:
                await self._change_beside(name, opens=rate is None)
            elif rate is None:
                await self._limiter.open_bucket(name)
        finally:
            self._hint(name)

    async def _change_beside(self, name: str, *, opens: bool) -> None:
        """Let the limiter know of a rate that was set in the store, and end its closing."""
        left = "workers declare it there when it answers"
        left += "; what closes it there stays until this is repeated" if opens else ", and there is nothing to repeat"
        with _saying(f"rate limit {name!r} is changed in the store, but not where it is counted: {left}"):
            await redeclare(self._limiter, self._admission, {name})
            if opens:
                await soon(self._limiter.open_bucket(name))

    async def _check_declared(self, name: str, option: Literal["concurrency", "rate_limit"]) -> None:
        """Raise NotFoundError for a limit of a task that declares none: its jobs do not name it."""
        kind, _, task_name = name.partition(":")
        task = self._registry.get(task_name)
        if kind != "task" or (task is not None and name in _declared(task.declares, option)):
            return
        view = await self._admission.list_limits(most_shares=0)
        known = {cap.key for cap in view.caps if cap.declared is not None}
        if option == "rate_limit":
            known = {rate.name for rate in view.rates if rate.declared is not None}
        if name not in known:
            raise NotFoundError(
                f"task {task_name!r} declares no {option}=, so that {name!r} would hold nothing back: write "
                f"@app.task({option}=…) and start a worker, or set it for then with force=True"
            )

    async def set_weight(self, queue: str, fair_key: str, weight: float) -> None:
        """Set the weight of a fair key in a queue, 1 unless set; twice the weight is twice the share.

        Raises InvalidInputError for weights below 0.001 or above 1,000.
        """
        check_name("queue", queue)
        await self._admission.set_weight(queue, check_gate_key("fair_key", fair_key), check_weight(weight))
        self._hint(f"queue:{queue}")

    async def set_breaker(self, name: str, state: BreakerState | str) -> None:
        """Open a circuit breaker by hand, for its cooldown, or close it: "open" or "closed".

        Raises NotFoundError for a breaker that no worker has declared.
        """
        if state not in (BreakerState.OPEN, BreakerState.CLOSED):
            raise InvalidInputError("state", 'must be "open" or "closed"', state)
        await self._admission.set_breaker(check_name("breaker", name), BreakerState(state))
        self._hint("")

    async def forget(self, name: str) -> frozenset[str]:
        """Remove the cap, the rate limit and the breaker of this name, with what was set for them; return what it was:
        "cap", "rate", "breaker".

        Jobs that wait behind it are no longer limited by it, those that run go on. A worker that still declares it
        declares it again at its next start. Raises NotFoundError naming those there are. Where a server beside the
        store counts rates and does not answer, a rate limit stays: StoreUnavailableError says so, and the same may be
        tried again.
        """
        _check_any(name)
        found = set(await self._forget_beside(name))
        try:
            found |= await self._admission.forget_limit(name)
            if LimitKind.RATE in found and self._beside:
                with _saying(
                    f"{name!r} is forgotten in the store, but perhaps not where rates are counted: forget it again"
                ):
                    # A worker may have declared it there again, in between.
                    await soon(self._limiter.forget(name))
        finally:
            self._hint(name if name.startswith(("queue:", "key:")) else "")
        if not found:
            view = await self._admission.list_limits(most_shares=0)
            names = {*(cap.key for cap in view.caps), *(rate.name for rate in view.rates)}
            known = ", ".join(sorted(names | {one.key for one in view.breakers}))
            raise NotFoundError(f"no cap, rate limit or breaker {name!r}; there are: {known or 'none'}")
        return frozenset(found)

    async def _forget_beside(self, name: str) -> frozenset[LimitKind]:
        """Remove the bucket of a limiter beside the store, first: without it nothing is forgotten that has a rate."""
        if not self._beside:
            return frozenset()
        try:
            known = await soon(self._limiter.levels([name]))
            await soon(self._limiter.forget(name))
        except StoreUnavailableError as error:
            if name in {rate.name for rate in await self._admission.list_rates()}:
                _explain(error, f"nothing of {name!r} is forgotten: forget it again when rates are counted")
                raise
            return frozenset()
        return frozenset({LimitKind.RATE} if known else ())

    async def close(self, name: str, wait: float | str | timedelta) -> None:
        """Let nothing pass a rate limit for `wait`, at most 7 days: the provider said so (a 429 with Retry-After).

        A shorter wait does not open it earlier; `set_rate(name, None)` and `headrace limits reset` do. Raises
        InvalidInputError, NotFoundError for a rate that nobody declared, StoreUnavailableError.
        """
        _check_bucket(name)
        lasts = parse_duration(wait, field="wait")
        if lasts > LONGEST_CLOSING:
            raise InvalidInputError("wait", "must be at most 7d; a rate can be set lower for longer", wait)
        if not await self._answer(self._limiter.levels([name])):
            await redeclare(self._limiter, self._admission, {name})
            if not await self._answer(self._limiter.levels([name])):
                raise _no_rate(name)
        await self._answer(self._limiter.close_bucket(name, lasts))

    def take(self, name: str, units: float = 1.0, *, timeout: float | str | timedelta | None = None) -> Taking:
        """Take units of a rate limit inside a handler: `await app.limits.take("api", 20)`, or with `async with`.

        Waits until they are there, at most for `timeout` and not beyond the deadline of the attempt; it does not
        begin to wait where that cannot be enough. More than the burst is taken when the bucket is full. A job that
        waits here holds its slot: prefer `limits=` of the task where the units are known before. Raises
        LimitTimeoutError, NotFoundError for a rate that nobody declared, StoreUnavailableError.
        """
        _check_bucket(name)
        seconds = None if timeout is None else parse_duration(timeout, field="timeout").total_seconds()
        return Taking(self, name, check_cost(units, field="units"), seconds)

    async def take_now(self, name: str, units: float) -> timedelta:
        """Take units if they are there; else return how long to wait before asking again (above zero)."""
        taken = await self._limiter.take({name: units})
        if name in taken.unknown:
            await redeclare(self._limiter, self._admission, {name})
            taken = await self._limiter.take({name: units})
        if name in taken.unknown:
            raise _no_rate(name)
        return timedelta() if name in taken.units else max(taken.wait, timedelta(seconds=_LEAST_WAIT))

    async def give_back(self, name: str, units: float) -> None:
        """Return units that were taken and not used."""
        await self._limiter.give_back({name: check_cost(units, field="units")})

    @property
    def _admission(self) -> Admission:
        return self._runtime().stores.admission

    @property
    def _limiter(self) -> Limiter:
        return self._runtime().limiter

    @property
    def _beside(self) -> bool:
        """Whether rates are counted by a limiter that is not the store's own."""
        return self._limiter is not self._runtime().stores.limiter

    async def _answer(self, answer: Awaitable[T]) -> T:
        """Return what the limiter answers; one beside the store has to do so soon."""
        return await (soon(answer) if self._beside else answer)

    def _hint(self, key: str) -> None:
        """Let workers look now at queues that a change may concern; others find it with their next poll."""
        kind, _, name = key.partition(":")
        queues = [name.partition(":")[0]] if kind in ("queue", "key") else self._registry.queues()
        for queue in queues:
            self._runtime().stores.notifier.hint(f"queue:{queue}")


@dataclass(frozen=True, slots=True)
class Taking(AbstractAsyncContextManager["Taking"]):
    """Units of a rate limit, being taken: await it, or enter it. Leaving the block gives nothing back."""

    limits: Limits
    name: str
    units: float
    seconds: float | None

    def __await__(self) -> Generator[Any, None, Taking]:
        return self._take().__await__()

    async def __aenter__(self) -> Taking:
        return await self._take()

    async def __aexit__(self, *_: object) -> None:
        return None

    async def give_back(self, units: float) -> None:
        """Return units that turned out not to be needed, such as tokens reserved for a longer answer."""
        await self.limits.give_back(self.name, units)

    async def _take(self) -> Taking:
        ends_at = _ends_at(self.seconds)
        doubted_at = math.inf
        while wait := (await self.limits.take_now(self.name, self.units)).total_seconds():
            now = asyncio.get_running_loop().time()
            too_late = now + wait > ends_at
            if too_late and now > doubted_at and now >= min(doubted_at + _DOUBT, ends_at):
                raise LimitTimeoutError(
                    f"rate limit {self.name!r} lets {self.units:g} units pass in {wait:.3g} s at the earliest, and "
                    "that is too late; wait longer, or raise the rate"
                )
            doubted_at = min(doubted_at, now) if too_late else math.inf
            await asyncio.sleep(_LOOK_AGAIN if too_late else wait)
        return self


def _ends_at(seconds: float | None) -> float:
    """Return when waiting ends, by the event loop's clock: after `seconds`, or at the deadline of the attempt."""
    now, context = asyncio.get_running_loop().time(), CURRENT.get()
    left = None if context is None else (context.deadline - datetime.now(UTC)).total_seconds()
    known = [value for value in (seconds, left) if value is not None]
    return now + min(known, default=math.inf)


def _declared(declared: Declared, option: str) -> Mapping[str, object]:
    return declared.caps if option == "concurrency" else declared.rates


@contextmanager
def _saying(what: str) -> Iterator[None]:
    """Let an error of the server that counts rates say what was done, what was not, and what to do."""
    try:
        yield
    except StoreUnavailableError as error:
        _explain(error, what)
        raise


def _explain(error: StoreUnavailableError, what: str) -> None:
    """Put words before those of an error, which stays of its kind."""
    error.args = (f"{what} ({error})",)


def _no_rate(name: str) -> NotFoundError:
    return NotFoundError(
        f'no rate limit {name!r}; declare it on a task with limits=[Limit("{name}", "60/m")] and start a '
        "worker, or set it with app.limits.set_rate"
    )


def _check_limit_name(field: str, value: object, kinds: tuple[str, ...], others: str = "") -> None:
    kind, found, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not found or kind not in kinds:
        named = " or ".join(f'"{kind}:NAME"' for kind in kinds)
        raise InvalidInputError(field, f"must be {named} {others}".rstrip(), value)
    check_name(f"{field}, after the colon,", name)


def _check_cap_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("key:"):
        _, queue, key = (*name.split(":", 2), "")[:3]
        check_name('key, as "key:QUEUE:KEY", its QUEUE', queue)
        check_gate_key('key, as "key:QUEUE:KEY", its KEY', key)
    else:
        _check_limit_name("key", name, ("task", "queue"), 'or "key:QUEUE:KEY"')


def _check_any(name: object) -> None:
    if isinstance(name, str) and name.startswith("key:"):
        _check_cap_name(name)
    else:
        _check_bucket(name)


def _check_bucket(name: object) -> None:
    if isinstance(name, str) and ":" in name:
        _check_limit_name("name", name, ("task", "queue"))
    else:
        check_name("name", name)
