"""The identity of a store's data: noticed when it is gone, and never made anew in silence.

The key `{NAMESPACE}:epoch:ID` is written once, by `headrace migrate`. Every process remembers it from its start, and
every script looks for it first: one that does not find it answers STORAGE_RESET and does nothing. So after FLUSHALL, an
empty restart or the failover to an empty replica nothing is claimed, recorded or inserted. Only `headrace queue adopt`
makes running processes go on, with what is there now.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from uuid import uuid4

from headrace.model.errors import HeadraceError, StorageResetError, StoreVersionError
from headrace.stores.redis.connection import Server

LOG = logging.getLogger("headrace.redis")

#: The version of the layout of keys.
LAYOUT = 1
#: Keys that every namespace has once it was used; an epoch is missing beside them only after a loss.
_TRACES = ("about", "queues", "sessions", "leader", "batches", "commits")
_LOOK_EVERY = 1.0


@dataclass(frozen=True, slots=True)
class Identity:
    """What a server says of the data in a namespace. `adopted` is the last epoch that an operator put in force."""

    epoch: str
    layout: int
    created_at: datetime
    adopted: str = ""


class Epoch:
    """What one process remembers; shared by all its connections, of any thread."""

    def __init__(self, value: str = "") -> None:
        #: The epoch that scripts compare.
        self.value = value
        #: Whether the data was found to be another one, and nobody said since that this is right.
        self.reset = False
        self._looked_at = 0.0
        self._look: asyncio.Task[None] | None = None

    def found_reset(self, server: Server) -> None:
        """Take note that a script answered STORAGE_RESET: raise the alarm, once, and look whether it was adopted."""
        if not self.reset:
            self.reset = True
            LOG.critical(
                "storage_reset: the Redis store %s lost its jobs, or is another one than before. Nothing is claimed or "
                "recorded any more. Restore its data, or give the jobs up with `headrace queue adopt`",
                server.options.address.shown,
            )
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_EVERY and (self._look is None or self._look.done()):
            self._looked_at = now
            self._look = asyncio.get_running_loop().create_task(self._follow(server), name="headrace-epoch")

    async def _follow(self, server: Server) -> None:
        """Go on with what an operator adopted, or with our own data once it is back."""
        with suppress(HeadraceError):
            found = await read_identity(server)
            if found is not None and found.epoch in (self.value, found.adopted):
                LOG.warning("the Redis store is in force again, with epoch %s", found.epoch)
                self.value, self.reset = found.epoch, False


def epoch_key(root: str, epoch: str) -> str:
    """Return the key that exists as long as the data of an epoch does."""
    return f"{root}:epoch:{epoch}"


async def read_identity(server: Server) -> Identity | None:
    """Return the identity of the namespace, or None where it has none."""
    root = server.options.root
    about = await server.call("HGETALL", f"{root}:about", read=True)
    facts = dict(zip(about[::2], about[1::2], strict=True))
    epoch = facts.get("epoch", "")
    if not epoch or not await server.call("EXISTS", epoch_key(root, epoch), read=True):
        return None
    created_at = datetime.fromtimestamp(float(facts.get("created_at", 0)), UTC)
    return Identity(epoch, int(facts.get("layout", LAYOUT)), created_at, facts.get("adopted", ""))


async def open_epoch(server: Server, memory: Memory) -> Epoch:
    """Return the epoch to work under. Raises StoreVersionError for a namespace that was never made, StorageResetError
    for one that lost its data, or that is another one than this directory remembers."""
    found, before = await read_identity(server), memory.recall(server)
    if found is None:
        if before or await _has_traces(server):
            raise _lost(server, before)
        raise StoreVersionError(
            f"The Redis server has no namespace {server.options.root} yet. Run `headrace migrate` once to make it. If "
            "jobs were here before, do not migrate: restore the data, or give them up with `headrace queue adopt`."
        )
    if found.layout != LAYOUT:
        raise StoreVersionError(
            f"The namespace {server.options.root} has layout {found.layout}, this version of Headrace needs {LAYOUT}. "
            "Use the version that wrote it, or another queue.stream_prefix."
        )
    if before and found.epoch not in (before, found.adopted):
        raise _lost(server, before)
    memory.keep(server, found.epoch)
    return Epoch(found.epoch)


async def create_namespace(server: Server, memory: Memory) -> bool:
    """Make the namespace where there never was one; return whether it was. Raises StorageResetError after a loss."""
    before = memory.recall(server)
    if before and await read_identity(server) is None:
        raise _lost(server, before)
    verdict, _ = await _create(server)
    if verdict == "lost":
        raise _lost(server, before)
    await open_epoch(server, memory)
    return verdict == "made"


async def adopt(server: Server, memory: Memory) -> Identity:
    """Put in force what the server holds now, be it nothing, in place of what was lost; return its identity."""
    _, epoch = await _create(server, adopting=True)
    memory.keep(server, epoch)
    found = await read_identity(server)
    if found is None:
        raise StorageResetError
    return found


async def _create(server: Server, *, adopting: bool = False) -> tuple[str, str]:
    script = (files(__package__) / "scripts" / "create_namespace.lua").read_text("utf-8")
    words = (uuid4().hex, str(LAYOUT), "1" if adopting else "")
    verdict, epoch = await server.call("EVAL", script, 1, server.options.root, *words)
    return str(verdict), str(epoch)


async def _has_traces(server: Server) -> bool:
    root = server.options.root
    return bool(await server.call("EXISTS", *(f"{root}:{name}" for name in _TRACES), read=True))


def _lost(server: Server, before: str) -> StorageResetError:
    known = f"epoch {before[:8]}, which this directory remembers," if before else "its epoch"
    return StorageResetError(
        f"The Redis store {server.options.address.shown} lost its jobs, or is another one than before: {known} is not "
        "there. Restore its data, or give the jobs up with `headrace queue adopt`."
    )


class Memory:
    """The epochs that this machine's working directory has seen, by namespace, in a file that may be missing.

    Its directory is made only with `make`, so that a mere client leaves no files behind.
    """

    def __init__(self, path: Path | None = None, *, make: bool = False) -> None:
        self._path, self._make = path, make

    def recall(self, server: Server) -> str:
        """Return the epoch that was seen last, or nothing."""
        return self._read().get(_name(server), "")

    def keep(self, server: Server, epoch: str) -> None:
        """Remember an epoch. A file that cannot be written is no reason to fail."""
        known = self._read()
        if self._path is None or known.get(_name(server)) == epoch:
            return
        draft = self._path.with_name(f".{self._path.name}.{uuid4().hex[:8]}")
        with suppress(OSError):  # no such directory, or not ours to write
            if self._make:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps({**known, _name(server): epoch}, indent=1), encoding="utf-8")
            draft.replace(self._path)

    def _read(self) -> dict[str, str]:
        if self._path is None:
            return {}
        try:
            known = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}


def _name(server: Server) -> str:
    address = server.options.address
    return f"{address.shown}/{address.db} {server.options.root}"
