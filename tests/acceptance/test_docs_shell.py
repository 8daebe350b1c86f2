"""The commands of the how-tos are run as they stand, or named with the test that runs them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from headrace import App
from tests.acceptance.docs_world import SHOP, fill, tasks_of
from tests.unit.cli_runner import CommandLine, command_line, working
from tests.unit.test_docs_commands import FENCED, PROMPT, ROOT

HOWTO = ROOT / "docs" / "howto"
FLOW = re.compile(r"^```json\n(\{\n  \"name\": .*?)^```$", re.MULTILINE | re.DOTALL)

#: Beginnings of command lines that last, or need servers, a model or minutes, with the tests that run them.
ELSEWHERE = {
    "agent": "tests/acceptance/test_events.py",
    "bench": "tests/unit/test_bench_command.py",
    "callback": "tests/acceptance/test_events.py",
    "celery": "tests/acceptance/test_celery_howto.py",
    "details generate": "tests/acceptance/test_details_example.py",
    "details list": "tests/acceptance/test_details_example.py",
    "details show": "tests/acceptance/test_details_example.py",
    "details watch": "tests/unit/test_details_command.py",
    "dev": "tests/acceptance/test_cli.py",
    "doctor": "tests/acceptance/test_cli.py",
    "memory": "tests/acceptance/test_memory_example.py",
    "migrate": "tests/acceptance/test_cli.py",
    "queue adopt": "tests/integration/test_redis_start.py",
    "ray": "tests/integration/test_ray_up.py",
    "relay": "tests/acceptance/test_events.py",
    "report": "tests/acceptance/test_report_example.py",
    "serve": "tests/integration/test_serve.py",
    "worker": "tests/acceptance/test_cli.py",
    "schedule forget": "tests/unit/test_cli_schedule.py",
    "workflow start shop:app": "tests/acceptance/test_celery_howto.py",
}

pytestmark = pytest.mark.acceptance


def lines_of(page: Path) -> list[list[str]]:
    """Return the words behind `headrace` of the command lines that stand in the blocks of a page."""
    blocks = FENCED.findall(page.read_text(encoding="utf-8"))
    lines = [PROMPT.sub("", line) for block in blocks for line in block.splitlines() if PROMPT.match(line)]
    words = [shlex.split(line.partition(" > ")[0].rstrip("& "), comments=True) for line in lines]
    return [rest for first, *rest in words if first == "headrace"]


def elsewhere(words: list[str]) -> str | None:
    """Return the test that runs a command, if it is not this one."""
    line = " ".join(words)
    return next((test for start, test in ELSEWHERE.items() if f"{line} ".startswith(f"{start} ")), None)


COMMANDS = {page.stem: [words for words in lines_of(page) if not elsewhere(words)] for page in HOWTO.glob("*.md")}
PAGES = sorted(page for page, lines in COMMANDS.items() if lines)


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[CommandLine]:
    """The command line, in a folder with what the pages name."""
    (tmp_path / "shop").mkdir()
    for name in ("jobs", "flows"):
        (tmp_path / "shop" / f"{name}.py").write_text(SHOP, encoding="utf-8")
    [flow] = FLOW.findall((HOWTO / "flows.md").read_text(encoding="utf-8"))
    (tmp_path / "exported").mkdir()
    for file in ("offers.json", "exported/offers.json"):
        (tmp_path / file).write_text(flow, encoding="utf-8")
    (tmp_path / "items.json").write_text(json.dumps([{"name": "tea", "price": 3}]), encoding="utf-8")
    (tmp_path / "vars.json").write_text('{"most": 5}', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with command_line(monkeypatch) as line:
        yield line


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_they_say(page: str, headrace: CommandLine) -> None:
    """Each in its turn, with the ids of what is there in the place of those that the page shows."""
    found = fill(headrace)
    names = {
        "01980000-0000-7000-8000-000000000000": found["run" if page == "run-workflows" else "job"],
        "c974bc0330": found["fingerprint"], "17": found["parked"],
    }  # fmt: skip
    for words in COMMANDS[page]:
        names["ID"] = found["batch"] if words[0] == "batch" else token_of(headrace)
        told = [names.get(word, word) for word in words]
        with working(world_app(headrace)) if "--wait" in words else nullcontext():
            done = headrace(*told, given="y\n" * 3)
        assert done.exit_code == 0, f"{' '.join(told)}: {done.output}"


def world_app(headrace: CommandLine) -> App:
    """Return an app with the tasks that the pages name."""
    app = headrace.app()
    tasks_of(app)
    return app


def token_of(headrace: CommandLine) -> str:
    """Return the id of the token that was made, if one was."""
    return next((str(token["id"]) for token in headrace.json("token", "list")), "")


def test_every_other_command_is_run_by_the_test_that_is_named() -> None:
    """It mentions the command, or the page whose commands it runs; none is named that no page shows."""
    shown = {(page.name, " ".join(words)) for page in HOWTO.glob("*.md") for words in lines_of(page)}
    for start, test in ELSEWHERE.items():
        text = (ROOT / test).read_text(encoding="utf-8")
        pages = [page for page, line in shown if f"{line} ".startswith(f"{start} ")]
        assert pages, f"no page shows {start}"
        assert start.split()[0] in text or any(page in text for page in pages), f"{test} does not run {start}"
