"""What a seed stands for: the processes, the weather, the mishaps and the work of one run, drawn before it begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from headrace.testing.simulation.faults import FINE, Weather

#: A lease, and the times that depend on it, are shorter than in production; what matters is how they compare.
LEASE_SECONDS = 4.0
#: Faults and work stop after this long; then everything has to come to rest.
WORKING_SECONDS = 14.0
#: A clock may run this much faster or slower: the stop margin of a lease covers it (docs/explanation/leases.md).
DRIFT = 0.08
WRONG_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where workers run, one after another: a host, and how they are set up there."""

    host: str
    slots: int
    #: Of the queue whose jobs pass a gate.
    gated_slots: int
    batch_size: int
    poll_seconds: float
    #: Knows the tasks that only newer code has.
    new: bool
    #: Knows tasks with a cap; a worker that knows none claims along with its acks.
    capped: bool
    #: Rate of its clock, what its monotonic clock began with, and how wrong its wall clock is.
    rate: float
    offset: float
    wrong: float


@dataclass(frozen=True, slots=True)
class Mishap:
    """Something that happens to a place: its worker crashes, freezes, is cut off for `seconds`, or is stopped."""

    at: float
    kind: str
    place: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Errand:
    """One piece of work of a submitter or operator: what, when, and its details."""

    at: float
    who: int
    kind: str
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything a run is made of, besides the order of its callbacks."""

    seed: int
    fifo: bool
    weather: Weather
    places: tuple[Place, ...]
    mishaps: tuple[Mishap, ...]
    errands: tuple[Errand, ...]
    #: History is removed after so many seconds; None keeps it.
    keep_seconds: float | None
    #: Share of lone children that crash.
    child_crashes: float


def draw(seed: int) -> Scenario:
    """Return the scenario of a seed."""
    chance = Random(seed)  # noqa: S311 - a simulation, no secrets
    calm = chance.random() < 0.2
    weather = FINE if calm else _weather(chance)
    places = tuple(_place(chance) for _ in range(chance.choice((1, 2, 2, 3))))
    # Shorter than a repeated call may come late, history is kept only where no call goes wrong.
    sure = not weather.faults and not weather.outages
    return Scenario(
        seed=seed,
        fifo=chance.random() < 0.3,
        weather=weather,
        places=places,
        mishaps=() if calm and chance.random() < 0.5 else tuple(_mishaps(chance, len(places))),
        errands=tuple(sorted(_errands(chance), key=lambda errand: errand.at)),
        keep_seconds=5.0 if sure and chance.random() < 0.4 else None,
        child_crashes=chance.choice((0.0, 0.4, 0.9)),
    )


def _place(chance: Random) -> Place:
    slots = chance.choice((1, 2, 4))
    return Place(
        host=chance.choice("ab"), slots=slots, gated_slots=chance.choice((1, 3, 6)), batch_size=chance.choice((1, 100)),
        poll_seconds=chance.choice((0.5, 1.0, 2.0)), new=chance.random() < 0.7, capped=chance.random() < 0.6,
        rate=chance.choice((1.0, 1 - DRIFT, 1 - DRIFT, 1 + DRIFT)), offset=chance.choice((0.0, 1e3, -1e3)),
        wrong=chance.choice((0.0, WRONG_SECONDS, -WRONG_SECONDS)),
    )  # fmt: skip


def _weather(chance: Random) -> Weather:
    outages = []
    if chance.random() < 0.25:
        begin = chance.uniform(1, WORKING_SECONDS - 2)
        outages.append((begin, begin + chance.choice((0.5, 2.0, 5.0))))
    return Weather(
        faults=chance.choice((0.0, 0.02, 0.08, 0.2)),
        journey=chance.choice((0.001, 0.005, 0.04)),
        outages=tuple(outages),
        lost_hints=chance.choice((0.0, 0.3, 1.0)),
    )


def _mishaps(chance: Random, places: int) -> list[Mishap]:
    kinds = ("crash", "crash", "freeze", "freeze", "cut", "cut", "stop")
    return sorted(
        (
            Mishap(
                at=chance.uniform(0.5, WORKING_SECONDS - 1), kind=chance.choice(kinds), place=chance.randrange(places),
                seconds=chance.choice((0.3, 1.0, LEASE_SECONDS, LEASE_SECONDS + 2, LEASE_SECONDS + 2)),
            )
            for _ in range(chance.choice((0, 1, 2, 3, 4)))
        ),
        key=lambda mishap: mishap.at,
    )  # fmt: skip


#: (kind, how often, seconds) of a handler; see `handlers.act`.
PLANS: tuple[Callable[[Random], list[Any]], ...] = (
    lambda chance: ["quick", 0, 0],
    lambda chance: ["quick", 0, 0],
    lambda chance: ["slow", 0, chance.choice((0.1, 0.5, 1.5))],
    lambda chance: ["slow", 0, chance.choice((0.1, 0.5, 1.5))],
    lambda chance: ["raise", chance.choice((1, 2, 9)), chance.choice((0, 0.1))],
    lambda chance: ["retry", chance.choice((1, 9)), 0],
    lambda chance: ["snooze", chance.choice((1, 3)), 0],
    lambda chance: ["fail", 9, 0],
    lambda chance: ["cancel", 9, 0],
    lambda chance: ["hang", chance.choice((1, 9)), 0],
    lambda chance: ["steps", 2, chance.choice((0, 0.2))],
    lambda chance: ["stubborn", 0, 1.0],
)

SINGLE_TASKS = ("work", "work", "endless", "endless", "endless", "narrow", "single", "once", "rare", "aside")
#: Jobs behind gates, by what they have to share.
GATED_KINDS = (
    ("narrow", "single", "plain"), ("narrow", "aside", "aside", "metered"), ("metered", "dear"), ("guarded", "plain"),
    ("brisk", "guarded"), ("shared", "shared-b"), ("shared", "shared-b", "shared-c", "plain"),
    ("ordered",), ("ordered", "ordered-y"), ("ordered", "shared", "narrow"),
)  # fmt: skip
CLEAN_PLANS = PLANS[:4]
UNSURE_PLANS = PLANS[2:10]


def draw_plan(chance: Random, task: str) -> list[Any]:
    """Return what a job of a task does."""
    # What runs at most once, or without a time limit, does nothing that needs another attempt or a limit.
    match task:
        case "once":
            return chance.choice(CLEAN_PLANS)(chance)
        case "endless":
            return ["slow", 0, chance.choice((0.5, 2 * LEASE_SECONDS, 2 * LEASE_SECONDS))]
        case _:
            return chance.choice(PLANS)(chance)


def _errands(chance: Random) -> list[Errand]:
    kinds = (
        "jobs", "jobs", "jobs", "twins", "scatter", "stream", "burst", "pause", "cancel", "forge", "gated", "gated",
        "limit",
    )  # fmt: skip
    errands = []
    for _ in range(chance.randint(3, 8)):
        at, kind = chance.uniform(0, WORKING_SECONDS * 0.6), chance.choice(kinds)
        errands.append(Errand(at, chance.randrange(2), kind, DETAILS[kind](chance)))
    return errands


def _jobs(chance: Random) -> dict[str, Any]:
    tasks = [chance.choice(SINGLE_TASKS) for _ in range(chance.randint(1, 4))]
    delays = [chance.choice((None, None, 0.7, 3.0)) for _ in tasks]
    plans = [draw_plan(chance, task) for task in tasks]
    after = chance.choice(("", "cancel", "retry", "wait"))
    return {"tasks": tasks, "plans": plans, "delays": delays, "after": after, "pause": chance.choice((0.0, 0.5, 2.0))}


def _burst(chance: Random) -> dict[str, Any]:
    task = chance.choice(("narrow", "single", "work"))
    tasks = [task] * chance.randint(3, 8)
    plans = [chance.choice(CLEAN_PLANS)(chance) for _ in tasks]
    return {"tasks": tasks, "plans": plans, "delays": [None] * len(tasks), "after": "", "pause": 0.0}


def _gated(chance: Random) -> dict[str, Any]:
    kinds = chance.choice(GATED_KINDS)
    tasks = [chance.choice(kinds) for _ in range(chance.choice((3, 6, 6, 12)))]
    plans = [(chance.choice(CLEAN_PLANS) if chance.random() < 0.6 else chance.choice(PLANS))(chance) for _ in tasks]
    return {"tasks": tasks, "plans": plans, "delays": [None] * len(tasks), "after": "", "pause": 0.0}


#: What may be changed, to what, and the jobs that notice.
LIMITS = (
    ("cap", ("task:narrow", 0), ("narrow", "aside")), ("cap", ("task:narrow", 1), ("narrow", "aside", "aside")),
    ("cap", ("queue:gated", 2), ("plain", "ordered")), ("weight", ("a", 3.0), ("shared", "shared-b")),
    ("breaker", "guard", ("guarded",)), ("fail", "guard", ("guarded",)), ("fail", "switch", ("brisk",)),
    ("rate", 0.5, ("metered", "aside")), ("rate", 20.0, ("metered", "dear")),
)  # fmt: skip


def _limit(chance: Random) -> dict[str, Any]:
    what, value, kinds = chance.choice(LIMITS)
    tasks = [chance.choice(kinds) for _ in range(chance.choice((2, 5)))]
    # A probe that says nothing, or too late, is what a breaker has to cope with.
    kept = UNSURE_PLANS if what in ("breaker", "fail") else CLEAN_PLANS
    plans = [chance.choice(kept)(chance) for _ in tasks]
    return {"what": what, "value": value, "seconds": chance.choice((0.5, 3.0)), "tasks": tasks, "plans": plans}


def _twins(chance: Random) -> dict[str, Any]:
    bodies = [chance.choice(("x", "x", "y")) for _ in range(chance.randint(2, 3))]
    return {"bodies": bodies, "key": chance.choice(("red", "blue")), "gap": chance.choice((0.0, 0.0, 0.01, 1.0))}


def _batch(chance: Random) -> dict[str, Any]:
    task = chance.choice(("work", "work", "narrow", "rare", "shared", "ordered"))
    return {
        "task": task,
        "plans": [draw_plan(chance, task) for _ in range(chance.choice((0, 1, 2, 3, 5, 8)))],
        "max_failed": chance.choice((None, None, 0, 1)),
        "on_close": chance.random() < 0.6,
        "key": chance.choice((None, "green")),
        "pause": chance.choice((0.0, 0.3, 1.5)),
        "after": chance.choice(("", "", "cancel", "retry", "extend")),
        #: The one who streams dies, or falls silent, before the end.
        "breaks": chance.choice(("", "", "dies", "silent")),
    }


DETAILS: dict[str, Callable[[Random], dict[str, Any]]] = {
    "jobs": _jobs,
    "burst": _burst,
    "gated": _gated,
    "limit": _limit,
    "twins": _twins,
    "scatter": _batch,
    "stream": _batch,
    "pause": lambda chance: {"queue": chance.choice(("main", "side", "gated")), "seconds": chance.choice((0.5, 3.0))},
    "cancel": lambda chance: {"count": chance.randint(1, 3)},
    "forge": lambda chance: {"count": chance.randint(1, 4), "leader": chance.random() < 0.3},
}
