"""Who is alive on both sides of a farm, as keys of the broker that expire: who sends jobs, and who runs them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headrace.executors.celery.site import CelerySite
from headrace.model.farm import FarmWorker

#: How often each says that it is alive, and how long that holds.
BEAT_SECONDS, LIFE_SECONDS = 2.0, 5


def encode_worker(worker: FarmWorker) -> str:
    """Return what a worker of the farm says of itself.

    >>> worker = FarmWorker("w", "host", frozenset({"llm"}), 4, frozenset({7}), 1.5)
    >>> decode_worker(encode_worker(worker)) == worker
    True
    """
    return json.dumps(asdict(worker) | {"queues": sorted(worker.queues), "pids": sorted(worker.pids)})


def decode_worker(text: str) -> FarmWorker:
    """Return what a worker said. Raises ValueError, TypeError or KeyError for what none of ours says."""
    facts = json.loads(text)
    return FarmWorker(**{**facts, "queues": frozenset(facts["queues"]), "pids": frozenset(facts["pids"])})


@dataclass(frozen=True, slots=True)
class Seen:
    """Who was alive at one look."""

    workers: Mapping[str, FarmWorker]
    #: Those who send jobs, with their queues.
    senders: Mapping[str, Collection[str]]


def say_worker(pipe: Any, site: CelerySite, worker: FarmWorker) -> None:
    """Put on a pipeline, of either client, that a worker is alive."""
    _say(pipe, site, "worker", worker.id, encode_worker(worker))


def say_sender(pipe: Any, site: CelerySite, sender: str, queues: Collection[str]) -> None:
    """Put on a pipeline that one who sends jobs is alive."""
    _say(pipe, site, "sender", sender, json.dumps(sorted(queues)))


def _say(pipe: Any, site: CelerySite, kind: str, one: str, text: str) -> None:
    pipe.sadd(site.key(f"{kind}s"), one)
    pipe.set(site.key(f"{kind}:{one}"), text, ex=LIFE_SECONDS)


def forget(pipe: Any, site: CelerySite, kind: str, one: str) -> None:
    """Put on a pipeline that one of them is gone."""
    pipe.srem(site.key(f"{kind}s"), one)
    pipe.delete(site.key(f"{kind}:{one}"))


async def look(client: Any, site: CelerySite) -> Seen:
    """Return who is alive; those who are not are forgotten, and come back with their next beat if they were slow."""
    async with client.pipeline(transaction=False) as pipe:
        pipe.smembers(site.key("workers"))
        pipe.smembers(site.key("senders"))
        workers, senders = await pipe.execute()
    workers_said = await _said(client, site, "worker", workers)
    senders_said = await _said(client, site, "sender", senders)
    return Seen(
        {one: decode_worker(text) for one, text in workers_said.items()},
        {one: json.loads(text) for one, text in senders_said.items()},
    )


async def _said(client: Any, site: CelerySite, kind: str, ids: Collection[str]) -> dict[str, str]:
    ordered = sorted(ids)
    if not ordered:
        return {}
    texts = await client.mget([site.key(f"{kind}:{one}") for one in ordered])
    found = {one: text for one, text in zip(ordered, texts, strict=True) if text is not None}
    if gone := [one for one in ordered if one not in found]:
        await client.srem(site.key(f"{kind}s"), *gone)
    return found
