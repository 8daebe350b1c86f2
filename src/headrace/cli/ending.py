"""The end of every command: errors become one line (or one JSON document) and an exit code."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import click

from headrace.cli.exits import Exit, error_document, error_message, exit_code
from headrace.cli.logs import log_to_stderr
from headrace.cli.plain import plain
from headrace.model.errors import HeadraceError


class InterruptedByUserError(Exception):
    """Ctrl-C. Its text, if any, says what was left behind."""

    code = "interrupted"


class ReaderGoneError(Exception):
    """Who read our output needs no more of it."""


def run_guarded(call: Callable[[], Any], *, as_json: bool) -> int:
    """Run a command line and return its exit code; every error is told on standard error."""
    log_to_stderr("warning", as_json=as_json)
    try:
        answer = call()
        sys.stdout.flush()
    except (ReaderGoneError, BrokenPipeError):
        _close_output()
        return Exit.OK
    except (InterruptedByUserError, KeyboardInterrupt, click.Abort) as error:
        told = str(error) if isinstance(error, InterruptedByUserError) else ""
        _tell(InterruptedByUserError(told or "interrupted"), as_json=as_json)
        return Exit.INTERRUPTED
    except (HeadraceError, click.ClickException, OSError) as error:
        _tell(error, as_json=as_json)
        return exit_code(error)
    except Exception as error:
        _tell_surprise(error, as_json=as_json)
        return Exit.FAILED
    return int(answer or Exit.OK)


def _tell(error: Exception, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(error_document(error)), err=True)
    elif isinstance(error, click.ClickException):
        error.show(sys.stderr)
    else:
        click.echo(f"Error: {plain(error_message(error))}", err=True)


def _tell_surprise(error: Exception, *, as_json: bool) -> None:
    """A mistake of ours, not of the user: with everything a report needs."""
    trace = "".join(traceback.format_exception(error))
    if as_json:
        document = error_document(error)
        document["error"]["trace"] = trace
        click.echo(json.dumps(document), err=True)
    else:
        click.echo(f"{trace}Error: this should not happen; please report it with the lines above", err=True)


def _close_output() -> None:
    """Keep the interpreter from writing what is buffered to a pipe that nobody reads."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
