"""No route that writes is open to a cookie alone, to a page of elsewhere, or where nothing may be changed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headrace.model.api_token import Scope
from headrace.service.access import Access
from headrace.service.application import make_service
from headrace.service.guard import OPEN_PATHS, SAFE_METHODS, UPLOAD_TYPE, UPLOADS
from headrace.service.permits import Permits
from headrace.service.webhooks import METHODS
from tests.unit.dashboard_calls import csrf_in, pages, token_for
from tests.unit.flow_serving import flows_app
from tests.unit.service_calls import code_of

GATED = Access(required=True)
ELSEWHERE = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}


def writing(*, webhooks: bool) -> Iterator[tuple[str, str]]:
    """Yield the method and an address of every route that writes; webhooks write by any method, where they count."""
    for permit in Permits.of(make_service(flows_app())).all:
        path = re.sub(r"\{[^}]*\}", "x", permit.path)
        hook = path.startswith("/webhook/")
        if path not in OPEN_PATHS and hook <= webhooks:
            yield from ((method, path) for method in (METHODS if hook else permit.methods - SAFE_METHODS))


def headers_for(path: str) -> dict[str, str]:
    """Return what a request has to have whatever it is for."""
    return {"content-type": UPLOAD_TYPE if path.startswith(UPLOADS) else "application/json", "accept": "*/*"}


async def test_a_cookie_alone_opens_no_route_that_writes() -> None:
    """Nor does what pages know without the cookie, nor both of two tokens."""
    app, routes = flows_app(), list(writing(webhooks=False))
    assert len(routes) > 20
    async with pages(app, GATED) as client:
        other = await token_for(app, *Scope)
        await client.post("/login", json={"token": other})
        others = csrf_in((await client.get("/")).text)
        await client.post("/login", json={"token": await token_for(app, *Scope)})
        for method, path in routes:
            for proof in ({}, {"x-csrf-token": others}):
                answer = await client.request(method, path, content=b"{}", headers={**headers_for(path), **proof})
                # The end of a wait is for programs, which have no cookies.
                expected = "unauthorized" if path.startswith("/api/v1/resume/") else "forbidden_csrf"
                assert code_of(answer) == expected, (method, path)
        client.cookies.clear()
        for method, path in routes:
            headers = {**headers_for(path), "x-csrf-token": others}
            assert (await client.request(method, path, content=b"{}", headers=headers)).status_code == 401


async def test_no_page_of_elsewhere_reaches_a_route_that_writes() -> None:
    """Not on this machine either, where nobody has a token: browsers say of each request where it is from."""
    async with pages(flows_app()) as client:
        for method, path in [*writing(webhooks=True), *(("POST", path) for path in OPEN_PATHS)]:
            for headers in (ELSEWHERE, {"origin": "null"}, {"sec-fetch-site": "same-site"}):
                answer = await client.request(method, path, content=b"{}", headers={**headers_for(path), **headers})
                assert answer.status_code == 403, (method, path, headers)


async def test_where_nothing_may_be_changed_no_route_writes() -> None:
    """Not for whoever may do everything."""
    app = flows_app()
    async with pages(app, Access(required=True, read_only=True)) as client:
        bearer = {"authorization": f"Bearer {await token_for(app, *Scope)}"}
        for method, path in writing(webhooks=True):
            answer = await client.request(method, path, content=b"{}", headers={**headers_for(path), **bearer})
            assert answer.status_code == 403, (method, path)
            assert method == "HEAD" or code_of(answer) == "read_only", (method, path)
