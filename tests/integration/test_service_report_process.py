"""Reports over HTTP on processes of their own: a workbook goes in, its events are followed, three files come out."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from headrace.apps.report.samples.writing import write_samples
from headrace.testing.provider import ProviderProcess
from tests.acceptance.command_runs import Place, place
from tests.unit.browser import browser, installed
from tests.unit.report_serving import ANSWERS, BYTES

#: Some of the facts is refused, once. (Nobody reads what the service logs of each: of all it would fill a pipe.)
REFUSED = "500:status=400,contains=You turn one failed,attempts=1-1,rate=0.2"


@pytest.fixture
def provider() -> Iterator[ProviderProcess]:
    """A model that answers as that of the example, but refuses some facts once."""
    with ProviderProcess("--answers", str(ANSWERS), "--fault", REFUSED) as process:
        yield process


@pytest.fixture
def served(tmp_path: Path, provider: ProviderProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx2.Client]:
    """A service with a worker, on PostgreSQL."""
    for name, value in provider.environment.items():
        monkeypatch.setenv(name, value)
    with place(tmp_path) as made, httpx2.Client(base_url=f"{serve(made)}/api/v1", timeout=60) as client:
        yield client


def serve(made: Place) -> str:
    """Start the service and return its URL."""
    command = ("serve", "headrace.apps.report.worker:app", "--worker", "--port", 0, "--json")
    url: str = made.start(*command).line()["url"]
    return url


def followed(client: httpx2.Client, job: str, after: int = 0, most: int = 10_000) -> list[tuple[int, str, Any]]:
    """Follow a report behind an event, at most so many events on."""
    found: list[tuple[int, str, Any]] = []
    headers = {"last-event-id": str(after)} if after else {}
    with client.stream("GET", f"/reports/{job}/events", headers=headers) as answer:
        assert answer.status_code == 200
        fields: dict[str, str] = {}
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            fields[name] = value
            if line == "" and "id" in fields:
                found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
                fields = {}
            if len(found) == most:
                break
    return found


@pytest.mark.parametrize(
    ("name", "cases"), [("clean.xlsx", 120), pytest.param("messy.xlsx", 1_500, marks=pytest.mark.slow)]
)
def test_a_workbook_becomes_a_report_and_a_resume_fills_it(
    served: httpx2.Client, provider: ProviderProcess, tmp_path: Path, name: str, cases: int
) -> None:
    """The stream goes on where it was left, the report lacks what the model refused, and the resume asks that alone."""
    write_samples(tmp_path / "samples")
    data = (tmp_path / "samples" / name).read_bytes()
    assert [served.put(f"/reports/files/{name}", content=data, headers=BYTES).status_code for _ in range(2)] == [
        201,
        200,
    ]
    body = {"file_ref": f"file:{name}", "lang": "zh", "idempotency_key": "k"}
    job, again = (served.post("/reports", json=body).json()["job_id"] for _ in range(2))
    assert job == again

    events = followed(served, job, most=2)
    events += followed(served, job, after=2)
    assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
    assert events[-1][1:2] == ("ended",) and events[-1][2]["status"] == "degraded"

    assert served.post(f"/reports/{job}/resume", json={}).json() == {"job_id": job}
    asked = provider.stats().paid
    assert followed(served, job)[-1][2]["status"] == "ok"
    assert provider.stats().paid_again == 0 and provider.stats().paid > asked
    page = served.get(f"/reports/{job}/files/report.html").text
    assert page.lower().startswith("<!doctype html>") and 'lang="zh-CN"' in page
    with zipfile.ZipFile(io.BytesIO(served.get(f"/reports/{job}/files/report.xlsx").content)) as book:
        assert "xl/workbook.xml" in book.namelist()
    document = served.get(f"/reports/{job}/files/report.json").json()
    assert len(document["cases"]) >= cases and document["degraded"] == []
    assert all(one["by_model"] for one in document["defects"])
    check_page(f"{served.base_url}reports/{job}/files/report.html", tmp_path / "browser")


def check_page(url: str, folder: Path) -> None:
    """Open the page as the service gives it: its script runs, and reaches nothing; nothing else runs."""
    program = installed()
    if program is None:
        return
    with browser(program, folder) as tab:
        tab.call("Page.navigate", url=url)
        tab.ask("new Promise((done) => document.readyState === 'complete' ? done() : addEventListener('load', done))")
        assert tab.complaints == []
        assert tab.ask("document.querySelectorAll('#cases .tools button').length") > 0, "its script made no buttons"
        assert tab.ask("getComputedStyle(document.body).margin") == "0px", "its style was refused"
        assert tab.ask("self.origin") == "null"
        assert tab.ask("fetch('/api/v1/runs').then(() => 'read', () => 'refused')") == "refused"
