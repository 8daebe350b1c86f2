"""Headrace: durable batch jobs and workflows made for LLM work."""

from headrace.app import App
from headrace.batch import Batch
from headrace.engine.context import Context, GatherContext
from headrace.gates import Breaker
from headrace.handles import JobHandle
from headrace.model.backoff import Backoff
from headrace.model.batch import BatchItem, ClosePolicy, Progress
from headrace.model.errors import ConfigError, ConflictError, HeadraceError, QueueClosedError, QueueFullError
from headrace.model.limits import Limit, Rate
from headrace.model.outcome import Cancel, Done, Fail, Retry, Snooze
from headrace.model.priority import Priority
from headrace.tasks import Task

__all__ = [
    "App",
    "Backoff",
    "Batch",
    "BatchItem",
    "Breaker",
    "Cancel",
    "ClosePolicy",
    "ConfigError",
    "ConflictError",
    "Context",
    "Done",
    "Fail",
    "GatherContext",
    "HeadraceError",
    "JobHandle",
    "Limit",
    "Priority",
    "Progress",
    "QueueClosedError",
    "QueueFullError",
    "Rate",
    "Retry",
    "Snooze",
    "Task",
]

__version__ = "0.1.0"
