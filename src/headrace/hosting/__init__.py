"""Servers hosted on the user's own machine, shared by several processes, stopped when the last of them is gone.

Standard library only. See docs/explanation/embedded-postgres.md for the locks and for who stops what.
"""

from headrace.hosting.errors import (
    HostingDirectoryError,
    HostingError,
    InUseElsewhereError,
    ServerNotReadyError,
    ServerStartError,
)
from headrace.hosting.hosted import Hosted, acquire
from headrace.hosting.spec import Account, HostedServer
from headrace.hosting.state import Phase, ServerState

__all__ = [
    "Account",
    "Hosted",
    "HostedServer",
    "HostingDirectoryError",
    "HostingError",
    "InUseElsewhereError",
    "Phase",
    "ServerNotReadyError",
    "ServerStartError",
    "ServerState",
    "acquire",
]
