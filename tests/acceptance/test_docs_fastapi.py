"""The page on FastAPI: its site, served by its command, enqueues with its rows and tells what became of jobs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.backends.database import new_database
from tests.backends.valkey import free_port
from tests.waiting import wait_until_sync

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "howto" / "fastapi.md").read_text(encoding="utf-8")
Ask = Callable[..., tuple[int, Any]]

pytestmark = pytest.mark.acceptance


@pytest.fixture
def ask(workplace: Path) -> Iterator[Ask]:
    """Start the site and its worker, as the page says, and return how to ask the site."""
    [module] = re.findall(r"^```py main.py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (workplace / "main.py").write_text(module, encoding="utf-8")
    environment, port = {**os.environ, "HEADRACE_URL": new_database()}, free_port()
    commands = [["headrace", "worker", "main:jobs"], ["uvicorn", "main:api", "--port", str(port)]]
    assert all(" ".join(command[:3]) in PAGE for command in [commands[0], commands[1][:2]])
    with ExitStack() as stack, (workplace / "log").open("w") as log:
        for command in commands:
            process = subprocess.Popen(
                [sys.executable, "-m", *command], cwd=workplace, env=environment, stdout=log, stderr=log
            )
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)
        wait_until_sync(lambda: _answers(port), timedelta(seconds=30), message="the site to answer")
        yield lambda path, body=None, **headers: _ask(port, path, body, headers)


def test_the_site_takes_orders_and_texts(ask: Ask) -> None:
    """An order's receipt comes from the worker, a batch is found by its key, and unknown ids are 404."""
    [path] = re.findall(r"^curl -s -X POST http://127.0.0.1:8000(\S+)$", PAGE, re.MULTILINE)
    status, made = ask(path, b"")
    assert (status, made["order"]) == (202, 1)
    assert ask(f"/jobs/{made['job']}?wait=20") == (200, {"result": "receipt for ann"})

    texts = json.dumps(["to be", "or not"]).encode()
    batches = [ask("/texts", texts, **{"Idempotency-Key": "hamlet"})[1]["batch"] for _ in range(2)]
    assert batches[0] == batches[1]
    done = {"total": 2, "succeeded": 2, "failed": 0}
    wait_until_sync(lambda: ask(f"/batches/{batches[0]}")[1] == done, timedelta(seconds=20))
    unknown = "01980000-0000-7000-8000-000000000000"
    assert [ask(f"/{kind}/{unknown}")[0] for kind in ("jobs", "batches")] == [404, 404]


def _ask(port: int, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", data=body, headers={"Content-Type": "application/json", **headers}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def _answers(port: int) -> bool:
    try:
        return _ask(port, "/openapi.json", None, {})[0] == 200
    except OSError:
        return False
