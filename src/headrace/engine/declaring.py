"""What an app declares, stored at the start of its worker and again with each new session: alarms, limits, schedules.

Again, because the store may be an empty one that an operator put in force meanwhile. A limit that tasks only name, and
that nobody has declared, is told: it is how a misspelt name looks, and it holds nothing back.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from headrace.engine.loops.backlog_alarm import declare_alarms
from headrace.engine.loops.scheduler import Scheduler
from headrace.engine.registry import Registry
from headrace.model.breaker import BreakerRule
from headrace.model.durations import format_duration
from headrace.model.limits import Declared
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.limits")

#: So many tasks, or rates, are named in one line.
SHOWN = 5


class Declaring:
    """Declares for one worker."""

    def __init__(self, stores: Stores, registry: Registry, scheduler: Scheduler | None) -> None:
        self._stores, self._registry, self._scheduler = stores, registry, scheduler
        #: Names of which was said that nobody declares them: once is enough.
        self._told: set[str] = set()

    async def declare(self, *, again: bool = False) -> None:
        """Store everything; `again`: this worker did so before, and another may have declared newer schedules since.

        Raises ConfigError for limits that do not agree, StoreUnavailableError.
        """
        await declare_alarms(self._stores, self._registry.queue_rules.values())
        declared = await self._limits()
        if declared:
            await self._stores.admission.declare_limits(declared)
        await self._tell_of_rates(declared)
        if self._scheduler is not None:
            await self._scheduler.declare(again=again)

    async def _limits(self) -> Declared:
        """Return the limits to declare: a breaker that is only named keeps the rule that it has in the store."""
        declared, named = self._registry.declared(), self._registry.named_breakers()
        if not named:
            return declared
        known = {view.key for view in (await self._stores.admission.list_limits()).breakers}
        for name in named.keys() - known:
            LOG.info(
                "breaker %r of %s is declared nowhere: it has the defaults (%s); say otherwise with "
                "breaker=Breaker(%r, …) in one task", name, _tasks(named[name]), _shown(BreakerRule()), name,
            )  # fmt: skip
        kept = {name: rule for name, rule in declared.breakers.items() if name not in named.keys() & known}
        return replace(declared, breakers=kept)

    async def _tell_of_rates(self, declared: Declared) -> None:
        """Say which rate limits tasks name without a rate anywhere."""
        named = {name: tasks for name, tasks in self._registry.named_limits().items() if name not in declared.rates}
        if not named:
            return
        rates = [view.name for view in await self._stores.admission.list_rates() if view.rate is not None]
        for name, tasks in named.items():
            if name in rates:
                LOG.debug("rate limit %r of %s is declared elsewhere, or set by an operator", name, _tasks(tasks))
                self._told.discard(name)
            elif name not in self._told:
                self._told.add(name)
                LOG.warning(
                    "%s names the rate limit %r, and no rate is declared for it: it holds nothing back. Correct the "
                    'name (there are: %s), declare it with Limit("%s", "60/m"), or set it with `headrace limits '
                    "set-rate %s 60/m --force`", _tasks(tasks), name, _listed(rates), name, name,
                )  # fmt: skip


def _tasks(names: Collection[str]) -> str:
    return f"task{'s' if len(names) > 1 else ''} {_listed(names)}"


def _listed(names: Collection[str]) -> str:
    shown = sorted(names)[:SHOWN]
    more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return ", ".join(shown + more) or "none"


def _shown(rule: BreakerRule) -> str:
    return f"{rule.failures} failures in a row open it, for {format_duration(rule.cooldown)}"
