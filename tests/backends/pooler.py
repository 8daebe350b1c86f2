"""PgBouncer in transaction mode before a test server, where it is installed (Debian: `apt-get install pgbouncer`)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.backends.server import USER, PostgresServer, die_with_parent
from tests.waiting import wait_until_sync

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
#: Fewer than the stores' own pools have, so that statements of one client meet several servers.
SERVERS = 3


@contextmanager
def pgbouncer(server: PostgresServer, *, servers: int = SERVERS) -> Iterator[str]:
    """Run a pooler before `server` and return its address."""
    assert PGBOUNCER
    home = server.root / f"pooler{len(list(server.root.glob('pooler*')))}"
    home.mkdir()
    shutil.chown(home, server.user or os.getuid())
    settings = home / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\npostgres = host={server.root} dbname=postgres user={USER}\n"
        f"[pgbouncer]\nlisten_addr =\nlisten_port = 5432\nunix_socket_dir = {home}\nauth_type = any\n"
        f"pool_mode = transaction\ndefault_pool_size = {servers}\nmax_client_conn = 200\n"
    )
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [PGBOUNCER, str(settings)],
            user=server.user,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,
        )
    try:
        wait_until_sync(lambda: Path(home / ".s.PGSQL.5432").exists(), message="PgBouncer to listen")
        yield f"postgresql://{USER}@/postgres?host={home}"
    finally:
        process.terminate()
        process.wait(10)
