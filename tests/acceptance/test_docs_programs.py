"""The programs in the how-tos and the explanations do what the pages say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.database import new_database

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
PROGRAM = re.compile(r"^```python[^\n]*\n(.*?)^```$\s*(?:^```output\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in sorted([*(DOCS / "howto").glob("*.md"), *(DOCS / "explanation").glob("*.md")])
    if PROGRAM.search(page.read_text(encoding="utf-8"))
]
#: Pages whose programs would start a database of their own: that one starts by itself the page on memory shows.
LENT = {"enqueue-in-your-transaction", "review-papers"}

pytestmark = pytest.mark.acceptance


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_program_prints_what_its_page_shows(page: Path, workplace: Path) -> None:
    """Copied into an empty directory, each program of a how-to or explanation prints exactly the output below it."""
    for program, expected in PROGRAM.findall(page.read_text(encoding="utf-8")):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=workplace, env=environment_of(page, program), capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.stdout, done.returncode) == (expected, 0), done.stderr


def environment_of(page: Path, program: str) -> dict[str, str]:
    """Return the variables of a program; one that asks for a database by them, or needs to start none, has its own."""
    lent = "HEADRACE_URL" in program or page.stem in LENT
    return {**os.environ, **({"HEADRACE_URL": new_database()} if lent else {})}
