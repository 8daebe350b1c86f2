"""What a Redis server must be like before jobs are trusted to it; else it is refused, with the setting and the fix."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from importlib.resources import files

from headrace.model.errors import ConfigError, NotAllowedError, StoreUnavailableError
from headrace.stores.redis.addresses import Address, Kind
from headrace.stores.redis.connection import Server
from headrace.stores.redis.faults import RefusedError

LOG = logging.getLogger("headrace.redis")

SENTINEL = "sentinel"
_SETTINGS = ("appendonly", "appendfsync", "maxmemory-policy")


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the server says of itself."""

    name: str
    version: str
    #: "master", "slave" or "sentinel", and whose
    role: str
    primary: str
    cluster: bool
    aof: bool
    #: "always", "everysec" or "no"; empty where the server does not tell
    fsync: str
    eviction: str
    #: bytes; 0 is no limit
    maxmemory: int
    used_memory: int
    replicas: int


async def read_facts(server: Server) -> ServerFacts:
    """Ask the server what it is. `CONFIG GET` may be forbidden, as with managed servers; `INFO` may not."""
    info = _parse(await server.call("INFO", read=True))
    config = await _read_config(server)
    return ServerFacts(
        name=info.get("server_name", "redis"),
        version=info.get("valkey_version") or info.get("redis_version", "unknown"),
        role=SENTINEL if SENTINEL in (info.get("redis_mode"), info.get("server_mode")) else info.get("role", ""),
        primary=f"{info.get('master_host', '')}:{info.get('master_port', '')}",
        cluster=info.get("cluster_enabled") == "1",
        aof=config.get("appendonly", "yes" if info.get("aof_enabled") == "1" else "no") == "yes",
        fsync=config.get("appendfsync", ""),
        eviction=config.get("maxmemory-policy") or info.get("maxmemory_policy", ""),
        maxmemory=int(info.get("maxmemory", 0)),
        used_memory=int(info.get("used_memory", 0)),
        replicas=int(info.get("connected_slaves", 0)),
    )


async def _read_config(server: Server) -> dict[str, str]:
    try:
        answer = await server.call("CONFIG", "GET", *_SETTINGS, read=True)
    except (NotAllowedError, RefusedError):
        return {}
    return dict(zip(answer[::2], answer[1::2], strict=True))


def _parse(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


async def check_server(server: Server, *, unsafe: bool = False) -> ServerFacts:
    """Refuse a server that can lose accepted jobs; with `unsafe` one without an append-only file is only warned of.

    Raises ConfigError naming setting and fix, StoreUnavailableError while sentinels name a server that is none.
    """
    facts = await read_facts(server)
    check_role(facts, server.options.address)
    if facts.eviction != "noeviction":
        raise ConfigError(
            f"queue.url names a Redis server that removes keys when it is full (maxmemory-policy {facts.eviction})"
            ", jobs among them. Set `maxmemory-policy noeviction` in its configuration, or use another server"
        )
    if not facts.aof and not unsafe:
        raise ConfigError(
            "queue.url names a Redis server without an append-only file (appendonly no): a restart loses every job. "
            "Set `appendonly yes` and `appendfsync everysec` or `always` in its configuration; only where losing "
            "every job is acceptable set queue.unsafe_no_persistence = true"
        )
    if not facts.aof:
        LOG.warning("the Redis server has no append-only file: a restart loses every job (queue.unsafe_no_persistence)")
    await _probe(server, facts)
    return facts


def check_role(facts: ServerFacts, address: Address) -> None:
    """Refuse a server that takes no writes, or that is named as another kind than it is.

    Raises ConfigError naming setting and fix, StoreUnavailableError while sentinels name a server that is none.
    """
    if facts.role == SENTINEL:
        raise ConfigError(
            f"{address.setting} names a sentinel as if it were a server. Write redis+sentinel://HOST:26379/SERVICE"
        )
    if facts.role == "slave" and address.kind is Kind.SERVER:
        raise ConfigError(
            f"{address.setting} names a replica, which takes no writes. Name its primary ({facts.primary}), or let "
            "sentinels name it: redis+sentinel://HOST:26379/SERVICE"
        )
    if facts.role == "slave":
        raise StoreUnavailableError("The server that is named as primary is a replica at the moment. Try again.")
    if facts.cluster and address.kind is not Kind.CLUSTER:
        raise ConfigError(
            f"{address.setting} names one node of a cluster as if it were a server of its own. Write redis+cluster://HOST:PORT"
        )


async def _probe(server: Server, facts: ServerFacts) -> None:
    script = files(__package__).joinpath("scripts", "probe_server.lua").read_text("utf-8")
    try:
        await server.call("EVAL", script, 1, server.options.root, read=True)
    except RefusedError as error:
        raise ConfigError(
            f"queue.url names a server that is too old ({facts.name} {facts.version}): Redis 7 or Valkey 7.2 and later"
            f" have what Headrace needs ({error.answer.partition(chr(10))[0][:120]})"
        ) from None
