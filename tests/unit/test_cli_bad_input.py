"""Every mistake a user can make on the command line ends with its exit code and a clear line, never with a trace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from headrace.model.errors import NotAllowedError, StorageResetError, StoreUnavailableError, StoreVersionError
from tests.unit.cli_runner import CommandLine, command_line

FILES = {
    "cli_good.py": "from headrace import App\napp = App()\n@app.task\nasync def add(first: int) -> int: ...\n",
    "cli_raises.py": "import json\nvalue = 1\nvalue / 0\n",
    "cli_syntax.py": "from headrace import App\napp = App(\n",
    "cli_exits.py": "raise SystemExit(3)\n",
    "cli_lacks.py": "import no_such_package_at_all\n",
    "cli_deep.py": "import cli_raises\n",
    "cli_empty.py": "",
    "cli_other.py": "from headrace import App\napp = 'text'\njobs = App()\n",
    "cli_twice.py": "from headrace import App\napp = App()\n@app.task\nasync def one(): ...\n"
    "@app.task(name='one')\nasync def two(): ...\n",
    "cli_option.py": "from headrace import App\napp = App()\n@app.task(queu='a')\nasync def one(): ...\n",
    "cli_no_tasks.py": "from headrace import App\napp = App()\n",
    "cli_bad_url.py": "from headrace import App\napp = App('mysql://app:hush@db')\n",
    "cli_flows.py": "from headrace import App, chain\napp = App()\n@app.task\nasync def one(): ...\n"
    "@app.workflow\ndef flow(url: str):\n    return one.s()\napp.workflow('plain', one.s())\n",
    "cli_in_memory.py": "from headrace import App\napp = App('memory://')\n@app.task\nasync def one(): ...\n",
    "broken.toml": "[worker]\nconcurency = 4\n",
    "no.toml": "[worker\n",
    "folder/inner.txt": "",
}

USAGE, NOT_FOUND = 2, 5
ID = uuid4()

#: command line, exit code, what the message says
MISTAKES: dict[str, tuple[list[object], int, list[str]]] = {
    "no such command": (["wrk"], USAGE, ["wrk"]),
    "no such option": (["workers", "--al"], USAGE, ["--al"]),
    "no such verb": (["queue", "pauze"], USAGE, ["pauze"]),
    "an argument is missing": (["job", "show"], USAGE, ["ID"]),
    "an argument too many": (["workers", "now"], USAGE, ["now"]),
    "settings that do not exist": (["--config", "missing.toml", "workers"], USAGE, ["missing.toml"]),
    "settings that are a folder": (["--config", "folder", "workers"], USAGE, ["folder"]),
    "settings that are no TOML": (["--config", "no.toml", "workers"], USAGE, ["no.toml", "TOML"]),
    "an unknown setting": (["--config", "broken.toml", "workers"], USAGE, ["[worker] concurency", "concurrency"]),
    "a store of another kind": (["--url", "mysql://app:hush@db", "workers"], USAGE, ["queue.url", "postgresql://"]),
    "a store that is no address": (["--url", "localhost", "workers"], USAGE, ["queue.url", "postgresql://"]),
    "an id that is none": (["job", "show", "7"], USAGE, ["must be an id", "'7'"]),
    "an id of SQL": (["batch", "show", "'; DROP TABLE jobs"], USAGE, ["must be an id"]),
    "a queue name that is none": (["queue", "pause", "LLM!"], USAGE, ["[a-z0-9]", "'LLM!'"]),
    "a reason that is no text": (
        ["queue", "pause", "llm", "--force", "--reason", "caf\udce9"], USAGE, ["reason", "printable", "udce9"],
    ),
    "an unknown queue": (["queue", "pause", "llm"], NOT_FOUND, ["'llm'", "none yet"]),
    "an unknown job": (["job", "show", ID], NOT_FOUND, [str(ID)]),
    "an unknown batch": (["batch", "show", ID], NOT_FOUND, [str(ID)]),
    "no retention": (["queue", "cleanup"], USAGE, ["--retention"]),
    "a retention that is none": (["queue", "cleanup", "--retention", "soon"], USAGE, ["duration", "'soon'"]),
    "a negative retention": (["queue", "cleanup", "--retention", "-1d"], USAGE, ["-1d"]),
    "no batches at all": (["batch", "list", "--limit", "0"], USAGE, ["0"]),
    "more batches than fit": (["batch", "list", "--limit", "1000000000"], USAGE, ["10000"]),
    "an interval that is none": (["batch", "watch", ID, "--interval", "x"], USAGE, ["duration", "'x'"]),
    # MODULE:app
    "no such module": (["worker", "cli_nowhere:app"], USAGE, ["no module 'cli_nowhere'", "installed packages"]),
    "no such package": (["worker", "cli_nowhere.jobs:app"], USAGE, ["no module 'cli_nowhere.jobs'"]),
    "no such file": (["worker", "nowhere/jobs.py:app"], USAGE, ["no file nowhere/jobs.py"]),
    "no module name": (["worker", "a b:app"], USAGE, ["MODULE:app", "shop.jobs:app"]),
    "no attribute name": (["worker", "cli_good:a-b"], USAGE, ["'a-b' is not a Python name"]),
    "no such attribute": (["worker", "cli_other:nothing"], USAGE, ["no 'nothing'", "cli_other:jobs"]),
    "an attribute that is no app": (["worker", "cli_other:app"], USAGE, ["is a str", "cli_other:jobs"]),
    "a module without an app": (["worker", "cli_empty"], USAGE, ["no 'app'", "headrace.App()"]),
    "a module that raises": (["worker", "cli_raises"], USAGE, ["ZeroDivisionError", "cli_raises.py:3"]),
    "a file that raises": (["worker", "cli_raises.py"], USAGE, ["ZeroDivisionError", "cli_raises.py:3"]),
    "a module that imports one that raises": (["worker", "cli_deep"], USAGE, ["ZeroDivisionError", "cli_raises.py:3"]),
    "a module that is no Python": (["worker", "cli_syntax"], USAGE, ["SyntaxError", "cli_syntax.py:2"]),
    "a module that exits": (["worker", "cli_exits"], USAGE, ["SystemExit", "cli_exits.py:1"]),
    "a module that lacks a package": (["worker", "cli_lacks"], USAGE, ["no_such_package_at_all", "cli_lacks.py:1"]),
    "two tasks of one name": (["worker", "cli_twice"], USAGE, ["'one' is used by", "cli_twice.py:5"]),
    "an unknown task option": (["worker", "cli_option"], USAGE, ["task option", "'queu'", "cli_option.py:3"]),
    "an app without tasks": (["worker", "cli_no_tasks"], USAGE, ["no tasks", "@app.task"]),
    "an app with a wrong store": (["worker", "cli_bad_url"], USAGE, ["queue.url", "mysql"]),
    # worker
    "a queue of no concurrency": (["worker", "cli_good", "--queue", "llm:0"], USAGE, ["NAME:N", "'llm:0'"]),
    "a queue of half a concurrency": (["worker", "cli_good", "--queue", "llm:1.5"], USAGE, ["NAME:N"]),
    "a worker on a wrong queue": (["worker", "cli_good", "--queue", "L L"], USAGE, ["[a-z0-9]"]),
    "a queue twice": (["worker", "cli_good", "--queue", "a:1", "--queue", "a:2"], USAGE, ["--queue", "twice"]),
    "no concurrency": (["worker", "cli_good", "--concurrency", "0"], USAGE, ["0"]),
    "no processes": (["worker", "cli_good", "--processes", "0"], USAGE, ["0"]),
    "a grace that is none": (["worker", "cli_good", "--grace", "soon"], USAGE, ["duration", "'soon'"]),
    "an unknown log level": (["worker", "cli_good", "--log-level", "loud"], USAGE, ["loud"]),
    "the same mistakes under dev": (["dev", "cli_raises"], USAGE, ["ZeroDivisionError", "cli_raises.py:3"]),
    # enqueue
    "an unknown task": (["enqueue", "cli_good", "ad"], NOT_FOUND, ["no task 'ad'", "add"]),
    "no JSON": (["enqueue", "cli_good", "add", "{first: 1}"], USAGE, ["must be JSON", "column 2"]),
    "NaN": (["enqueue", "cli_good", "add", "NaN"], USAGE, ["NaN is not JSON"]),
    "infinity": (["enqueue", "cli_good", "add", "[-Infinity]"], USAGE, ["-Infinity is not JSON"]),
    "a key twice": (["enqueue", "cli_good", "add", '{"first": 1, "first": 2}'], USAGE, ["'first' stands twice"]),
    "nesting without end": (["enqueue", "cli_good", "add", "[" * 100_000], USAGE, ["JSON"]),
    "deep nesting": (["enqueue", "cli_good", "add", "[" * 80 + "]" * 80], USAGE, ["deep"]),
    "a NUL": (["enqueue", "cli_good", "add", '"a\\u0000"'], USAGE, ["NUL"]),
    "half a character": (["enqueue", "cli_good", "add", '"\\ud800"'], USAGE, ["surrogate"]),
    "too much": (["enqueue", "cli_good", "add", json.dumps("x" * 300_000)], USAGE, ["256 KiB"]),
    "arguments that do not fit": (["enqueue", "cli_good", "add", "[1, 2]"], USAGE, ["do not fit add(first: int)"]),
    "names that do not fit": (["enqueue", "cli_good", "add", '{"second": 2}'], USAGE, ["do not fit add(first: int)"]),
    "an unknown priority": (["enqueue", "cli_good", "add", "1", "--priority", "urgent"], USAGE, ["interactive"]),
    "a priority out of range": (["enqueue", "cli_good", "add", "1", "--priority", "10"], USAGE, ["0 to 9"]),
    "a time that is none": (["enqueue", "cli_good", "add", "1", "--run-at", "noon"], USAGE, ["10m", "'noon'"]),
    "a time somewhere": (["enqueue", "cli_good", "add", "1", "--run-at", "2031-01-31T12:00"], USAGE, ["offset"]),
    "a time too far": (["enqueue", "cli_good", "add", "1", "--run-at", "400d"], USAGE, ["a year ahead"]),
    "a key that is none": (["enqueue", "cli_good", "add", "1", "--key", ""], USAGE, ["key", "1 to 255"]),
    "a long key": (["enqueue", "cli_good", "add", "1", "--key", "k" * 256], USAGE, ["key", "1 to 255"]),
    "a wrong queue": (["enqueue", "cli_good", "add", "1", "--queue", "../x"], USAGE, ["[a-z0-9]"]),
    "a wait that is none": (["enqueue", "cli_good", "add", "1", "--timeout", "1s"], USAGE, ["--wait"]),
    "a store that would forget": (["enqueue", "cli_in_memory", "one"], USAGE, ["memory", "durable"]),
    # run
    "an unknown run": (["run", "show", ID], NOT_FOUND, [str(ID), "headrace run list"]),
    "a run of no id": (["run", "cancel", "7"], USAGE, ["must be an id", "'7'"]),
    "a run in no state": (["run", "list", "--state", "done"], USAGE, ["done", "succeeded"]),
    "no runs at all": (["run", "list", "--limit", "0"], USAGE, ["limit", "'0'"]),
    "a signal without a key": (["run", "signal"], USAGE, ["KEY"]),
    "a signal of no text": (["run", "signal", ""], USAGE, ["signal key", "1 to 255"]),
    "a signal that is no JSON": (["run", "signal", "k", "{by: 1}"], USAGE, ["must be JSON", "column 2"]),
    "a signal that is too large": (["run", "signal", "k", json.dumps("x" * 300_000)], USAGE, ["256 KiB"]),
    # workflow
    "an unknown workflow": (["workflow", "show", "nowhere"], NOT_FOUND, ["'nowhere'", "headrace workflow list"]),
    "an unknown one to switch": (["workflow", "activate", "nowhere"], NOT_FOUND, ["'nowhere'"]),
    "a version that is none": (["workflow", "show", "flow", "--version", "0"], USAGE, ["version", "'0'"]),
    "a workflow nobody knows": (["workflow", "start", "cli_flows", "flaw"], NOT_FOUND, ["'flaw'"]),
    "an input that is no JSON": (["workflow", "start", "cli_flows", "plain", "{a: 1}"], USAGE, ["must be JSON"]),
    "an input that does not fit": (["workflow", "start", "cli_flows", "flow", '{"uri": "a"}'], USAGE, ["url", "uri"]),
    "an input that is too much": (["workflow", "start", "cli_flows", "flow", "[1, 2]"], USAGE, ["takes", "url"]),
    "no input where one is needed": (["workflow", "start", "cli_flows", "flow"], USAGE, ["workflow flow", "'url'"]),
    "a run's key that is none": (["workflow", "start", "cli_flows", "plain", "--key", ""], USAGE, ["key", "1 to 255"]),
    "a run's wait that is none": (["workflow", "start", "cli_flows", "plain", "--timeout", "1s"], USAGE, ["--wait"]),
    "a run that would be forgotten": (["workflow", "start", "cli_in_memory", "x"], USAGE, ["memory", "durable"]),
}  # fmt: skip


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[CommandLine]:
    """The command line, in a folder with apps good and bad."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with command_line(monkeypatch) as line:
        yield line


@pytest.mark.parametrize(("arguments", "code", "words"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_told_in_a_line(
    headrace: CommandLine, arguments: list[object], code: int, words: list[str]
) -> None:
    """The exit code is the documented one, and the message names what is wrong without a trace or a secret."""
    result = headrace(*arguments)
    assert result.exit_code == code, result.stderr
    assert result.stdout == ""
    assert [word for word in words if word not in result.stderr] == []
    assert "Traceback" not in result.stderr
    assert "hush" not in result.stderr
    told = result.stderr.strip().splitlines()
    assert len([line for line in told if line.startswith("Error: ")]) == 1


@pytest.mark.parametrize(("arguments", "code", "words"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_told_as_json(headrace: CommandLine, arguments: list[object], code: int, words: list[str]) -> None:
    """With --json the same is one JSON document on standard error."""
    got, error = headrace.refusal(*arguments)
    assert got == code
    assert error["code"] in {"usage", "config", "invalid_input", "payload_too_large", "not_found"}
    assert "hush" not in error["message"]
    if "no such option" not in error["message"].lower():
        assert [word for word in words if word not in error["message"]] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["batch", "list", "--limit", "abc"], "limit must be a whole number from 1 to 10,000, got 'abc'"),
        (["dlq", "list", "--look", "-5"], "look must be a whole number from 1 to 1,000,000, got '-5'"),
        (["queue", "drain", "llm", "--timeout", "-1s"], 'must not be negative: write a duration such as "90s"'),
        (["queue", "cleanup", "--retention", "-1d"], "must not be negative"),
        (["worker", "cli_good", "--processes", "0"], "processes must be a whole number from 1 to 256, got '0'"),
    ],
)
def test_a_wrong_number_is_told_with_its_rule(headrace: CommandLine, words: list[str], said: str) -> None:
    """The option, the rule and the value are named, also for values with a leading minus."""
    code, error = headrace.refusal(*words)
    assert (code, words[-2] in error["message"], said in error["message"]) == (2, True, True)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("foo", "limits.url must begin with redis://, got 'foo'"),
        ("cache.local:6379/0", "got 'cache.local:6379/0'"),
        ("http://me:hush@cache", "got http://…"),
        ("me:hush@cache:6379", "got a text without ://"),
        ("hush hush", "got a text without ://"),
    ],
)
def test_a_wrong_address_is_shown_without_its_secrets(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    """What has no place for a password is shown as it is."""
    monkeypatch.setenv("HEADRACE_LIMITS_URL", value)
    code, error = headrace.refusal("workers")
    assert (code, said in error["message"], "hush" in error["message"]) == (2, True, False)


@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        (StoreUnavailableError("gone"), 3, "store_unavailable"),
        (StorageResetError("lost"), 3, "storage_reset"),
        (NotAllowedError("who are you"), 4, "not_allowed"),
        (StoreVersionError("old"), 1, "store_version"),
        (PermissionError(13, "Permission denied", "/etc/x"), 1, "os_error"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_the_store_says_becomes_an_exit_code(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, word: str
) -> None:
    """A store that is away, refuses or is too old, and Ctrl-C, each have their code, for people and as JSON."""

    async def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr("headrace.wiring.open_stores", refuse)
    result = headrace("workers")
    assert result.exit_code == code
    assert "Traceback" not in result.stderr
    assert headrace.refusal("workers")[1]["code"] == word


def test_a_mistake_of_ours_shows_where(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What should never happen ends with 1 and all a report needs, also with --json."""

    async def stumble(*_: object) -> None:
        raise AssertionError("impossible")

    monkeypatch.setattr("headrace.wiring.open_stores", stumble)
    result = headrace("workers")
    assert result.exit_code == 1
    assert "please report" in result.stderr
    assert "impossible" in result.stderr
    code, error = headrace.refusal("workers")
    assert (code, error["code"]) == (1, "internal_error")
    assert "Traceback" in error["trace"]


def test_a_reader_that_leaves_is_no_error(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Output that nobody reads any more ends a command silently."""

    def broken(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("headrace.cli.workers.print_json", broken)
    result = headrace("workers", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
