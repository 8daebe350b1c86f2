"""What became of a call that has not ended: still on its way, lost on the way, or lost with the process that ran it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from headrace.model.farm import Begun, FarmWorker

#: A worker of the farm that was not seen for so long is gone. Beats that the broker lost are there again sooner.
GONE_SECONDS = 5.0
#: When a message is sent again whose call was not begun, counted from the first time, and when the call is given up:
#: sooner where its attempt would be over, as one that was never begun must not be charged with a timeout.
SEND_AGAIN_AT, LOST_AT, BEFORE_TIMEOUT = (2.0, 6.0, 14.0), 30.0, 1.0
#: A worker names its processes as of now: one that was started a moment ago may not be among them.
FRESH_SECONDS = 1.0


class Verdict(Enum):
    """What is to be done about a call."""

    WAIT = auto()
    SEND_AGAIN = auto()
    #: Nobody has begun it, and nobody will.
    NEVER_BEGUN = auto()
    #: The worker of the farm that ran it is gone.
    WORKER_GONE = auto()
    #: The process that ran it died, and its worker lives.
    CRASHED = auto()


@dataclass(slots=True)
class Roll:
    """The workers of a farm and when each was seen last, by one clock of ours."""

    _seen: dict[str, tuple[FarmWorker, float]] = field(default_factory=dict)
    #: All that were ever seen: one that is not among them may have come a moment ago.
    _known: set[str] = field(default_factory=set)
    #: Since when the broker answers; None: it does not.
    answers_since: float | None = None

    def note(self, workers: dict[str, FarmWorker], now: float) -> None:
        """Note who is alive."""
        if self.answers_since is None:
            self.answers_since = now
            # While nobody could be seen nobody was missed.
            self._seen = {one: (worker, now) for one, (worker, _) in self._seen.items()}
        self._known |= workers.keys()
        self._seen |= {one: (worker, now) for one, worker in workers.items()}
        self._seen = {one: seen for one, seen in self._seen.items() if now - seen[1] < GONE_SECONDS}

    def miss(self) -> None:
        """Note that the broker does not answer."""
        self.answers_since = None

    def worker(self, one: str) -> FarmWorker | None:
        """Return a worker that lives."""
        seen = self._seen.get(one)
        return None if seen is None else seen[0]

    def knows(self, one: str) -> bool:
        """Whether a worker was ever seen."""
        return one in self._known

    @property
    def workers(self) -> list[FarmWorker]:
        """Those that live; none while the broker does not answer, for then they get no messages."""
        return [] if self.answers_since is None else [worker for worker, _ in self._seen.values()]

    def serves(self, queue: str, now: float) -> bool:
        """Whether a worker takes jobs of a queue, or may: one has not looked long enough to say that none does."""
        if self.answers_since is None or now - self.answers_since < GONE_SECONDS:
            return True
        return any(queue in worker.queues and not worker.closing for worker in self.workers)


@dataclass(slots=True)
class Waiting:
    """A call that was sent, as far as its verdict needs it."""

    queue: str
    sent_at: float
    #: Seconds that its worker waits for it.
    patience: float = LOST_AT + BEFORE_TIMEOUT
    sends: int = 1
    #: Since when the worker that began it was looked for in vain.
    missed_at: float | None = None

    def judge(self, begun: Begun | None, roll: Roll, now: float) -> Verdict:
        """Return what is to be done about it."""
        if begun is not None:
            return self._judge_begun(begun, roll, now)
        waited = now - self.sent_at
        if waited >= min(LOST_AT, self.patience - BEFORE_TIMEOUT) or not roll.serves(self.queue, now):
            return Verdict.NEVER_BEGUN
        if self.sends <= len(SEND_AGAIN_AT) and waited >= SEND_AGAIN_AT[self.sends - 1]:
            self.sends += 1
            return Verdict.SEND_AGAIN
        return Verdict.WAIT

    def _judge_begun(self, begun: Begun, roll: Roll, now: float) -> Verdict:
        if roll.answers_since is None:
            return Verdict.WAIT
        worker = roll.worker(begun.worker)
        if worker is None:
            self.missed_at = now if self.missed_at is None else self.missed_at
            gone = roll.knows(begun.worker) or now - self.missed_at >= GONE_SECONDS
            return Verdict.WORKER_GONE if gone else Verdict.WAIT
        self.missed_at = None
        dead = begun.pid not in worker.pids and worker.at > begun.at + FRESH_SECONDS
        return Verdict.CRASHED if dead else Verdict.WAIT
