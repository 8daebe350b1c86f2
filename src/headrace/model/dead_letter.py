"""Dead letters: jobs that failed and were not run again, one by one and grouped by the fingerprint of their error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from uuid import UUID

from headrace.model.errors import InvalidInputError
from headrace.model.fingerprint import fingerprint
from headrace.model.job import JobError

#: Example jobs kept of each group.
EXAMPLES = 5


@dataclass(frozen=True)
class DeadLetter:
    """A failed job that was not retried. Its error comes without the trace: `Inspect.get_job` has it."""

    id: UUID
    task: str
    queue: str
    finished_at: datetime
    error: JobError
    batch_id: UUID | None = None
    #: The run whose node failed, and the node: `headrace run rerun` runs those again.
    run_id: UUID | None = None
    node: str | None = None

    @cached_property
    def fingerprint(self) -> str:
        """The name it shares with all dead letters whose errors differ only in their data."""
        return fingerprint(self.task, self.error.kind, self.error.message)


#: A place in the order of dead letters, newest first: when a job failed, and its id.
FailedAt = tuple[datetime, UUID]


@dataclass(frozen=True, slots=True)
class DeadLetterPage:
    """A part of the dead letters, newest first. It may hold few, or none, though more follow."""

    letters: tuple[DeadLetter, ...]
    #: failed jobs that were looked at, those retried before included
    looked_at: int
    #: where the next page begins; None: there is none
    before: FailedAt | None


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Which dead letters are meant; all that is given must hold. `within`: failed no longer ago than this."""

    queue: str | None = None
    task: str | None = None
    kind: str | None = None
    fingerprint: str | None = None
    within: timedelta | None = None

    def __post_init__(self) -> None:
        # The beginning of all: a variable that is not set must not run everything again.
        if self.fingerprint == "":
            raise InvalidInputError("fingerprint", "must be that of a group, or its first characters", "")

    def matches(self, letter: DeadLetter) -> bool:
        """Whether a letter is meant, as far as stores do not choose themselves: by kind and fingerprint."""
        if self.kind is not None and letter.error.kind != self.kind:
            return False
        return self.fingerprint is None or letter.fingerprint.startswith(self.fingerprint)


@dataclass(slots=True)
class DeadLetterGroup:
    """Dead letters of one fingerprint. `message` and `examples` are of the newest ones."""

    fingerprint: str
    task: str
    kind: str
    message: str
    count: int
    first_at: datetime
    last_at: datetime
    queues: dict[str, int] = field(default_factory=dict)
    examples: list[UUID] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DeadLettersFound:
    """Dead letters that a filter meant, the largest groups first.

    `looked_at` failed jobs were looked at, the newest ones; `complete` is False when there may be older ones.
    """

    groups: tuple[DeadLetterGroup, ...]
    looked_at: int
    complete: bool
    #: the jobs, newest first
    jobs: tuple[UUID, ...]

    @property
    def count(self) -> int:
        """How many dead letters were found."""
        return len(self.jobs)


class Grouping:
    """Gathers letters, newest first, into groups; it keeps a few facts per group and forgets the letters."""

    def __init__(self) -> None:
        self._groups: dict[str, DeadLetterGroup] = {}

    def add(self, letters: Iterable[DeadLetter]) -> None:
        """Add letters that are older than those added before."""
        for letter in letters:
            group = self._groups.get(letter.fingerprint)
            if group is None:
                group = self._groups[letter.fingerprint] = _new_group(letter)
            group.count += 1
            group.first_at = letter.finished_at
            group.queues[letter.queue] = group.queues.get(letter.queue, 0) + 1
            if len(group.examples) < EXAMPLES:
                group.examples.append(letter.id)

    @property
    def groups(self) -> tuple[DeadLetterGroup, ...]:
        """The groups, the largest first, and of equal ones the one that failed last."""
        return tuple(sorted(self._groups.values(), key=lambda group: (group.count, group.last_at), reverse=True))


def _new_group(letter: DeadLetter) -> DeadLetterGroup:
    return DeadLetterGroup(
        fingerprint=letter.fingerprint,
        task=letter.task,
        kind=letter.error.kind,
        message=letter.error.message,
        count=0,
        first_at=letter.finished_at,
        last_at=letter.finished_at,
    )
