"""What every request has to pass before a route sees it: its host, its origin, its token, its size, its type.

A page of another site must reach nothing here through the browser of whoever runs the service: it can neither name this
host by a name of its own (DNS rebinding), nor send what browsers send without asking (forms, images, simple requests).
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from urllib.parse import unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.service.access import Access
from headrace.service.auth import CALLER, Caller
from headrace.service.bodies import MOST_BYTES, parse_json, read_body, replay
from headrace.service.gate import RESUME, UPLOADS, WEBHOOKS, Gate
from headrace.service.permits import is_public
from headrace.service.problems import HEADERS, RequestError, problem_of
from headrace.service.strangers import SECONDS as STRANGERS_SECONDS
from headrace.service.strangers import Strangers

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: What comes with a token is as small as results are: it is looked at before anything reads it.
RESUME_BYTES = 256 << 10
#: A workbook that is sent, and how long that may take; so many are taken at once, for they are held in memory.
UPLOAD_BYTES, UPLOAD_SECONDS, MOST_UPLOADS = 50 * 1000 * 1000, 120.0, 4
UPLOAD_TYPE = "application/octet-stream"
JSON = "application/json"
#: The header of routes that answer with a page, which has no origin: it reaches nothing of the service.
POLICY, SANDBOX = "content-security-policy", "sandbox allow-scripts allow-downloads"
CACHE = "cache-control"
#: The policy of the pages of the dashboard: files of this service alone, and nothing within the page.
PAGES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: Where browsers may keep what they got, and what is open to whoever has no token yet.
STATIC, OPEN_PATHS = "/static/", ("/login", "/logout")
#: Makes the answer to a request that may not pass.
Refuse = Callable[[Scope, RequestError], ASGIApp]
_AUTHORITY = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]*)?")
#: What browsers say of requests of the service's own pages, and of addresses that people typed.
_OWN_SITES = ("same-origin", "none")


def _as_problem(_: Scope, error: RequestError) -> ASGIApp:
    return problem_of(error)


class Guard:
    """Middleware that refuses what no route should see, and adds the headers of every answer."""

    def __init__(self, inner: ASGIApp, gate: Gate, refuse: Refuse = _as_problem) -> None:
        """`refuse` makes the answer to a request that may not pass."""
        self._inner, self._gate, self._strangers, self._refuse = inner, gate, Strangers(), refuse
        self._uploads = Uploads()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a problem."""
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        with ExitStack() as held:
            try:
                body = await self._checked(scope, receive, held)
            except RequestError as error:
                await self._refuse(scope, error)(scope, receive, _with_headers(scope, send))
                return
            await self._inner(scope, replay(body, receive), _with_headers(scope, send))

    async def _checked(self, scope: Scope, receive: Receive, held: ExitStack) -> bytes:
        """Return the body of a request that may pass; what it holds until it is answered goes on `held`."""
        headers = Headers(scope=scope)
        if not (self._gate.access.required and is_public(scope)):  # probes name what they ask by its address
            check_host(headers, self._gate.access)
        _check_origin(scope, headers, self._gate.access)
        _check_address(scope)
        _check_key(headers)
        caller = scope[CALLER] = await self._gate.admit(scope, headers)
        _check_csrf(scope, headers, caller)
        _check_read_only(scope, self._gate.access)
        # A method that is not for the address is told so, whatever came with it.
        known = self._gate.permits.of_request(scope) is not None
        if known:
            _check_type(scope, headers)
        # Nothing large is read for an address that there is not.
        upload = known and is_upload(scope)
        if upload:
            held.enter_context(self._uploads.counted())
        body = await self._body(scope, headers, receive, upload=upload)
        if is_json(headers.get("content-type", "")):
            parse_json(body)
        return body

    async def _body(self, scope: Scope, headers: Headers, receive: Receive, *, upload: bool) -> bytes:
        most, length = RESUME_BYTES if scope["path"].startswith(RESUME) else MOST_BYTES, headers.get("content-length")
        caller: Caller = scope[CALLER]
        if caller.admitted and upload:
            return await read_body(receive, length, most=UPLOAD_BYTES, seconds=UPLOAD_SECONDS)
        if caller.admitted:
            return await read_body(receive, length, most=most)
        with self._strangers.counted(caller.address):
            return await read_body(receive, length, most=most, seconds=STRANGERS_SECONDS)


class Uploads:
    """The files that are being taken in: each is held in memory until it is stored."""

    def __init__(self) -> None:
        self._open = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a file until the block ends. Raises RequestError 503 for one that is one too many."""
        if self._open >= MOST_UPLOADS:
            raise RequestError(503, "too_many_uploads", f"{MOST_UPLOADS} files are being taken in: try again")
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


def may_change(scope: Scope) -> bool:
    """Whether a request may change something: a webhook may start a run by a mere GET.

    >>> may_change({"method": "GET", "path": "/api/v1/jobs"}), may_change({"method": "GET", "path": "/webhook/orders"})
    (False, True)
    """
    return scope["method"] not in SAFE_METHODS or scope["path"].startswith(WEBHOOKS)


def is_upload(scope: Scope) -> bool:
    """Whether a request sends a file."""
    return bool(scope["method"] == "PUT" and scope["path"].startswith(UPLOADS))


def _with_headers(scope: Scope, send: Send) -> Send:
    is_file = scope["path"].startswith(STATIC)
    # What a flow answers is no page of ours, whatever headers it has.
    policies = () if scope["path"].startswith(WEBHOOKS) else (PAGES,)

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            policy = headers.get(POLICY, "")
            # A page of ours says which script of its own may run; what it says forbids more than it allows.
            is_own = policy in policies or policy.partition(";")[0] == SANDBOX
            for name, value in HEADERS.items():
                if not (is_own if name == POLICY else is_file and name == CACHE and name in headers):
                    headers[name] = value
        await send(message)

    return sending


def is_json(content_type: str) -> bool:
    """Whether a body is JSON by its type.

    >>> is_json("application/json; charset=utf-8"), is_json("application/geo+json"), is_json("text/plain")
    (True, True, False)
    """
    kind = content_type.partition(";")[0].strip().lower()
    return kind == JSON or (kind.startswith("application/") and kind.endswith("+json"))


def check_host(headers: Headers, access: Access) -> None:
    """Raise RequestError unless the request was sent to a name that the service answers to."""
    hosts = headers.getlist("host")
    if len(hosts) != 1:
        raise RequestError(400, "invalid_request", f"one Host header must be sent, got {len(hosts)}")
    if not access.answers_to(host_of(hosts[0])):
        rule = "the service answers to localhost, 127.0.0.1, [::1] and the names in service.hosts of its settings alone"
        raise RequestError(403, "forbidden_host", f"{rule}, got the host {hosts[0][:80]!r}")


def host_of(authority: str) -> str:
    """Return a host without its port, in lower case; an empty text for what is no host and port.

    >>> host_of("localhost:8400"), host_of("[::1]:8400"), host_of("localhost:80@evil.example")
    ('localhost', '::1', '')
    """
    found = _AUTHORITY.fullmatch(authority)
    return (found["address"] or found["name"]).lower() if found else ""


def _check_origin(scope: Scope, headers: Mapping[str, str], access: Access) -> None:
    """Refuse what a page of another site made a browser send."""
    if not may_change(scope):
        return
    if access.required and headers.get("authorization", "").lower().startswith("bearer "):
        return  # no page can make a browser send that
    origin = headers.get("origin")
    own = {f"{scope['scheme']}://{headers['host']}".lower(), access.origin or None}
    foreign = origin is not None and origin.lower() not in own
    if foreign or headers.get("sec-fetch-site", "none").lower() not in _OWN_SITES:
        raise RequestError(403, "forbidden_origin", "a page of another site must not send requests to this service")


def _check_csrf(scope: Scope, headers: Headers, caller: Caller) -> None:
    """Ask pages for what only a page of this service knows: their browser sends cookies whoever makes it do so."""
    if scope["method"] in SAFE_METHODS or scope["path"] in OPEN_PATHS or not caller.secret:
        return
    from_page = "origin" in headers or headers.get("sec-fetch-site", "none").lower() == "same-origin"
    if not (caller.by_cookie or (from_page and caller.token is None)):
        return
    if not hmac.compare_digest(headers.get("x-csrf-token", "").encode(), caller.csrf.encode()):
        fix = "reload the page; programs send their token as `Authorization: Bearer hra_…` instead of a cookie"
        raise RequestError(
            403, "forbidden_csrf", f"the header X-CSRF-Token is not that of a page of this service: {fix}"
        )


def _check_read_only(scope: Scope, access: Access) -> None:
    """Refuse what changes something where nothing may be changed."""
    if access.read_only and may_change(scope) and scope["path"] not in OPEN_PATHS:
        fix = "ask one that is not, or set service.read_only = false"
        raise RequestError(403, "read_only", f"this service is read-only, so nothing is changed here: {fix}")


def _check_address(scope: Scope) -> None:
    if "\0" in scope["path"] or b"%00" in scope["query_string"] or b"\0" in scope["query_string"]:
        raise RequestError(400, "invalid_request", "the address must not contain NUL characters")
    try:
        unquote(scope.get("raw_path") or b"", errors="strict")
        unquote(scope["query_string"], errors="strict")
    except UnicodeDecodeError:
        raise RequestError(400, "invalid_request", "the address must be UTF-8, percent-encoded") from None


def _check_key(headers: Headers) -> None:
    """Refuse several idempotency keys, of which none can be told to be the one that is meant."""
    count = len(headers.getlist("idempotency-key"))
    if count > 1:
        raise RequestError(400, "invalid_request", f"one Idempotency-Key header may be sent, got {count}")


def _check_type(scope: Scope, headers: Mapping[str, str]) -> None:
    """Ask for JSON: forms and texts can be sent by any page, without a question of the browser before."""
    if scope["method"] in SAFE_METHODS or scope["path"].startswith(WEBHOOKS):
        return
    kind = headers.get("content-type", "")
    if is_upload(scope):
        if kind.partition(";")[0].strip().lower() != UPLOAD_TYPE:
            fix = f"send Content-Type: {UPLOAD_TYPE} with the bytes of the file"
            raise RequestError(415, "unsupported_media_type", f"{fix}, got {kind[:80]!r}")
        return
    if not is_json(kind):
        fix = f"send Content-Type: {JSON}, also without a body"
        raise RequestError(415, "unsupported_media_type", f"{fix}, got {kind[:80]!r}")
