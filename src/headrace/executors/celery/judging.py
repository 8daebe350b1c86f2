"""What became of a call that has not ended: still on its way, lost on the way, or lost with the process that ran it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from headrace.model.farm import OVERDUE_SECONDS, Begun, FarmWorker

#: A worker of the farm that was looked for in vain for so long is gone. Beats that the broker lost are there again
#: sooner.
GONE_SECONDS = 5.0
#: When a message is sent again whose call was not begun, counted from the first time, and when the call is given up.
SEND_AGAIN_AT, LOST_AT = (2.0, 6.0, 14.0), 30.0
#: A worker names its processes as of now: one that was started a moment ago may not be among them.
FRESH_SECONDS = 1.0


class Verdict(Enum):
    """What is to be done about a call."""

    WAIT = auto()
    SEND_AGAIN = auto()
    #: Nobody has begun it for too long.
    GIVE_UP = auto()
    #: The worker of the farm that ran it is gone.
    WORKER_GONE = auto()
    #: The process that ran it died, and its worker lives.
    CRASHED = auto()
    #: It was begun, and is not over long after its farm should have seen to that.
    OVERDUE = auto()


@dataclass(slots=True)
class Roll:
    """The workers of a farm at the last look, by one clock of ours."""

    _seen: Mapping[str, FarmWorker] = field(default_factory=dict)
    #: When each queue was seen to be served last.
    _served: Mapping[str, float] = field(default_factory=dict)
    #: Since when one has looked again and again and got an answer; None: the broker does not answer.
    answers_since: float | None = None
    _looked_at: float = 0.0

    def note(self, workers: Mapping[str, FarmWorker], now: float) -> None:
        """Note who is alive."""
        if self.answers_since is None or now - self._looked_at >= GONE_SECONDS:
            # While nobody looked nobody was missed.
            self.answers_since = now
        queues = {queue for worker in workers.values() if not worker.closing for queue in worker.queues}
        self._seen, self._looked_at = workers, now
        self._served = {**self._served, **dict.fromkeys(queues, now)}

    def miss(self) -> None:
        """Note that the broker does not answer."""
        self.answers_since = None

    def worker(self, one: str) -> FarmWorker | None:
        """Return a worker that lives."""
        return self._seen.get(one)

    @property
    def workers(self) -> list[FarmWorker]:
        """Those that live; none while the broker does not answer, for then they get no messages."""
        return [] if self.answers_since is None else list(self._seen.values())

    def serves(self, queue: str, now: float) -> bool:
        """Whether a worker takes jobs of a queue, or may: one has not looked long enough to say that none does."""
        if self.answers_since is None:
            return True
        return now - max(self.answers_since, self._served.get(queue, 0.0)) < GONE_SECONDS


@dataclass(slots=True)
class Waiting:
    """A call that was sent, as far as its verdict needs it."""

    queue: str
    sent_at: float
    #: Seconds that it may take once it was begun.
    timeout: float
    sends: int = 1
    #: When it was first seen that it has begun.
    begun_at: float | None = None
    #: Since when the worker that began it was looked for in vain.
    missed_at: float | None = None

    def judge(self, begun: Begun | None, roll: Roll, now: float) -> Verdict:
        """Return what is to be done about it; what the roll says must be older than what `begun` says."""
        if begun is not None:
            return self._judge_begun(begun, roll, now)
        waited = now - self.sent_at
        if waited >= LOST_AT or not roll.serves(self.queue, now):
            return Verdict.GIVE_UP
        if self.sends <= len(SEND_AGAIN_AT) and waited >= SEND_AGAIN_AT[self.sends - 1]:
            self.sends += 1
            return Verdict.SEND_AGAIN
        return Verdict.WAIT

    def _judge_begun(self, begun: Begun, roll: Roll, now: float) -> Verdict:
        self.begun_at = now if self.begun_at is None else self.begun_at
        if now - self.begun_at >= self.timeout + OVERDUE_SECONDS:
            return Verdict.OVERDUE
        if roll.answers_since is None:
            self.missed_at = None
            return Verdict.WAIT
        worker = roll.worker(begun.worker)
        if worker is None:
            self.missed_at = max(roll.answers_since, now if self.missed_at is None else self.missed_at)
            return Verdict.WORKER_GONE if now - self.missed_at >= GONE_SECONDS else Verdict.WAIT
        self.missed_at = None
        if begun.pid in worker.pids or worker.at <= begun.at + FRESH_SECONDS:
            return Verdict.WAIT
        # One that is being stopped ends its processes: they have not died of what they ran.
        return Verdict.WORKER_GONE if worker.closing else Verdict.CRASHED
