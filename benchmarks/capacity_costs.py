"""What a job costs, as `capacity.py` measured it, by how many jobs a call takes; the pieces of the simulation."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

FIGURES = ("server_us", "wal_bytes", "commits")


@dataclass(slots=True)
class Load:
    """What some work asks of a server: processor, log, commits. Addable, and times a number.

    Never changed; not frozen, as millions are made.
    """

    server_us: float = 0.0
    wal_bytes: float = 0.0
    commits: float = 0.0
    #: of the one core of a Redis server
    redis_us: float = 0.0

    def __add__(self, other: Load) -> Load:
        return Load(
            self.server_us + other.server_us, self.wal_bytes + other.wal_bytes, self.commits + other.commits,
            self.redis_us + other.redis_us,
        )  # fmt: skip

    def __mul__(self, times: float) -> Load:
        return Load(self.server_us * times, self.wal_bytes * times, self.commits * times, self.redis_us * times)

    def scaled(self, speed: float) -> Load:
        """Return it with another processor time."""
        return replace(self, server_us=self.server_us * speed)

    def all(self) -> tuple[float, ...]:
        """Return the figures in order."""
        return self.server_us, self.wal_bytes, self.commits, self.redis_us


@dataclass(frozen=True, slots=True)
class Curve:
    """Costs a job by the size of a call. Between the sizes measured they follow 1/size: a part a call, a part a job.

    >>> Curve(((1, 100.0), (10, 19.0), (100, 11.0))).at(10), Curve(((1, 100.0), (10, 19.0))).at(2)
    (19.0, 55.0)
    """

    points: tuple[tuple[float, float], ...]

    def at(self, size: float) -> float:
        """Return the costs a job in a call of `size`; beyond what was measured those at its end."""
        place = bisect_left(self.points, (size, float("-inf")))
        if place == 0 or place == len(self.points):
            return self.points[min(place, len(self.points) - 1)][1]
        (small, dear), (large, cheap) = self.points[place - 1 : place + 1]
        share = (1 / size - 1 / large) / (1 / small - 1 / large)
        return cheap + share * (dear - cheap)


@dataclass(frozen=True, slots=True)
class Work:
    """The costs of one verb: a curve for each figure, and what each byte of the arguments adds."""

    curves: Mapping[str, Curve]
    per_byte: Load = field(default_factory=Load)
    #: what is the same for every job
    extra: Load = field(default_factory=Load)

    def at(self, size: float, payload: float = 0.0) -> Load:
        """Return what a job costs in a call of `size`, with so many bytes of arguments and result."""
        job = Load(**{name: curve.at(size) for name, curve in self.curves.items()})
        return job + self.per_byte * payload + self.extra

    def scaled(self, speed: float) -> Work:
        """Return it with another processor time."""
        points = self.curves["server_us"].points
        curves = {**self.curves, "server_us": Curve(tuple((size, us * speed) for size, us in points))}
        return replace(self, curves=curves, per_byte=self.per_byte.scaled(speed))


@dataclass(frozen=True, slots=True)
class JobCosts:
    """All of it."""

    enqueue: Work
    #: claim and end with a backlog: always one exchange
    exchanges: Work
    #: the same without one: calls of their own where jobs come one by one, with the hints between, else an exchange
    work: Work
    prune: Load
    model_call: Load
    #: processor of a worker process by the jobs of an exchange
    worker_us: Curve
    #: jobs that an exchange takes with a backlog, where slots are many
    exchange: float
    #: what the server uses beside the statements (checkpoints, vacuum, hints), as a factor
    background: float
    #: what one worker with nothing to do asks a second
    idle_worker: Load
    #: bytes on disk of a job that waits and of one that ended: without arguments, and what each of their bytes adds
    waiting_bytes: tuple[float, float]
    ended_bytes: tuple[float, float]

    def scaled(self, speed: float) -> JobCosts:
        """Return them on a machine that takes `speed` times the processor time for everything."""
        worker = Curve(tuple((size, us * speed) for size, us in self.worker_us.points))
        return replace(
            self, enqueue=self.enqueue.scaled(speed), exchanges=self.exchanges.scaled(speed),
            work=self.work.scaled(speed), prune=self.prune.scaled(speed),
            model_call=self.model_call.scaled(speed), idle_worker=self.idle_worker.scaled(speed), worker_us=worker,
        )  # fmt: skip

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> JobCosts:
        """Return the costs of what `capacity.py --json` wrote."""
        verbs = {(row["verb"], row["size"], row["payload"]): _least(row) for row in report["verbs"]}
        whole = {name: whole_costs(arm) for name, arm in report["whole"].items()}
        exchange, enqueue = _work(verbs, "exchange"), _work(verbs, "enqueue")
        calls = _load(verbs["claim", 1, 0]) + _load(verbs["end", 1, 0])
        hints = max(whole["one by one"]["commits"] - enqueue.at(1).commits - calls.commits, 0.0)
        alone = calls + Load(commits=hints)
        work = Work(
            {
                name: Curve(((1, getattr(alone, name)), *curve.points[1:]))
                for name, curve in exchange.curves.items()
            },
            exchange.per_byte,
        )  # fmt: skip
        wide, idle = whole["drain, 400 slots"], whole["nothing, a second"]
        return cls(
            enqueue=enqueue,
            exchanges=exchange,
            work=work,
            prune=_load(verbs["prune", 1_000, 0]),
            model_call=_load(verbs["model call", 10, 0]),
            worker_us=_worker(whole),
            exchange=1 / wide["commits"],
            background=max(wide["server_us"] / exchange.at(1 / wide["commits"]).server_us, 1.0),
            idle_worker=Load(idle["server_us"], idle["wal_bytes"], idle["commits"]),
            waiting_bytes=_stored(report["storage"], "waiting"),
            ended_bytes=_stored(report["storage"], "ended"),
        )


def whole_costs(arm: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the figures of whole jobs: medians, of processor time the least. Others on the machine only add to it."""
    return {name: values[1] if name.endswith("_us") else values[0] for name, values in arm.items()}


def alone_costs(whole: Mapping[str, Mapping[str, float]]) -> Load:
    """Return what a job that travels alone costs its server in all, without what a worker with nothing to do costs."""
    lone, idle = whole["one by one"], whole["nothing, a second"]
    return Load(*(lone[name] - idle[name] / lone["rate"] for name in FIGURES))


def _least(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**row, **{name: least for name, (least, _) in row["spread"].items()}}


def _load(row: Mapping[str, Any]) -> Load:
    return Load(*(row[name] for name in FIGURES))


def _work(verbs: Mapping[tuple[str, int, int], Mapping[str, Any]], verb: str) -> Work:
    sizes = sorted(size for name, size, payload in verbs if name == verb and not payload)
    large = next(key for key in verbs if key[0] == verb and key[2])
    more, plain = verbs[large], verbs[verb, large[1], 0]
    per_byte = Load(*(max(more[name] - plain[name], 0.0) / large[2] for name in FIGURES[:2]))
    curves = {name: Curve(tuple((size, verbs[verb, size, 0][name]) for size in sizes)) for name in FIGURES}
    return Work(curves, per_byte)


def _worker(whole: Mapping[str, Mapping[str, float]]) -> Curve:
    """Return the worker's processor by the jobs of an exchange: alone, with 10 slots, with 400."""
    lone, idle = whole["one by one"], whole["nothing, a second"]
    alone = lone["worker_us"] - idle["worker_us"] / lone["rate"]
    drains = [whole[name] for name in ("drain, 10 slots", "drain, 400 slots")]
    return Curve(((1, alone), *((1 / arm["commits"], arm["worker_us"]) for arm in drains)))


def _stored(storage: list[Mapping[str, float]], word: str) -> tuple[float, float]:
    plain, large = [row[f"{word}_heap"] + row[f"{word}_indexes"] for row in storage]
    return plain, (large - plain) / (storage[1]["payload"] - storage[0]["payload"])
