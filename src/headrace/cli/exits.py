"""How a command ends: its exit code, and what it says of an error."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import click

from headrace.model.errors import (
    BrokerUnavailableError,
    BusUnavailableError,
    ConfigError,
    HeadraceError,
    InvalidInputError,
    NotAllowedError,
    NotFoundError,
    StoreUnavailableError,
)


class Exit(IntEnum):
    """The exit codes of every command."""

    OK = 0
    #: the job, batch, run or check failed, the store needs `headrace migrate`, or something unexpected happened
    FAILED = 1
    #: wrong usage, a wrong value, or a wrong configuration
    USAGE = 2
    #: the store, the bus or a Celery broker cannot be reached, or the store lost its jobs (`storage_reset`: see
    #: `headrace queue adopt`)
    UNREACHABLE = 3
    #: the store refused this user
    NOT_ALLOWED = 4
    #: no such job, batch, run, workflow, queue, task, agent or handle
    NOT_FOUND = 5
    #: Ctrl-C, or a second signal
    INTERRUPTED = 130
    #: `bench` ended by SIGTERM; a worker that SIGTERM ends in order gives 0
    TERMINATED = 143


#: The first that fits decides, so subclasses come before their bases.
_CODES: tuple[tuple[type[BaseException], Exit], ...] = (
    (click.UsageError, Exit.USAGE),
    (NotAllowedError, Exit.NOT_ALLOWED),
    (StoreUnavailableError, Exit.UNREACHABLE),
    (BusUnavailableError, Exit.UNREACHABLE),
    (BrokerUnavailableError, Exit.UNREACHABLE),
    (ConfigError, Exit.USAGE),
    (InvalidInputError, Exit.USAGE),
    (NotFoundError, Exit.NOT_FOUND),
    (KeyboardInterrupt, Exit.INTERRUPTED),
)


def exit_code(error: BaseException) -> Exit:
    """Return the exit code of an error.

    >>> exit_code(NotFoundError()).value
    5
    """
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.FAILED)


def error_document(error: BaseException) -> dict[str, Any]:
    """Return an error as `--json` writes it: `{"error": {"code", "message", …}}` with the facts it carries.

    >>> error_document(NotFoundError("no job 7"))
    {'error': {'code': 'not_found', 'message': 'no job 7'}}
    """
    facts = {name: getattr(error, name) for name in ("job_id", "run_id", "field", "rule") if hasattr(error, name)}
    shown = {name: str(value) for name, value in facts.items() if value is not None}
    return {"error": {"code": error_word(error), "message": error_message(error), **shown}}


def error_word(error: BaseException) -> str:
    """Return the stable word for an error."""
    if isinstance(error, click.UsageError):
        return "usage"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, OSError) and not isinstance(error, HeadraceError):
        return "os_error"
    return str(getattr(error, "code", "internal_error"))


def error_message(error: BaseException) -> str:
    """Return what a person should read."""
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return str(error) or type(error).__name__
