"""Which stores have events at all."""

from __future__ import annotations

from headrace.ports.stores import Stores


async def test_stores_without_transactions_over_everything_have_no_events(stores: Stores) -> None:
    """Redis says so by its absence; memory and PostgreSQL keep events with the change that causes them."""
    kind = (await stores.inspect.store_info()).kind

    assert (stores.events is None) == (kind == "redis")
