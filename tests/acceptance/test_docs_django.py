"""The page on Django: its files make a site whose orders and jobs live and die together."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from tests.backends.database import new_database
from tests.waiting import wait_until_sync

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "howto" / "django.md").read_text(encoding="utf-8")
FILE = re.compile(r"^```py (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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


def test_orders_and_jobs_of_the_page_live_and_die_together(workplace: Path) -> None:
    """A view's order gets its receipt from the page's worker, one that is rolled back none; the command sends once."""
    dsn = new_database()
    for name, text in [*SITE.items(), *FILE.findall(PAGE)]:
        (workplace / name).parent.mkdir(parents=True, exist_ok=True)
        (workplace / name).write_text(text, encoding="utf-8")
    environment = {**os.environ, "HEADRACE_URL": dsn, "DJANGO_SETTINGS_MODULE": "site_settings"}
    django = [sys.executable, "-W", "error::ResourceWarning", "-m", "django"]
    where = {"cwd": workplace, "env": environment | {"PYTHONPATH": str(workplace)}, "timeout": 60}
    subprocess.run([*django, "migrate", "--run-syncdb", "-v", "0"], check=True, **where)
    log = workplace / "worker.log"
    with log.open("w") as output:
        worker = subprocess.Popen(
            [sys.executable, "-m", "headrace", "worker", "shop.worker:app"],
            cwd=workplace, env=environment, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        printed = subprocess.check_output([*django, "shell", "-v", "0", "-c", VISIT], text=True, **where)
        wait_until_sync(lambda: finished(dsn).get("greet") == ["hello ann"], timedelta(seconds=20))
    finally:
        worker.terminate()
        worker.wait(30)
    assert printed.splitlines() == [
        "500 {'receipt': 'receipt for ann'}", "succeeded: receipt for ann", "succeeded: receipt for ann",
    ], log.read_text()  # fmt: skip
    # One for the view's order, one for all calls of the command; nothing waits of what was rolled back.
    assert finished(dsn)["send_receipt"] == ["receipt for ann", "receipt for ann"]
    assert waiting(dsn) == 0


def finished(dsn: str) -> dict[str, list[str]]:
    """Return the results of jobs by their tasks."""
    results: dict[str, list[str]] = {}
    with psycopg.connect(dsn) as connection:
        for task, result in connection.execute("SELECT task, result FROM headrace.finished_jobs"):
            results.setdefault(task, []).append(result)
    return results


def waiting(dsn: str) -> int:
    """Return how many jobs have not ended."""
    with psycopg.connect(dsn) as connection:
        [[count]] = connection.execute("SELECT count(*) FROM headrace.jobs")
    return int(count)
