"""What can go wrong with a server hosted on this machine.

HostingError
├── HostingDirectoryError       its directory cannot be used
├── InUseElsewhereError         another machine or container runs it
├── ServerStartError            it ended, or could not be started
└── ServerNotReadyError         it did not answer in time
"""

from __future__ import annotations

import errno
from pathlib import Path

from headrace.model.errors import HeadraceError


class HostingError(HeadraceError):
    """A server on this machine could not be started or reached. See `server.log` in its directory."""

    code = "hosting"


class HostingDirectoryError(HostingError):
    """The server's directory cannot be used. Give this user the right to write there, or name another directory."""

    code = "hosting_directory"

    def __init__(self, directory: Path, error: OSError) -> None:
        super().__init__(_directory_message(directory, error))
        self.directory, self.errno = directory, error.errno


class InUseElsewhereError(HostingError):
    """The server runs on another machine or in another container. Stop it there, or use another directory."""

    code = "in_use_elsewhere"


class ServerStartError(HostingError):
    """The server ended while it was starting. Its last log lines say why."""

    code = "server_start"

    def __init__(self, message: str, *, log_tail: str = "") -> None:
        super().__init__(f"{message}\n{log_tail}" if log_tail else message)
        self.reason, self.log_tail = message, log_tail


class ServerNotReadyError(ServerStartError):
    """The server did not answer in time. It may still be recovering: wait, then try again."""

    code = "server_not_ready"
    transient = True


def _directory_message(directory: Path, error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return f"the disk of {directory} is full. Free some space there and start again"
        case errno.EROFS | errno.EACCES | errno.EPERM:
            return (
                f"{directory} cannot be written ({error.strerror}). Give this user the right to write there, "
                "or start in a directory that can be written"
            )
        case errno.ENOLCK | errno.ENOTSUP:
            return f"the file system of {directory} has no file locks ({error.strerror}). Use a local disk"
        case _:
            return f"{directory} cannot be used: {error.strerror or error}. Use another directory"
