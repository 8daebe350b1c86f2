"""The scale signal of an open app: by its settings, and by what its code declares of queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.celery_settings import LOCAL
from headrace.engine.scaling import ScaleOptions
from headrace.engine.scaling import scale_signals as read_signals

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.model.scale_values import ScaleSignal
    from headrace.model.stats import QueueStats


async def scale_signals(
    app: App, *, queue: str | None = None, stats: Sequence[QueueStats] | None = None
) -> list[ScaleSignal]:  # fmt: skip
    """Return how many workers each queue wants, by name, or one. Raises NotFoundError, StoreUnavailableError.

    `stats`: the figures of all queues, where they are at hand.
    """
    registry, settings = app.registry, app.settings

    def slots(name: str) -> int:
        rule = registry.queue_rules.get(name)
        usual = registry.slots(name, settings.worker.concurrency)
        return usual if rule is None or rule.elastic is None else rule.elastic.most

    options = ScaleOptions(
        settings.scaling_of, slots, lambda name: settings.executor_of(name) != LOCAL,
        {*registry.queues(), *registry.queue_rules, *settings.queues},
    )  # fmt: skip
    return await read_signals(app.runtime.stores, app.runtime.limiter, options, queue=queue, stats=stats)
