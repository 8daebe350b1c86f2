"""What goes wrong at the driver, sorted once: no asyncpg error crosses a port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from headrace.model.errors import HeadraceError, NotAllowedError, StoreUnavailableError, StoreVersionError

#: Worth doing again at once, in a new transaction: the server undid everything and says so.
TRY_AGAIN = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.exceptions.InvalidCachedStatementError,
    asyncpg.exceptions.OutdatedSchemaCacheError,
)

#: The server stops, or takes no writes (a standby, a primary that was replaced): a connection to it is of no use.
NO_LONGER_OURS = (
    asyncpg.exceptions.ReadOnlySQLTransactionError,
    asyncpg.exceptions.AdminShutdownError,
    asyncpg.exceptions.CrashShutdownError,
    asyncpg.exceptions.CannotConnectNowError,
)

_UNREACHABLE = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.exceptions.InsufficientResourcesError,
    asyncpg.exceptions.InternalClientError,
    asyncpg.exceptions.InvalidCatalogNameError,
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.PostgresSystemError,
)
_NOT_ALLOWED = (
    asyncpg.exceptions.InvalidAuthorizationSpecificationError,
    asyncpg.InsufficientPrivilegeError,
)
_NO_SCHEMA = (
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedColumnError,
    asyncpg.UndefinedFunctionError,
    asyncpg.InvalidSchemaNameError,
)


@contextmanager
def sorted_faults() -> Iterator[None]:
    """Turn errors of the driver into errors of Headrace; the driver's own is kept as `__cause__`."""
    try:
        yield
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.exceptions.InternalClientError) as error:
        raise sort_fault(error) from error


def sort_fault(error: Exception) -> HeadraceError:
    """Return the error of Headrace that says what `error` means to its caller."""
    if isinstance(error, asyncpg.LockNotAvailableError):
        return StoreUnavailableError(
            "Another transaction held a row or key that this call needs for longer than the lock timeout; nothing was "
            "written. Commit or roll back that transaction (see pg_stat_activity) and try again."
        )
    if isinstance(error, _NO_SCHEMA):
        return StoreVersionError(
            f"The database has not the tables this version needs ({error}). Run `headrace migrate`."
        )
    if isinstance(error, _NOT_ALLOWED):
        return NotAllowedError(
            f"The store refuses this user ({describe(error)}). Correct user and password in HEADRACE_URL, or grant the "
            "missing right."
        )
    if isinstance(error, asyncpg.exceptions.ReadOnlySQLTransactionError):
        return StoreUnavailableError(
            f"The server takes no writes: it is a standby, or was made read-only ({describe(error)}). Let HEADRACE_URL "
            "point to the primary, or name all servers in it."
        )
    if isinstance(error, (*_UNREACHABLE, *TRY_AGAIN)):
        return StoreUnavailableError(
            f"The store cannot answer ({describe(error)}). Check that the server runs and that HEADRACE_URL points to "
            "it."
        )
    return HeadraceError(f"The database refused a statement ({describe(error)}). Please report this as a bug.")


def lock_timed_out(error: BaseException | None) -> bool:
    """Whether a wait for a lock ended, by the word of any driver; SQLAlchemy keeps its driver's error as `orig`."""
    cause = getattr(error, "orig", None) or error
    return getattr(cause, "sqlstate", None) == asyncpg.LockNotAvailableError.sqlstate


def describe(error: BaseException) -> str:
    """Return the class and the first line of `error`, never its parameters."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
