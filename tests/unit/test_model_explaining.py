"""Explanations as sentences: one for every reason, with the names and numbers a person needs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.admission import Explanation, WaitReason
from headrace.model.explaining import Scene, sentence, span
from headrace.model.job import JobError, JobState, JobView

NOW = datetime(2031, 1, 31, 14, 1, 5, tzinfo=UTC)
SECOND = timedelta(seconds=1)
JOB = JobView(
    id=UUID(int=1), task="render", queue="llm", state=JobState.READY, priority=5, attempt=0, failures=0, crashes=0,
    max_attempts=4, created_at=NOW, run_at=None, started_at=None, finished_at=None, session=None, args={}, result=None,
    error=None, batch_id=None, ordinal=None, retry_of=None, cancel_requested=False,
)  # fmt: skip
HOLDER = replace(JOB, id=UUID(int=2), state=JobState.SCHEDULED)
R = WaitReason


def told(
    reason: WaitReason,
    subject: str | None = None,
    *,
    until: float | None = None,
    holder: JobView | None = None,
    job: JobView = JOB,
    **facts: Any,
) -> str:
    """Return the sentence for a reason; `until` in seconds from now."""
    at = None if until is None else NOW + until * SECOND
    why = Explanation(job.id, job.state, reason, subject, at, facts)
    return str(sentence(Scene(job, why, NOW, holder, UTC)))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (told(R.SCHEDULED, until=120), "it waits for its time until 14:03:05 (in 2 m)"),
        (
            told(R.SCHEDULED, until=86_400, job=replace(JOB, failures=2)),
            "it waits for its retry after 2 failures until 2031-02-01 14:01:05 (in 1 d)",
        ),
        (
            told(R.SCHEDULED, until=-3),
            "its time came at 14:01:02 (3.0 s ago): the next sweep of a live worker makes it ready",
        ),
        (told(R.ORDER, ahead=12), "it is behind 12 jobs in queue llm"),
        (told(R.ORDER, ahead=1), "it is behind 1 job in queue llm"),
        (told(R.ORDER, ahead=1_000), "it is behind at least 1,000 jobs in queue llm"),
        (told(R.ORDER, ahead=0), "it is next in queue llm: a worker with a free slot takes it"),
        (told(R.ORDER, ahead=0, others=False), "it is next in queue llm: a worker with a free slot takes it"),
        (
            told(R.ORDER, ahead=0, others=True),
            "it is the first of those with its keys and limits in queue llm; jobs with other ones may start before it",
        ),
        (
            told(R.ORDER, ahead=12, others=True),
            "it is behind 12 jobs with its keys and limits in queue llm; jobs with other ones may start before it",
        ),
        (told(R.CAP, "task:render", cap=3, running=3), "cap task:render is full (3 of 3 running)"),
        (
            told(R.CAP, "queue:llm", cap=0, running=0),
            "cap queue:llm is 0: nothing under it starts (`headrace limits set-cap queue:llm` changes it)",
        ),
        (told(R.CAP, "user:7", cap=2, running=2), "key user:7 is full (2 of 2 running)"),
        (
            told(R.CAP, "user:7", cap=1, running=1, held_by=str(HOLDER.id), holder=HOLDER),
            f"key user:7 is held by job {HOLDER.id}, which waits for its next run",
        ),
        (
            told(R.CAP, "user:7", cap=1, running=1, held_by=str(HOLDER.id)),
            f"key user:7 is held by job {HOLDER.id}",
        ),
        (
            told(R.CAP, "user 7", cap=0, running=0, ahead=1),
            "the cap of key user 7 is 0: nothing under it starts (`headrace limits set-cap 'key:llm:user 7'` changes "
            "it); 1 job with the same keys and limits comes before it",
        ),
        (
            told(R.RATE, "openai", until=54, level=0.09, units=1.0, ahead=8),
            "rate limit openai has 0.09 of 1 unit and frees in 54 s; 8 jobs with the same keys and limits come before "
            "it",
        ),
        (
            told(R.RATE, "openai", until=1.2, level=0.4, units=1.0),
            "rate limit openai has 0.4 of 1 unit and frees in 1.2 s",
        ),
        (
            told(R.RATE, "openai", until=60, level=-5.0, units=20.0),
            "rate limit openai has 0 of 20 units and frees in 1 m",
        ),
        (
            told(R.RATE, "openai", until=30, level=9.0, units=1.0),
            "rate limit openai is closed until 14:01:35 (in 30 s)",
        ),
        (
            told(R.RATE, "openai", level=None, units=1.0),
            "rate limit openai is counted on a server that does not answer (`headrace doctor` says more)",
        ),
        (told(R.BREAKER, "openai", until=30, state="open"), "breaker openai is open until 14:01:35 (in 30 s)"),
        (
            told(R.BREAKER, "openai", state="half_open"),
            "breaker openai is half open: one job tries it now, the others wait for how that ends",
        ),
        (told(R.BREAKER, "openai", state="open"), "breaker openai is open: the next job that is admitted tries it"),
        (
            told(R.PAUSED, "llm", paused_reason="quota\nused up"),
            "queue llm is paused: quota used up (`headrace queue resume llm` lifts it)",
        ),
        (told(R.PAUSED, "llm", paused_reason=None), "queue llm is paused (`headrace queue resume llm` lifts it)"),
        (told(R.PARKED), "it is parked until it is cancelled"),
        (told(R.PARKED, until=120), "it is parked until 14:03:05 (in 2 m)"),
        (told(R.PARKED, "approval"), "it is parked: it waits for signal approval"),
        (told(R.PARKED, "approval", until=120), "it is parked: it waits for signal approval until 14:03:05 (in 2 m)"),
        (
            told(R.PARKED, "approval", until=-3),
            "its time came at 14:01:02 (3.0 s ago): the next sweep of a live worker makes it ready",
        ),
        (told(R.CANCELLING, str(UUID(int=9))), f"its batch {UUID(int=9)} is being cancelled"),
        (
            told(R.NO_WORKER, "llm", ahead=0),
            "no live worker serves queue llm (start one: `headrace worker MODULE:app --queue llm`)",
        ),
        (
            told(R.RUNNING, job=replace(JOB, state=JobState.RUNNING, attempt=2, started_at=NOW - 70 * SECOND)),
            "it is running since 13:59:55 (1 m 10 s ago), attempt 2",
        ),
        (
            told(R.RUNNING, job=replace(JOB, state=JobState.RUNNING, attempt=1, cancel_requested=True)),
            "it is running, attempt 1; its worker was asked to stop it",
        ),
        (
            told(R.FINAL, job=replace(JOB, state=JobState.SUCCEEDED, finished_at=NOW - 5 * SECOND)),
            "it succeeded at 14:01:00 (5.0 s ago)",
        ),
        (
            told(R.FINAL, job=replace(JOB, state=JobState.CANCELLED, finished_at=NOW)),
            "it was cancelled at 14:01:05 (0.0 s ago)",
        ),
        (
            told(
                R.FINAL,
                job=replace(JOB, state=JobState.FAILED, finished_at=NOW - SECOND, error=JobError("E", "no\nanswer")),
            ),
            "it failed at 14:01:04 (1.0 s ago): E: no answer",
        ),
    ],
)
def test_every_reason_has_its_sentence(said: str, expected: str) -> None:
    """A person reads what holds the job back, until when, and what to do."""
    assert said == expected


@given(
    st.sampled_from(WaitReason),
    st.none() | st.sampled_from(["task:a", "queue:b", "key"]),
    st.none() | st.floats(-1e6, 1e6),
    st.fixed_dictionaries({}, optional={"level": st.floats(-9, 9), "units": st.floats(1, 9), "ahead": st.integers(0)}),
)
def test_no_explanation_is_without_a_sentence(
    reason: WaitReason, subject: str | None, until: float | None, facts: dict[str, Any]
) -> None:
    """Whatever a store leaves out, there is one line to read."""
    said = told(reason, subject, until=until, **facts)
    assert said
    assert "\n" not in said


@given(st.timedeltas(min_value=timedelta(), max_value=timedelta(days=36_500)))
def test_a_span_is_as_long_as_it_says(duration: timedelta) -> None:
    """Two units never say more than the duration, and miss less than one of the smaller."""
    sizes = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
    words = span(duration).split()
    said = sum(float(number) * sizes[unit] for number, unit in zip(words[::2], words[1::2], strict=True))
    assert abs(duration.total_seconds() - said) < max(sizes[words[-1]], 3_600 if "d" in words else 1)
