"""The errors of Headrace. One base; a class's docstring is its default message and says what to do next.

HeadraceError
├── ConfigError                 the settings, the task or a value given to us is wrong
├── InvalidInputError           a value breaks a documented rule (field, rule, value)
│   ├── InvalidNameError
│   └── PayloadTooLargeError
├── ConflictError               the same key with another body
├── KeyHeldError                another open transaction holds the key
├── NotFoundError               no such job, batch, queue or task
├── QueueFullError              as many jobs wait as the queue may hold (transient)
├── QueueClosedError            the queue is being drained
├── DrainStoppedError           the queue was opened while it was being drained
│   └── QueuePausedError        the queue is paused, so that a drain would never end
├── StoreUnavailableError       the store cannot be reached (transient)
│   ├── NotAllowedError         the store refuses this user
│   └── StorageResetError       the store lost its data, or another one is in its place
├── StoreVersionError           the store's schema is not ours
├── FenceLostError              this attempt no longer owns its job
├── BreakerOpenError            the job was failed without running: its circuit breaker is open
├── BudgetUsedUpError           a budget has no room for a call of a model, and the call is not to wait
├── LimitTimeoutError           a rate limit lets nothing more pass in time (transient)
├── JobFailedError              the awaited job ended without a result
│   └── JobCancelledError
├── RunFailedError              the awaited run ended without a result
│   └── RunCancelledError
├── WorkflowNotActiveError      starts of this workflow are switched off
├── SignalTimeoutError          the signal did not come in time
├── HandleExpiredError          what a paused piece of work waited for did not come in time
├── HandleCancelledError        a paused piece of work is not to go on
├── BusUnavailableError         the message bus cannot be reached (transient)
├── BrokerUnavailableError      a Celery farm's broker, or a Ray cluster, cannot be reached (transient)
├── BlobStoreError              the storage of large values cannot answer (transient), or lost one
├── ResultTimeoutError          the awaited job did not end in time
└── ProviderError               see model/provider_errors.py
"""

from __future__ import annotations

import datetime
import inspect


class HeadraceError(Exception):
    """Something in Headrace failed."""

    #: Whether trying the same thing again later can help; retry policies read this, never the text.
    transient: bool = False
    #: A stable word for machines: `--json` errors, HTTP problems and job rows carry it.
    code: str = "error"

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.cleandoc(type(self).__doc__ or type(self).__name__))


class ConfigError(HeadraceError):
    """The configuration is wrong. Correct the named key in headrace.toml or the environment and start again."""

    code = "config"


class InvalidInputError(HeadraceError):
    """A value breaks a documented rule. Correct the named field and send it again."""

    code = "invalid_input"

    def __init__(self, field: str, rule: str, value: object = None) -> None:
        super().__init__(f"{field} {rule}, got {_shown(value)}")
        self.field, self.rule, self.value = field, rule, value


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # nested too deeply, a number of too many digits, or a broken __repr__
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "…"


class InvalidNameError(InvalidInputError):
    """A name breaks the rule for names. Correct the named field and send it again."""

    code = "invalid_name"


class PayloadTooLargeError(InvalidInputError):
    """The payload is too large. Store the data elsewhere and pass a reference to it."""

    code = "payload_too_large"


class ConflictError(HeadraceError):
    """This idempotency key was used before with another body. Use a new key, or send the first body again."""

    code = "idempotency_conflict"


class KeyHeldError(HeadraceError):
    """Another transaction holds this idempotency key. End that transaction, then send the same again."""

    # Not transient: sending a whole call again at once would make all of it wait for the one key.
    code = "key_held"


class QueueFullError(HeadraceError):
    """The queue is full. Send the same again after `retry_after`, or declare it with on_full="wait"."""

    code = "queue_full"
    transient = True
    #: When it is worth trying again.
    retry_after = datetime.timedelta(seconds=1)

    def __init__(self, message: str | None = None, *, queue: str | None = None) -> None:
        super().__init__(message)
        self.queue = queue

    @classmethod
    def of(cls, queue: str, max_waiting: int, *, fix: str = "") -> QueueFullError:
        """Return the error of a queue; `fix`: what helps, unless it refuses at once.

        >>> print(QueueFullError.of("llm", 100))
        queue llm is full (max_waiting = 100): send the same again in a second, or declare it with on_full="wait"
        """
        fix = fix or 'send the same again in a second, or declare it with on_full="wait"'
        return cls(f"queue {queue} is full (max_waiting = {max_waiting}): {fix}", queue=queue)


class QueueClosedError(HeadraceError):
    """The queue is closed: it is being drained. Use another queue, or open it with `headrace queue resume NAME`."""

    code = "queue_closed"

    def __init__(self, message: str | None = None, *, queue: str | None = None) -> None:
        super().__init__(message)
        self.queue = queue

    @classmethod
    def of(cls, queue: str) -> QueueClosedError:
        """Return the error of a queue."""
        fix = f"use another queue, or open it with `headrace queue resume {queue}`"
        return cls(f"queue {queue} is closed, it is being drained or was: {fix}", queue=queue)


class DrainStoppedError(HeadraceError):
    """The queue was opened while it was being drained. Drain it again if that is wanted."""

    code = "drain_stopped"

    def __init__(self, message: str | None = None, *, queue: str | None = None) -> None:
        super().__init__(message)
        self.queue = queue

    @classmethod
    def of(cls, queue: str) -> DrainStoppedError:
        """Return the error of a queue."""
        fix = "drain it again if that is wanted"
        return cls(f"queue {queue} was opened while it was being drained: {fix}", queue=queue)


class QueuePausedError(DrainStoppedError):
    """The queue is paused, so a drain would never end. Run `headrace queue resume NAME`, then drain it."""

    code = "queue_paused"

    @classmethod
    def of(cls, queue: str) -> QueuePausedError:
        """Return the error of a queue."""
        fix = f"`headrace queue resume {queue}`, then drain it"
        return cls(f"queue {queue} is paused, so a drain would never end: {fix}", queue=queue)


class NotFoundError(HeadraceError):
    """There is no such thing here. List what exists and use one of those ids."""

    code = "not_found"


class StoreUnavailableError(HeadraceError):
    """The store cannot be reached. Check that the server runs and that HEADRACE_URL points to it."""

    code = "store_unavailable"
    transient = True


class NotAllowedError(StoreUnavailableError):
    """The store refuses this user. Correct user and password in HEADRACE_URL, or grant the missing right."""

    code = "not_allowed"
    transient = False


class StorageResetError(StoreUnavailableError):
    """The store lost its jobs, or is another one than before. Restore a backup, or see `headrace queue adopt`."""

    code = "storage_reset"
    transient = False


class StoreVersionError(HeadraceError):
    """The store's schema is not the one this version needs. Run `headrace migrate`."""

    code = "store_version"


class FenceLostError(HeadraceError):
    """This attempt no longer owns its job: its lease ended and the job runs elsewhere. Nothing was written."""

    code = "fence_lost"


class BreakerOpenError(HeadraceError):
    """A circuit breaker is open. Retry the job once what it calls works again, or declare on_open="wait"."""

    code = "breaker_open"


class BudgetUsedUpError(HeadraceError):
    """A budget has no room for the call. Raise it with `headrace llm budget`, then run the work again."""

    code = "budget_used_up"


class LimitTimeoutError(HeadraceError, TimeoutError):
    """The rate limit does not let this pass in time. Wait longer, or raise the rate."""

    code = "limit_timeout"
    transient = True


class JobFailedError(HeadraceError):
    """The job ended without a result. See `headrace job show ID` for the error of each attempt."""

    code = "job_failed"


class JobCancelledError(JobFailedError):
    """The job was cancelled before it had a result."""

    code = "job_cancelled"


class RunFailedError(HeadraceError):
    """The run ended without a result. See `headrace run show ID` for what became of each node."""

    code = "run_failed"


class RunCancelledError(RunFailedError):
    """The run was cancelled before it had a result."""

    code = "run_cancelled"


class WorkflowNotActiveError(HeadraceError):
    """Starts of this workflow are switched off. Switch them on with `headrace workflow activate NAME`."""

    code = "workflow_not_active"


class SignalTimeoutError(HeadraceError, TimeoutError):
    """The signal did not come in time. Wait longer, or send it with `headrace run signal KEY`."""

    code = "signal_timeout"


class HandleExpiredError(HeadraceError, TimeoutError):
    """The events did not come in time. Wait longer, or look into what was to cause them."""

    code = "handle_expired"


class HandleCancelledError(HeadraceError):
    """The wait was cancelled, so what waited does not go on."""

    code = "handle_cancelled"


class BusUnavailableError(HeadraceError):
    """The message bus cannot be reached. Check `[events]` in the settings and that the broker runs."""

    transient = True
    code = "bus_unavailable"


class BrokerUnavailableError(HeadraceError):
    """The broker of a Celery farm, or a Ray cluster, does not answer. Check `[celery]` or `[ray]`, and that it runs."""

    transient = True
    code = "broker_unavailable"


class BlobStoreError(HeadraceError):
    """The storage of large values cannot answer. Check [blob_storage] in the settings, and that it can be reached."""

    code = "blob_store"
    transient = True

    def __init__(self, message: str | None = None, *, lost: bool = False) -> None:
        super().__init__(message)
        #: Whether it answers and has not what was stored: waiting does not bring that back.
        self.lost = lost
        self.transient = not lost


class ResultTimeoutError(HeadraceError, TimeoutError):
    """The job did not end within the timeout; it goes on. Wait longer, or ask `headrace job show ID`."""

    code = "result_timeout"
    transient = True


class TaskTimeoutError(HeadraceError):
    """The attempt ran longer than its timeout and was stopped. Raise `timeout=` of the task, or make it faster."""

    code = "timeout"
    transient = True


class WrongAnswerError(HeadraceError):
    """The handler gathers jobs (`batch_size`), so it must return a list with one entry for each of them."""

    code = "wrong_answer"
    transient = True


class ExecutorLostError(HeadraceError):
    """The farm that was to run the attempt is gone, or never began it. The job runs again, and nothing is charged."""

    code = "executor_lost"
    transient = True

    def __init__(self, message: str | None = None, *, begun: bool = False) -> None:
        super().__init__(message)
        #: Whether the handler may have run.
        self.begun = begun


class ExecutorCrashedError(HeadraceError):
    """The process that ran the attempt died (out of memory, a crash in native code, or a kill)."""

    code = "executor_crashed"
    transient = True

    def __init__(self, message: str | None = None, *, progressed: bool = False) -> None:
        super().__init__(message)
        #: Whether a checkpoint or an answer was stored before the crash.
        self.progressed = progressed
