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
    BlobStoreError,
    BreakerOpenError,
    BrokerUnavailableError,
    BudgetUsedUpError,
    BusUnavailableError,
    ConfigError,
    ConflictError,
    DrainStoppedError,
    ExecutorCrashedError,
    ExecutorLostError,
    FenceLostError,
    HandleCancelledError,
    HandleExpiredError,
    HeadraceError,
    InvalidInputError,
    InvalidNameError,
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
    RunCancelledError,
    RunFailedError,
    SignalTimeoutError,
    StorageResetError,
    StoreUnavailableError,
    StoreVersionError,
    TaskTimeoutError,
    WorkflowNotActiveError,
    WrongAnswerError,
)
from headrace.model.limits import Limit, Rate
from headrace.model.outcome import Cancel, Done, Fail, Retry, Snooze
from headrace.model.priority import Priority
from headrace.model.version import VERSION
from headrace.tasks import Task

if TYPE_CHECKING:
    from headrace.caches import Cache
    from headrace.canvas import (
        Canvas,
        Reference,
        Signature,
        chain,
        choose,
        chord,
        group,
        index_,
        input_,
        loop,
        map_,
        pause,
        ref,
        run_,
        signature,
        sub,
        wait_signal,
        when,
    )
    from headrace.canvas.workflow import Workflow
    from headrace.engine.events.waiting import DeadRequest, Resumed
    from headrace.feeds import Feed, FeedEntry
    from headrace.llm.forecasting import Forecast
    from headrace.llm.items import ItemResult, Items
    from headrace.llm.pace import ModelPace
    from headrace.llm.results import Completion, Extraction, Provenance
    from headrace.model.budget import Budget, BudgetView
    from headrace.model.job import RunInfo
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
    from headrace.model.resume_handle import new_token
    from headrace.model.run import NodeState, RunState
    from headrace.model.usage import Usage
    from headrace.resume_handles import ResumeHandle
    from headrace.runs import Run

__all__ = [
    "App",
    "Backoff",
    "BadOutputError",
    "Batch",
    "BatchItem",
    "BlobStoreError",
    "Breaker",
    "BreakerOpenError",
    "BrokerUnavailableError",
    "Budget",
    "BudgetUsedUpError",
    "BudgetView",
    "BusUnavailableError",
    "Cache",
    "Cancel",
    "Canvas",
    "ClosePolicy",
    "Completion",
    "ConfigError",
    "ConflictError",
    "Context",
    "ContextTooLongError",
    "DeadRequest",
    "Done",
    "DrainStoppedError",
    "ErrorClass",
    "ExecutorCrashedError",
    "ExecutorLostError",
    "Extraction",
    "Fail",
    "Feed",
    "FeedEntry",
    "FenceLostError",
    "Forecast",
    "GatherContext",
    "HandleCancelledError",
    "HandleExpiredError",
    "HeadraceError",
    "InvalidInputError",
    "InvalidNameError",
    "InvalidRequestError",
    "ItemResult",
    "Items",
    "JobCancelledError",
    "JobFailedError",
    "JobHandle",
    "KeyHeldError",
    "Limit",
    "LimitTimeoutError",
    "ModelPace",
    "NodeState",
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
    "Reference",
    "RefusedError",
    "ResultTimeoutError",
    "ResumeHandle",
    "Resumed",
    "Retry",
    "Run",
    "RunCancelledError",
    "RunFailedError",
    "RunInfo",
    "RunState",
    "SignalTimeoutError",
    "Signature",
    "Snooze",
    "StorageResetError",
    "StoreUnavailableError",
    "StoreVersionError",
    "Task",
    "TaskTimeoutError",
    "Usage",
    "Workflow",
    "WorkflowNotActiveError",
    "WrongAnswerError",
    "chain",
    "choose",
    "chord",
    "group",
    "index_",
    "input_",
    "loop",
    "map_",
    "new_token",
    "pause",
    "ref",
    "run_",
    "signature",
    "sub",
    "wait_signal",
    "when",
]

__version__ = VERSION

#: Where the names lie that only who asks a model or writes a workflow needs; every other one is an error of providers.
_LATE = {
    "DeadRequest": "headrace.engine.events.waiting",
    "ResumeHandle": "headrace.resume_handles",
    "Resumed": "headrace.engine.events.waiting",
    "new_token": "headrace.model.resume_handle",
    "Cache": "headrace.caches",
    "Canvas": "headrace.canvas",
    "Reference": "headrace.canvas",
    "Signature": "headrace.canvas",
    "chain": "headrace.canvas",
    "choose": "headrace.canvas",
    "chord": "headrace.canvas",
    "group": "headrace.canvas",
    "index_": "headrace.canvas",
    "input_": "headrace.canvas",
    "loop": "headrace.canvas",
    "map_": "headrace.canvas",
    "pause": "headrace.canvas",
    "ref": "headrace.canvas",
    "run_": "headrace.canvas",
    "signature": "headrace.canvas",
    "sub": "headrace.canvas",
    "wait_signal": "headrace.canvas",
    "when": "headrace.canvas",
    "Budget": "headrace.model.budget",
    "BudgetView": "headrace.model.budget",
    "Completion": "headrace.llm.results",
    "Extraction": "headrace.llm.results",
    "Forecast": "headrace.llm.forecasting",
    "ItemResult": "headrace.llm.items",
    "Items": "headrace.llm.items",
    "ModelPace": "headrace.llm.pace",
    "Provenance": "headrace.llm.results",
    "Usage": "headrace.model.usage",
    "Feed": "headrace.feeds",
    "FeedEntry": "headrace.feeds",
    "NodeState": "headrace.model.run",
    "Run": "headrace.runs",
    "RunInfo": "headrace.model.job",
    "RunState": "headrace.model.run",
    "Workflow": "headrace.canvas.workflow",
}


def __getattr__(name: str) -> Any:
    """Import what calls of models and workflows need on first use: who has neither does not pay for them."""
    if name in __all__:
        return getattr(import_module(_LATE.get(name, "headrace.model.provider_errors")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
