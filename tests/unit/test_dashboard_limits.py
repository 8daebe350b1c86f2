"""The pages of limits, events and the audit: what they tell, and what their buttons do."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from uuid import uuid4

import httpx2

from headrace import App, Limit
from headrace.model.api_token import Scope
from headrace.model.audit import NewAction
from headrace.model.breaker import BreakerRule
from headrace.model.ids import uuid7
from headrace.model.limits import Declared, Rate
from headrace.service.access import Access
from tests.unit.dashboard_calls import check_page, csrf_in, pages, token_for
from tests.unit.test_service_events import parked_at

SCRIPT = "<script>alert(1)</script>\"'"


async def press(client: httpx2.AsyncClient, path: str, pattern: str, **body: object) -> httpx2.Response:
    """Ask the API for what a button or form of a page has under a pattern, as the page does; names in it are filled."""
    page = (await client.get(path)).text
    check_page(page)
    found = re.search(rf'hx-(post|put|delete)="([^"]*{pattern}[^"]*)"[^>]*?(?:hx-vals="([^"]*)")?[ >]', page)
    assert found is not None, f"{pattern} is not offered"
    given = json.loads(html.unescape(found[3])) if found[3] else {}
    vals = re.search(r'hx-vals="([^"]*)"', page[found.start() : page.index(">", found.start())])
    given |= json.loads(html.unescape(vals[1])) if vals else {}
    names = {key: str(body.pop(key)) for key in ("name", "queue", "key") if key in body}
    address = found[2]
    for name, value in names.items():
        address = address.replace(f"%7B{name}%7D", value)
    headers = {"origin": "http://localhost:8400", "x-csrf-token": csrf_in(page), "content-type": "application/json"}
    content = json.dumps(given | body) if found[1] != "delete" else None
    return await client.request(found[1].upper(), address, content=content, headers=headers)


async def declared(app: App) -> None:
    """Declare a cap, a rate and breaker, as a worker does."""
    await app.runtime.stores.admission.declare_limits(
        Declared({"task:render": 3}, {"openai": Rate.parse("60/m", burst=2)}, {"shaky": BreakerRule()})
    )


def limited() -> App:
    """Return an app with limits."""
    app = App("memory://")

    @app.task(name="render", queue="llm", concurrency=3, limits=[Limit("openai", "60/m", burst=2)])
    async def render() -> None: ...

    return app


async def test_limits_are_changed_from_the_page() -> None:
    """Set, back to what is declared, a breaker opened and closed, a weight, and forgotten."""
    app = limited()
    async with pages(app) as client:
        assert "There are no caps" in (await client.get("/limits")).text
        await declared(app)
        await client.post("/api/v1/jobs", json={"task": "render", "fair_key": "t<b>7"})
        page = (await client.get("/limits")).text
        assert "0 / 3" in page and "<code>1/s</code>" in page and "No job has a fair key." in page
        assert (await press(client, "/limits", "caps", name="task:render", cap=5)).status_code == 200
        assert "0 / 5" in (await client.get("/limits")).text
        assert (await press(client, "/limits", "task%3Arender/reset")).status_code == 200
        assert "0 / 3" in (await client.get("/limits")).text
        assert (await press(client, "/limits", "rates", name="openai", rate="7/h")).status_code == 200
        assert "<code>7/h</code>" in (await client.get("/limits")).text
        assert (await press(client, "/limits", "weights", queue="llm", key="t%3Cb%3E7", weight=2)).status_code == 200
        page = (await client.get("/limits")).text
        assert ">2.000<" in page and "t&lt;b&gt;7" in page and "t<b>7" not in page
        assert (await press(client, "/limits", "shaky/open")).status_code == 200
        page = (await client.get("/limits")).text
        assert "open: no job passes" in page and "Breaker shaky is open." in (await client.get("/")).text
        assert (await press(client, "/limits", "shaky/close")).status_code == 200
        assert "closed: jobs pass" in (await client.get("/limits")).text
        assert (await press(client, "/limits", 'limits/openai(?=")')).status_code == 200
        assert "There are no rates" in (await client.get("/limits")).text
        assert "There are no breakers" in (await client.get("/limits?name=render")).text


async def test_parked_events_groups_and_handles() -> None:
    """Tried again, dropped, forgotten, cancelled; what the bus said stays text."""
    app = App("memory://")
    async with pages(app) as client:
        page = (await client.get("/events")).text
        check_page(page)
        assert "Nothing is parked." in page and "Nothing waits for events." in page
        one, two = await parked_at(app, 2)
        await app.event_stores.log.join_group("g/1", uuid4(), ["orders"], lease=timedelta(microseconds=1))
        await app.handles.register(f"c/{SCRIPT}", timeout="1h", count=0, token=True)
        page = (await client.get("/events")).text
        assert "too &lt;b&gt;large&lt;/b&gt;" in page and "<script>alert" not in page and "g/1" in page
        assert (await press(client, "/events", "parked/release")).json() == {"released": [one]}
        assert (await press(client, "/events", "parked/drop")).json() == {"dropped": [two]}
        assert (await press(client, "/events", "groups")).json() == {"forgotten": "g/1"}
        assert (await press(client, "/events", "handles")).json()["state"] == "cancelled"
        page = (await client.get("/events")).text
        assert "Nothing is parked." in page and "Nothing waits for events." in page


async def test_with_kafka_the_store_alone_is_asked() -> None:
    """How far groups are is said to be known there."""
    app = App("memory://")
    object.__setattr__(app.settings.events, "bus", "kafka")
    async with pages(app) as client:
        page = (await client.get("/events")).text
        check_page(page)
        assert "kafka-consumer-groups" in page and ">Kafka" in page


async def test_the_audit_by_pages_and_filters() -> None:
    """Newest first; whoever may not operate does not see it, nor that there is one."""
    app = App("memory://")
    async with pages(app, Access(required=True)) as client:
        store = app.runtime.stores.audit
        for number in range(60):
            who, operation = ("ann", "set_cap") if number % 2 else (SCRIPT, "pause_queue")
            action = NewAction(uuid7(), who, operation, {"name": f"q-{number:02}"}, 403 if number == 3 else 200)
            await store.note_actions([(action, timedelta(seconds=100 - number))])
        token = await token_for(app, Scope.READ, Scope.OPERATE)
        operates = {"authorization": f"Bearer {token}"}
        page = (await client.get("/audit", headers=operates)).text
        check_page(page)
        assert "q-59" in page and "q-10" in page and "q-09" not in page and "<script>alert" not in page
        older = re.search(r'href="(/audit\?cursor=[^"]*)"', page)
        assert older is not None
        page = (await client.get(html.unescape(older[1]), headers=operates)).text
        assert "q-09" in page and "q-10" not in page and "403 refused" in page
        page = (await client.get("/audit?who=ann", headers=operates)).text
        assert "q-59" in page and "q-58" not in page
        page = (await client.get("/audit?operation=pause_queue", headers=operates)).text
        assert "q-58" in page and "q-59" not in page
        reads = {"authorization": f"Bearer {await token_for(app, Scope.READ)}"}
        assert (await client.get("/audit", headers=reads)).status_code == 403
        assert ">Audit<" not in (await client.get("/", headers=reads)).text


async def test_whoever_may_not_operate_is_offered_nothing() -> None:
    """On the pages of limits and events."""
    app = limited()
    async with pages(app, Access(required=True)) as client:
        await declared(app)
        await parked_at(app, 1)
        reads = {"authorization": f"Bearer {await token_for(app, Scope.READ)}"}
        for path in ("/limits", "/events"):
            page = (await client.get(path, headers=reads)).text
            check_page(page)
            assert not re.search(r'hx-(post|put|delete)="/api', page)
