"""Check the rules of SQL: one statement per file with a header, every file used, and no SQL text in Python.

Run `python tools/check_sql.py`; it prints what is wrong and exits 1. The database itself checks the statements in
tests/integration/test_postgres_statements.py.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "headrace"
STORE = SOURCE / "stores" / "postgres"
#: Folders of statements: `queries/` beside the modules that name them.
FOLDERS = (STORE, SOURCE / "apps" / "memory" / "tables")
NAME = re.compile(r"[a-z][a-z0-9_]*\.sql")
MIGRATION = re.compile(r"\d{4}_(pre|post)_[a-z0-9_]+\.sql")
#: A statement begins with one of these and goes on with what only SQL says.
STATEMENT = re.compile(
    r"^\s*(select\s.+\sfrom\s|select\s+\S+\(|insert\s+into\s|update\s+\S+\s+(as\s+\w+\s+)?set\s|delete\s+from\s|"
    r"with\s+\w+\s+as\s|(create|drop|alter)\s+(table|index|schema|unique|or\s+replace)\s|truncate\s+(table\s|\S+\s*;?$)|"
    r"(notify|listen)\s+\S+\s*(,.*)?;?$|(begin|commit|rollback)\s*;|set\s+(local|session)\s|lock\s+table\s)",
    re.IGNORECASE | re.DOTALL,
)


def main() -> int:
    """Print every violation and return the exit code."""
    statements = [line for folder in FOLDERS for line in (*check_files(folder), *check_names(folder))]
    found = [*statements, *check_python(SOURCE)]
    for line in found:
        print(line)
    return 1 if found else 0


def check_files(store: Path) -> Iterator[str]:
    """Yield what is wrong with the form of statement files and migrations."""
    for path in sorted((store / "queries").iterdir()):
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        if not NAME.fullmatch(path.name):
            yield f"{shown}: a statement file is named verb_noun.sql"
            continue
        text = path.read_text("utf-8")
        header = list(_header(text))
        if not 2 <= len(header) <= 6:
            yield f"{shown}: begins with 2 to 6 comment lines on purpose, locks and index"
        elif not any("Locks:" in line for line in header) or not any("Index:" in line for line in header):
            yield f"{shown}: its header says `Locks:` (and their order) and `Index:`"
        if ";" in _without_comments(text):
            yield f"{shown}: holds one statement, without a semicolon"
    for path in sorted((store / "migrations").glob("*")):
        if not MIGRATION.fullmatch(path.name):
            yield f"{path.name}: a migration is named NNNN_pre_what.sql or NNNN_post_what.sql"


def check_names(store: Path) -> Iterator[str]:
    """Yield statement files that nothing names, and names without a file."""
    files = {path.stem for path in (store / "queries").glob("*.sql")}
    named = {text for path in store.glob("*.py") for _, text in _strings(path)}
    for name in sorted(files - named):
        yield f"queries/{name}.sql: no module of {store.name} names it; remove it"
    for path in sorted(store.glob("*.py")):
        for line, name in _fetched(path):
            if name not in files:
                yield f"{path.name}:{line}: there is no queries/{name}.sql"


def check_python(source: Path) -> Iterator[str]:
    """Yield string constants that hold SQL."""
    for path in sorted(source.rglob("*.py")):
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        for line, text in _strings(path):
            if STATEMENT.match(text):
                yield f"{shown}:{line}: SQL belongs in a .sql file"


def _header(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line.startswith("--"):
            return
        yield line


def _without_comments(text: str) -> str:
    return re.sub(r"--[^\n]*", "", text)


def _strings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the string constants of a module with their lines, docstrings left out."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def _fetched(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the constant statement names given to fetch and load_query."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("fetch", "fetch_one", "load_query") and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


if __name__ == "__main__":
    sys.exit(main())
