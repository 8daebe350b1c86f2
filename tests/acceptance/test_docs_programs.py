"""The programs in the tutorial, the how-tos and the explanations do what the pages say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tests.backends.database import new_database
from tests.waiting import wait_until_sync

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
PROGRAM = re.compile(r"^```python[^\n]*\n(.*?)^```$\s*(?:^```output\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in sorted([*(DOCS / "howto").glob("*.md"), *(DOCS / "explanation").glob("*.md")])
    if PROGRAM.search(page.read_text(encoding="utf-8"))
]

pytestmark = pytest.mark.acceptance


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_program_prints_what_its_page_shows(page: Path, workplace: Path) -> None:
    """Copied into an empty directory, each program of a how-to or explanation prints exactly the output below it."""
    for program, expected in PROGRAM.findall(page.read_text(encoding="utf-8")):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=workplace, env=environment_of(program), capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert (done.stdout, done.returncode) == (expected, 0), done.stderr


def environment_of(program: str) -> dict[str, str]:
    """Return the variables of a program; one that asks for a database by them has one of its own."""
    return {**os.environ, "HEADRACE_URL": new_database()} if "HEADRACE_URL" in program else {**os.environ}


def test_the_tutorial_survives_its_crash(workplace: Path) -> None:
    """A worker killed in the middle of the tutorial's batch loses nothing, and what had ended does not run again."""
    [(program, _)] = PROGRAM.findall((DOCS / "tutorial" / "first-batch.md").read_text(encoding="utf-8"))
    (workplace / "texts.py").write_text(program, encoding="utf-8")
    worker = [sys.executable, "-m", "headrace", "worker", "texts:app", "--concurrency", "2"]
    client = subprocess.Popen([sys.executable, "texts.py"], cwd=workplace, stdout=subprocess.PIPE, text=True)
    measured: list[str] = []
    for name in ("first", "second"):
        log = workplace / f"{name}.log"
        with log.open("w") as output:
            process = subprocess.Popen(worker, cwd=workplace, stdout=output, stderr=subprocess.DEVNULL)
        if name == "first":
            wait_until_sync(lambda log=log: log.read_text().count("measured") >= 4, timedelta(seconds=60))
            process.kill()
        else:
            printed, _ = client.communicate(timeout=60)
            process.terminate()
        process.wait()
        measured += [line.partition(" in ")[0] for line in log.read_text().splitlines()]
    assert printed.count(" succeeded {") == 12
    assert "succeeded=12, failed=0" in printed
    # Only what was running at the kill ran again, and only its first attempt may be missing from the log.
    assert len(set(measured)) == 12
    assert len(measured) <= 12 + 2
