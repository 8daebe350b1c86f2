"""Where requests for details go: this process with a store, or a service somewhere."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import click

from headrace import ConfigError
from headrace.apps.details.commands.addresses import parse_address, read_token


@dataclass(frozen=True, slots=True)
class Told:
    """An entry of the feed of a batch."""

    seq: int
    type: str
    data: Mapping[str, Any]


class Desk(Protocol):
    """Takes requests, and tells what becomes of them. All but `follow` return documents of JSON."""

    async def submit(self, request: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """Take a request; the same key and request again give the same batch."""
        ...

    def follow(self, batch_id: str) -> AsyncGenerator[Told, None]:
        """Yield the entries of a batch from its first one, each once and in order, until it has ended."""
        ...

    async def until_told(self, batch_id: str) -> None:
        """Wait until the webhook of a batch that has ended was tried, where this process does that."""
        ...

    async def view(self, batch_id: str) -> Mapping[str, Any]:
        """Return what is known of a batch. Raises NotFoundError."""
        ...

    async def cancel(self, batch_id: str) -> Mapping[str, Any]:
        """Cancel a batch, unless it has ended, and return what is known of it. Raises NotFoundError."""
        ...

    async def latest(self, limit: int) -> list[Mapping[str, Any]]:
        """Return batches, the newest first."""
        ...

    async def mode(self) -> Mapping[str, Any]:
        """Return how batches are made."""
        ...

    async def set_mode(self, mode: str, progress: Callable[[str], None]) -> Mapping[str, Any]:
        """Change how batches are made once all that were begun have ended; `progress` is told what is left."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Which desk a command asks."""

    #: Of a service; empty: this process.
    url: str = ""
    token: str | None = field(default=None, repr=False)

    def open(self, *, worker: bool = False) -> AbstractAsyncContextManager[Desk]:
        """Return the desk; `worker`: this process works too, where it is no service that is asked."""
        return _remote(self) if self.url else _local(worker=worker)

    @property
    def option(self) -> str:
        """What other commands need to ask the same desk."""
        return f" --url {self.url}" if self.url else ""


def place_of(url: str | None, token_file: Path | None) -> Place:
    """Return the place that the options name. Raises ConfigError."""
    if url is None:
        if token_file is not None:
            raise click.UsageError("--token-file is for a service: give its address with --url")
        return Place()
    return Place(parse_address(url), read_token(token_file))


@asynccontextmanager
async def _remote(place: Place) -> AsyncIterator[Desk]:
    from headrace.apps.details.commands.remote import RemoteDesk, new_client

    async with new_client(place.url, place.token) as client:
        yield RemoteDesk(client)


@asynccontextmanager
async def _local(*, worker: bool) -> AsyncIterator[Desk]:
    from headrace.apps.details.commands.local import local_desk

    async with local_desk(worker=worker) as desk:
        yield desk


def refuse_memory(kind: str) -> None:
    """Raise ConfigError where there is nothing to look at but the memory of another process."""
    if kind == "memory":
        raise ConfigError("the memory store ends with each process: use a durable store, or ask a service with --url")
