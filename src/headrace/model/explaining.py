"""Why a job is not running, in one sentence for people."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from headrace.model.admission import Explanation, WaitReason
from headrace.model.job import JobState, JobView
from headrace.model.limits import key_cap

#: Jobs ahead are counted to here.
MANY_AHEAD = 1_000
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_HOLDS = {
    JobState.RUNNING: "which is running",
    JobState.SCHEDULED: "which waits for its next run",
    JobState.PARKED: "which is parked",
    JobState.READY: "which is ready to run again",
}


@dataclass(frozen=True, slots=True)
class Scene:
    """What a sentence is about: the job, why it waits, the store's time, and the job that keeps its key, if one does.

    `zone` is that of the instants named; None: the local one.
    """

    job: JobView
    why: Explanation
    now: datetime
    holder: JobView | None = None
    zone: tzinfo | None = None

    def at(self, instant: datetime) -> str:
        """Return an instant as people name it, with how far away it is."""
        local, today = instant.astimezone(self.zone), self.now.astimezone(self.zone)
        shown = f"{local:%H:%M:%S}" if local.date() == today.date() else f"{local:%Y-%m-%d %H:%M:%S}"
        if instant > self.now:
            return f"{shown} (in {span(instant - self.now)})"
        return f"{shown} ({span(self.now - instant)} ago)"


def sentence(scene: Scene) -> str:
    """Return the one sentence that says why a job is not running, or what became of it.

    >>> from datetime import UTC
    >>> from uuid import UUID
    >>> now = datetime(2031, 1, 31, 14, tzinfo=UTC)
    >>> job = JobView(
    ...     id=UUID(int=7), task="render", queue="llm", state=JobState.READY, priority=5, attempt=0, failures=0,
    ...     crashes=0, max_attempts=4, created_at=now, run_at=None, started_at=None, finished_at=None, session=None,
    ...     args={}, result=None, error=None, batch_id=None, ordinal=None, retry_of=None, cancel_requested=False)
    >>> why = Explanation(job.id, job.state, WaitReason.CAP, "task:render", facts={"cap": 3, "running": 3})
    >>> sentence(Scene(job, why, now))
    'cap task:render is full (3 of 3 running)'
    """
    return _SENTENCES[scene.why.reason](scene) + _before(scene)


def _before(scene: Scene) -> str:
    """Return how many come before a job that waits for what its lane waits for: the first of them has it next."""
    ahead = scene.why.facts.get("ahead") or 0
    if not ahead or scene.why.reason not in (WaitReason.RATE, WaitReason.CAP, WaitReason.BREAKER):
        return ""
    least, come = "at least " if ahead >= MANY_AHEAD else "", "comes" if ahead == 1 else "come"
    return f"; {least}{_count(ahead, 'job')} with the same keys and limits {come} before it"


def span(duration: timedelta) -> str:
    """Return a duration in its largest two units.

    >>> span(timedelta(seconds=125)), span(timedelta(seconds=1.234)), span(timedelta(hours=2))
    ('2 m 5 s', '1.2 s', '2 h')
    """
    seconds = max(duration.total_seconds(), 0.0)
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole, parts = int(seconds), list[tuple[int, str]]()
    for size, unit in _UNITS:
        count, whole = divmod(whole, size)
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count)


def _final(scene: Scene) -> str:
    job = scene.job
    when = "" if job.finished_at is None else f" at {scene.at(job.finished_at)}"
    if job.state is JobState.FAILED and job.error is not None:
        return f"it failed{when}: {job.error.kind}: {_one_line(job.error.message)}"
    ended = "was cancelled" if job.state is JobState.CANCELLED else job.state.value
    return f"it {ended}{when}"


def _running(scene: Scene) -> str:
    job = scene.job
    since = "" if job.started_at is None else f" since {scene.at(job.started_at)}"
    asked = "; its worker was asked to stop it" if job.cancel_requested else ""
    return f"it is running{since}, attempt {job.attempt}{asked}"


def _scheduled(scene: Scene) -> str:
    job, until = scene.job, scene.why.until
    what = f"for its retry after {_count(job.failures, 'failure')}" if job.failures else "for its time"
    if until is None:
        return f"it waits {what}"
    if until <= scene.now:
        return f"its time came at {scene.at(until)}: the next sweep of a live worker makes it ready"
    return f"it waits {what} until {scene.at(until)}"


def _parked(scene: Scene) -> str:
    key, until = scene.why.subject, scene.why.until
    if until is not None and until <= scene.now:
        return f"its time came at {scene.at(until)}: the next sweep of a live worker makes it ready"
    time = "" if until is None else f" until {scene.at(until)}"
    if key is not None:
        return f"it is parked: it waits for signal {key}{time}"
    return f"it is parked{time or ' until it is cancelled'}"


def _paused(scene: Scene) -> str:
    why, queue = scene.why.facts.get("paused_reason"), scene.why.subject or scene.job.queue
    reason = f": {_one_line(why)}" if why else ""
    return f"queue {queue} is paused{reason} (`headrace queue resume {queue}` lifts it)"


def _batch_paused(scene: Scene) -> str:
    why, batch = scene.why.facts.get("paused_reason"), scene.why.subject or scene.job.batch_id
    reason = f": {_one_line(why)}" if why else ""
    return f"its batch is paused{reason} (`headrace batch resume {batch}` lifts it)"


def _cancelling(scene: Scene) -> str:
    return f"its batch {scene.why.subject or scene.job.batch_id} is being cancelled"


def _breaker(scene: Scene) -> str:
    name, until = scene.why.subject, scene.why.until
    if until is not None and until > scene.now:
        return f"breaker {name} is open until {scene.at(until)}"
    if scene.why.facts.get("state") == "half_open":
        return f"breaker {name} is half open: one job tries it now, the others wait for how that ends"
    return f"breaker {name} is open: the next job that is admitted tries it"


def _rate(scene: Scene) -> str:
    name, until, facts = scene.why.subject, scene.why.until, scene.why.facts
    frees = "" if until is None else f" and frees in {span(until - scene.now)}"
    level, units = facts.get("level", 0.0), facts.get("units")
    if level is None:
        return f"rate limit {name} is counted on a server that does not answer (`headrace doctor` says more)"
    if units is None:
        return f"rate limit {name} has too few units{frees}"
    if level >= units:
        return f"rate limit {name} is closed" + ("" if until is None else f" until {scene.at(until)}")
    return f"rate limit {name} has {max(level, 0.0):.3g} of {units:g} {'unit' if units == 1 else 'units'}{frees}"


def _cap(scene: Scene) -> str:
    name, facts = scene.why.subject or "", scene.why.facts
    cap, running = facts.get("cap"), facts.get("running")
    of_key = not name.startswith(("task:", "queue:"))
    if cap == 0:
        knob = shlex.quote(key_cap(scene.job.queue, name) if of_key else name)
        what = f"the cap of key {name}" if of_key else f"cap {name}"
        return f"{what} is 0: nothing under it starts (`headrace limits set-cap {knob}` changes it)"
    if facts.get("held_by"):
        does = "" if scene.holder is None else ", " + _HOLDS.get(scene.holder.state, f"which is {scene.holder.state}")
        return f"key {name} is held by job {facts['held_by']}{does}"
    return f"{'key' if of_key else 'cap'} {name} is full ({running} of {cap} running)"


def _no_worker(scene: Scene) -> str:
    queue = scene.why.subject or scene.job.queue
    return f"no live worker serves queue {queue} (start one: `headrace worker MODULE:app --queue {queue}`)"


def _order(scene: Scene) -> str:
    ahead, queue = scene.why.facts.get("ahead") or 0, scene.job.queue
    least = "at least " if ahead >= MANY_AHEAD else ""
    if scene.why.facts.get("others"):
        place = f"behind {least}{_count(ahead, 'job')}" if ahead else "the first of those"
        return f"it is {place} with its keys and limits in queue {queue}; jobs with other ones may start before it"
    if not ahead:
        return f"it is next in queue {queue}: a worker with a free slot takes it"
    return f"it is behind {least}{_count(ahead, 'job')} in queue {queue}"


_SENTENCES: dict[WaitReason, Callable[[Scene], str]] = {
    WaitReason.FINAL: _final,
    WaitReason.RUNNING: _running,
    WaitReason.BATCH_PAUSED: _batch_paused,
    WaitReason.SCHEDULED: _scheduled,
    WaitReason.PARKED: _parked,
    WaitReason.PAUSED: _paused,
    WaitReason.CANCELLING: _cancelling,
    WaitReason.BREAKER: _breaker,
    WaitReason.RATE: _rate,
    WaitReason.CAP: _cap,
    WaitReason.NO_WORKER: _no_worker,
    WaitReason.ORDER: _order,
}


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _one_line(text: object) -> str:
    """Return a text of any length as one short line."""
    line = " ".join(str(text).split())
    return line if len(line) <= 200 else line[:199] + "…"
