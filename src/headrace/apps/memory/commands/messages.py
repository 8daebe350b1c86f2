"""From options and files to the messages of a chat."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from headrace import ConfigError, InvalidInputError
from headrace.model.payload import encode_json
from headrace.model.strict_json import json_fault, refuse_constant, unique_members

STDIN = "-"
#: Bytes of a file, and of the messages of one insert as JSON.
MOST_FILE = MOST_SAID = 8 << 20


def messages_options(command: Any) -> Any:
    """Add the options that say what was said."""
    options = (
        click.option(
            "--message", "texts", metavar="TEXT", multiple=True, show_default=False,
            help="The user said this. Repeatable.",
        ),
        click.option(
            "--file", "file", metavar="FILE", show_default=False,
            help="Messages: a JSON list, an object with `messages`, or one message per line; - reads stdin.",
        ),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def messages_of(texts: Sequence[str], file: str | None) -> list[Any]:
    """Return what was given, as JSON that the store takes. Raises UsageError, InvalidInputError, ConfigError."""
    if bool(texts) == (file is not None):
        raise click.UsageError("give either --message TEXT, as often as needed, or --file FILE")
    said = [{"role": "user", "content": text} for text in texts] if file is None else read_messages(file)
    encode_json(said, field="messages", most=MOST_SAID)
    return said


def read_messages(file: str) -> list[Any]:
    """Return the messages of a file. Raises InvalidInputError, ConfigError for one that cannot be read."""
    name = "standard input" if file == STDIN else file
    text = _text_of(file, name)
    found = _parsed(text, name)
    if isinstance(found, dict) and set(found) == {"messages"}:
        found = found["messages"]
    if not isinstance(found, list):
        raise InvalidInputError("--file", 'must hold a list of messages such as {"role": "user", "content": "…"}', name)
    return found


def _text_of(file: str, name: str) -> str:
    try:
        if file == STDIN:
            data = sys.stdin.buffer.read(MOST_FILE + 1)
        else:
            with Path(file).open("rb") as opened:
                data = opened.read(MOST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"--file {name} cannot be read ({error.strerror})") from None
    if len(data) > MOST_FILE:
        raise InvalidInputError("--file", f"must have at most {MOST_FILE >> 20} MiB", name)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError("--file", "must be UTF-8", name) from None


def _parsed(text: str, name: str) -> Any:
    """Return JSON, or a list of the JSON of each line."""
    try:
        return _json(text)
    except ValueError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or not lines[0].lstrip().startswith("{"):
            raise InvalidInputError("--file", f"must be JSON ({json_fault(error)})", name) from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(_json(line))
        except ValueError as error:
            raise InvalidInputError("--file", f"must have JSON in line {number} ({json_fault(error)})", name) from None
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=unique_members)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
