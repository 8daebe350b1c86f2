"""Write the generated pages of docs/reference: tools/reference/ has a module for each.

usage: python -m tools.make_reference [--check]     (--check writes nothing: exit code 1 when a page is out of date)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.reference import command_line, configuration, events, expressions, flow_nodes, http, licences, schema

PAGES = Path(__file__).resolve().parent.parent / "docs" / "reference"


def pages() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield every page with what writes it."""
    yield "configuration.md", configuration.configuration
    yield "cli.md", command_line.command_line
    yield "flow-nodes.md", flow_nodes.flow_nodes
    yield "expressions.md", expressions.functions
    yield "http.md", http.http
    yield "events.md", events.events
    yield "sql-schema.md", schema.sql_schema
    yield "licences.md", licences.licences


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
    try:
        sys.exit(main())
    except ValueError as error:
        sys.exit(str(error))
