"""A farm: processes elsewhere that run handlers. What its workers say of themselves, and how much room they have."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

#: Names of steps that executors keep begin with this; no handler can give a step such a name.
RESERVED = "headrace:"


def begun_step(attempt: int) -> str:
    """Return the name of the step by which one process of a farm begins an attempt, and no other does.

    >>> begun_step(3), ended_step(3)
    ('headrace:begun:3', 'headrace:ended:3')
    """
    return f"{RESERVED}begun:{attempt}"


def ended_step(attempt: int) -> str:
    """Return the name of the step that holds how an attempt ended."""
    return f"{RESERVED}ended:{attempt}"


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

    @property
    def text(self) -> str:
        """It as a step is stored."""
        return json.dumps({"worker": self.worker, "pid": self.pid, "at": self.at, "sign": self.sign})

    @classmethod
    def parse(cls, text: str) -> Begun:
        """Return what a step says."""
        return cls(**json.loads(text))


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
    #: It is being stopped: what it has begun goes on, and it begins nothing more.
    closing: bool = False


def room(queue: str, workers: Iterable[FarmWorker], taken: Mapping[str, int], *, place: int = 0, of: int = 1) -> int:
    """Return how many more jobs of a queue the workers can start, for the one at `place` `of` those who send jobs.

    Slots of workers with the same queues are one heap, of which each sender has a share. What is taken lies first
    where fewest other queues could use it.

    >>> two = [FarmWorker(name, "host", frozenset({"llm", "cpu"}), 4, frozenset(), 0.0) for name in "ab"]
    >>> room("llm", two, {"llm": 3, "cpu": 2}), room("llm", two, {}, place=1, of=3), room("mail", two, {})
    (3, 3, 0)
    """
    heaps: Counter[frozenset[str]] = Counter()
    for worker in workers:
        heaps[worker.queues] += 0 if worker.closing else worker.slots
    left = {queues: slots // of + (place < slots % of) for queues, slots in heaps.items()}
    for name in sorted(taken, key=lambda name: (sum(name in queues for queues in left), name)):
        rest = taken[name]
        for queues in sorted((one for one in left if name in one), key=lambda one: (len(one), sorted(one))):
            used = min(rest, left[queues])
            left[queues] -= used
            rest -= used
    return sum(slots for queues, slots in left.items() if queue in queues)
