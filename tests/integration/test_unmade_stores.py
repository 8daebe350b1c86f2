"""A store that nobody made yet: what commands say of it, whichever kind of store it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.postgres import new_schema_name
from tests.backends.redis import new_prefix
from tests.backends.server import shared_server as postgres_server
from tests.backends.valkey import shared_server as valkey_server

APP = """
from headrace import App
app = App()

@app.task
def work() -> None: ...
"""
COMMANDS = (
    ("queue", "stats"), ("workers",), ("limits", "list"), ("dlq", "list"), ("worker", "unmade:app"),
    ("enqueue", "unmade:app", "work"), ("schedule", "list"),
)  # fmt: skip


@pytest.mark.parametrize("kind", ["postgres", "redis"])
def test_every_command_names_the_one_that_makes_it(kind: str, tmp_path: Path) -> None:
    """Exit code 1 with `headrace migrate` in the message, for people and as JSON alike, and nothing is made."""
    (tmp_path / "unmade.py").write_text(APP)
    if kind == "postgres":
        told = {"HEADRACE_URL": postgres_server().dsn, "HEADRACE_QUEUE_SCHEMA": new_schema_name()}
    else:
        told = {"HEADRACE_URL": valkey_server().url, "HEADRACE_QUEUE_STREAM_PREFIX": new_prefix()}
    for words in COMMANDS:
        ended = subprocess.run(
            [sys.executable, "-m", "headrace", *words, "--json"],
            cwd=tmp_path, env={**os.environ, **told}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        error = json.loads(ended.stderr.splitlines()[-1])["error"]
        assert (ended.returncode, error["code"], ended.stdout) == (1, "store_version", ""), words
        assert "Run `headrace migrate`" in error["message"], words
