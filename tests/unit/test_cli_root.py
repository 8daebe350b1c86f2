"""The command line as a whole: quick to start, the same rules for every command, colour only on terminals."""

from __future__ import annotations

import inspect
import json
import logging
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import click
import pytest

from headrace import __version__
from headrace.cli import output
from headrace.cli.logs import DevFormatter, JsonFormatter, LineFormatter
from headrace.cli.root import COMMANDS, cli
from headrace.engine.pace import Pace
from tests.unit.cli_runner import CommandLine, command_line
from tools import make_reference

#: Packages and modules that `headrace --help` must not pay for.
SLOW = {
    "asyncpg",
    "openai",
    "pydantic",
    "rich",
    "httpx",
    "headrace.wiring",
    "headrace.cli.worker",
    "headrace.cli.batch",
}


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


def tree(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with the words that call it."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from tree(found, (*path, name))
    else:
        yield path, command


LEAVES = dict(tree(cli))


def test_help_loads_no_command_and_nothing_slow() -> None:
    """`headrace --help` answers from the table alone: no driver, no terminal library, no command is imported."""
    code = (
        "import sys, headrace.cli\n"
        "sys.argv[1:] = ['--help']\n"
        "try:\n headrace.cli.main()\n"
        "finally:\n print(*sys.modules, file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert SLOW.isdisjoint(result.stderr.split())
    assert all(name in result.stdout for name in COMMANDS)


def test_the_package_runs_as_a_module() -> None:
    """`python -m headrace` is the command line."""
    command = [sys.executable, "-m", "headrace", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"headrace {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_the_command_says(name: str) -> None:
    """The line of a command in `headrace --help` is how its own help begins."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    help_text = inspect.cleandoc(command.help or "").replace("\n", " ")
    assert help_text.startswith(COMMANDS[name].summary.rstrip("."))


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_has_json_and_an_example(path: tuple[str, ...]) -> None:
    """Every command can write JSON, explains each option, and shows a line that could be typed."""
    command = LEAVES[path]
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert "--json" in [name for option in options for name in option.opts]
    assert [option.name for option in options if not option.help and not option.hidden] == []
    examples = re.findall(r"^ +headrace .*", command.help or "", re.MULTILINE)
    assert any(" ".join(path) in example for example in examples)


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_example_is_understood(path: tuple[str, ...]) -> None:
    """The options of every example exist and take the values shown."""
    for example in re.findall(r"^ +headrace (.*)", LEAVES[path].help or "", re.MULTILINE):
        words = shlex.split(example)
        rest = words[words.index(path[-1]) + 1 :]
        # A command keeps the help option it was first asked for.
        LEAVES[path].make_context(path[-1], rest, **cli.context_settings)


def test_reference_pages_are_current() -> None:
    """docs/reference is what the code says of itself; `make reference` writes it anew."""
    stale = [name for name, text in make_reference.pages() if (make_reference.PAGES / name).read_text() != text()]
    assert stale == []
    assert "cli.md" in dict(make_reference.pages())


def test_the_store_can_be_chosen_on_the_command_line(headrace: CommandLine, tmp_path: Path) -> None:
    """--url wins over --config and the environment; --config is read instead of headrace.toml."""
    settings = tmp_path / "mine.toml"
    settings.write_text('[queue]\nschema = "mine"\n')
    found = headrace("--config", settings, "--url", "postgresql://app:hush@db/jobs", "doctor", "--json")
    address = {check["check"]: check for check in json.loads(found.stdout)["checks"]}["address"]
    assert address["message"] == "postgresql://app@db/jobs, schema mine"


# Output


def test_tables_have_colour_on_terminals_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe gets plain, uncut text; a terminal gets colour."""
    long = "x" * 300
    output.print_table(("STATE", "NOTE"), [("failed", long)])
    text = capsys.readouterr().out
    assert long in text
    assert "\x1b" not in text
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    output.print_table(("STATE", "NOTE"), [("failed", "short")])
    assert "\x1b[31mfailed" in capsys.readouterr().out


def test_what_users_wrote_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters and markup in data are shown, not obeyed."""
    output.print_table(("NOTE",), [("\x1b]0;title\x07[red]bold[/red]",)])
    output.print_facts({"note": "\x1b[2J", "none": None})
    output.print_text("\x1b[2J")
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "[red]bold[/red]" in text
    assert "none" not in text


def test_json_is_readable_by_every_reader(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON is one line; letters are written as they are only where the output can hold them."""
    output.print_json({"name": "Zoë", "age": timedelta(minutes=90)})
    assert capsys.readouterr().out == '{"name": "Zoë", "age": "1h30m"}\n'
    monkeypatch.setattr(
        "sys.stdout",
        type(
            "Ascii",
            (),
            {"encoding": "ascii", "write": sys.stdout.write, "flush": sys.stdout.flush, "isatty": lambda _: False},
        )(),
    )
    output.print_json({"name": "Zoë"})
    assert capsys.readouterr().out == '{"name": "Zo\\u00eb"}\n'


# Logs


def record(message: str, level: int = logging.INFO, **facts: object) -> logging.LogRecord:
    """Return a log record."""
    made = logging.LogRecord("headrace.jobs", level, __file__, 1, message, None, None)
    vars(made).update(facts)
    return made


def test_log_lines_name_the_job() -> None:
    """A line of a job carries its task and id, for people and as JSON; nothing in it commands the terminal."""
    failed = record("failed: \x1b[31m", logging.WARNING, task="root", job_id="j-1", attempt=2)
    assert LineFormatter().format(failed).endswith("WARNING headrace.jobs  failed: \\x1b[31m [root j-1 #2]")
    document = json.loads(JsonFormatter().format(failed))
    assert (document["task"], document["job_id"], document["attempt"], document["level"]) == (
        "root", "j-1", 2, "warning",
    )  # fmt: skip
    assert "root j-1 #2" in click.unstyle(DevFormatter().format(failed))
    assert click.unstyle(DevFormatter().format(record("oh", logging.ERROR))).endswith("error: oh")


def test_a_trace_in_a_log_commands_no_terminal() -> None:
    """What an exception says is shown, not obeyed; JSON keeps it whole."""
    try:
        raise ValueError("\x1b[2J")
    except ValueError:
        failed = record("surprise", exc_info=sys.exc_info())
    assert "\x1b" not in LineFormatter().format(failed)
    assert "ValueError" in LineFormatter().format(failed)
    assert "\x1b[2J" in json.loads(JsonFormatter().format(failed))["trace"]


# Pace


def test_pace_forgets_what_is_long_ago() -> None:
    """The rate is that of the window; a new round, which counts fewer, begins anew; nothing known is None."""
    pace = Pace(timedelta(seconds=10))
    assert (pace.rate, pace.eta(5)) == (None, None)
    for second in range(21):
        pace.note(float(second), 0 if second < 10 else (second - 10) * 3)
    assert pace.rate == pytest.approx(3.0)
    assert pace.eta(30) == timedelta(seconds=10)
    pace.note(22.0, 1)
    assert pace.rate is None
