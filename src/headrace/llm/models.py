"""The configured models, opened on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from headrace.llm.asking import Asker
from headrace.llm.calling import Means
from headrace.llm.endpoint import Endpoint
from headrace.llm.exchange import MAX_REPAIRS, Exchange
from headrace.llm.switches import Switches
from headrace.model.errors import ConfigError, InvalidInputError

#: How long closing waits for answers that are paid and under way.
_LINGER = timedelta(seconds=5)


class Models:
    """Askers by the names of their models; the default one's is empty."""

    def __init__(self, endpoints: Mapping[str, Endpoint], means: Means) -> None:
        self._endpoints, self.means = endpoints, means
        self._opened: dict[str, Asker] = {}
        self._closed = False

    def check(self, name: str) -> str:
        """Return the name of a configured model. Raises InvalidInputError."""
        if not isinstance(name, str) or name not in self._endpoints:
            named = ", ".join(filter(None, self._endpoints)) or "none yet: write [llm.models.NAME] in headrace.toml"
            raise InvalidInputError("model", f"must be the name of a configured model ({named})", name)
        return name

    def asker(self, name: str) -> Asker:
        """The asker of a model. Raises ConfigError where the model is not configured rightly, or the app is closed."""
        if self._closed:
            raise ConfigError("the app was closed, and its models with it; open it, and take app.llm anew")
        if name not in self._opened:
            self._opened[name] = Asker(self._endpoints[self.check(name)], self.means)
        return self._opened[name]

    def exchange(self, name: str, switches: Switches, *, most_repairs: int = MAX_REPAIRS) -> Exchange:
        """A new exchange with a model, and with the one that is asked what it cannot answer."""
        above = self._endpoints[name].escalate_to
        escalate = None if above is None else lambda: self.asker(above)
        return Exchange(self.asker(name), switches, escalate, most_repairs=most_repairs)

    async def aclose(self) -> None:
        """Let paid answers under way arrive (5 s at most), then release the providers. Allowed twice."""
        self._closed, (opened, self._opened) = True, (self._opened, {})
        await asyncio.gather(*(asker.aclose(_LINGER) for asker in opened.values()))
        await self.means.ledger.drain(_LINGER)
