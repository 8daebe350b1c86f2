"""From what Ray raises to what it says of an attempt."""

from __future__ import annotations

from enum import Enum, auto

from ray import exceptions


class Fate(Enum):
    """What became of a call that gave no answer."""

    #: The process that ran it died, and its node lives.
    CRASHED = auto()
    #: Its node, its driver, or what it returned is gone; or Ray could not run it, or has cancelled it.
    LOST = auto()
    #: No process can be made for it, or none can read the call: code or environment of the nodes do not fit.
    UNFIT = auto()


#: The first that fits counts: an error of a task is also of the class of its cause.
_FATES: tuple[tuple[type[BaseException], Fate, str], ...] = (
    (exceptions.TaskCancelledError, Fate.LOST, "was cancelled in Ray"),
    (exceptions.OutOfMemoryError, Fate.CRASHED, "its process was ended by Ray, as its node ran out of memory"),
    (exceptions.WorkerCrashedError, Fate.CRASHED, "its Ray worker process died; it may have run out of memory"),
    (exceptions.NodeDiedError, Fate.LOST, "its Ray node is gone"),
    (exceptions.LocalRayletDiedError, Fate.LOST, "the Ray node of its worker is gone"),
    (exceptions.OwnerDiedError, Fate.LOST, "the Ray driver that sent it is gone"),
    (exceptions.ObjectLostError, Fate.LOST, "what it returned is lost with a Ray node"),
    (exceptions.ObjectFetchTimedOutError, Fate.LOST, "what it returned cannot be fetched from its Ray node"),
    (exceptions.RuntimeEnvSetupError, Fate.UNFIT, "Ray cannot set its environment up"),
    (exceptions.TaskUnschedulableError, Fate.LOST, "Ray cannot place it"),
    (exceptions.RayTaskError, Fate.UNFIT, "a Ray node cannot run calls of this app"),
    (exceptions.RayError, Fate.LOST, "Ray failed"),
)


def fate_of(error: BaseException) -> tuple[Fate, str]:
    """Return what an error of Ray says of a call, and why in words.

    >>> fate_of(exceptions.WorkerCrashedError())[0], fate_of(exceptions.OwnerDiedError("00", None, ""))[0]
    (<Fate.CRASHED: 1>, <Fate.LOST: 2>)
    """
    for kind, fate, why in _FATES:
        if isinstance(error, kind):
            return fate, why if fate is not Fate.UNFIT else f"{why}: {_first_words(error)}"
    return Fate.LOST, f"Ray failed: {type(error).__name__}"


def _first_words(error: BaseException) -> str:
    """Return what such an error says at last: of a trace of another process that is its point."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__
