"""cli.md: what `--help` says of every command, and the exit codes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from headrace.cli.exits import Exit
from headrace.cli.root import cli
from tools.reference.text import NOTE, comments

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
