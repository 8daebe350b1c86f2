"""The public surface: names, types, and what importing it costs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import headrace

ROOT = Path(__file__).resolve().parent.parent.parent
PUBLIC = [
    *("App", "Backoff", "Batch", "BatchItem", "Breaker", "Cancel", "ClosePolicy", "ConfigError", "ConflictError"),
    *("Context", "Done", "Fail", "GatherContext", "HeadraceError", "JobHandle", "Limit", "Priority", "Progress"),
    *("QueueClosedError", "QueueFullError", "Rate", "Retry", "Snooze", "Task"),
]
#: What `import headrace` may load besides the standard library.
OWN = {"headrace"}


def test_the_public_names_are_these() -> None:
    """A name is added to, or taken from, the public surface on purpose: here and in the changelog."""
    assert headrace.__all__ == PUBLIC
    assert sorted(PUBLIC) == PUBLIC
    assert [name for name in PUBLIC if not hasattr(headrace, name)] == []
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", headrace.__version__)


def test_every_public_name_says_what_it_is() -> None:
    """Public classes, their public methods and properties have docstrings."""
    silent = [
        f"{name}.{member}"
        for name in PUBLIC
        for member, value in {"": getattr(headrace, name), **vars(getattr(headrace, name))}.items()
        if not member.startswith("_") and (callable(value) or isinstance(value, property)) and not value.__doc__
    ]
    assert silent == []


def test_importing_headrace_loads_nothing_that_is_installed() -> None:
    """`import headrace` needs the standard library alone: neither pydantic nor any driver, web or model package."""
    code = "import sys, headrace; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, check=True, text=True, cwd=ROOT
    ).stdout.split()
    foreign = {
        name
        for name in set(loaded) - OWN - set(sys.stdlib_module_names)
        # Start-up files of the environment (editable installs, build identifiers), which load without us too.
        if not name.startswith(("__", "_virtualenv", "_distutils", "sitecustomize", "_sysconfigdata"))
    }
    assert foreign == set()


def test_enqueueing_plain_values_needs_no_pydantic() -> None:
    """A client whose tasks take and return plain JSON types never pays for pydantic."""
    code = """
import asyncio, sys
from headrace import App
app = App("memory://")
@app.task
async def double(number: int) -> int:
    return 2 * number
async def main():
    async with app.worker():
        print(await (await double.enqueue(4)).result(10))
asyncio.run(main())
print("pydantic" in sys.modules)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert said == ["8", "False"]


def test_the_public_types_are_what_users_rely_on() -> None:
    """mypy accepts `tests/typing`, with each of its assertions and none of the errors it must show."""
    files = [str(path) for path in sorted((ROOT / "tests" / "typing").glob("*.py"))]
    assert files
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--follow-imports=silent", *files],
        capture_output=True,
        check=False,
        text=True,
        cwd=ROOT,
    )
    assert (checked.stdout, checked.returncode) == ("", 0), checked.stderr
