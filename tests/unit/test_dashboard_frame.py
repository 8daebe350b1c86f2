"""What all pages of the dashboard share: who gets in, what proves that a page wrote, what may run within one."""

from __future__ import annotations

import asyncio
import hashlib
import html
import re
import tomllib
from collections import Counter
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace.dashboard
from headrace import App
from headrace.dashboard.live import Rooms, Seen, delta, events_of
from headrace.dashboard.table import PAGES
from headrace.dashboard.words import words_of
from headrace.model.api_token import Scope
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import JobState
from headrace.service.access import Access
from headrace.service.attempts import MOST
from tests.unit.dashboard_calls import check_page, csrf_in, pages, token_for
from tests.unit.event_reading import Stream
from tests.unit.service_calls import JSON, code_of, shop
from tests.unit.test_service_following import listening

FOLDER = Path(headrace.dashboard.__file__).parent
GATED = Access(required=True)
PAUSE = "/api/v1/queues/default/pause"


async def test_whoever_has_no_token_is_sent_to_the_way_in_and_back() -> None:
    """With the address that was asked for, and by no address of elsewhere."""
    async with pages(shop(), GATED) as client:
        answer = await client.get("/")
        assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2F")
        assert (await client.get("/", headers={"accept": "application/json"})).status_code == 401
        way_in = await client.get("/login", params={"next": "//evil.example/x"})
        assert 'data-goto="/"' in way_in.text
        check_page(way_in.text)


ELSEWHERE = ("//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "evil.example", "")
OWN = (("/\t/evil.example", "/%09/evil.example"), ("/\n/evil.example", "/%0A/evil.example"),
       ("/{id}/evil.example", "/%7Bid%7D/evil.example"), ("/jobs?task=a&cursor=b", "/jobs?task=a&cursor=b"),
       ("/queues/a%20b", "/queues/a%20b"))  # fmt: skip


@pytest.mark.parametrize(("asked", "goes"), [*((asked, "/") for asked in ELSEWHERE), *OWN])
async def test_the_way_in_leads_nowhere_else(asked: str, goes: str) -> None:
    """Not with what browsers leave out of addresses either, nor with the place that scripts put an id into."""
    async with pages(shop(), GATED) as client:
        page = (await client.get("/login", params={"next": asked})).text
        found = re.search(r'data-goto="([^"]*)"', page)
        assert found and html.unescape(found[1]) == goes


async def test_whoever_logs_in_comes_back_to_what_was_asked_for() -> None:
    """To the address as it was written."""
    async with pages(shop(), GATED) as client:
        answer = await client.get("/queues/a%253Fb?x=%26")
        assert httpx2.URL(answer.headers["location"]).params["next"] == "/queues/a%253Fb?x=%26"


async def test_logging_in_and_out() -> None:
    """The cookie is out of reach of scripts and other sites, opens the pages, and is gone afterwards."""
    app = shop()
    async with pages(app, GATED) as client:
        token = await token_for(app, Scope.READ, Scope.OPERATE)
        answer = await client.post("/login", json={"token": token})
        cookie = answer.headers["set-cookie"].lower()
        assert answer.status_code == 204
        assert "httponly" in cookie and "samesite=strict" in cookie and "path=/" in cookie and "secure" not in cookie
        page = await client.get("/")
        assert page.status_code == 200 and "somebody" in page.text
        check_page(page.text)
        assert token not in page.text
        await client.post("/logout", json={})
        assert (await client.get("/")).status_code == 303


@pytest.mark.parametrize("given", ["hra_guessed", "x" * 201, ""])
async def test_wrong_tokens_do_not_log_in(given: str) -> None:
    """Each is told in words, and no cookie comes."""
    async with pages(shop(), GATED) as client:
        answer = await client.post("/login", json={"token": given})
        assert answer.status_code in (401, 422) and "set-cookie" not in answer.headers
        assert given == "" or given not in answer.text


async def test_a_token_that_may_not_read_has_no_pages() -> None:
    """It is told which scope is needed."""
    app = shop()
    async with pages(app, GATED) as client:
        token = await token_for(app, Scope.SUBMIT)
        answer = await client.post("/login", json={"token": token})
        assert answer.status_code == 403 and "scope read" in answer.json()["detail"]


async def test_guessing_at_the_way_in_is_slowed_down() -> None:
    """As it is everywhere else."""
    async with pages(shop(), GATED) as client:
        answers = [await client.post("/login", json={"token": f"hra_{number}"}) for number in range(MOST + 1)]
        assert answers[-1].status_code == 429


async def test_a_cookie_alone_writes_nothing() -> None:
    """Not without what the page knows, and not with that of another token."""
    app = shop()
    async with pages(app, GATED) as client:
        mine, other = [await token_for(app, Scope.READ, Scope.OPERATE) for _ in range(2)]
        await client.post("/login", json={"token": other})
        others = csrf_in((await client.get("/")).text)
        await client.post("/login", json={"token": mine})
        own = csrf_in((await client.get("/")).text)
        for headers in ({}, {"x-csrf-token": ""}, {"x-csrf-token": others}):
            answer = await client.post(PAUSE, json={"force": True}, headers=headers)
            assert code_of(answer) == "forbidden_csrf"
        answer = await client.post(PAUSE, json={"force": True}, headers=[(b"x-csrf-token", b"\xe9")])
        assert code_of(answer) == "forbidden_csrf"
        assert not (await app.runtime.stores.control.queue_states()).get("default")
        answer = await client.post(PAUSE, json={"force": True}, headers={"x-csrf-token": own})
        assert answer.status_code == 200, answer.text


async def test_a_page_on_this_machine_proves_itself_too() -> None:
    """Where nobody has a token, browsers bring what the page knows; programs need nothing."""
    async with pages(shop()) as client:
        own = csrf_in((await client.get("/")).text)
        browser = {"sec-fetch-site": "same-origin", "origin": "http://localhost:8400"}
        assert code_of(await client.post(PAUSE, json={"force": True}, headers=browser)) == "forbidden_csrf"
        answer = await client.post(PAUSE, json={"force": True}, headers={**browser, "x-csrf-token": own})
        assert answer.status_code == 200
        assert (await client.post(PAUSE, json={"force": True}, headers={"sec-fetch-site": "none"})).status_code == 200


async def test_a_cookie_of_another_service_locks_nobody_out() -> None:
    """Cookies know no ports: one of another service on this machine means nothing where none is asked for."""
    async with pages(shop()) as client:
        client.cookies.set("headrace_token", "hra_of_elsewhere")
        assert (await client.get("/")).status_code == 200


async def test_scopes_decide_what_pages_offer() -> None:
    """A token that may only look is refused by the API, whatever page it has."""
    app = shop()
    async with pages(app, GATED) as client:
        await client.post("/login", json={"token": await token_for(app, Scope.READ)})
        own = csrf_in((await client.get("/")).text)
        answer = await client.post(PAUSE, json={"force": True}, headers={"x-csrf-token": own})
        assert code_of(answer) == "forbidden"


WRITES = (
    ("POST", "/api/v1/jobs"), ("POST", "/api/v1/batches"), ("POST", PAUSE), ("POST", "/api/v1/runs"),
    ("PUT", "/api/v1/nothing"), ("DELETE", "/api/v1/jobs/x"), ("POST", "/api/v1/resume/x"), ("GET", "/webhook/x"),
)  # fmt: skip


@pytest.mark.parametrize(("method", "path"), WRITES)
async def test_a_read_only_service_writes_nothing(method: str, path: str) -> None:
    """By no route, with no right; and its pages say so."""
    async with pages(shop(), Access(read_only=True)) as client:
        answer = await client.request(method, path, headers={**JSON, "accept": "*/*"}, content=b"{}")
        assert code_of(answer) == "read_only"
        page = (await client.get("/queues/default")).text
        assert "read-only" in page and "hx-post" not in page


async def test_a_service_that_writes_offers_it() -> None:
    """On the page that a read-only one shows without any button."""
    async with pages(shop()) as client:
        page = (await client.get("/queues/default")).text
        assert "read-only" not in page and "hx-post" in page


async def test_below_a_path() -> None:
    """All addresses of a page begin with it, whether the proxy cuts it off or leaves it."""
    access = Access.at("127.0.0.1", require_token=True, url="https://example.org/jobs")
    app = shop()
    async with pages(app, access) as client:
        client.headers["host"] = "example.org"
        assert (await client.get("/jobs/")).headers["location"] == "/jobs/login?next=%2F"
        answer = await client.post(
            "/jobs/login", json={"token": await token_for(app, Scope.READ)}, headers={"origin": "https://example.org"}
        )
        assert answer.status_code == 204
        assert "Path=/jobs" in answer.headers["set-cookie"] and "Secure" in answer.headers["set-cookie"]
        cookie = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
        for path in ("/jobs/", "/"):
            page = await client.get(path, headers=cookie)
            assert page.status_code == 200
            found = re.findall(r'(?:href|src|hx-post|data-live|data-goto)="([^"#]+)"', page.text)
            assert found and all(link.startswith("/jobs") for link in found), found
        assert (await client.get("/jobsother/", headers=cookie)).status_code == 404
        sheet = next(link for link in found if link.endswith("app.css"))
        assert (await client.get(sheet)).status_code == 200


async def test_files_are_kept_for_ever_and_nothing_else_is_told() -> None:
    """Of their version, from their folder alone, to everybody."""
    async with pages(shop(), GATED) as client:
        way_in = (await client.get("/login")).text
        sheet = next(link for link in re.findall(r'href="([^"]*)"', way_in) if link.endswith("app.css"))
        answer = await client.get(sheet)
        assert answer.status_code == 200 and "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"].startswith("text/css")
        root = sheet.removesuffix("/app.css")
        near = (
            "/../table.py",
            "/%2e%2e/table.py",
            "/nothing.js",
            "/" + "a" * 300,
            "/a" * 3_000,
            "//app.css",
            "/app.css/",
            "/vendor",
        )
        for path in (*(f"{root}{name}" for name in near), "/static/old/app.css"):
            assert (await client.get(path)).status_code in (401, 404), path


async def test_every_answer_has_its_policy() -> None:
    """Pages run files of the service alone; answers of the API run nothing."""
    async with pages(shop()) as client:
        page = await client.get("/")
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert "unsafe" not in page.headers["content-security-policy"]
        answer = await client.get("/api/v1/queues")
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert page.headers["cache-control"] == "no-store"


async def test_wrong_addresses_are_told_on_a_page() -> None:
    """What is unknown in the query of a page is refused as everywhere, in HTML to whoever asked for it."""
    async with pages(shop()) as client:
        answer = await client.get("/", params={"stat": "<script>"})
        assert answer.status_code == 422 and "stat" in answer.text
        assert "&lt;script&gt;" in answer.text and "<script>" not in answer.text
        check_page(answer.text)


@pytest.mark.parametrize(
    ("headers", "language"),
    [
        ({}, "en"), ({"accept-language": "zh-CN,zh;q=0.9"}, "zh-CN"), ({"cookie": "headrace_locale=zh"}, "zh-CN"),
        ({"cookie": "headrace_locale=xx"}, "en"),
    ],
)  # fmt: skip
async def test_languages(headers: dict[str, str], language: str) -> None:
    """The one that was chosen, else the one that the browser asks for."""
    async with pages(shop()) as client:
        page = (await client.get("/", headers=headers)).text
        assert f'<html lang="{language}">' in page
        assert ("总览" in page) == (language == "zh-CN")


def test_every_text_has_its_words() -> None:
    """Each text of templates and code that is translated is there in Chinese, with the same places for values."""
    texts = {str(state) for state in JobState} | {page.title for page in PAGES if page.title}
    texts |= {page.group for page in PAGES if page.group}
    for path in FOLDER.rglob("*.html"):
        texts |= set(re.findall(r"\bt\('((?:[^'\\]|\\.)*)'", path.read_text(encoding="utf-8")))
    for path in FOLDER.rglob("*.py"):
        texts |= set(re.findall(r'\b(?:word|translate)\(\s*"([^"]*)"', path.read_text(encoding="utf-8")))
    words = words_of("zh")
    assert not texts - set(words), f"without Chinese words: {sorted(texts - set(words))}"
    for text in texts:
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", words[text])), text


def test_each_text_is_put_into_words_once() -> None:
    """One that stands in several files would be what the last of them says, on the pages of the others too."""
    texts = [
        text for path in (FOLDER / "locale" / "zh").glob("*.toml") for text in tomllib.loads(path.read_text("utf-8"))
    ]
    assert [text for text, count in Counter(texts).items() if count > 1] == []


def test_scripts_of_others_are_what_they_say() -> None:
    """Each with its version, its licence and its sum; nothing lies there that is not told."""
    folder = FOLDER / "static" / "vendor"
    rows = re.findall(r"\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|", (folder / "README.md").read_text())
    assert {path.name for path in folder.glob("*.js")} == {name for name, _ in rows}
    for name, digest in rows:
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
        assert (folder / f"{name.split('.')[0].removesuffix('-ext')}.LICENSE").is_file()


async def test_what_is_live_comes_as_it_changes() -> None:
    """All of it first, then what differs; it ends with the service."""
    app = App("memory://")

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async with listening(app) as (base, stopping):
        stream = await Stream.open(base, "/live")
        try:
            async with asyncio.timeout(20):
                text = b""
                while b"event: live_queues" not in text:
                    text += await stream.chunk()
                assert b"No queue has jobs yet" not in text
                await app.submit(double, [1, 2, 3])
                while b"<dd>3</dd>" not in text:
                    text += await stream.chunk()
                stopping.set()
                while await stream.chunk():
                    pass
        finally:
            stream.close()


async def test_whoever_watches_shares_one_look() -> None:
    """However many there are; the last one who leaves ends it, and trouble is told in words."""
    rooms, looks = Rooms(), list[int]()

    async def look() -> Seen:
        looks.append(1)
        if len(looks) == 3:
            raise StoreUnavailableError("the store is away")
        return Seen({"live_a": str(len(looks))})

    async with aclosing(rooms.watch("a", look, every=0.001)) as one, aclosing(rooms.watch("a", look, every=1)) as two:
        seen = [await anext(watcher) for watcher in (one, two)]
        assert seen[0] == seen[1] == Seen({"live_a": "1"}) and len(looks) == 1
        found = [await anext(one) for _ in range(3)]
        assert [each.trouble for each in found] == ["", str(StoreUnavailableError("the store is away")), ""]
    assert not rooms.watched


SEEN = (
    (None, Seen({"live_a": "1"}), "event: live_a\ndata: 1\n\n"),
    (Seen({"live_a": "1"}), Seen(trouble="away"), "event: trouble\ndata: away\n\n"),
    (Seen(trouble="away"), Seen(trouble="away"), ""),
    (Seen(trouble="away"), Seen({"live_a": "1"}), "event: trouble\ndata: \n\nevent: live_a\ndata: 1\n\n"),
    (None, Seen({"live_a": "x\ry\n\nevent: evil"}), "event: live_a\ndata: x\ndata: y\ndata: \ndata: event: evil\n\n"),
)


@pytest.mark.parametrize(("before", "after", "events"), SEEN)
def test_events_of_two_looks(before: Seen | None, after: Seen, events: str) -> None:
    """Lines of what users wrote stay within their event."""
    assert events_of(before, after) == events


@given(st.text("abc", max_size=40), st.text("abc", max_size=40))
def test_a_change_makes_the_new_text(before: str, after: str) -> None:
    """Whatever differs between two texts."""
    change: dict[str, Any] | None = delta(before, after)
    shown = before
    if change is not None and "all" in change:
        shown = change["all"]
    elif change is not None:
        for place, part in change["set"]:
            shown = shown[:place] + part + shown[place + len(part) :]
    assert shown == after
