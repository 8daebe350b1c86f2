"""What every test gets: no network beyond this machine, no settings from the environment, repeatable examples."""

from __future__ import annotations

import gc
import importlib
import ipaddress
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.unit.browser import Tab, browser, installed
from tests.waiting import wait_until_sync

if TYPE_CHECKING:
    from headrace.hosting.processes import ProcessId

#: Proxies named here are no proxies: they make the children of a test fail at once when they leave the machine.
DEAD_END = "http://127.0.0.1:9"
LOCAL_NAMES = {"", "localhost", socket.gethostname()}
HERE = Path(__file__).resolve().parent


class NetworkForbiddenError(AssertionError):
    """A test tried to leave this machine. Talk to a server on loopback instead."""


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo":
        _check_host(arguments[0])
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        if isinstance(address, tuple):
            _check_host(address[0])


def _check_host(host: str | bytes | None) -> None:
    name = host.decode() if isinstance(host, bytes) else (host or "")
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        allowed = name in LOCAL_NAMES
    else:
        allowed = address.is_loopback or address.is_unspecified
    if not allowed:
        raise NetworkForbiddenError(f"a test tried to reach {name}: tests talk to loopback only")


def _clear_environment() -> None:
    for name in list(os.environ):
        if name.startswith(("HEADRACE_", "OPENAI_")) or name.lower().endswith("_proxy"):
            del os.environ[name]
    os.environ.update(HTTP_PROXY=DEAD_END, HTTPS_PROXY=DEAD_END, NO_PROXY="127.0.0.1,localhost,::1")


# At import, not in a fixture: modules under test may read both when they are imported.
_clear_environment()
sys.addaudithook(_guard)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background by a shell: programs under test would not hear Ctrl-C either.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect without Python's collector, and keep what is there then out of it.

    Walking through tens of thousands of tests again and again took half of the time of a collection, and went on with
    every full collection of garbage while they ran.
    """
    gc.disable()
    try:
        _import_share(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _import_share(config: pytest.Config) -> None:
    """Import a share of the modules in each worker of a whole parallel run, before each imports all.

    In a clean checkout pytest compiles them, which takes longer than the rest: so none is compiled by all workers.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args_source is not config.ArgsSource.TESTPATHS:
        return
    for file in sorted(HERE.rglob("test_*.py"))[int(worker["workerid"][2:]) :: worker["workercount"]]:
        # Whatever is wrong with one is told when it is collected.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(HERE.parent).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names that differ in each process: the parallel run compares them."""
    moving = [item.nodeid for item in items if re.search(r" at 0x[0-9a-f]{6,}", item.nodeid)]
    if moving:
        raise pytest.UsageError(f"give these parameters ids without an address: {', '.join(moving)}")


@pytest.fixture
def workplace() -> Iterator[Path]:
    """An empty directory for programs that start embedded servers; those are ended with the test.

    Unlike `tmp_path`, every account may enter it: as root, the embedded PostgreSQL runs as another one.
    """
    place = Path(tempfile.mkdtemp(prefix="headrace-test-")).resolve()
    place.chmod(0o755)
    yield place
    end_servers(place)
    shutil.rmtree(place)


def end_servers(place: Path) -> None:
    """Stop every server hosted below a directory and see that it is gone."""
    from headrace.hosting.state import FILE, read_state

    for state in [read_state(file.parent) for file in place.rglob(FILE)]:
        for process in [state.supervisor, state.server] if state is not None else []:
            if process is not None:
                _end(process)


def _end(process: ProcessId) -> None:
    if process.is_alive():
        process.send(signal.SIGTERM)
    wait_until_sync(lambda: not process.is_alive())


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """The one tab of a browser that the tests of a file share."""
    program = installed()
    assert program is not None
    with browser(program, tmp_path_factory.mktemp("browser")) as opened:
        yield opened
