"""Why a job is not running, in one sentence for people."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from headrace.model.admission import Explanation, WaitReason
from headrace.model.job import JobState, JobView
from headrace.model.limits import key_cap
from headrace.model.sentence import Sentence, counted, say

#: Jobs ahead are counted to here.
MANY_AHEAD = 1_000
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_HOLDS = {
    JobState.RUNNING: say("which is running"),
    JobState.SCHEDULED: say("which waits for its next run"),
    JobState.PARKED: say("which is parked"),
    JobState.READY: say("which is ready to run again"),
    JobState.SUCCEEDED: say("which is succeeded"),
    JobState.FAILED: say("which is failed"),
    JobState.CANCELLED: say("which is cancelled"),
}
_ENDED = {
    JobState.SUCCEEDED: say("succeeded"),
    JobState.FAILED: say("failed"),
    JobState.CANCELLED: say("was cancelled"),
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

    def at(self, instant: datetime) -> Sentence:
        """Return an instant as people name it, with how far away it is."""
        local, today = instant.astimezone(self.zone), self.now.astimezone(self.zone)
        shown = f"{local:%H:%M:%S}" if local.date() == today.date() else f"{local:%Y-%m-%d %H:%M:%S}"
        if instant > self.now:
            return say("{time} (in {span})", time=shown, span=span(instant - self.now))
        return say("{time} ({span} ago)", time=shown, span=span(self.now - instant))


def sentence(scene: Scene) -> Sentence:
    """Return the one sentence that says why a job is not running, or what became of it.

    >>> from datetime import UTC
    >>> from uuid import UUID
    >>> now = datetime(2031, 1, 31, 14, tzinfo=UTC)
    >>> job = JobView(
    ...     id=UUID(int=7), task="render", queue="llm", state=JobState.READY, priority=5, attempt=0, failures=0,
    ...     crashes=0, max_attempts=4, created_at=now, run_at=None, started_at=None, finished_at=None, session=None,
    ...     args={}, result=None, error=None, batch_id=None, ordinal=None, retry_of=None, cancel_requested=False)
    >>> why = Explanation(job.id, job.state, WaitReason.CAP, "task:render", facts={"cap": 3, "running": 3})
    >>> str(sentence(Scene(job, why, now)))
    'cap task:render is full (3 of 3 running)'
    """
    said = _SENTENCES[scene.why.reason](scene)
    ahead = scene.why.facts.get("ahead") or 0
    if not ahead or scene.why.reason not in (WaitReason.RATE, WaitReason.CAP, WaitReason.BREAKER):
        return said
    # The first of those that wait for what their lane waits for has it next.
    return say(
        "{why}; {jobs} with the same keys and limits comes before it"
        if ahead == 1
        else "{why}; {jobs} with the same keys and limits come before it",
        why=said,
        jobs=_jobs_ahead(ahead),
    )


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


def _final(scene: Scene) -> Sentence:
    job = scene.job
    when = "" if job.finished_at is None else say(" at {at}", at=scene.at(job.finished_at))
    if job.state is JobState.FAILED and job.error is not None:
        kind, message = job.error.kind, _one_line(job.error.message)
        return say("it failed{when}: {kind}: {message}", when=when, kind=kind, message=message)
    return say("it {ended}{when}", ended=_ENDED.get(job.state, job.state), when=when)


def _running(scene: Scene) -> Sentence:
    job = scene.job
    since = "" if job.started_at is None else say(" since {at}", at=scene.at(job.started_at))
    asked = say("; its worker was asked to stop it") if job.cancel_requested else ""
    return say("it is running{since}, attempt {attempt}{asked}", since=since, attempt=job.attempt, asked=asked)


def _scheduled(scene: Scene) -> Sentence:
    job, until = scene.job, scene.why.until
    if until is not None and until <= scene.now:
        return _due(scene, until)
    failures = counted(job.failures, "{count} failure", "{count} failures")
    what = say("for its retry after {failures}", failures=failures) if job.failures else say("for its time")
    if until is None:
        return say("it waits {what}", what=what)
    return say("it waits {what} until {at}", what=what, at=scene.at(until))


def _parked(scene: Scene) -> Sentence:
    key, until = scene.why.subject, scene.why.until
    if until is not None and until <= scene.now:
        return _due(scene, until)
    if key is not None:
        time = "" if until is None else say(" until {at}", at=scene.at(until))
        return say("it is parked: it waits for signal {key}{time}", key=key, time=time)
    if until is None:
        return say("it is parked until it is cancelled")
    return say("it is parked until {at}", at=scene.at(until))


def _due(scene: Scene, until: datetime) -> Sentence:
    return say("its time came at {at}: the next sweep of a live worker makes it ready", at=scene.at(until))


def _paused(scene: Scene) -> Sentence:
    queue = scene.why.subject or scene.job.queue
    return say(
        "queue {queue} is paused{reason} (`headrace queue resume {queue}` lifts it)", queue=queue, reason=_reason(scene)
    )


def _batch_paused(scene: Scene) -> Sentence:
    batch = scene.why.subject or scene.job.batch_id
    return say(
        "its batch is paused{reason} (`headrace batch resume {batch}` lifts it)", batch=batch, reason=_reason(scene)
    )


def _reason(scene: Scene) -> Sentence | str:
    why = scene.why.facts.get("paused_reason")
    return say(": {reason}", reason=_one_line(why)) if why else ""


def _cancelling(scene: Scene) -> Sentence:
    return say("its batch {batch} is being cancelled", batch=scene.why.subject or scene.job.batch_id)


def _breaker(scene: Scene) -> Sentence:
    name, until = scene.why.subject, scene.why.until
    if until is not None and until > scene.now:
        return say("breaker {name} is open until {at}", name=name, at=scene.at(until))
    if scene.why.facts.get("state") == "half_open":
        return say("breaker {name} is half open: one job tries it now, the others wait for how that ends", name=name)
    return say("breaker {name} is open: the next job that is admitted tries it", name=name)


def _rate(scene: Scene) -> Sentence:
    name, until, facts = scene.why.subject, scene.why.until, scene.why.facts
    frees = "" if until is None else say(" and frees in {span}", span=span(until - scene.now))
    level, units = facts.get("level", 0.0), facts.get("units")
    if level is None:
        return say(
            "rate limit {name} is counted on a server that does not answer (`headrace doctor` says more)", name=name
        )
    if units is None:
        return say("rate limit {name} has too few units{frees}", name=name, frees=frees)
    if level >= units:
        time = "" if until is None else say(" until {at}", at=scene.at(until))
        return say("rate limit {name} is closed{time}", name=name, time=time)
    left, most = f"{max(level, 0.0):.3g}", f"{units:g}"
    return say(
        "rate limit {name} has {left} of {most} unit{frees}"
        if units == 1
        else "rate limit {name} has {left} of {most} units{frees}",
        name=name, left=left, most=most, frees=frees,
    )  # fmt: skip


def _cap(scene: Scene) -> Sentence:
    name, facts = scene.why.subject or "", scene.why.facts
    cap, running = facts.get("cap"), facts.get("running")
    of_key = not name.startswith(("task:", "queue:"))
    if cap == 0:
        knob = shlex.quote(key_cap(scene.job.queue, name) if of_key else name)
        what = say("the cap of key {name}", name=name) if of_key else say("cap {name}", name=name)
        return say(
            "{what} is 0: nothing under it starts (`headrace limits set-cap {knob}` changes it)", what=what, knob=knob
        )
    if facts.get("held_by"):
        does = "" if scene.holder is None else say(", {does}", does=_HOLDS[scene.holder.state])
        return say("key {name} is held by job {job}{does}", name=name, job=facts["held_by"], does=does)
    what = say("key {name}", name=name) if of_key else say("cap {name}", name=name)
    return say("{what} is full ({running} of {cap} running)", what=what, running=running, cap=cap)


def _no_worker(scene: Scene) -> Sentence:
    queue = scene.why.subject or scene.job.queue
    return say(
        "no live worker serves queue {queue} (start one: `headrace worker MODULE:app --queue {queue}`)", queue=queue
    )


def _order(scene: Scene) -> Sentence:
    ahead, queue = scene.why.facts.get("ahead") or 0, scene.job.queue
    if scene.why.facts.get("others"):
        place = say("behind {jobs}", jobs=_jobs_ahead(ahead)) if ahead else say("the first of those")
        return say(
            "it is {place} with its keys and limits in queue {queue}; jobs with other ones may start before it",
            place=place, queue=queue,
        )  # fmt: skip
    if not ahead:
        return say("it is next in queue {queue}: a worker with a free slot takes it", queue=queue)
    return say("it is behind {jobs} in queue {queue}", jobs=_jobs_ahead(ahead), queue=queue)


_SENTENCES: dict[WaitReason, Callable[[Scene], Sentence]] = {
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


def _jobs_ahead(number: int) -> Sentence:
    jobs = counted(number, "{count} job", "{count} jobs")
    return say("at least {jobs}", jobs=jobs) if number >= MANY_AHEAD else jobs


def _one_line(text: object) -> str:
    """Return a text of any length as one short line."""
    line = " ".join(str(text).split())
    return line if len(line) <= 200 else line[:199] + "…"
