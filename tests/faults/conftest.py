"""Every test of this folder has a system of its own on one PostgreSQL server, and leaves nothing running."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from headrace import App
from tests.backends.postgres import new_schema_name
from tests.backends.server import PostgresServer, shared_server
from tests.faults import tasks
from tests.faults.site import Site


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.faults)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Return a system whose workers are started by the test."""
    yield from _site(shared_server(), tmp_path)


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """Return a PostgreSQL server of the test's own, with fsync, that it may crash."""
    server = PostgresServer(durable=True)
    yield server
    server.remove()


@pytest.fixture
def fragile_site(own_server: PostgresServer, tmp_path: Path) -> Iterator[Site]:
    """Return a system on a server that may be crashed."""
    yield from _site(own_server, tmp_path)


def _site(server: PostgresServer, root: Path) -> Iterator[Site]:
    site = Site(server, new_schema_name(), root)
    (root / "gates").mkdir()
    # Made by this process, so that workers that start together find it.
    subprocess.run(["headrace", "migrate"], env={**_path(), **site.environment}, check=True, capture_output=True)
    yield site
    site.end()


@cache
def _path() -> dict[str, str]:
    import os
    import sys

    return {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.fixture
def app(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> App:
    """Return the app of the tasks, set up as the worker processes of the test's site are."""
    name = "fragile_site" if "fragile_site" in request.fixturenames else "site"
    site: Site = request.getfixturevalue(name)
    for variable, value in site.environment.items():
        if not variable.startswith("HEADRACE_"):
            monkeypatch.setenv(variable, value)
    monkeypatch.setattr(tasks.app, "settings", site.settings(), raising=False)
    return tasks.app


@cache
def may_unshare() -> bool:
    """Return whether this machine allows pid namespaces of one's own."""
    command = ["unshare", "--kill-child=KILL", "-p", "-f", "--mount-proc", "true"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
