"""The page on Celery: its example runs as it stands, and what keeps a farm from starting is said with the fix."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from tests.backends.valkey import free_port
from tests.faults.farm import Farm, farm_on

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "howto" / "celery.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.acceptance


@pytest.fixture
async def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Farm]:
    """Set a farm up for the example of the page."""
    async with farm_on(tmp_path, monkeypatch) as farm:
        [module] = re.findall(r"^```py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        (tmp_path / "shop.py").write_text(module)
        yield farm


def headrace(farm: Farm, command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command as the page writes it."""
    environment: Mapping[str, str] = {**os.environ, **farm.environment, **environ}
    return subprocess.run(
        ["/bin/sh", "-c", command.replace("headrace ", f"{sys.executable} -m headrace ", 1)],
        cwd=farm.root, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_the_example_prints_what_the_page_shows(farm: Farm) -> None:
    """Its canvas runs on a farm: the map and the report there, the first task in the worker."""
    [(command, expected)] = re.findall(r"^```sh\n([^`]*)```\n\n```output\n([^`]*)```", PAGE, re.MULTILINE)
    farm.start("celery", "worker", "--concurrency", "1", app="shop:app", cwd=farm.root)
    farm.start("worker", app="shop:app", cwd=farm.root)
    done = headrace(farm, command)
    assert (done.stdout, done.returncode) == (expected, 0), done.stderr + farm.logs()
    assert "1 slots in all" in headrace(farm, "headrace doctor").stdout
    assert "default" in headrace(farm, "headrace celery workers").stdout


STARTS = {
    "no broker named": ({"HEADRACE_CELERY_BROKER_URL": ""}, 2, "set [celery] broker_url to redis://HOST"),
    "no broker there": (
        {"HEADRACE_CELERY_BROKER_URL": "redis://:s3cret@127.0.0.1:{port}/0"}, 3, "the Celery broker does not answer",
    ),
    "no store there": ({"HEADRACE_URL": "postgresql://127.0.0.1:{port}/none"}, 3, "cannot"),
    "a memory store": ({"HEADRACE_URL": "memory://"}, 2, "use PostgreSQL or Redis, not memory"),
    "nothing for Celery": ({"HEADRACE_WORKER_EXECUTOR": "local"}, 2, 'write executor = "celery" into [worker]'),
}  # fmt: skip


@pytest.mark.parametrize("case", STARTS)
def test_what_keeps_a_farm_from_starting_is_said_with_the_fix(farm: Farm, case: str) -> None:
    """Exit code 2 for a configuration, 3 for a server that is not there; no trace, no password."""
    changes, code, message = STARTS[case]
    environ = {name: value.replace("{port}", str(free_port())) for name, value in changes.items()}
    done = headrace(farm, "headrace celery worker shop:app", **environ)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr
    assert "s3cret" not in done.stderr


def test_a_missing_extra_names_what_to_install(farm: Farm) -> None:
    """Without Celery the worker of a farm says which extra brings it."""
    blocked = farm.root / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text(
        "import importlib.util as util\nfind = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'celery' else find(name, package)\n"
    )
    done = headrace(farm, "headrace celery worker shop:app", PYTHONPATH=str(blocked))
    assert (done.returncode, "pip install 'headrace[celery]'" in done.stderr) == (2, True), done.stderr


def test_job_explain_names_the_farm_that_is_missing(farm: Farm) -> None:
    """A job that nobody on the farm could start says what to start."""
    farm.start("worker", app="shop:app", cwd=farm.root)
    made = headrace(farm, """headrace enqueue shop:app count '["a b"]'""").stdout.split()
    told = ""
    for _ in range(20):
        told = headrace(farm, f"headrace job explain {made[-1]}").stdout
        if "Celery" in told:
            break
    assert "no Celery worker serves queue default" in told
    assert "no Celery worker is alive" in headrace(farm, "headrace doctor").stdout
