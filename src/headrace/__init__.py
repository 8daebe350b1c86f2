"""Headrace: durable batch jobs and workflows made for LLM work."""

from importlib import import_module
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
    from headrace.llm.forecasting import Forecast
    from headrace.llm.items import ItemResult, Items
    from headrace.llm.results import Completion, Extraction, Provenance
    from headrace.model.budget import Budget, BudgetView
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
    from headrace.model.usage import Usage

__all__ = [
    "App",
    "Backoff",
    "BadOutputError",
    "Batch",
    "BatchItem",
    "Breaker",
    "BreakerOpenError",
    "Budget",
    "BudgetView",
    "Cancel",
    "ClosePolicy",
    "Completion",
    "ConfigError",
    "ConflictError",
    "Context",
    "ContextTooLongError",
    "Done",
    "DrainStoppedError",
    "ErrorClass",
    "ExecutorCrashedError",
    "Extraction",
    "Fail",
    "FenceLostError",
    "Forecast",
    "GatherContext",
    "HeadraceError",
    "InvalidInputError",
    "InvalidRequestError",
    "ItemResult",
    "Items",
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
    "Provenance",
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
    "Usage",
    "WrongAnswerError",
]

__version__ = "0.1.0"


#: Where the names lie that only who asks a model needs; every other name of this kind is an error of providers.
_LATE = {
    "Budget": "headrace.model.budget",
    "BudgetView": "headrace.model.budget",
    "Completion": "headrace.llm.results",
    "Extraction": "headrace.llm.results",
    "Forecast": "headrace.llm.forecasting",
    "ItemResult": "headrace.llm.items",
    "Items": "headrace.llm.items",
    "Provenance": "headrace.llm.results",
    "Usage": "headrace.model.usage",
}


def __getattr__(name: str) -> Any:
    """Import what calls of models return and raise on first use: who asks no model does not pay for them."""
    if name in __all__:
        return getattr(import_module(_LATE.get(name, "headrace.model.provider_errors")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
