"""The example of reports as its page tells it: with the model, without it, filled in, and over HTTP."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.testing.provider import ProviderProcess
from tests.acceptance.command_runs import Place, place

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "07_report"
PAGE = (EXAMPLE / "README.md").read_text(encoding="utf-8")
HOWTO = (EXAMPLE.parent.parent / "docs" / "howto" / "report.md").read_text(encoding="utf-8")
SERVED = "http://127.0.0.1:8400"
#: Nobody listens there.
NOWHERE = "http://127.0.0.1:9/v1"

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
    """A place with the example and its samples, its model elsewhere than its file says."""
    shutil.copy(EXAMPLE / "headrace.toml", tmp_path)
    monkeypatch.setenv("HEADRACE_LLM_BASE_URL", provider.base_url)
    with place(tmp_path) as made:
        code, _, err = made.run(*shown("report sample"))
        assert code == 0, err
        yield made


def shown(start: str, job: str = "") -> list[str]:
    """Return the words behind `headrace` of a command line of the page, by how it begins."""
    line = next(line for line in PAGE.splitlines() if line.startswith(f"headrace {start}"))
    return shlex.split(line.replace("JOB_ID", job))[1:]


def curls(page: str, url: str) -> list[list[str]]:
    """Return the words of the requests that a page shows, to another address."""
    lines = page.replace("\\\n", " ").replace(SERVED, url).splitlines()
    return [shlex.split(line) for line in lines if line.startswith("curl ")]


def test_the_example_does_what_its_page_says(example: Place) -> None:
    """A report; the same again without a question; and one with a trend, for which only the text is asked for."""
    build = shown("report build samples/clean")
    first = example.json(*build)
    assert (first["status"], first["metrics"]["cases"], first["usage"]["reused"]) == ("ok", 120, 0)
    assert first["usage"]["calls"] > 20
    report = example.folder / "report"
    assert sorted(path.name for path in report.iterdir()) == ["report.html", "report.json", "report.xlsx"]
    document = json.loads((report / "report.json").read_text("utf-8"))
    assert (document["content"]["by_model"], document["content"]["left_out"]) == (True, 1)
    assert all(one["by_model"] and one["quote"] for one in document["defects"])
    assert all(one["named_by_model"] for one in document["clusters"])

    again = example.json(*build)
    assert (again["job_id"], again["usage"]) == (first["job_id"], first["usage"])
    trend = example.json(*shown("report build samples/clean.xlsx --out again"))
    assert trend["usage"]["calls"] == 1
    assert json.loads((example.folder / "again" / "report.json").read_text("utf-8"))["stats"]["trend"]


@pytest.mark.slow
def test_a_report_without_the_model_is_filled_by_a_resume(
    example: Place, provider: ProviderProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is degraded, in seconds, and asks for what is missing once the model is there."""
    monkeypatch.setenv("HEADRACE_LLM_BASE_URL", NOWHERE)
    away = example.json(*shown("report build samples/junit"))
    assert (away["status"], away["usage"]["calls"]) == ("degraded", 0)
    assert "Analysis degraded" in (example.folder / "away" / "report.html").read_text("utf-8")
    monkeypatch.setenv("HEADRACE_LLM_BASE_URL", provider.base_url)
    filled = example.json(*shown("report resume", away["job_id"]))
    assert (filled["status"], filled["job_id"], filled["degraded"]) == ("ok", away["job_id"], [])
    assert filled["usage"]["calls"] == provider.stats().paid
    status = example.json(*shown("report status", away["job_id"]))
    assert (status["status"], status["percent"]) == ("ok", 100)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl is installed")
@pytest.mark.parametrize("page", [PAGE, HOWTO], ids=["example", "howto"])
def test_the_requests_of_a_page_do_what_it_says(example: Place, page: str) -> None:
    """Each is run as it stands: a file goes in, a report is asked for, followed and read, and may be resumed."""
    url = example.start(*shown("serve"), "--port", 0, "--json").line()["url"]
    job = ""
    answers: list[Any] = []
    for words in curls(page, url):
        told = [word.replace("JOB_ID", job) for word in words]
        done = subprocess.run(told, cwd=example.folder, capture_output=True, text=True, timeout=60, check=True)
        answers.append({"events": done.stdout} if "event:" in done.stdout else json.loads(done.stdout))
        job = job or answers[-1].get("job_id", "")
    assert answers[0]["file_ref"].startswith("file:") and job
    assert 'event: ended\ndata: {"status":"ok"' in answers[2]["events"]
    assert answers[3]["run"]["job_id"] == job
    assert answers[4:] in ([], [{"job_id": job}])


@pytest.mark.slow
def test_the_processes_of_the_how_to_make_a_report_together(example: Place) -> None:
    """One asks the model, one does all else, and the command only waits."""
    section = HOWTO.split("## In several processes")[1]
    lines = [shlex.split(line)[1:] for line in section.splitlines() if line.startswith("headrace ")]
    workers, [build, *_] = lines[:2], lines[2:]
    for words in workers:
        assert example.start(*words, "--json").line()["event"] == "started"
    build[build.index("cases.xlsx")] = "samples/clean.xlsx"
    made = example.json(*build)
    assert (made["status"], len(made["files"])) == ("ok", 3)
