"""The pages of reports: a file that is sent, a report that is made of it, its stages and its files."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from headrace.apps.report.opening import app
from headrace.dashboard.page import View
from headrace.dashboard.pages.reports import reports
from tests.unit.dashboard_calls import PAGE, check_page
from tests.unit.report_serving import FILES, REPORTS, reports_made, reports_served, send
from tests.unit.test_service_reports import followed


async def test_a_report_is_made_from_the_page_and_opened(tmp_path: Path) -> None:
    """The form sends what the API takes and leads to the page of the report, which links to its files."""
    async with reports_made(tmp_path) as (client, _):
        await send(client, "cases.csv")
        page = (await client.get("/reports", headers=PAGE)).text
        check_page(page)
        assert f'data-to="{FILES}"' in page and "file:cases.csv" in page
        form = re.search(r'<form [^>]*hx-post="([^"]*)"[^>]*data-goto="([^"]*)"', page)
        assert form is not None
        given = {"file_ref": "file:cases.csv", "lang": "en", "title": "<b>Orders</b>"}
        job = (await client.post(form[1], json=given)).json()["job_id"]
        await followed(client, job)
        page = (await client.get(html.unescape(form[2]).replace("{id}", job), headers=PAGE)).text
        check_page(page)
        assert "<b>Orders" not in page and "&lt;b&gt;Orders" in page and "s-ok" in page
        assert "data-live" not in page, "what has ended is not followed"
        links = re.findall(rf'href="({REPORTS}/[^"]*)"', page)
        assert len(links) == 3
        for link in links:
            assert (await client.get(link)).status_code == 200
        page = (await client.get("/reports", headers=PAGE)).text
        assert f'href="/reports/{job}"' in page


async def test_a_report_that_nobody_works_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shown as far as it is; one that there is not is told so. Only the page itself lists the files."""
    async with reports_served(tmp_path) as client:
        await send(client, "cases.csv")
        assert (await reports(View(app)))["files"] == ["cases.csv"]
        with monkeypatch.context() as patched:
            patched.delattr("headrace.apps.report.sources.files_folder")
            assert (await reports(View(app, live=True)))["list"].rows == []
        job = (await client.post(REPORTS, json={"file_ref": "file:cases.csv"})).json()["job_id"]
        page = (await client.get(f"/reports/{job}", headers=PAGE)).text
        check_page(page)
        assert "s-running" in page and "data-live" in page and "/files/" not in page
        assert (await client.get(f"/reports/{'0' * 32}", headers=PAGE)).status_code == 404
