"""`[details]`: what is promised of batches of details, and how many parts one process writes at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.model.durations import format_duration
from headrace.model.errors import ConfigError

MOST_FIRST, MOST_CONCURRENCY, MOST_WINDOW = 25, 1_000, 1_000
LONGEST = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class DetailSettings:
    """`[details]`: times and sizes of batches of generated items."""

    #: what is promised of 10 to 50 items: all are there so soon after the request
    deadline: timedelta = timedelta(seconds=5)
    #: what is promised of the first response
    first_response_deadline: timedelta = timedelta(seconds=2)
    #: items of the first response, 1 to 25, of requests that say nothing of it
    first_response: int = 10
    #: parts that each agent writes at once in one process
    agent_concurrency: int = 256
    #: share of the last batches, 0 to 1, that failed or came out partial, at which details go over to single-call mode
    #: by themselves (`headrace details mode normal` takes it back); 0: never
    single_call_at: float = 0.0
    #: how many batches, up to 1,000, are the last ones
    single_call_window: int = 20


def check_details(details: DetailSettings) -> None:
    """Raise ConfigError naming key, rule and value for what does not fit."""
    _bounded("deadline", details.deadline)
    _bounded("first_response_deadline", details.first_response_deadline)
    first = details.first_response_deadline
    rule = f"must not be above details.deadline, {format_duration(details.deadline)}"
    _require(first <= details.deadline, "first_response_deadline", rule, format_duration(first))
    count, most = details.first_response, details.agent_concurrency
    _require(1 <= count <= MOST_FIRST, "first_response", f"must be from 1 to {MOST_FIRST}", count)
    _require(1 <= most <= MOST_CONCURRENCY, "agent_concurrency", f"must be from 1 to {MOST_CONCURRENCY}", most)
    share, window = details.single_call_at, details.single_call_window
    _require(0 <= share <= 1, "single_call_at", "must be a share from 0 (never) to 1", share)
    _require(1 <= window <= MOST_WINDOW, "single_call_window", f"must be from 1 to {MOST_WINDOW}", window)


def _bounded(name: str, value: timedelta) -> None:
    rule = f"must be longer than zero and at most {format_duration(LONGEST)}"
    _require(timedelta() < value <= LONGEST, name, rule, format_duration(value))


def _require(holds: bool, name: str, rule: str, value: object) -> None:
    if not holds:
        raise ConfigError(f"details.{name} {rule}, got {value}")
