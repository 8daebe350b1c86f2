"""What nodes ask of the outside, as an app of Headrace gives it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from headrace import App, Context, SignalTimeoutError
from headrace.apps.flows.files import RunFiles
from headrace.apps.flows.models import AppModel
from headrace.apps.flows.readers import FileReaders
from headrace.nodes.services import Credential, Files, HttpClient, Model, Readers
from headrace.outbound.client import OutboundClient


@dataclass
class FlowServices:
    """The services of one call of a node."""

    app: App
    context: Context

    @cached_property
    def http(self) -> HttpClient:
        """Requests to the public web, and to what `[flows] allow_targets` opens beyond it."""
        return OutboundClient(self.app.settings.flows.targets)

    @cached_property
    def model(self) -> Model:
        """The models of `[llm]`."""
        return AppModel(self.app)

    @cached_property
    def files(self) -> Files:
        """Files of the run, and those below `[flows] files`."""
        return RunFiles(self.app)

    @cached_property
    def readers(self) -> Readers:
        """Readers of PDF files and of sheets."""
        return FileReaders()

    def credential(self, name: str) -> Credential:
        """Return a credential of `[flows.credentials]`. Raises ConfigError naming where to write it."""
        return self.app.settings.flows.credential(name)

    async def now(self) -> datetime:
        """Return the time of this node's first call (aware, UTC): the same in all its tries."""
        kept: str = await self.context.step("now", lambda: datetime.now(UTC).isoformat())
        return datetime.fromisoformat(kept)

    async def wait(self, delay: timedelta | None, *, signal: str | None = None) -> Any:
        """Wait without a slot, until the delay is over or the signal comes; return its payload, None without one.

        A key has its signal once, so within loops it has their rounds behind it.
        """
        if delay is not None and delay <= timedelta():
            return None
        key = f"flows/{self.context.idempotency_key}" if signal is None else signal + self._rounds()
        try:
            return await self.app.wait_for(key, delay)
        except SignalTimeoutError:
            return None

    def _rounds(self) -> str:
        """Return the rounds of the loops around the node, and the entries of flows that it stands in."""
        path = "" if self.context.run is None else self.context.run.node
        return "".join(f"/{number}" for number in re.findall(r"\[(\d+)\]", path))
