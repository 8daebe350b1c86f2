"""The pages of papers: every value beside its place, as text whatever it says, and decided by buttons."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from headrace import App
from headrace.apps.papers.desk import EXTRACTED, LookedDocument, LookedValue
from headrace.apps.papers.job import workspace_of
from headrace.apps.papers.output.lines import lines_of
from headrace.apps.papers.review.decisions import OPEN
from headrace.apps.papers.review.log import LOG
from headrace.dashboard.page import View
from headrace.dashboard.pages.papers import PAGES, VALUES, part_of
from headrace.dashboard.rendering import render_parts
from headrace.model.api_token import Scope
from tests.unit.dashboard_calls import PAGE, check_page, csrf_in, pages, token_for
from tests.unit.gate_calls import gated
from tests.unit.papers_reports import TEMPLATE, rows
from tests.unit.papers_world import extracted, papers_app
from tests.unit.service_calls import code_of


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    """An app of papers with a folder of documents."""
    with pytest.MonkeyPatch.context() as patch:
        yield papers_app(tmp_path, patch)


@asynccontextmanager
async def looked_at(app: App) -> AsyncIterator[tuple[httpx2.AsyncClient, str]]:
    """Serve the app with all documents extracted; yield the path of their values."""
    async with pages(app, worker=True) as client:
        yield client, f"/papers/{await extracted(client)}"


def row_of(page: str, field: str) -> str:
    """Return the row of a value."""
    found = re.search(rf'<tr id="v-[0-9a-f-]+-{re.escape(field)}".*?</tr>', page, re.DOTALL)
    assert found is not None, field
    return found[0]


def offered(row: str) -> str:
    """Return where the buttons of a row send what they do."""
    found = re.search(r'hx-put="([^"]+)"', row)
    assert found is not None, row
    return html.unescape(found[1])


async def test_every_value_stands_beside_its_place(app: App) -> None:
    """Marked in its text; documents without values say why; what users wrote is text, and bounded."""
    async with looked_at(app) as (client, path):
        listed = (await client.get("/papers")).text
        check_page(listed)
        assert f'href="{path}"' in listed and "trial 2" in listed
        page = (await client.get(path)).text
        check_page(page)
        assert len(page) < 150_000 and "alert(1)" in page and "<script>alert" not in page and "<i>" not in page
        size = row_of(page, "arm.1.dose")
        assert "<mark>Aspirin 100 mg was given.</mark> More." in size and "page 2" in size and "100" in size
        assert "holds no text" in page and "cannot read &lt;script&gt;" in page
        disputed = row_of((await client.get(f"{path}?name=b")).text, "size")
        assert "<mark>Only 40 or</mark>" in disputed and "<mark>40 or 42 people</mark>" in disputed
        assert "two extractions differ" in disputed and "Accept 2" in disputed
        live = View(app, params={"task_id": path.rpartition("/")[2]}, live=True)
        parts = [render_parts(one, live, await one.make(live)) for one in PAGES]
        assert [list(part) for part in parts] == [["live_papers"], ["live_progress"]]
        assert "partial" in parts[1]["live_progress"]


async def test_values_are_accepted_corrected_rejected_and_taken_back(app: App) -> None:
    """The log has each step, the same again is none; what no sheet may say is refused, and named."""
    async with looked_at(app) as (client, path):
        page = (await client.get(f"{path}?name=b")).text
        to = offered(row_of(page, "size"))
        browser = {"origin": "http://localhost:8400", "x-csrf-token": csrf_in(page)}

        async def decide(**said: object) -> httpx2.Response:
            return await client.put(to, json=said, headers=browser)

        made = (await decide(accept="second", comment="<b>why</b>")).json()
        assert (made["name"], made["review"]["value"], made["review"]["reviewer"]) == ("size", 42, "local")
        assert (await decide(accept="second", comment="<b>why</b>")).json() == made
        page = (await client.get(f"{path}?show=decided")).text
        assert page.count("data-value") == 1
        assert "accepted" in row_of(page, "size") and "&lt;b&gt;why&lt;/b&gt;" in row_of(page, "size")
        assert (await decide(edited_value="41")).json()["review"]["answer"] == "edited"
        assert (await decide(accept="no")).json()["review"]["answer"] == "rejected"
        assert (await decide(accept="open")).json()["review"]["answer"] == "open"
        for wrong, field in (
            ({"edited_value": "about 40"}, "edited_value"), ({"accept": "yes"}, "accept"), ({}, "accept"),
        ):  # fmt: skip
            answer = await decide(**wrong)
            assert (answer.status_code, code_of(answer), answer.json()["field"]) == (422, "invalid_input", field)
        assert (await client.put(to + "x", json={"accept": "no"}, headers=browser)).status_code == 404
        [log] = app.settings.directory.rglob(LOG)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert [line["what"] for line in lines] == ["accepted", "edited", "rejected", "reopened"]
        assert {line["sheet"] for line in lines} == {"service"}


async def test_filters_choose_values_and_documents(app: App) -> None:
    """Of all documents; wrong choices and places are told on a page, as the API does."""
    chosen: dict[str, list[str]] = {"show=disagreements": ["size"], "show=unclear": ["harms"], "show=decided": []}
    chosen["name=huge"] = [field.name for field in TEMPLATE.fields]
    async with looked_at(app) as (client, path):
        for query, fields in chosen.items():
            page = (await client.get(f"{path}?{query}")).text
            check_page(page)
            assert re.findall(r'id="v-[0-9a-f-]{36}-([^"]+)" data-value', page) == fields
        one = re.search(r'href="([^"]+document=[^"]+)"', (await client.get(path)).text)
        assert one is not None and (await client.get(html.unescape(one[1]))).status_code == 200
        for query in ("show=all", "at=x", "at=x:y", "cursor=?", "document=x", "page=2"):
            assert (await client.get(f"{path}?{query}")).status_code == 422, query
        assert (await client.get(f"/papers/{UUID(int=7)}")).status_code == 404


def test_parts_have_every_value_once() -> None:
    """However many values documents have, and however little room there is on a page."""
    values = [LookedValue(line, OPEN) for line in lines_of(TEMPLATE, rows())]
    documents = [
        LookedDocument(UUID(int=number), f"{number}", EXTRACTED, values=tuple((values * 9)[:count]))
        for number, count in enumerate((VALUES, 1, 0, 3 * VALUES + 1, 5, VALUES - 6, 2))
    ]
    seen, at = [0] * len(documents), ("", 0)
    for _ in range(20):
        sections, following = part_of(documents, None, at)
        assert sum(len(section.values) for section in sections) <= VALUES
        for section in sections:
            seen[int(section.document.name)] += len(section.values)
        if not following:
            break
        job, _, number = following.rpartition(":")
        at = (job, int(number))
    assert seen == [len(document.values) for document in documents]


async def test_whoever_may_only_read_decides_nothing(app: App) -> None:
    """No button is offered and no request is taken; whoever may is noted by the name of their token."""
    async with gated(app) as (client, _):
        reads, decides = await token_for(app, Scope.READ), await token_for(app, *Scope)
        async with app.worker():
            client.headers.update({"authorization": f"Bearer {decides}"})
            task = await extracted(client)
        page = (await client.get(f"/papers/{task}", headers=PAGE)).text
        to = offered(row_of(page, "arm.1.dose"))
        as_reader = {"authorization": f"Bearer {reads}"}
        read = (await client.get(f"/papers/{task}", headers=PAGE | as_reader)).text
        assert "hx-put" not in read and "data-corrects" not in read and "Aspirin" in read
        assert (await client.put(to, json={"accept": "yes"}, headers=as_reader)).status_code == 403
        made = (await client.put(to, json={"accept": "yes"})).json()["review"]
        assert (made["answer"], made["value"], made["reviewer"]) == ("accepted", 100, "somebody")
        told = (await client.get(to.rpartition("/")[0])).json()
        assert [value["review"]["answer"] for value in told["values"] if value["name"] == "arm.1.dose"] == ["accepted"]


async def test_values_whose_template_is_elsewhere_are_told(app: App) -> None:
    """The page says what is missing, and nothing can be decided."""
    async with looked_at(app) as (client, path):
        page = (await client.get(path)).text
        to = offered(row_of(page, "arm.1.dose"))
        browser = {"origin": "http://localhost:8400", "x-csrf-token": csrf_in(page)}
        shutil.rmtree(workspace_of(app).folder(""))
        page = (await client.get(path)).text
        assert "does not exist on this machine" in page and "data-value" not in page
        assert code_of(await client.put(to, json={"accept": "yes"}, headers=browser)) == "missing_source"
        assert (await client.get("/papers")).status_code == 200
