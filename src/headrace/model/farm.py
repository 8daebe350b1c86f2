"""A farm: processes elsewhere that run handlers. What its workers say of themselves, and how much room they have."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any
from uuid import UUID

#: Names of steps that executors keep begin with this; no handler can give a step such a name.
RESERVED = "headrace:"

#: How long after its timeout an attempt may be over, from when it was begun, by the farm's own rules: what it needs is
#: fetched, a handler may heed its end late, what it returned is stored, and how it ended. A farm that has not ended it
#: then never will.
OVERDUE_SECONDS = 180.0


#: The steps of an attempt that a farm keeps, each an object that names its attempt: by which process it was begun, and
#: by no other; that an answer of a model was stored in it; how it ended.
BEGUN, PAID, ENDED = RESERVED + "begun", RESERVED + "paid", RESERVED + "ended"


def of_attempt(text: str | None, attempt: int) -> dict[str, Any] | None:
    """Return what a farm kept of an attempt; None when it kept nothing, or that of an earlier one.

    >>> of_attempt('{"attempt": 2}', 2), of_attempt('{"attempt": 1}', 2), of_attempt(None, 2)
    ({'attempt': 2}, None, None)
    """
    kept: dict[str, Any] | None = None if text is None else json.loads(text)
    return kept if kept is not None and kept["attempt"] == attempt else None


def own_steps(steps: Iterable[str]) -> int:
    """Return how many of a job's steps are its own.

    >>> own_steps(["pay", "headrace:begun"])
    1
    """
    return sum(not name.startswith(RESERVED) for name in steps)


def known_facts(kind: type[Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that a dataclass has a field for; a newer version may say more."""
    return {field.name: facts[field.name] for field in fields(kind) if field.name in facts}


@dataclass(frozen=True, slots=True)
class Fence:
    """What a message to a farm says, and nothing else: which attempt of which job, of which session."""

    job: UUID
    attempt: int
    session: UUID

    @property
    def word(self) -> str:
        """It as one word of a hint.

        >>> Fence.parse(Fence(UUID(int=1), 2, UUID(int=3)).word).attempt
        2
        """
        return f"{self.job}/{self.attempt}/{self.session}"

    @classmethod
    def parse(cls, word: str) -> Fence:
        """Return the fence of a hint. Raises ValueError."""
        job, attempt, session = word.split("/")
        return cls(UUID(job), int(attempt), UUID(session))


@dataclass(frozen=True, slots=True)
class Begun:
    """By which process a call was begun; `sign` is of no other call and no other process."""

    worker: str
    pid: int
    #: In seconds by the clock of its host.
    at: float
    sign: str
    attempt: int
    #: How many steps of its own the job had then: after a crash more of them are progress.
    steps: int = 0

    @property
    def text(self) -> str:
        """It as a step is stored."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Begun:
        """Return what a step says.

        >>> Begun.of({"worker": "w", "pid": 1, "at": 2.5, "sign": "s", "attempt": 1, "of": "a newer version"}).sign
        's'
        """
        return cls(**known_facts(cls, kept))

    def progressed(self, steps: Mapping[str, str]) -> bool:
        """Whether the steps that a job has show that the attempt stored something."""
        return own_steps(steps) > self.steps or of_attempt(steps.get(PAID), self.attempt) is not None


def stored_sign(text: str) -> str:
    """Return the sign of who has begun a call.

    >>> stored_sign(Begun("w", 1, 2.5, "s", 1).text)
    's'
    """
    return str(json.loads(text)["sign"])


@dataclass(frozen=True, slots=True)
class FarmWorker:
    """One worker of a farm, as it said last."""

    id: str
    host: str
    queues: frozenset[str]
    #: Jobs it runs at once, over all its queues.
    slots: int
    #: Its processes.
    pids: frozenset[int]
    #: When it said so, in seconds by the clock of its host.
    at: float
    #: It begins nothing more, as it is being stopped, or for now, as it has lost its broker: what it has begun goes on.
    closing: bool = False


#: Slots that are left over when all who send jobs have equal shares go round among them, each time for so long ...
TURN_SECONDS = 20
#: ... of which nobody takes them at first: by then all know what the one before still holds.
QUIET_SECONDS = 5


def room(queue: str, workers: Iterable[FarmWorker], senders: Mapping[str, Mapping[str, int]], me: str) -> int:
    """Return how many more jobs of a queue the workers can start for `me`; `senders`: what each has out, by queue.

    Slots of workers with the same queues are one heap, of which all have equal shares who send jobs of any of its
    queues. Who has more than that, since there were fewer of them, leaves so much less to the others.

    >>> two = [FarmWorker(name, "host", frozenset({"llm", "cpu"}), 4, frozenset(), 0.0) for name in "ab"]
    >>> room("llm", two, {"x": {"llm": 3, "cpu": 2}}, "x"), room("mail", two, {"x": {"mail": 0}}, "x")
    (3, 0)
    >>> room("llm", two, {"x": {"llm": 8}, "y": {"cpu": 0}}, "x"), room("cpu", two, {"x": {"llm": 8}, "y": {}}, "y")
    (0, 0)
    """
    heaps: Counter[frozenset[str]] = Counter()
    now = 0
    for worker in workers:
        heaps[worker.queues] += 0 if worker.closing else worker.slots
        now = max(now, int(worker.at))
    mine = {queues: _share(slots, [one for one in sorted(senders) if queues & senders[one].keys()], me, now)
            for queues, slots in heaps.items()}  # fmt: skip
    all_taken: Counter[str] = Counter()
    for taken in senders.values():
        all_taken.update(taken)
    left, free = _less(mine, senders.get(me, {})), _less(heaps, all_taken)
    return sum(min(left[queues], free[queues]) for queues in heaps if queue in queues)


def _share(slots: int, rivals: list[str], me: str, now: int) -> int:
    """Return how many slots of a heap are for one of those who send jobs to it."""
    if me not in rivals:
        return 0
    each, over = divmod(slots, len(rivals))
    turn, into = divmod(now, TURN_SECONDS)
    place = (rivals.index(me) + turn) % len(rivals)
    return each + (place < over and into >= QUIET_SECONDS)


def _less(heaps: Mapping[frozenset[str], int], taken: Mapping[str, int]) -> dict[frozenset[str], int]:
    """Return what is left of heaps. What is taken lies first where fewest other queues could use it."""
    left = dict(heaps)
    for name in sorted(taken, key=lambda name: (sum(name in queues for queues in left), name)):
        rest = taken[name]
        for queues in sorted((one for one in left if name in one), key=lambda one: (len(one), sorted(one))):
            used = min(rest, left[queues])
            left[queues] -= used
            rest -= used
    return left
