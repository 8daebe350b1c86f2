"""PgBouncer in transaction mode before a test server, where it is installed (Debian: `apt-get install pgbouncer`)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.backends.server import USER, PostgresServer, die_with_parent
from tests.waiting import wait_until_sync

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
#: Fewer than the stores' own pools have, so that statements of one client meet several servers.
SERVERS = 3


class PgBouncer:
    """A pooler before `server`, which keeps `servers` connections to it."""

    def __init__(self, server: PostgresServer, *, servers: int = SERVERS) -> None:
        self._user = server.user
        self._home = server.root / f"pooler{len(list(server.root.glob('pooler*')))}"
        self._home.mkdir()
        shutil.chown(self._home, server.user or os.getuid())
        (self._home / "pgbouncer.ini").write_text(
            f"[databases]\npostgres = host={server.root} dbname=postgres user={USER}\n"
            f"[pgbouncer]\nlisten_addr =\nlisten_port = 5432\nunix_socket_dir = {self._home}\nauth_type = any\n"
            f"pool_mode = transaction\ndefault_pool_size = {servers}\nmax_client_conn = 200\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """The address of the database behind it."""
        return f"postgresql://{USER}@/postgres?host={self._home}"

    def start(self) -> None:
        """Start it and wait until it listens."""
        assert PGBOUNCER
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [PGBOUNCER, str(self._home / "pgbouncer.ini")], user=self._user, stdout=log, stderr=log,
                preexec_fn=die_with_parent,
            )  # fmt: skip
        socket = self._home / ".s.PGSQL.5432"
        wait_until_sync(socket.exists, message="PgBouncer to listen")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop it: SIGTERM as a service does, SIGKILL as a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(10)
            self._process = None
            # A crash leaves it behind; it would look as if the next one listened.
            (self._home / ".s.PGSQL.5432").unlink(missing_ok=True)


@contextmanager
def pgbouncer(server: PostgresServer, *, servers: int = SERVERS) -> Iterator[str]:
    """Run a pooler before `server` and return its address."""
    pooler = PgBouncer(server, servers=servers)
    pooler.start()
    try:
        yield pooler.dsn
    finally:
        pooler.stop()
