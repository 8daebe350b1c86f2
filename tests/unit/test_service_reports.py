"""Reports over HTTP: asked for, followed, read, resumed, and what is refused."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import httpx2

from headrace.apps.report.stages import DEFECTS, STAGES
from headrace.service.report_shapes import BuildReport, ReportStatus, Stage
from headrace.service.stream_shapes import REPORT
from headrace.testing.provider import Fault, FaultKind, Span
from tests.unit.report_serving import REPORTS, SHEET, build, reports_made, reports_served, send
from tests.unit.service_calls import JSON, code_of, served, shop
from tests.unit.test_service_details import events_of


async def made(client: httpx2.AsyncClient, **more: Any) -> str:
    """Send a file, ask for a report of it and return its id."""
    await send(client, "cases.csv")
    answer = await build(client, **more)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["job_id"])


async def followed(client: httpx2.AsyncClient, job: str, **how: Any) -> list[tuple[int, str, Any]]:
    """Follow a report to its end and return its events."""
    return events_of(await client.get(f"{REPORTS}/{job}/events", timeout=60, **how))


async def test_a_report_is_built_followed_and_read(tmp_path: Path) -> None:
    """Its events are as the document says and end with it; its files are there, and a resume has nothing to do."""
    async with reports_made(tmp_path) as (client, provider):
        job = await made(client)
        events = await followed(client, job)
        assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
        for _, kind, data in events:
            REPORT[kind].model_validate(data)
        assert events[-1][1:] == ("ended", {"status": "ok", "percent": 100, "message": "complete", "error": ""})
        assert {data["stage"] for _, kind, data in events if kind == "stage"} == set(STAGES)

        assert await followed(client, job, headers={"last-event-id": "2"}) == events[2:]
        assert await followed(client, job, params={"after": 3}) == events[3:]
        last = await client.get(f"{REPORTS}/{job}/events", headers={"last-event-id": str(len(events))})
        assert last.status_code == 204

        status = ReportStatus.model_validate((await client.get(f"{REPORTS}/{job}")).json())
        assert (status.status, status.percent, [one.stage for one in status.stages]) == ("ok", 100, list(STAGES))
        assert {one.stage_status for one in status.stages} == {"ok"}
        defects = next(one for one in status.stages if one.stage == DEFECTS)
        assert (defects.completed, defects.total, defects.stage_artifacts is None) == (3, 3, False)
        await check_files(client, job)

        calls = provider.count()
        assert (await client.post(f"{REPORTS}/{job}/resume", json={})).status_code == 202
        assert (await client.get(f"{REPORTS}/{job}")).json()["run_id"] == status.run_id
        assert provider.count() == calls
        await check_later_reports(client, job)


async def check_files(client: httpx2.AsyncClient, job: str) -> None:
    """The page is shown and runs the script that it has; the others are saved."""
    page = await client.get(f"{REPORTS}/{job}/files/report.html")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["content-disposition"] == 'inline; filename="report.html"'
    assert page.headers["x-content-type-options"] == "nosniff"
    policy = dict(one.strip().partition(" ")[::2] for one in page.headers["content-security-policy"].split(";"))
    assert policy["sandbox"] == "allow-scripts allow-downloads"
    assert (policy["default-src"], policy["frame-ancestors"]) == ("'none'", "'none'")
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        [own] = re.findall(f"<{tag}>(.*?)</{tag}>", page.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert policy[directive] == f"'sha256-{digest}'"
    book = await client.get(f"{REPORTS}/{job}/files/report.xlsx")
    assert book.content.startswith(b"PK") and book.headers["content-disposition"].startswith("attachment")
    assert book.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    document = (await client.get(f"{REPORTS}/{job}/files/report.json")).json()
    assert (document["run"]["job_id"], len(document["cases"])) == (job, 12)
    saved = await client.get(f"{REPORTS}/{job}/files/report.html", params={"download": True})
    assert saved.headers["content-disposition"].startswith("attachment")


async def check_later_reports(client: httpx2.AsyncClient, job: str) -> None:
    """A later one is compared with it."""
    later = await made(client, previous_job_id=job, title="Later")
    await followed(client, later)
    document = (await client.get(f"{REPORTS}/{later}/files/report.json")).json()
    assert document["title"] == "Later" and document["stats"]["trend"] is not None


async def test_what_the_model_left_out_is_filled_by_a_resume(tmp_path: Path) -> None:
    """The report is degraded and says so; the resume has events of its own, and asks for what is missing alone."""
    once = Fault(kind=FaultKind.SERVER_ERROR, status=400, contains="You turn one failed", attempts=Span(1, 1))
    async with reports_made(tmp_path, once) as (client, provider):
        job = await made(client)
        [*_, (_, _, ended)] = await followed(client, job)
        assert (ended["status"], "3 of 3 without the model" in ended["message"]) == ("degraded", True)
        status = (await client.get(f"{REPORTS}/{job}")).json()
        assert [one["stage"] for one in status["stages"] if one["status"] == "degraded"] == [DEFECTS]
        asked = provider.count("You turn one failed")
        assert (await client.get(f"{REPORTS}/{job}/files/report.html")).status_code == 200

        answers = await asyncio.gather(*(client.post(f"{REPORTS}/{job}/resume", json={}) for _ in range(3)))
        assert {(answer.status_code, answer.json()["job_id"]) for answer in answers} == {(202, job)}
        events = await followed(client, job)
        assert (events[0][0], events[-1][2]["status"]) == (1, "ok")
        assert provider.count("You turn one failed") == asked + 3
        document = (await client.get(f"{REPORTS}/{job}/files/report.json")).json()
        assert all(one["by_model"] for one in document["defects"])


async def test_a_report_of_a_file_without_cases_fails_with_its_reason(tmp_path: Path) -> None:
    """In its status and in the last event."""
    async with reports_made(tmp_path) as (client, _):
        await send(client, "cases.csv", b"Colour,Size\nred,7\n")
        job = (await build(client)).json()["job_id"]
        [*_, (_, kind, ended)] = await followed(client, job)
        assert (kind, ended["status"]) == ("ended", "failed")
        assert "cases.csv" in ended["error"]
        status = (await client.get(f"{REPORTS}/{job}")).json()
        assert (status["status"], status["error"]) == ("failed", ended["error"])


async def test_the_same_key_gives_the_same_report(tmp_path: Path) -> None:
    """As a member or as a header; with other options, or once the file has changed, it is a conflict."""
    async with reports_served(tmp_path) as client:
        await send(client, "cases.csv")
        first = await build(client, idempotency_key="k")
        assert first.headers["location"] == f"{REPORTS}/{first.json()['job_id']}"
        again = await build(client, headers={"Idempotency-Key": "k"})
        assert (again.status_code, again.json()) == (202, first.json())
        for change in ({"lang": "zh"}, {"title": "Other"}, {"sheet_whitelist": ["a"]}, {"gate": {"urgent": ["P0"]}}):
            other = await build(client, idempotency_key="k", **change)
            assert (other.status_code, code_of(other)) == (409, "idempotency_conflict"), change
        (tmp_path / "report-files" / "cases.csv").write_bytes(SHEET + b"C99,x,y,Pass,\n")
        changed = await build(client, idempotency_key="k")
        assert (changed.status_code, code_of(changed)) == (409, "idempotency_conflict")
        without = [(await build(client)).json()["job_id"] for _ in range(2)]
        assert len({*without, first.json()["job_id"]}) == 3


async def test_a_report_that_has_not_ended(tmp_path: Path) -> None:
    """It has a status and no files, nothing is compared with it, and a resume leaves it as it is."""
    async with reports_served(tmp_path) as client:
        job = await made(client)
        status = (await client.get(f"{REPORTS}/{job}")).json()
        assert (status["status"], status["percent"], status["job_id"]) == ("running", 0, job)
        for answer in (
            await client.get(f"{REPORTS}/{job}/files/report.html"), await build(client, previous_job_id=job)
        ):  # fmt: skip
            assert (answer.status_code, code_of(answer)) == (409, "not_ended")
        assert (await client.post(f"{REPORTS}/{job}/resume", headers=JSON)).json() == {"job_id": job}
        answer = await client.post(f"{REPORTS}/{job}/resume", json={"from": DEFECTS})
        assert (answer.status_code, code_of(answer)) == (422, "invalid_input")
        await client.post(f"/api/v1/runs/{status['run_id']}/cancel", json={})
        events = await followed(client, job)
        assert events[-1][2]["status"] == "cancelled"
        assert (await client.get(f"{REPORTS}/{job}")).json()["status"] == "cancelled"


async def test_rules_of_the_settings_are_used_where_none_are_given(tmp_path: Path) -> None:
    """A file of them that is broken is nothing the caller can mend."""
    rules = tmp_path / "rules.yaml"
    rules.write_text("modules: 7", encoding="utf-8")
    async with reports_served(tmp_path, rules=rules) as client:
        await send(client, "cases.csv")
        answer = await build(client)
        assert (answer.status_code, code_of(answer)) == (501, "invalid_rules")
        assert "[report] rules" in answer.json()["detail"]


def test_the_document_names_all_stages() -> None:
    """Those that there are, in their order."""
    assert Stage.__args__ == STAGES  # type: ignore[attr-defined]
    assert set(BuildReport.model_fields) >= {"file_ref", "sheet_whitelist"}


async def test_other_apps_have_no_reports() -> None:
    """Nor do they take files."""
    async with served(shop(), worker=False) as client:
        assert (await client.post(REPORTS, json={"file_ref": "file:cases.csv"})).status_code == 404
