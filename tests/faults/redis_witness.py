"""What the keys of a Redis store say to the checker, as rows like those of the tables of PostgreSQL.

Read by commands of the checker's own, not by the scripts of the store. A job that the keys have in two places at once
comes back twice, as it would from two tables.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from headrace.stores.redis.addresses import parse_address
from headrace.stores.redis.connection import Server, ServerOptions

FINAL = ("succeeded", "failed", "cancelled")
#: Fields of a final job that later jobs may set: the copy that stands for it.
_LATER = {"retried_by"}
#: Commands that are under way at once.
_TOGETHER = 500
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_redis(dsn: str) -> bool:
    """Whether an address is that of a Redis store."""
    return dsn.startswith(("redis", "unix"))


class _Keys:
    """Reads the keys of one namespace."""

    def __init__(self, server: Server, prefix: str) -> None:
        self._server, self._root = server, f"{{{prefix}}}:"

    async def ask(self, command: str, name: str, *words: str | int) -> Any:
        """Send a command on a key of the namespace."""
        return await self._server.call(command, self._root + name, *words, read=True)

    async def hash(self, name: str) -> dict[str, str]:
        """Return a hash."""
        pairs = await self.ask("HGETALL", name)
        return dict(zip(pairs[::2], pairs[1::2], strict=True))

    async def hashes(self, names: list[str]) -> list[dict[str, str]]:
        """Return hashes, many at a time."""
        rows: list[dict[str, str]] = []
        for start in range(0, len(names), _TOGETHER):
            rows += await asyncio.gather(*map(self.hash, names[start : start + _TOGETHER]))
        return rows

    async def members(self, name: str) -> list[str]:
        """Return what a sorted set or a set holds, or nothing."""
        kind = await self.ask("TYPE", name)
        if kind == "none":
            return []
        return list(await (self.ask("ZRANGE", name, 0, -1) if kind == "zset" else self.ask("SMEMBERS", name)))


@asynccontextmanager
async def _reading(dsn: str, prefix: str) -> AsyncIterator[_Keys]:
    server = Server(ServerOptions(parse_address(dsn), f"{{{prefix}}}", size=1))
    try:
        yield _Keys(server, prefix)
    finally:
        await server.close()


async def read_rows(dsn: str, prefix: str) -> dict[str, Any]:
    """Return the arguments of the checker's `Evidence`."""
    async with _reading(dsn, prefix) as keys:
        live, final = await _jobs(keys)
        batches = await keys.members("batches")
        of_batches = await keys.hashes([f"batch:{batch}" for batch in batches])
        steps = await keys.hashes([f"steps:{job}" for job, _ in [*live, *final]])
        return {
            "live": [_job_row(job, row) for job, row in live],
            "final": [_job_row(job, row) for job, row in final],
            "batches": [_batch_row(batch, row) for batch, row in zip(batches, of_batches, strict=True)],
            "sessions": await _sessions(keys),
            "steps": [
                {"job_id": UUID(job), "value": value}
                for (job, _), row in zip([*live, *final], steps, strict=True)
                for value in row.values()
            ],
            "answers": {
                name: json.loads(await keys.ask("GET", f"answer:{name}"))["answer"]["text"]
                for name in await keys.members("answers")
            },
            "digests": {UUID(job): _digest(row) for job, row in final},
        }


async def read_digests(dsn: str, prefix: str) -> dict[UUID, str]:
    """Return a digest of every final job."""
    async with _reading(dsn, prefix) as keys:
        return {UUID(job): _digest(row) for job, row in (await _jobs(keys))[1]}


async def read_leader(dsn: str, prefix: str) -> UUID | None:
    """Return who leads now."""
    async with _reading(dsn, prefix) as keys:
        leader = await keys.hash("leader")
        valid = leader and _instant(leader["expires_at"]) > datetime.now(UTC)
        return UUID(leader["session"]) if valid else None


async def count_running(dsn: str, prefix: str, pid: int) -> int:
    """Return how many jobs run under the sessions of a process."""
    async with _reading(dsn, prefix) as keys:
        mine = {row["id"].hex for row in await _sessions(keys) if row["pid"] == pid}
        holders = [holder for holder in await keys.members("holders") if holder.partition(":")[0] in mine]
        return sum([await _count(keys, holder) for holder in holders])


async def _count(keys: _Keys, holder: str) -> int:
    session, _, queue = holder.partition(":")
    return int(await keys.ask("SCARD", f"running:{queue}:{session}"))


async def read_connections(dsn: str) -> tuple[int, int]:
    """Return how many connections others have to the server; none of them can be inside a transaction."""
    server = Server(ServerOptions(parse_address(dsn), size=1))
    try:
        clients = await server.call("CLIENT", "LIST", "TYPE", "NORMAL", read=True)
        listeners = await server.call("CLIENT", "LIST", "TYPE", "PUBSUB", read=True)
        return len(f"{clients}{listeners}".strip().splitlines()) - 1, 0
    finally:
        await server.close()


Found = list[tuple[str, dict[str, str]]]


async def _jobs(keys: _Keys) -> list[Found]:
    """Return every place in which a job waits or runs, and every one in which it has ended, with its hash."""
    live: list[str] = []
    final: list[str] = []
    for queue in await keys.members("queues"):
        # In this order: a job that ends meanwhile is found where it was, and what has ended is read as it ended.
        known = await keys.members(f"jobs:{queue}")
        for place in [f"scheduled:{queue}", f"ready:{queue}", *await _running(keys, queue)]:
            live += await keys.members(place)
        for state in FINAL:
            final += await keys.members(f"ended:{state}:{queue}")
        # In a lane, or passed over by claims while their batch is cancelled; else in no place at all, which is no end.
        live += set(known) - set(live) - set(final)
    return [list(zip(ids, await keys.hashes([f"job:{job}" for job in ids]), strict=True)) for ids in (live, final)]


async def _running(keys: _Keys, queue: str) -> list[str]:
    pairs = [holder.partition(":") for holder in await keys.members("holders")]
    return [f"running:{queue}:{session}" for session, _, where in pairs if where == queue]


async def _sessions(keys: _Keys) -> list[dict[str, Any]]:
    rows = []
    for session in await keys.members("sessions"):
        facts, expires_at = await keys.hash(f"session:{session}"), await keys.ask("ZSCORE", "sessions", session)
        rows.append({"id": UUID(session), "pid": int(facts["pid"]), "expires_at": _instant(expires_at)})
    return rows


def _instant(micros: str) -> datetime:
    return _EPOCH + timedelta(microseconds=int(micros))


def _digest(row: dict[str, str]) -> str:
    kept = sorted((name, value) for name, value in row.items() if name not in _LATER)
    return hashlib.md5(repr(kept).encode()).hexdigest()


def _id(text: str | None) -> UUID | None:
    return UUID(text) if text else None


def _job_row(job: str, row: dict[str, str]) -> dict[str, Any]:
    """Return a job as a row; one whose hash is gone has nothing but its id."""
    return {
        "id": UUID(job),
        "task": row.get("task", ""),
        "state": row.get("state", "missing"),
        **{name: int(row.get(name, 0)) for name in ("attempt", "failures", "crashes")},
        "session": _id(row.get("session")),
        "batch_id": _id(row.get("batch")),
        "ordinal": int(row["ordinal"]) if "ordinal" in row else None,
        "retry_of": _id(row.get("retry_of")),
        "args": row.get("args", '{"args":[],"kwargs":{}}'),
        "result": row.get("result", "null"),
    }


def _batch_row(batch: str, row: dict[str, str]) -> dict[str, Any]:
    on_close = json.loads(row["on_close"]) if "on_close" in row else None
    spec = None if on_close is None else json.dumps(dict(zip(on_close[::2], on_close[1::2], strict=True)))
    total = int(row["total"]) if "total" in row else None
    return {"id": UUID(batch), "state": row["state"], "round": int(row["round"]), "total": total, "on_close": spec}
