"""The README's example is the program it claims to be."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent.parent / "README.md"
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MAX_LINES = 15

pytestmark = pytest.mark.acceptance


def example() -> str:
    """Return the first Python block of the README."""
    match = PROGRAM.search(README.read_text(encoding="utf-8"))
    assert match is not None
    return match.group(1)


def run_example(directory: Path) -> list[str]:
    """Run the example as a reader would, and return its lines in the order of the items."""
    (directory / "example.py").write_text(example(), encoding="utf-8")
    command = [sys.executable, "-W", "error::ResourceWarning", "example.py"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return sorted(done.stdout.splitlines())


def test_the_example_runs_on_the_default_store(workplace: Path) -> None:
    """Copied into an empty directory it runs on an embedded PostgreSQL, and a second run finds the same batch."""
    expected = ["0 succeeded 6", "1 succeeded 4"]
    assert run_example(workplace) == expected
    assert (workplace / ".headrace").is_dir()
    assert run_example(workplace) == expected


def test_the_example_is_short() -> None:
    """Fifteen lines of code are enough for a first durable batch."""
    lines = [line for line in example().splitlines() if line.strip()]
    assert len(lines) <= MAX_LINES
