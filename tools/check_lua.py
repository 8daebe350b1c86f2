"""Check the rules of Lua: a header on every script, every script and piece used, and none named that is not there.

Run `python tools/check_lua.py`; it prints what is wrong and exits 1. The server itself checks the scripts in
tests/integration/test_redis_scripts.py.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORE = ROOT / "src" / "headrace" / "stores" / "redis"
NAME = re.compile(r"[a-z][a-z0-9_]*\.lua")
FLAGS = re.compile(r"#!lua( flags=[a-z,-]+)?")
INCLUDE = re.compile(r"^-- include (.+)$", re.MULTILINE)
#: What the header of a script has to say, where its body has this.
SAYS = {"Keys:": r"", "Complexity:": r"", "Arguments:": r"\bARGV\b", "Return": r"(?m)^return "}


def main() -> int:
    """Print every violation and return the exit code."""
    found = [*check_headers(STORE), *check_names(STORE)]
    for line in found:
        print(line)
    return 1 if found else 0


def check_headers(store: Path) -> Iterator[str]:
    """Yield what is wrong with the form of scripts and of the pieces in `lib/`."""
    for path in sorted((store / "scripts").rglob("*.lua")):
        shown, script = path.relative_to(store), path.parent.name == "scripts"
        first, _, rest = path.read_text("utf-8").partition("\n")
        if not NAME.fullmatch(path.name):
            yield f"{shown}: a script is named verb_noun.lua"
        if script and not FLAGS.fullmatch(first):
            yield f"{shown}: begins with `#!lua`, or `#!lua flags=…`"
        header = _header(rest if script else f"{first}\n{rest}")
        if not 1 <= len(header) <= 6:
            yield f"{shown}: has 1 to 6 comment lines on its purpose before anything else"
        body = re.sub(r"--[^\n]*", "", rest)
        for word, where in SAYS.items() if script and header else ():
            if re.search(where, body) and word.lower() not in " ".join(header).lower():
                yield f"{shown}: its header has to say `{word}`"


def check_names(store: Path) -> Iterator[str]:
    """Yield scripts that no module names, pieces that no script includes, and names without a file."""
    texts = {path.relative_to(store / "scripts"): path for path in (store / "scripts").rglob("*.lua")}
    files = {str(path).removesuffix(".lua") for path in texts}
    named: set[str] = set()
    for path in sorted(store.glob("*.py")):
        tree = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        named |= {node.value for node in tree if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        for node in tree:
            called = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and called in ("run", "load_script") and node.args:
                verb = getattr(node.args[0], "value", None)
                if isinstance(verb, str) and verb not in files:
                    yield f"{path.name}:{node.lineno}: there is no scripts/{verb}.lua"
    for name, path in sorted(texts.items()):
        for included in INCLUDE.findall(path.read_text("utf-8")):
            pieces = {f"lib/{piece}" for piece in included.split(", ")}
            named |= pieces
            yield from (f"{name}: there is no scripts/{piece}.lua" for piece in sorted(pieces - files))
    for idle in sorted(files - named - {text.removesuffix(".lua") for text in named}):
        yield f"scripts/{idle}.lua: nothing names it; remove it"


def _header(text: str) -> list[str]:
    lines = text.splitlines()
    end = next((at for at, line in enumerate(lines) if not line.startswith("--") or INCLUDE.match(line)), len(lines))
    return lines[:end]


if __name__ == "__main__":
    sys.exit(main())
