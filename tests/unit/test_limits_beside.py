"""`app.limits` while the server beside the store that counts rates does not answer: what was done, and what was not."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from headrace import App, Limit
from headrace.engine import late_limiter
from headrace.model.errors import NotFoundError, StoreUnavailableError
from headrace.model.limits import Rate
from headrace.ports.limiter import Limiter
from headrace.stores.memory import open_memory_stores
from tests.unit.engine_app import quick_app
from tests.unit.limiter_doubles import Fickle
from tests.waiting import wait_until


@dataclass
class Site:
    """An open app that knows one rate, a limiter beside its store, and the hints that were sent."""

    app: App
    limiter: Fickle
    hints: list[str]

    async def known(self) -> tuple[list[str], list[str]]:
        """Return the rates of the store, and those beside it."""
        rates = await self.app.runtime.stores.admission.list_rates()
        return [rate.name for rate in rates], list(await self.limiter.levels(["api"]))


@pytest.fixture
async def site(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """A site whose rate `api` is known in both places."""
    monkeypatch.setattr(late_limiter, "PATIENCE_SECONDS", 0.1)
    app, beside, hints = quick_app(), open_memory_stores(), list[str]()

    @app.task(queue="q", concurrency=2, limits=[Limit("api", "1/s")])
    async def call() -> None: ...

    async with app:
        limiter = Fickle(beside.limiter)
        app.runtime.limiter = limiter  # type: ignore[assignment]
        await app.runtime.stores.admission.declare_limits(app.registry.declared())
        await limiter.declare({"api": Rate(1.0, 1.0)})
        unsubscribe = await app.runtime.stores.notifier.subscribe(hints.append)
        yield Site(app, limiter, hints)
        unsubscribe()
    await beside.close()


async def test_nothing_is_forgotten_while_rates_are_not_counted(site: Site) -> None:
    """The error says so, nothing has changed, and the same works when the server is back."""
    site.limiter.away = True
    with pytest.raises(StoreUnavailableError, match=r"nothing of 'api' is forgotten: forget it again .*nobody listens"):
        await site.app.limits.forget("api")
    site.limiter.away = False
    assert await site.known() == (["api"], ["api"])
    assert await site.app.limits.forget("api") == {"rate"}
    assert await site.known() == ([], [])
    await wait_until(lambda: "queue:q" in site.hints)


async def test_what_is_only_left_beside_can_be_forgotten(site: Site) -> None:
    """A bucket that the store does not know is found there; what is found nowhere is an error."""
    await site.app.runtime.stores.admission.forget_limit("api")
    assert await site.app.limits.forget("api") == {"rate"}
    with pytest.raises(NotFoundError, match="'api'"):
        await site.app.limits.forget("api")


async def test_a_cap_is_forgotten_whether_rates_are_counted_or_not(site: Site) -> None:
    """What is no rate is not concerned by the server that counts them."""
    site.limiter.away = True
    assert await site.app.limits.forget("task:call") == {"cap"}


class Declaring(Fickle):
    """A limiter to which a worker declares a bucket again as soon as it is forgotten there; it may then be away."""

    def __init__(self, limiter: Limiter, *, lost: bool) -> None:
        super().__init__(limiter)
        self._lost = lost

    async def forget(self, name: str) -> None:
        """Forget it, and let a worker declare it for once."""
        await self.__getattr__("forget")(name)
        if self.asked["forget"] == 1:
            await self.declare({name: Rate(1.0, 1.0)})
            self.away = self._lost


async def test_a_rate_that_a_worker_declares_meanwhile_is_forgotten(site: Site) -> None:
    """A worker may find the bucket lost before the store has forgotten the rate."""
    site.app.runtime.limiter = Declaring(site.limiter, lost=False)  # type: ignore[arg-type,assignment]
    assert await site.app.limits.forget("api") == {"rate"}
    assert await site.known() == ([], [])


async def test_a_rate_that_is_half_forgotten_can_be_forgotten_again(site: Site) -> None:
    """The error says what is left, workers look at once, and the second time finds that."""
    site.app.runtime.limiter = Declaring(site.limiter, lost=True)  # type: ignore[arg-type,assignment]
    with pytest.raises(StoreUnavailableError, match=r"'api' is forgotten in the store, but perhaps not .*again"):
        await site.app.limits.forget("api")
    await wait_until(lambda: "queue:q" in site.hints)
    assert await site.known() == ([], ["api"])
    site.app.runtime.limiter = site.limiter  # type: ignore[assignment]
    assert await site.app.limits.forget("api") == {"rate"}
    assert await site.known() == ([], [])


@pytest.mark.parametrize("how", ["away", "frozen"])
async def test_a_rate_is_set_though_it_is_not_counted(site: Site, how: str) -> None:
    """Soon, the error says that it is stored and who declares it; workers are told to look."""
    setattr(site.limiter, how, True)
    began = time.monotonic()
    with pytest.raises(StoreUnavailableError, match=r"'api' is changed in the store, but not .*nothing to repeat"):
        await site.app.limits.set_rate("api", "5/s")
    assert time.monotonic() - began < 20
    [rate] = await site.app.runtime.stores.admission.list_rates()
    assert rate.override == Rate(5.0, 5.0)
    await wait_until(lambda: "queue:q" in site.hints)


async def test_what_stays_closed_is_said(site: Site) -> None:
    """Returning to what is declared also opens: where that failed, it has to be repeated."""
    await site.app.limits.close("api", "1h")
    site.limiter.away = True
    with pytest.raises(StoreUnavailableError, match="stays until this is repeated"):
        await site.app.limits.set_rate("api", None)
    site.limiter.away = False
    await site.app.limits.set_rate("api", None)
    assert not (await site.limiter.levels(["api"]))["api"].closed
