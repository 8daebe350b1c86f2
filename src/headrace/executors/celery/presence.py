"""Who is alive on both sides of a farm, as keys of the broker that expire: who sends jobs, and who runs them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from headrace.executors.celery.site import CelerySite
from headrace.model.farm import FarmWorker, known_facts

T = TypeVar("T")

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
    facts = known_facts(FarmWorker, json.loads(text))
    return FarmWorker(**{**facts, "queues": frozenset(facts["queues"]), "pids": frozenset(facts["pids"])})


def decode_sender(text: str) -> dict[str, int]:
    """Return how many jobs of each of its queues one who sends jobs has out. Raises as `decode_worker` does.

    >>> decode_sender('{"taken": {"llm": 2}}')
    {'llm': 2}
    """
    return {str(queue): int(count) for queue, count in json.loads(text)["taken"].items()}


@dataclass(frozen=True, slots=True)
class Seen:
    """Who was alive at one look."""

    workers: Mapping[str, FarmWorker]
    #: Those who send jobs, with what each has out of its queues.
    senders: Mapping[str, Mapping[str, int]]


def say_worker(pipe: Any, site: CelerySite, worker: FarmWorker) -> None:
    """Put on a pipeline, of either client, that a worker is alive."""
    _say(pipe, site, "worker", worker.id, encode_worker(worker))


def say_sender(pipe: Any, site: CelerySite, sender: str, taken: Mapping[str, int]) -> None:
    """Put on a pipeline that one who sends jobs is alive, and what it has out."""
    _say(pipe, site, "sender", sender, json.dumps({"taken": dict(taken)}))


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
    return Seen(_decoded(decode_worker, workers_said), _decoded(decode_sender, senders_said))


def _decoded(decode: Callable[[str], T], said: Mapping[str, str]) -> dict[str, T]:
    """Return what can be read: one who speaks another language is nobody's trouble but their own."""
    found = {}
    for one, text in said.items():
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
            found[one] = decode(text)
    return found


async def _said(client: Any, site: CelerySite, kind: str, ids: Collection[str]) -> dict[str, str]:
    ordered = sorted(ids)
    if not ordered:
        return {}
    texts = await client.mget([site.key(f"{kind}:{one}") for one in ordered])
    found = {one: text for one, text in zip(ordered, texts, strict=True) if text is not None}
    if gone := [one for one in ordered if one not in found]:
        await client.srem(site.key(f"{kind}s"), *gone)
    return found
