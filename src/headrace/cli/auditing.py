"""Noting in the audit what commands change: who at which machine ran which command on what."""

from __future__ import annotations

import asyncio
import getpass
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import click
from click.core import ParameterSource

from headrace.app import App
from headrace.cli.exits import Exit, exit_code
from headrace.model.audit import CLI, COMMAND, NewAction, cut, facts_of, subject_of
from headrace.model.errors import HeadraceError
from headrace.model.ids import uuid7
from headrace.service_settings import OFF

LOG = logging.getLogger("headrace.cli")

#: Commands that operate, and what each does; where the HTTP service does the same, it has the same name there.
OPERATING: Mapping[str, str] = {
    "batch cancel": "cancel_batch",
    "batch pause": "pause_batch",
    "batch resume": "resume_batch",
    "batch retry": "retry_batch",
    "details cancel": "cancel_details",
    "details mode": "change_details_mode",
    "dlq redrive": "redrive_dead_letters",
    "events dead-letters redrive": "redrive_events",
    "events drop": "drop_events",
    "events groups forget": "forget_group",
    "events handles cancel": "cancel_handle",
    "events release": "release_events",
    "flows activate": "activate_workflow",
    "flows deactivate": "deactivate_workflow",
    "flows import": "import_workflows",
    "job cancel": "cancel_job",
    "job retry": "retry_job",
    "limits forget": "forget_limit",
    "limits reset": "reset_limit",
    "limits set-breaker": "set_breaker",
    "limits set-cap": "set_cap",
    "limits set-rate": "set_rate",
    "limits set-weight": "set_weight",
    "llm budget remove": "remove_budget",
    "llm budget set": "set_budget",
    "memory forget": "forget_memory_user",
    "memory profile": "change_memory_profile",
    "memory restore": "restore_memory",
    "memory retry": "retry_memory",
    "memory user": "put_memory_user",
    "queue cleanup": "cleanup_queue",
    "queue drain": "drain_queue",
    "queue pause": "pause_queue",
    "queue resume": "resume_queue",
    "queue retry": "retry_queue",
    "report resume": "resume_report",
    "run cancel": "cancel_run",
    "run rerun": "rerun",
    "schedule forget": "forget_schedule",
    "schedule pause": "pause_schedule",
    "schedule resume": "resume_schedule",
    "schedule run-now": "run_schedule_now",
    "token create": "create_token",
    "token revoke": "revoke_token",
    "workflow activate": "activate_workflow",
    "workflow deactivate": "deactivate_workflow",
}
#: Options that say how to answer, not what to do.
_MANNERS = ("as_json", "yes")
#: How long a command waits for the audit at its end.
_WAIT = timedelta(seconds=5)


@asynccontextmanager
async def noted(app: App) -> AsyncIterator[None]:
    """Note what the command does that runs now, once the block ends, however it does; of most commands nothing is.

    An audit that cannot be written is told, and changes nothing of the command.
    """
    context = click.get_current_context(silent=True)
    operation = None if context is None else OPERATING.get(context.command_path.partition(" ")[2])
    if context is None or operation is None or app.settings.service.audit == OFF:
        yield
        return
    code = Exit.OK
    try:
        yield
    except BaseException as error:
        code = Exit.INTERRUPTED if isinstance(error, asyncio.CancelledError) else exit_code(error)
        raise
    finally:
        await _note(app, context, operation, code)


async def _note(app: App, context: click.Context, operation: str, code: Exit) -> None:
    try:
        action = _action(context, operation, code)
        async with asyncio.timeout(_WAIT.total_seconds()):
            await app.runtime.stores.audit.note_actions([(action, timedelta())])
    except (HeadraceError, TimeoutError) as error:
        LOG.warning("the audit lacks this command: %s", error or "the store does not answer")
    except Exception:
        # A mistake of ours: it must not stand in the place of what became of the command.
        LOG.exception("the audit lacks this command")


def _action(context: click.Context, operation: str, code: Exit) -> NewAction:
    arguments, options = dict[str, Any](), dict[str, Any]()
    for param in context.command.params:
        name = param.name or ""
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and name not in _MANNERS:
            (arguments if isinstance(param, click.Argument) else options)[name] = context.params.get(name)
    return NewAction(
        uuid7(), user(), operation, subject_of({name: _text(value) for name, value in arguments.items()}), int(code),
        detail=facts_of(options), via=COMMAND,
    )  # fmt: skip


def _text(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else value


def user() -> str:
    """Return who is at the command line, such as `cli:ann@desk`."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name, as in some containers
        name = "unknown"
    return cut(f"{CLI}{name}@{socket.gethostname()}")
