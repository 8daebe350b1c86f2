"""Headrace: durable batch jobs and workflows made for LLM work."""

from typing import TYPE_CHECKING, Any

from headrace.app import App
from headrace.batch import Batch
from headrace.engine.context import Context, GatherContext
from headrace.gates import Breaker
from headrace.handles import JobHandle
from headrace.model.backoff import Backoff
from headrace.model.batch import BatchItem, ClosePolicy, Progress
from headrace.model.error_class import ErrorClass
from headrace.model.errors import (
    BreakerOpenError,
    ConfigError,
    ConflictError,
    DrainStoppedError,
    ExecutorCrashedError,
    FenceLostError,
    HeadraceError,
    InvalidInputError,
    JobCancelledError,
    JobFailedError,
    KeyHeldError,
    LimitTimeoutError,
    NotAllowedError,
    NotFoundError,
    PayloadTooLargeError,
    QueueClosedError,
    QueueFullError,
    QueuePausedError,
    ResultTimeoutError,
    StorageResetError,
    StoreUnavailableError,
    StoreVersionError,
    TaskTimeoutError,
    WrongAnswerError,
)
from headrace.model.limits import Limit, Rate
from headrace.model.outcome import Cancel, Done, Fail, Retry, Snooze
from headrace.model.priority import Priority
from headrace.tasks import Task

if TYPE_CHECKING:
    from headrace.model.provider_errors import (
        BadOutputError,
        ContextTooLongError,
        InvalidRequestError,
        OverloadedError,
        ProviderAuthError,
        ProviderError,
        ProviderTimeoutError,
        ProviderUnavailableError,
        RateLimitedError,
        RefusedError,
    )

__all__ = [
    "App",
    "Backoff",
    "BadOutputError",
    "Batch",
    "BatchItem",
    "Breaker",
    "BreakerOpenError",
    "Cancel",
    "ClosePolicy",
    "ConfigError",
    "ConflictError",
    "Context",
    "ContextTooLongError",
    "Done",
    "DrainStoppedError",
    "ErrorClass",
    "ExecutorCrashedError",
    "Fail",
    "FenceLostError",
    "GatherContext",
    "HeadraceError",
    "InvalidInputError",
    "InvalidRequestError",
    "JobCancelledError",
    "JobFailedError",
    "JobHandle",
    "KeyHeldError",
    "Limit",
    "LimitTimeoutError",
    "NotAllowedError",
    "NotFoundError",
    "OverloadedError",
    "PayloadTooLargeError",
    "Priority",
    "Progress",
    "ProviderAuthError",
    "ProviderError",
    "ProviderTimeoutError",
    "ProviderUnavailableError",
    "QueueClosedError",
    "QueueFullError",
    "QueuePausedError",
    "Rate",
    "RateLimitedError",
    "RefusedError",
    "ResultTimeoutError",
    "Retry",
    "Snooze",
    "StorageResetError",
    "StoreUnavailableError",
    "StoreVersionError",
    "Task",
    "TaskTimeoutError",
    "WrongAnswerError",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import errors of model providers on first use: who asks no model does not pay for them."""
    if name in __all__:
        from headrace.model import provider_errors

        return getattr(provider_errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
