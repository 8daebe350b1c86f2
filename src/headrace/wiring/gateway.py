"""The model gateway's part of the wiring: it turns settings into models, their quotas and prices."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from uuid import UUID

from headrace.engine.llm_session import CallerSession
from headrace.engine.loops.call_reaper import CallReaper
from headrace.engine.refusals import WatchedCalls
from headrace.llm.calling import Means
from headrace.llm.counting import Tally, snapshot
from headrace.llm.endpoint import Endpoint
from headrace.llm.gateway import LLM
from headrace.llm.ledger import Ledger
from headrace.llm.models import Models
from headrace.llm.pace import Paces
from headrace.llm.quota import Quotas
from headrace.model.errors import ConfigError
from headrace.model.llm import LLMSettings
from headrace.model.prices import Price
from headrace.model.quota import Pool, pool_gate
from headrace.ports.call_observer import CallObserver, Observers
from headrace.ports.limiter import Limiter
from headrace.ports.prices import Prices
from headrace.ports.stores import Stores
from headrace.providers import open_provider
from headrace.settings import Settings


def open_gateway(settings: Settings, stores: Stores, limiter: Limiter, stack: AsyncExitStack) -> tuple[LLM, Quotas]:
    """Return the gateway over an open store, and its quotas; what has to be closed goes on `stack`.

    Nothing is connected yet.
    """
    tally, quotas, calls = Tally(), Quotas(limiter), WatchedCalls(stores.calls)

    session = CallerSession(stores, lambda: snapshot(tally, quotas.stats()) | calls.told())
    reaper = CallReaper(stores, settings.recovery.check_interval)

    async def hold_jobs(pool: str, wait: timedelta) -> None:
        await limiter.close_bucket(pool_gate(pool), wait)

    async def session_id() -> UUID:
        reaper.start()
        return await session.id()

    chosen = {name: settings.llm_settings(name) for name in ("", *settings.models)}
    paces = Paces()
    means = Means(
        ledger=Ledger(calls, session_id),
        quotas=quotas,
        memo=stores.memo,
        budgets=stores.budgets,
        observer=Observers([paces, *_telemetry(settings, stack)]),
        tally=tally,
        hold_jobs=hold_jobs,
        paces=paces,
    )
    models = Models({name: _endpoint(model, settings) for name, model in chosen.items()}, means)
    # In this order when it closes: calls end, then what they stand on.
    stack.push_async_callback(session.close)
    stack.push_async_callback(reaper.stop)
    stack.push_async_callback(quotas.close)
    stack.push_async_callback(models.aclose)
    return LLM(models), quotas


def _endpoint(model: LLMSettings, settings: Settings) -> Endpoint:
    return Endpoint(
        open=lambda: open_provider(model, settings.directory),
        pool=Pool(model.pool_name, model.limits),
        prices=_prices(model),
        name=model.name,
        expected_tokens=model.expected_tokens,
        escalate_to=model.escalate_to,
        memo_endpoint=model.memo_endpoint,
    )


def _prices(model: LLMSettings) -> Prices:
    from headrace.providers.prices import GenaiPrices, PriceTable

    own: dict[str, Price] = {model.model: model.price} if model.model and model.price else {}
    return PriceTable(own, then=GenaiPrices(base_url=model.base_url))


def _telemetry(settings: Settings, stack: AsyncExitStack) -> list[CallObserver]:
    if not settings.telemetry.enabled:
        return []
    try:
        from headrace.telemetry.otel import open_otel
    except ImportError as error:
        raise ConfigError(
            f"telemetry.enabled needs the extra headrace[otel] ({error}): pip install 'headrace[otel]'"
        ) from None
    otel = open_otel(settings.telemetry)
    # In a thread: it sends what is left, and the endpoint may be slow.
    stack.push_async_callback(asyncio.to_thread, otel.close)
    return [otel]
