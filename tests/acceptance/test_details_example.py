"""The example of details as its page tells it: in one process, over HTTP, and over a service that is killed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import ANY

import pytest

from headrace.apps.details.items import DetailItem
from headrace.testing.provider import ProviderProcess
from tests.acceptance.command_runs import Place, Process, place

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "06_details"
PAGE = (EXAMPLE / "README.md").read_text(encoding="utf-8")
SERVED = "headrace.apps.details.worker:app"

pytestmark = pytest.mark.acceptance


@pytest.fixture
def provider() -> Iterator[ProviderProcess]:
    """The provider as the page starts it, on a free port."""
    [command] = re.findall(r"^python -m headrace.testing.provider .*$", PAGE, re.MULTILINE)
    options = shlex.split(command.replace("answers.json", str(EXAMPLE / "answers.json")))[3:]
    options[options.index("--port") + 1] = "0"
    with ProviderProcess(*options) as process:
        yield process


@pytest.fixture
def example(tmp_path: Path, provider: ProviderProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A place with the example, its model elsewhere than its file says."""
    shutil.copy(EXAMPLE / "headrace.toml", tmp_path)
    monkeypatch.setenv("HEADRACE_LLM_BASE_URL", provider.base_url)
    with place(tmp_path) as made:
        yield made


def shown(start: str) -> list[str]:
    """Return the words behind `headrace` of a command line of the page, by how it begins."""
    line = next(line for line in PAGE.splitlines() if line.startswith(f"headrace {start}"))
    return shlex.split(line)[1:]


def serve(example: Place, port: int = 0) -> tuple[Process, str]:
    """Start the service as the page does, on a free port, and return it with its URL."""
    command = shown("serve")
    process = example.start(*command, "--port", port, "--json")
    return process, process.line()["url"]


def names_of(lines: list[str]) -> list[str]:
    """Return the normalised names of lines of items."""
    return [DetailItem(name=line.partition(":")[0]).key for line in lines]


def test_the_example_does_what_its_page_says(example: Place) -> None:
    """Thirty places, and thirty others the second time; both are listed, and are told with their times."""
    made = []
    for _ in range(2):
        code, out, err = example.run(*shown("details generate --type location_name"))
        assert code == 0, err
        assert "first response: 10 items after" in err and "completed: 30 of 30 items after" in err
        made += names_of(out.splitlines())
    assert len(made) == len(set(made)) == 60
    listed = example.json(*shown("details list"))
    assert [(one["status"], one["delivered"]) for one in listed] == [("completed", 30)] * 2
    found = example.json("details", "show", listed[0]["batch_id"])
    assert names_of([item["name"] for item in found["items"]]) == made[30:]


@pytest.mark.slow
def test_the_example_over_http(example: Place) -> None:
    """Lines for people, lines of JSON, and the mode there and back."""
    _, url = serve(example)
    at = ("--url", url)
    code, out, err = example.run(*shown("details generate --type character_name")[:-2], *at)
    assert (code, len(set(names_of(out.splitlines())))) == (0, 20), err
    code, out, err = example.run(*shown("details generate --type item")[:-3], *at, "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert (code, events[0]["event"], events[-1]["event"]) == (0, "submitted", "completed"), err
    assert [event["seq"] for event in events[1:]] == list(range(1, len(events)))
    for mode in ("single-call", "normal"):
        assert example.json("details", "mode", mode, *at)["mode"] == mode


@pytest.mark.slow
def test_a_service_that_is_killed_is_waited_for(example: Place) -> None:
    """The command goes on behind the last item that it saw: each item once, in order, and all of them."""
    service, url = serve(example)
    port = int(url.rpartition(":")[2])
    command = example.start("details", "generate", "--type", "item", "--count", 40, "--url", url, "--json")
    events = [command.line() for _ in range(4)]
    service.kill()
    serve(example, port)
    while events[-1]["event"] != "completed":
        events.append(command.line())
    assert command.end() == 0
    assert [event["seq"] for event in events[1:]] == list(range(1, len(events)))
    names = [event["data"]["name"] for event in events if event["event"] == "item"]
    assert len(set(names_of(names))) == len(names) == 40


@pytest.mark.slow
def test_ctrl_c_loses_nothing(example: Place) -> None:
    """The command says how to go on, and with the same key it does: every item is told once more, and the rest."""
    command = ("details", "generate", "--type", "skill", "--count", 30, "--key", "k-1", "--json")
    first = example.start(*command)
    events = [first.line() for _ in range(4)]
    first.tell(signal.SIGINT)
    _, err = first.popen.communicate(timeout=30)
    assert first.popen.returncode == 130
    assert "nothing of it is lost" in err and events[0]["data"]["batch_id"] in err
    code, out, err = example.run(*command)
    again = [json.loads(line) for line in out.splitlines()]
    same = events[0] | {"data": events[0]["data"] | {"existing": True, "attention": ANY}}
    assert (code, again[:1], again[1:4]) == (0, [same], [one | {"after_seconds": ANY} for one in events[1:]]), err
    assert len([one for one in again if one["event"] == "item"]) == 30
