"""Write docs/reference/configuration.md from the settings and docs/reference/cli.md from the command line.

usage: python tools/make_reference.py [--check]     (--check writes nothing: exit code 1 when a page is out of date)
"""

from __future__ import annotations

import ast
import dataclasses
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace import settings
from headrace.model.durations import format_duration

PAGES = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTE = "<!-- Written by `make reference`; change the source instead. -->\n"

CONFIGURATION = f"""{NOTE}
# Configuration

Every key may stand in `headrace.toml` in the working directory (`HEADRACE_CONFIG` names another file) or in the
environment, which wins. Durations are written `"90s"`, `"2m"`, `"1h30m"`, `"7d"`. An unknown key or a wrong type
stops the start with the key and the fix.
"""


def configuration() -> str:
    """Return the page of all keys, with their defaults."""
    parts = [CONFIGURATION]
    root = settings.Settings()
    parts.append(table("", root, "Keys above the first table"))
    for item in dataclasses.fields(root):
        section = getattr(root, item.name)
        if dataclasses.is_dataclass(section):
            parts.append(table(item.name, section, (type(section).__doc__ or "").strip()))
    return "\n".join(parts)


def table(section: str, values: Any, title: str) -> str:
    """Return one section: a heading, and a row per key."""
    about = comments(type(values).__name__)
    heading, _, rest = title.partition(": ")
    lines = [f"## {heading}", "", *([rest[0].upper() + rest[1:], ""] if rest else [])]
    lines += ["| key | default | environment | meaning |", "|---|---|---|---|"]
    for item in dataclasses.fields(values):
        default = getattr(values, item.name)
        if not dataclasses.is_dataclass(default):
            names = ", ".join(f"`{name}`" for name in variables(section, item.name))
            meaning = about.get(item.name, "").replace("|", "\\|")
            lines.append(f"| `{item.name}` | {shown(default)} | {names} | {meaning} |")
    return "\n".join(lines) + "\n"


def variables(section: str, key: str) -> list[str]:
    """Return the environment variables of a key, the strongest first."""
    return list(dict.fromkeys([settings._variable(section, key), *settings._ALIASES.get((section, key), ())]))


def comments(class_name: str) -> dict[str, str]:
    """Return the `#:` comments of a settings class by field; fields below share the one above them."""
    source = Path(settings.__file__).read_text(encoding="utf-8")
    [found] = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == class_name]
    about: dict[str, str] = {}
    meaning: list[str] = []
    fresh = True
    for line in source.splitlines()[found.lineno : found.end_lineno]:
        text = line.strip()
        if text.startswith("#:"):
            meaning = [text[2:].strip()] if fresh else [*meaning, text[2:].strip()]
            fresh = False
        elif ":" in text and text.split(":")[0].isidentifier():
            about[text.split(":")[0]] = " ".join(meaning)
            fresh = True
    return about


def shown(value: Any) -> str:
    """Return a default as one would write it in TOML; an empty text shows as nothing."""
    if isinstance(value, timedelta):
        return f'`"{format_duration(value)}"`'
    if isinstance(value, bool | int):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if str(value) else ""


def pages() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield every page with what writes it."""
    yield "configuration.md", configuration


def main() -> int:
    """Write the pages, or compare them; return the exit code."""
    stale = []
    for name, write in pages():
        path, text = PAGES / name, write()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print(f"out of date: {', '.join(stale)}; run `make reference`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
