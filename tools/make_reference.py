"""Write pages of docs/reference: configuration.md from the settings, cli.md from the command line, and flow-nodes.md
and expressions.md from the node types and functions of JSON flows.

usage: python tools/make_reference.py [--check]     (--check writes nothing: exit code 1 when a page is out of date)
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from headrace import settings
from headrace.cli.exits import Exit
from headrace.cli.root import cli
from headrace.flow_settings import CredentialSettings
from headrace.model.durations import format_duration
from headrace.model.expressions.functions.listing import Function, Table
from headrace.model.expressions.functions.table import TABLES
from headrace.nodes.base import NodeType, Shape
from headrace.nodes.registry import MODULES, all_types
from headrace.queue_settings import QueueTable
from headrace.ray_settings import RayResources

PAGES = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTE = "<!-- Written by `make reference`; change the source instead. -->\n"

CONFIGURATION = f"""{NOTE}
# Configuration

Every key may stand in `headrace.toml` in the working directory (`HEADRACE_CONFIG` names another file) or in the
environment, which wins. Durations are written `"90s"`, `"2m"`, `"1h30m"`, `"7d"`. An unknown key or a wrong type
stops the start with the key and the fix.
"""


COMMAND_LINE = f"""{NOTE}
# Command line

What `--help` says of every command.

With `--json` a command writes one JSON document to standard output; `batch results`, `batch watch` and `worker` write
a line of JSON each time. Errors are JSON too then, on standard error: `{{"error": {{"code": …, "message": …}}}}`, with
`job_id`, `field` or `rule` where there is one. Instants are ISO 8601, durations are written as they are read (`1h30m`).
Output is coloured on terminals only; a reader that leaves, such as `head`, is no error.
"""


def command_line() -> str:
    """Return the page of all commands, with the exit codes they share."""
    parts = [COMMAND_LINE, exit_codes()]
    for path, command in commands(cli, ["headrace"]):
        context = click.Context(command, info_name=" ".join(path), terminal_width=100, **cli.context_settings)
        parts.append(f"## {' '.join(path)}\n\n```\n{command.get_help(context).rstrip()}\n```\n")
    return "\n".join(parts)


def exit_codes() -> str:
    """Return the table of exit codes."""
    about = comments(inspect.getsource(Exit))
    rows = [f"| {code.value} | {about.get(code.name) or code.name.lower()} |" for code in Exit]
    return "\n".join(["| exit code | meaning |", "|---|---|", *rows, ""])


def commands(group: click.Command, path: list[str]) -> Iterator[tuple[list[str], click.Command]]:
    """Yield a command and those below it, each with the words that call it."""
    yield path, group
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if command is not None and not command.hidden:
                yield from commands(command, [*path, name])


def configuration() -> str:
    """Return the page of all keys, with their defaults."""
    parts = [CONFIGURATION]
    root = settings.Settings()
    parts.append(table("", root, "Keys above the first table"))
    for item in dataclasses.fields(root):
        section = getattr(root, item.name)
        if dataclasses.is_dataclass(section):
            parts += tables(item.name, section)
    parts.append(named_table(QueueTable()))
    parts.append(named_table(RayResources()))
    parts += [VARS, named_table(CredentialSettings())]
    parts.append(MODELS)
    return "\n".join(parts)


def tables(name: str, section: Any) -> Iterator[str]:
    """Yield a table, unless it holds nothing but tables, and those within it."""
    within = {item.name: getattr(section, item.name) for item in dataclasses.fields(section)}
    if not all(dataclasses.is_dataclass(value) for value in within.values()):
        yield table(name, section, (type(section).__doc__ or "").strip())
    for key, value in within.items():
        if dataclasses.is_dataclass(value):
            yield from tables(f"{name}.{key}", value)


VARS = """## `[flows.vars]`

Values that expressions of flows see as `$vars.NAME`: texts, numbers, truth values, lists and tables.
"""

MODELS = """## `[llm.models.NAME]`

A further model, for `app.llm.using("NAME")` and `escalate_to`: the keys of `[llm]`. What is not given of its endpoint
is that of `[llm]`; its model, pool, quotas and prices are its own. Models of one `pool` (by its name, or by provider,
account and model where none is given) have its limits in common: a limit stands in one of their tables, or alike in
several.
"""


def named_table(values: Any) -> str:
    """Return the section of tables that a file may have many of: no defaults, and nothing of the environment."""
    about = comments(inspect.getsource(type(values)))
    heading, _, rest = (type(values).__doc__ or "").strip().partition(": ")
    rows = [f"| `{item.name}` | {about[item.name]} |" for item in dataclasses.fields(values)]
    lines = [f"## {heading}", "", rest[0].upper() + rest[1:], "", "| key | meaning |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def table(section: str, values: Any, title: str) -> str:
    """Return one section: a heading, and a row per key."""
    about = comments(inspect.getsource(type(values)))
    heading, _, rest = title.partition(": ")
    lines = [f"## {heading}", "", *([rest[0].upper() + rest[1:], ""] if rest else [])]
    lines += ["| key | default | environment | meaning |", "|---|---|---|---|"]
    for item in dataclasses.fields(values):
        default = getattr(values, item.name)
        if not dataclasses.is_dataclass(default) and (section, item.name) not in settings._NAMED_TABLES:
            names = ", ".join(f"`{name}`" for name in variables(section, item.name))
            meaning = about.get(item.name, "").replace("|", "\\|")
            lines.append(f"| `{item.name}` | {shown(default)} | {names} | {meaning} |")
    return "\n".join(lines) + "\n"


def variables(section: str, key: str) -> list[str]:
    """Return the environment variables of a key, the strongest first."""
    return list(dict.fromkeys([settings._variable(section, key), *settings._ALIASES.get((section, key), ())]))


def comments(source: str) -> dict[str, str]:
    """Return the `#:` comments of a class by the name they stand above; names that follow share them."""
    about: dict[str, str] = {}
    meaning: list[str] = []
    fresh = True
    for line in source.splitlines():
        text = line.strip()
        if re.match(r"(async )?def |@", text) and about:
            break  # its methods
        name = re.match(r"(\w+)\s*[:=]", text)
        if text.startswith("#:"):
            meaning = [text[2:].strip()] if fresh else [*meaning, text[2:].strip()]
            fresh = False
        elif name:
            about[name[1]] = " ".join(meaning)
            fresh = True
    return about


def shown(value: Any) -> str:
    """Return a default as one would write it in TOML; an empty text shows as nothing."""
    if isinstance(value, timedelta):
        return f'`"{format_duration(value)}"`'
    if isinstance(value, bool | int | float):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if value not in (None, ()) and str(value) else ""


FLOW_NODES = f"""{NOTE}
# Node types of flows

What a flow may consist of: `headrace flows nodes` lists the same, with the types that other packages bring. Each
understands the `parameters` of its namesake in n8n for the versions given; what it cannot do is refused when a flow is
checked or imported, with what to use in its place.
"""

SHAPES = {
    Shape.TRIGGER: "begins a run",
    Shape.WHOLE: "takes all items at once",
    Shape.EACH: "takes each item by itself, with tries and a stored result of its own",
    Shape.LOOP: "is a loop",
    Shape.FLOW: "runs another flow",
    Shape.NOTE: "never runs",
}


def flow_nodes() -> str:
    """Return the page of the built-in node types."""
    return "\n".join([FLOW_NODES, *(node_type(kind) for kind in own_types())])


def own_types() -> list[NodeType]:
    """Return the types of Headrace itself: they come first."""
    return list(all_types()[: len(MODULES)])


def node_type(kind: NodeType) -> str:
    """Return the section of a node type."""
    lowest, highest = kind.versions
    versions = f"{lowest:g}" if lowest == highest else f"{lowest:g} to {highest:g}"
    types = ", ".join(f"`{name}`" for name in kind.types)
    about = inspect.cleandoc(type(kind).__doc__ or "").partition("\n>>>")[0]
    facts = f"{SHAPES[kind.shape]} · `typeVersion` {versions} · {types}"
    return f"## {kind.name}\n\n{kind.summary[0].upper()}{kind.summary[1:]}. {about}\n\n{facts}\n"


EXPRESSIONS = f"""{NOTE}
# Functions of expressions

`f(x, a)` and `x.f(a)` mean the same. What a parameter may be, and the values that expressions begin with, are told in
[Write and run JSON flows](../howto/flows.md#expressions).
"""


def functions() -> str:
    """Return the page of all functions of expressions."""
    parts = [EXPRESSIONS]
    for group in TABLES:
        rows = [
            f"| {names_of(one, group)} | {cell(one.description)} | {example_of(one)} |"
            for one in group.functions.values()
            if not one.alias_of
        ]
        parts.append(
            "\n".join([f"## {group.title}", "", "| function | what it gives | example |", "|---|---|---|", *rows, ""])
        )
    return "\n".join(parts)


def names_of(function: Function, group: Table) -> str:
    """Return a function's names, the one it is listed by first."""
    others = [name for name, one in group.functions.items() if one.alias_of == function.name]
    return ", ".join(f"`{name}`" for name in [function.name, *others])


def example_of(function: Function) -> str:
    """Return a function's example with what it gives."""
    return f"`{cell(function.example)}` → `{cell(json.dumps(function.result, ensure_ascii=False))}`"


def cell(text: str) -> str:
    """Return a text as it may stand in a table."""
    return text.replace("|", "\\|")


def pages() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield every page with what writes it."""
    yield "configuration.md", configuration
    yield "cli.md", command_line
    yield "flow-nodes.md", flow_nodes
    yield "expressions.md", functions


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
