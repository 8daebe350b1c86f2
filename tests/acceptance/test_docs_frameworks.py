"""The pages on Django, FastAPI and tests: their files make sites and a project that do what the pages say."""

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

import psycopg
import pytest

from tests.backends.database import new_database
from tests.backends.valkey import free_port
from tests.waiting import wait_until_sync

HOWTO = Path(__file__).resolve().parent.parent.parent / "docs" / "howto"
FILE = re.compile(r"^```py (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
Ask = Callable[..., tuple[int, Any]]

#: What every site has, and the page leaves to it.
SITE = {
    "site_settings.py": """
import os
from psycopg.conninfo import conninfo_to_dict

address = conninfo_to_dict(os.environ["HEADRACE_URL"])
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": address["dbname"],
                         "USER": address["user"], "HOST": address["host"]}}
INSTALLED_APPS = ["shop"]
ROOT_URLCONF = "site_urls"
ALLOWED_HOSTS = ["testserver"]
SECRET_KEY = "of a test"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
""",
    "site_urls.py": """
from django.urls import path
from shop import views

urlpatterns = [path("orders", views.order), path("receipts/<str:job_id>", views.receipt)]
""",
    "shop/__init__.py": "",
    "shop/management/__init__.py": "",
    "shop/management/commands/__init__.py": "",
}
#: What a visitor does: an order, one that is rolled back, the receipt of the first; then the command, twice.
VISIT = """
import json
from django.core.management import call_command
from django.test import Client

visitor = Client(raise_request_exception=False)
job = json.loads(visitor.post("/orders", {"customer": "ann"}).content)["job"]
refused = visitor.post("/orders", {"customer": "nobody"}).status_code
print(refused, json.loads(visitor.get(f"/receipts/{job}").content))
call_command("receipts")
call_command("receipts")
"""

pytestmark = pytest.mark.acceptance


def files(page: str) -> list[tuple[str, str]]:
    """Return the files of a page, by name."""
    return FILE.findall((HOWTO / f"{page}.md").read_text(encoding="utf-8"))


def test_orders_and_jobs_of_the_page_live_and_die_together(workplace: Path) -> None:
    """A view's order gets its receipt from the page's worker, one that is rolled back none; the command sends once."""
    dsn = new_database()
    for name, text in [*SITE.items(), *files("django")]:
        (workplace / name).parent.mkdir(parents=True, exist_ok=True)
        (workplace / name).write_text(text, encoding="utf-8")
    environment = {**os.environ, "HEADRACE_URL": dsn, "DJANGO_SETTINGS_MODULE": "site_settings"}
    django = [sys.executable, "-W", "error::ResourceWarning", "-m", "django"]
    where = {"cwd": workplace, "env": environment | {"PYTHONPATH": str(workplace)}, "timeout": 120}
    subprocess.run([*django, "migrate", "--run-syncdb", "-v", "0"], check=True, **where)
    log = workplace / "worker.log"
    with log.open("w") as output:
        worker = subprocess.Popen(
            [sys.executable, "-m", "headrace", "worker", "shop.worker:app"],
            cwd=workplace, env=environment, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        wait_until_sync(lambda: count(dsn, "sessions") == 1, timedelta(seconds=60), message="the worker to start")
        printed = subprocess.check_output([*django, "shell", "-v", "0", "-c", VISIT], text=True, **where)
        wait_until_sync(lambda: finished(dsn).get("greet") == ["hello ann"], timedelta(seconds=60))
    finally:
        worker.terminate()
        worker.wait(30)
    assert printed.splitlines() == [
        "500 {'receipt': 'receipt for ann'}", "succeeded: receipt for ann", "succeeded: receipt for ann",
    ], log.read_text()  # fmt: skip
    # One for the view's order, one for all calls of the command; nothing waits of what was rolled back.
    assert finished(dsn)["send_receipt"] == ["receipt for ann", "receipt for ann"]
    assert count(dsn, "jobs") == 0


def finished(dsn: str) -> dict[str, list[str]]:
    """Return the results of jobs by their tasks."""
    results: dict[str, list[str]] = {}
    with psycopg.connect(dsn) as connection:
        for task, result in connection.execute("SELECT task, result FROM headrace.finished_jobs"):
            results.setdefault(task, []).append(result)
    return results


def count(dsn: str, table: str) -> int:
    """Return how many rows a table of Headrace has."""
    with psycopg.connect(dsn) as connection:
        [[rows]] = connection.execute(f"SELECT count(*) FROM headrace.{table}")
    return int(rows)


@pytest.fixture
def ask(workplace: Path) -> Iterator[Ask]:
    """Start the site and its worker, as the page says, and return how to ask the site."""
    [(name, module)] = files("fastapi")
    (workplace / name).write_text(module, encoding="utf-8")
    environment, port = {**os.environ, "HEADRACE_URL": new_database()}, free_port()
    commands = [["headrace", "worker", "main:jobs"], ["uvicorn", "main:api", "--port", str(port)]]
    page = (HOWTO / "fastapi.md").read_text(encoding="utf-8")
    assert all("\n" + " ".join(command[:3]) in page for command in [commands[0], commands[1][:2]])
    with ExitStack() as stack, (workplace / "log").open("w") as log:
        for command in commands:
            process = subprocess.Popen(
                [sys.executable, "-m", *command], cwd=workplace, env=environment, stdout=log, stderr=log
            )
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)
        wait_until_sync(lambda: _answers(port), timedelta(seconds=60), message="the site to answer")
        yield lambda path, body=None, **headers: _ask(port, path, body, headers)


def test_the_site_takes_orders_and_texts(ask: Ask) -> None:
    """An order's receipt comes from the worker, a batch is found by its key, a wrong call has its status."""
    page = (HOWTO / "fastapi.md").read_text(encoding="utf-8")
    [path] = re.findall(r"^curl -s -X POST http://127.0.0.1:8000(\S+)$", page, re.MULTILINE)
    status, made = ask(path, b"")
    assert (status, made["order"]) == (202, 1)
    receipt = 200, {"result": "receipt for ann"}
    wait_until_sync(lambda: ask(f"/jobs/{made['job']}?wait=5") == receipt, timedelta(seconds=60))

    texts = json.dumps(["to be", "or not"]).encode()
    batches = [ask("/texts", texts, **{"Idempotency-Key": "hamlet"})[1]["batch"] for _ in range(2)]
    assert batches[0] == batches[1]
    done = {"total": 2, "succeeded": 2, "failed": 0}
    wait_until_sync(lambda: ask(f"/batches/{batches[0]}")[1] == done, timedelta(seconds=60))
    unknown = "01980000-0000-7000-8000-000000000000"
    other = ask("/texts", b'["not to be"]', **{"Idempotency-Key": "hamlet"})
    assert (other[0], other[1]["code"]) == (409, "idempotency_conflict")
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


def test_the_tests_of_the_page_on_tests_pass(workplace: Path) -> None:
    """Its files are a project whose tests pass by themselves, each on an empty store."""
    for name, text in files("test-your-tasks"):
        (workplace / name).write_text(text, encoding="utf-8")
    options = ["-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "-W", "ignore::DeprecationWarning"]
    command = [sys.executable, "-m", "pytest", *options]
    done = subprocess.run(command, cwd=workplace, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "5 passed" in done.stdout) == (0, True), done.stdout
