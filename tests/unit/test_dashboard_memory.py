"""The pages of memory: how it goes, and all that is known of a user, in any language and as text."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import httpx2
import pytest

from headrace import App
from headrace.apps.memory import means
from headrace.apps.memory.data.flushes import Flush, FlushState, Reason
from headrace.apps.memory.memory import Memory
from headrace.dashboard.page import View
from headrace.dashboard.pages.memory import PAGES, recent_of
from headrace.dashboard.rendering import render_parts
from headrace.model.api_token import Scope
from headrace.settings import QueueSettings
from tests.unit.dashboard_calls import PAGE, check_page, csrf_in, pages, token_for
from tests.unit.gate_calls import gated
from tests.unit.memory_world import ADA, USERS, WEI, settings_of, settled
from tests.unit.service_calls import JSON

EVIL = "<script>alert(1)</script>\"'& \u202eevil\u202c שלום"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@asynccontextmanager
async def looked_at(folder: Path) -> AsyncIterator[tuple[httpx2.AsyncClient, App]]:
    """Serve memory that nobody works on."""
    with settled(settings_of(folder)) as made:
        async with pages(made) as client:
            await means.TABLES.set_up()
            yield client, made


async def known(client: httpx2.AsyncClient, user: str, contents: list[str]) -> None:
    """Let a user be known by entries of their profile."""
    await client.post(f"{USERS}/{user}/blobs", json={"messages": ADA})
    for start in range(0, len(contents), 100):
        changes = [
            {"op": "add", "topic": "work", "sub_topic": f"n{start + place}", "content": text}
            for place, text in enumerate(contents[start : start + 100])
        ]
        answer = await client.patch(f"{USERS}/{user}/profile", json={"changes": changes})
        assert answer.status_code == 200, answer.text


async def test_all_that_is_known_of_a_user_is_shown(tmp_path: Path) -> None:
    """As text and within bounds; the user is found by the id; buttons flush, take up again, and forget."""
    async with looked_at(tmp_path) as (client, app):
        check_page((await client.get("/memory")).text)
        await known(client, "王 <b>&", [EVIL, "北京", *["long " * 1_900] * 130])
        found = (await client.get("/memory", params={"user": "王 <b>&"})).text
        link = re.search(r'class="note good"><a href="([^"]+)"', found)
        assert link is not None and "王 &lt;b&gt;&amp;" in found
        assert "Nobody of this id" in (await client.get("/memory", params={"user": "nobody"})).text
        page = (await client.get(link[1], params={"q": "Lyon", "budget": "4000"})).text
        check_page(page)
        assert len(page.encode()) < 150_000
        assert "<script>alert" not in page and "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "北京" in page
        assert "32 more are not shown." in page and "No line fits." in page
        assert (await client.get("/memory/nobody")).status_code == 404
        live = View(app, params={"user_id": "王 <b>&"}, live=True)
        told, about = [render_parts(one, live, await one.make(live)) for one in PAGES]
        assert set(told) == {"live_figures", "live_users"} and "北京" in about["live_profile"]
        for wrong in ({"budget": "0"}, {"budget": "x"}, {"before": "2026-01-01"}, {"before": "x"}, {"page": "2"}):
            assert (await client.get(link[1], params=wrong)).status_code == 422, wrong

        browser = {"origin": "http://localhost:8400", "x-csrf-token": csrf_in(page)} | JSON
        buttons = re.findall(r'hx-(post|delete)="([^"]+)"', page)
        assert [method for method, _ in buttons] == ["post", "post", "delete"]
        [flushed] = (await client.post(buttons[0][1], headers=browser)).json()["flushes"]
        assert await means.TABLES.fail_flush(UUID(flushed["id"]), f"no answer: {EVIL}")
        page, listed = (await client.get(link[1])).text, (await client.get("/memory")).text
        for shown in (page, listed):
            check_page(shown)
            assert "no answer: &lt;script&gt;" in shown and "failed" in shown
        assert (await client.post(buttons[1][1], headers=browser)).json()["flushes"][0]["round"] == 1
        assert (await client.delete(buttons[2][1], headers=browser)).status_code == 204
        assert (await client.get(link[1])).status_code == 404


async def test_what_is_not_live_is_not_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the search and the context of a user nor whether somebody is known."""
    async with looked_at(tmp_path) as (client, app):
        await known(client, "ada", ["tea"])
        everybody, one = PAGES
        view = View(app, params={"user_id": "ada"}, query={"q": "tea"})
        assert "tea" in (await one.make(view))["context"]
        for name in ("search", "context"):
            monkeypatch.delattr(Memory, name)
        assert (await one.make(replace(view, live=True)))["profile"]
        monkeypatch.delattr(Memory, "user")
        assert (await everybody.make(View(app, query={"user": "ada"}, live=True)))["figures"]


async def test_whoever_may_only_read_changes_nothing(tmp_path: Path) -> None:
    """No button is offered; who may bring work may flush."""
    with settled(settings_of(tmp_path)) as made:
        async with gated(made) as (client, _):
            await means.TABLES.set_up()
            bearers = [
                {"authorization": f"Bearer {await token_for(made, *scopes)}"}
                for scopes in (Scope, (Scope.READ,), (Scope.READ, Scope.SUBMIT))
            ]
            await client.post(f"{USERS}/wei/blobs", json={"messages": WEI}, headers=bearers[0])
            seen = [(await client.get("/memory/wei", headers=PAGE | bearer)).text for bearer in bearers]
            assert [len(re.findall('hx-(?:post|delete)="/api', page)) for page in seen] == [3, 0, 1]


async def test_where_there_is_no_memory_it_is_told(tmp_path: Path) -> None:
    """Why, and what to do: tables that nobody made yet, and a store that has none."""
    with settled(settings_of(tmp_path)) as made:
        async with pages(made) as client:
            for path in ("/memory", "/memory/ada"):
                page = await client.get(path)
                assert page.status_code == 503 and "start `headrace memory run`" in page.text
    nowhere = replace(settings_of(tmp_path), queue=QueueSettings(type="memory"))
    with settled(nowhere, migrated=False) as made:
        async with pages(made) as client:
            page = await client.get("/memory")
            check_page(page.text)
            assert page.status_code == 200 and "needs a PostgreSQL store" in page.text


def test_who_was_remembered_of_late() -> None:
    """By the newest flush of each, with how many of them failed."""
    flushes = [
        Flush(uuid4(), user, (), 1, 1, state, Reason.FULL, NOW - timedelta(minutes=place))
        for place, (user, state) in enumerate(
            [("a", FlushState.DONE), ("b", FlushState.FAILED), ("a", FlushState.FAILED), ("a", FlushState.DONE)]
        )
    ]
    found = recent_of(flushes)
    assert [(one.user_id, one.flushes, one.failed, one.newest) for one in found] == [
        ("a", 3, 1, flushes[0]), ("b", 1, 1, flushes[1]),
    ]  # fmt: skip
