"""Tables of every command on narrow terminals: no id, name, expression, time or title is broken."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Iterator
from uuid import UUID

import pytest

from headrace import App, Breaker, Limit, chain, choose, map_, when
from headrace.cli.tables import Give, fit
from tests.unit.cli_runner import CommandLine, as_client, command_line, working
from tests.waiting import wait_until_sync

#: Ages and figures go on between two looks.
FIGURE = re.compile(r"(?<![\w*/:-])[0-9.]+(ms|s|m|h)?([0-9]+s)?(?![\w*/:-])")
NOTE = re.compile(r"Not shown:\s+(.*?)\s+\(--json or a wider terminal shows all\)", re.DOTALL)
#: An id beside its title: on a terminal narrower than that the terminal itself breaks it.
LONGEST = 56
DATE = re.compile(r"\b20[0-9]{2}-[0-9]{2}-[0-9]{2}\b")
INSTANT = re.compile(r"\b20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}(:[0-9]{2})?[+-][0-9]{2}:[0-9]{2}\b")
MESSAGE = "the scan holds no text that any model of this account can read, so nothing was paid for it"
SUMMARY, SCHEDULE, TASK = "summaries-of-night", "yearly-in-office-hours", "summarise_pages"
FLOW = "digest-of-the-night"
TABLES = {
    "queue stats": ("QUEUE", SUMMARY, "READY", "STATE"),
    "workers": ("STATE", "HOST", "QUEUES", SUMMARY, "HEARTBEAT"),
    "batch list": ("BATCH", "BATCH_ID", "TASK", TASK, "STATE"),
    "schedule list": ("SCHEDULE", SCHEDULE, "STATE", "CRON", "*/15 8-17 31 1 *", "NEXT"),
    f"schedule history {SCHEDULE}": ("FOR", "JOB", "JOB_ID"),
    "dlq list": ("FINGERPRINT", "COUNT", "TASK", TASK, "MESSAGE"),
    "limits list": ("CAP", f"task:{TASK}", "RATE", "openai-tokens", "BREAKER", "openai", "TRIES AGAIN", "tenant-7"),
    "job show JOB_ID": ("ATTEMPT", "ENDED", "ERROR"),
    "run list": ("RUN", "RUN_ID", "WORKFLOW", FLOW, "STATE"),
    "run show RUN_ID": ("NODE", "map-summarise_pages", "of all 12", "STATE", "NOTE"),
    "workflow list": ("WORKFLOW", FLOW, "STATE", "active"),
    f"workflow show {FLOW}": ("NODE", "KIND", "WHAT", TASK, "FROM", "TO", "WHEN"),
}


def _declare(app: App) -> None:
    limits, breaker = [Limit("openai-tokens", "60/m", burst=50)], Breaker("openai", failures=50, cooldown="10m")

    @app.task(name=TASK, queue=SUMMARY, limits=limits, breaker=breaker, concurrency=3)
    async def summarise(page: int) -> int:
        raise ValueError(f"{MESSAGE} (page {page})")

    app.schedule(summarise, "*/15 8-17 31 1 *", args=(7,), name=SCHEDULE, tz="America/Argentina/Buenos_Aires")
    app.schedule(summarise, "0 0 31 1 *", args=(8,), name="yearly")

    @app.task
    async def collect(pages: list[int]) -> list[int]:
        return pages

    once = summarise.s().options(retry={"max_tries": 1})
    app.workflow(FLOW, chain(collect.s(), choose(when().truthy(), map_(once, max_failed=None))))


@pytest.fixture(scope="module")
def headrace() -> Iterator[CommandLine]:
    """The command line on a store that has something for every table, with a worker that lives."""
    with pytest.MonkeyPatch.context() as patching, command_line(patching) as line:
        worker, client = line.app(), line.app()
        _declare(worker)
        _declare(client)
        task = client.find_task(TASK)

        async def enqueue() -> UUID:
            await client.submit(task, [2, 3], key="night-of-the-31st")
            return (await task.options(max_attempts=1).enqueue(1)).id

        with working(worker):
            line.wait_for(as_client(client, enqueue))
            run = as_client(client, lambda: client.start(FLOW, list(range(12)))).id
            wait_until_sync(lambda: line.json("run", "show", run)["state"] == "succeeded")
            line.text("schedule", "run-now", SCHEDULE)
            line.text("limits", "set-breaker", "openai", "open")
            line.text("limits", "set-weight", SUMMARY, "tenant-7", 2)
            line.text("queue", "pause", SUMMARY, "--reason", "the quota of this month is used up")
            yield line


def ids_of(headrace: CommandLine) -> dict[str, str]:
    """Return the ids that commands need and show."""
    return {
        "BATCH_ID": headrace.json("batch", "list")[0]["id"],
        "RUN_ID": headrace.json("run", "list")[0]["id"],
        "JOB_ID": headrace.json("schedule", "history", SCHEDULE)[0]["job_id"],
    }


@pytest.mark.parametrize("width", [100, 80, 60, 40])
@pytest.mark.parametrize("command", TABLES)
def test_nothing_is_broken_on_a_narrow_terminal(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch, command: str, width: int
) -> None:
    """Every word of a narrow table is one of the whole table; what it must show is there; titles left out are named."""
    ids = ids_of(headrace)
    if command.startswith("job show"):
        ids["JOB_ID"] = headrace.json("dlq", "list")["groups"][0]["examples"][0]
    words = [ids.get(word, word) for word in command.split()]
    whole = headrace.text(*words).partition("Last trace")[0]
    monkeypatch.setattr("headrace.cli.output.terminal_width", lambda: width)
    narrow = headrace.text(*words).partition("Last trace")[0]

    shown = NOTE.sub("", narrow)
    left_out = [title for note in NOTE.findall(narrow) for title in " ".join(note.split()).split(", ")]
    assert set(FIGURE.sub("N", shown).split()) - set(FIGURE.sub("N", whole).split()) == set()
    assert [title for title in left_out if title not in whole] == []
    assert [word for word in TABLES[command] if ids.get(word, word) not in shown] == []
    assert len(DATE.findall(shown)) == len(INSTANT.findall(shown))
    assert [line for line in narrow.splitlines() if len(line.rstrip()) > max(width, LONGEST)] == []


@pytest.mark.parametrize("command", TABLES)
def test_what_is_no_terminal_gets_every_column(headrace: CommandLine, command: str) -> None:
    """Into a pipe or a file nothing is left out and every row is one line."""
    ids = ids_of(headrace)
    text = headrace.text(*(ids.get(word, word) for word in command.split()))
    assert "Not shown" not in text


def test_the_width_is_that_of_the_terminal() -> None:
    """On a real terminal of 80 columns a table fits into 80 columns, and on one of 60 into 60."""
    code = (
        "from headrace.cli.output import print_table\n"
        "from headrace.cli.tables import Give\n"
        "print_table(('JOB', 'NOTE', 'QUEUE'), [('0' * 36, 'n' * 20, 'q' * 25)], Give(first=('NOTE',)))"
    )
    assert "Not shown: NOTE" in in_terminal(code, 80)
    assert in_terminal(code, 60).splitlines() == ["JOB    " + "0" * 36, "NOTE   " + "n" * 20, "QUEUE  " + "q" * 25]
    assert "Not shown" not in in_terminal(code, 85)


def in_terminal(code: str, columns: int) -> str:
    """Run Python code with a terminal of so many columns as its output and return what it wrote."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment |= {"TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen([sys.executable, "-c", code], stdin=theirs, stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        written = b""
        while part := _read(ours):
            written += part
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;]*m", "", written.decode())
    return "\n".join(line.rstrip() for line in text.splitlines())


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other end is closed
        return b""


def test_columns_without_values_go_first() -> None:
    """Of the columns that may go, one that says nothing is the first."""
    fitted = fit(("ID", "KEY", "LAST"), [("abc", "k1", "")], width=8, give=Give(first=("KEY", "LAST")))
    assert fitted is not None
    assert fitted.left_out == ("LAST",)


def test_a_list_is_wrapped_between_its_names_only() -> None:
    """A name longer than the room is not broken: then the table becomes blocks."""
    long = "q" * 45
    give = Give(lists=("QUEUES",))
    fitted = fit(("ID", "QUEUES"), [("1", f"{long}, {long}")], width=50, give=give)
    assert fitted is not None
    assert fitted.widths == {0: 2, 1: 46}
    assert fit(("ID", "QUEUES"), [("1", f"{long}, {long}")], width=49, give=give) is None
