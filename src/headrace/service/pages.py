"""The pages of the dashboard over HTTP: each at its address, what is live of each, files, and the way in and out.

Pages only look. What their buttons do goes through the API as the requests of any program do, with what proves that a
page of this service made them: `guard` checks it.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Scope

from headrace.app import App
from headrace.dashboard.live import Rooms, Seen
from headrace.dashboard.memory import Memory
from headrace.dashboard.page import Context, Look, Page, View
from headrace.dashboard.rendering import digest, files, link_maker, render_other, render_page, render_parts
from headrace.dashboard.table import listed, pages_of
from headrace.dashboard.words import choose_locale, translator
from headrace.model.api_token import Scope as TokenScope
from headrace.model.errors import HeadraceError, InvalidInputError, NotFoundError
from headrace.service.access import Access
from headrace.service.auth import Caller, caller_of, for_everybody, needs
from headrace.service.faults import UNKNOWN
from headrace.service.gate import COOKIE, Gate
from headrace.service.guard import PAGES as POLICY
from headrace.service.permits import Permits
from headrace.service.problems import LOG, RequestError, headers_of, problem_of, shown_path, status_of
from headrace.service.sse import EventStream, check_own_site
from headrace.service.streams import Streams

HEADERS = {"content-security-policy": POLICY, "referrer-policy": "same-origin"}
LOCALE = "headrace_locale"
#: Characters of a value in the address of a page: pages are kept by their addresses while they are watched.
MOST_QUERY = 2_000
#: Names of files carry what tells versions apart, so browsers need not ask again.
FOR_EVER = {"cache-control": "public, max-age=31536000, immutable"}


class Pages:
    """The pages of one service."""

    def __init__(self, app: App, access: Access) -> None:
        self.app, self.access = app, access
        self.pages = pages_of(app)
        self.rooms = Rooms()
        self.memory = Memory()

    def look(self, headers: Headers, cookies: dict[str, str], caller: Caller | None) -> Look:
        """Return how pages are shown to somebody."""
        token = None if caller is None else caller.token
        scopes = frozenset(TokenScope) if token is None else token.scopes
        locale = choose_locale(cookies.get(LOCALE), headers.get("accept-language", ""))
        return Look(self.access.base, locale, scopes, self.access.read_only)

    def view(self, request: Request) -> View:
        """Return what a page is made from. Raises InvalidInputError."""
        look = self.look(request.headers, request.cookies, caller_of(request))
        params = {name: str(value) for name, value in request.path_params.items()}
        return View(self.app, look, params, dict(request.query_params), memory=self.memory)

    def frame(self, page: Page, request: Request, look: Look) -> Context:
        """Return what stands around a page."""
        caller = caller_of(request)
        query = f"?{request.url.query}" if request.url.query else ""
        return {
            "csrf": caller.csrf,
            "visitor": "" if caller.token is None else caller.token.name,
            "nav": listed(self.pages, page, look),
            "live_url": f"{look.base}/live{quote(request.scope['path'])}".rstrip("/") + query,
        }

    def refuse(self, permits: Permits, scope: Scope, error: HeadraceError) -> Response:
        """Return the answer to a request that may not pass, or that failed: a page to whoever asked for one."""
        headers = Headers(scope=scope)
        permit = permits.find("GET", scope["path"])
        wants_page = scope["method"] == "GET" and "text/html" in headers.get("accept", "")
        if not wants_page or permit is None or permit.path not in {page.path for page in self.pages}:
            return problem_of(error)
        look = self.look(headers, Request(scope).cookies, None)
        status = status_of(error)
        if status == 401:
            query = scope["query_string"].decode("latin-1")
            there = (scope.get("raw_path") or quote(scope["path"]).encode()).decode("latin-1")
            return RedirectResponse(link_maker(look.base)("login", next=f"{there}?{query}" if query else there), 303)
        title = translator(look.locale)("This page cannot be shown")
        context = {"status": status, "title": title, "detail": str(error)}
        return HTMLResponse(render_other("error", look, context), status, headers=headers_of(error) | HEADERS)


class Login(BaseModel):
    """What somebody logs in with."""

    model_config = ConfigDict(extra="forbid")

    token: Annotated[str, Field(min_length=1, max_length=200)]


def add_pages(service: FastAPI, app: App, access: Access) -> Pages:
    """Give a service the pages of its app."""
    pages = Pages(app, access)
    router = APIRouter(include_in_schema=False)
    for page in pages.pages:
        router.add_api_route(
            page.path, _shower(pages, page), methods=["GET"], name=f"page_{page.name}", dependencies=[needs(page.scope)]
        )
        router.add_api_route(
            f"/live{page.path}".rstrip("/"), _follower(pages, page), methods=["GET"], name=f"live_{page.name}",
            dependencies=[needs(page.scope)],
        )  # fmt: skip
    router.add_api_route("/static/{version}/{path:path}", _file, methods=["GET"], dependencies=[for_everybody()])
    router.add_api_route("/login", partial(_login_page, pages), methods=["GET"], dependencies=[for_everybody()])
    router.add_api_route("/login", partial(_login, pages), methods=["POST"], dependencies=[for_everybody()])
    router.add_api_route("/logout", partial(_logout, pages), methods=["POST"], dependencies=[for_everybody()])
    service.include_router(router)
    return pages


Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def _shower(pages: Pages, page: Page) -> Handler:
    async def show(request: Request) -> Response:
        try:
            _check_query(page, request)
            view = pages.view(request)
            context = await page.make(view)
        except HeadraceError as error:
            if status_of(error) >= 500:
                LOG.error("%s %s: %s", request.method, shown_path(request), error)
            gate: Gate = request.app.state.gate
            return pages.refuse(gate.permits, request.scope, error)
        frame = pages.frame(page, request, view.look)
        return HTMLResponse(render_page(page, view, context, frame), headers=HEADERS)

    return show


def _follower(pages: Pages, page: Page) -> Handler:
    async def follow(request: Request) -> Response:
        check_own_site(request)
        _check_query(page, request)
        streams: Streams = request.app.state.streams
        streams.check()
        view = pages.view(request)
        gate: Gate = request.app.state.gate
        key = (page.name, view.look, tuple(view.params.items()), tuple(sorted(view.query.items())))
        parts = partial(pages.rooms.events, key, partial(_look, page, view), every=page.every)
        return EventStream(streams, parts, partial(gate.bars, caller_of(request)))

    return follow


async def _look(page: Page, view: View) -> Seen:
    """Return a page as it is now."""
    fresh = View(view.app, view.look, view.params, view.query, memory=view.memory, live=True)
    context = await page.make(fresh)
    return Seen(render_parts(page, fresh, context), {name: tell(context) for name, tell in page.texts.items()})


def _check_query(page: Page, request: Request) -> None:
    for name, value in request.query_params.items():
        if name not in page.query:
            raise InvalidInputError(name, UNKNOWN, value)
        if len(value) > MOST_QUERY:
            raise InvalidInputError(name, f"must be at most {MOST_QUERY:,} characters", value)


async def _file(version: str, path: str) -> Response:
    found = files().get(path)
    if version != digest() or found is None:
        raise NotFoundError(f"there is no file {path[:80]!r} of version {version[:80]!r}")
    kind = mimetypes.guess_type(found.name)[0] or "application/octet-stream"
    return FileResponse(found, media_type=kind, headers=FOR_EVER)


async def _login_page(pages: Pages, request: Request) -> Response:
    look = pages.look(request.headers, request.cookies, None)
    context = {"next": f"{look.base}{_own_place(request.query_params.get('next', '/'))}"}
    return HTMLResponse(render_other("login", look, context), headers=HEADERS)


def _own_place(text: str) -> str:
    """Return a place of this service, "/" for one of elsewhere: that would be a trap with our name on it.

    Browsers leave out tabs and the like, and pages put ids where `{id}` stands: quoted, neither makes another place.
    """
    own = text.startswith("/") and not text.startswith(("//", "/\\"))
    return quote(text, safe="/?#&=%:;,+@!$'()*") if own else "/"


async def _login(pages: Pages, request: Request, body: Login) -> Response:
    gate: Gate = request.app.state.gate
    token = await gate.sign_in(body.token.strip(), caller_of(request))
    if TokenScope.READ not in token.scopes:
        raise RequestError(
            403, "forbidden", "the pages need a token of the scope read: `headrace token create` makes one"
        )
    answer = Response(status_code=204)
    secure = pages.access.url.startswith("https:")
    answer.set_cookie(
        COOKIE, body.token.strip(), httponly=True, samesite="strict", secure=secure, path=pages.access.base or "/"
    )
    return answer


async def _logout(pages: Pages) -> Response:
    answer = Response(status_code=204)
    answer.delete_cookie(COOKIE, path=pages.access.base or "/", httponly=True, samesite="strict")
    return answer


class Below:
    """Middleware that takes off the path that a proxy left before the addresses of the service."""

    def __init__(self, inner: ASGIApp, base: str) -> None:
        self._inner, self._base = inner, base

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Pass a request on, with the path that the service knows."""
        path = scope.get("path", "")
        if path == self._base or path.startswith(f"{self._base}/"):
            raw = scope.get("raw_path") or path.encode()
            scope = {**scope, "path": path[len(self._base) :] or "/", "raw_path": raw[len(self._base) :] or b"/"}
        await self._inner(scope, receive, send)
