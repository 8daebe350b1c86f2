"""Noting in the audit what commands of applications change: the command line brings what notes it.

Applications are built on public names alone, and the audit has none: it belongs to the command line and the service.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from headrace import App

#: Under this name the context of a command has what notes it: a function of the app, see `headrace.cli.auditing.noted`.
NOTING = "headrace.noting"


def noted(app: App) -> AbstractAsyncContextManager[None]:
    """Return what notes the command that runs now once its block ends, if that is one which operates; `app` is open.

    The block holds what the command changes, and nothing that only looks. Elsewhere than on the command line nothing is
    noted.
    """
    context = click.get_current_context(silent=True)
    noting = None if context is None else context.meta.get(NOTING)
    if noting is None:
        return nullcontext()
    found: AbstractAsyncContextManager[None] = noting(app)
    return found
