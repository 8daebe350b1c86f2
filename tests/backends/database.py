"""Databases of their own on the shared server, with Headrace's tables: copies of one that was migrated once."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from uuid import uuid4

import psycopg

from tests.backends.server import USER, shared_server


def new_database() -> str:
    """Make a database that no one else uses, and return its address; it goes with the server."""
    return _make(f'TEMPLATE "{_template()}"')


@cache
def _template() -> str:
    """Return the name of a database that has the tables, and that nobody is connected to."""
    dsn = _make("")
    subprocess.run(
        [sys.executable, "-m", "headrace", "migrate"],
        env={**os.environ, "HEADRACE_URL": dsn}, check=True, timeout=60, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]


def _make(how: str) -> str:
    name = f"test_{uuid4().hex[:16]}"
    with psycopg.connect(shared_server().dsn, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" {how}')
    return f"postgresql://{USER}@/{name}?host={shared_server().root}"
