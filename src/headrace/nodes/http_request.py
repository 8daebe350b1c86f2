"""httpRequest: asks an address on the web, once for each item."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from headrace.model.http import HttpRequest
from headrace.nodes import checking
from headrace.nodes.base import Fault, Item, Named, NodeError, OneCall, Shape, ours
from headrace.nodes.http_answers import FORMATS, Reading, items_of
from headrace.nodes.http_bodies import body_of
from headrace.nodes.http_secrets import check_credentials, secrets_of
from headrace.nodes.http_values import ARRAYS, Pairs, as_text, flattened, named_values, object_at, rows_at
from headrace.nodes.parameters import Parameters

_METHODS = ("GET", "DELETE", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
_BODIES = ("json", "form-urlencoded", "multipart-form-data", "binaryData", "raw")
_FIRST_BODIES = ("json", "raw", "multipart-form-data", "form-urlencoded")
_OPTIONS = frozenset({"lowercaseHeaders", "queryParameterArrays", "redirect", "response", "timeout"})
_FIRST_OPTIONS = frozenset(
    {"bodyContentCustomMimeType", "bodyContentType", "followAllRedirects", "followRedirect", "fullResponse"}
    | {"ignoreResponseCode", "splitIntoItems", "timeout", "useQueryString"}
)
_QUEUES = "leave it out: a rate_limit or a concurrency of the queue keeps the pace over all workers"
_CERTIFICATES = "leave it out: use a certificate that the machine trusts (SSL_CERT_FILE names further authorities)"
#: Options that mean nothing when they are false, and what to do in their place.
_INSTEAD = {
    "allowUnauthorizedCerts": _CERTIFICATES,
    "batchInterval": _QUEUES,
    "batchSize": _QUEUES,
    "batching": _QUEUES,
    "pagination": "use a loop (splitInBatches or if) with the number of the page in a query parameter",
    "proxy": "leave it out: requests go straight to addresses that were checked",
    "requestUncompressedResponse": "leave it out: packed answers are unpacked",
    "sendCredentialsOnCrossOriginRedirect": "leave it out, and ask the address that it leads to",
}
_LONGEST = 3_600_000


class HttpRequestType(Named):
    """Sends one request for each item; the JSON, text or file of the answer becomes the items.

    Each element of a JSON list becomes an item; a value that is no object is the member `data` of one. An answer whose
    status is an error fails the item, with `status` and `body`. `timeout` is that of the whole answer, redirects
    included. A redirect to another origin is told no header but `Accept`, `Accept-Language`, `Content-Type` and
    `User-Agent`. A credential is found by its name in `[flows.credentials."NAME"]`, and hidden where an answer repeats
    it. Requests go to the public web, and to what `[flows] allow_targets` opens beyond it.
    """

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return what is asked for that cannot be done: each with what to use instead."""
        found = [] if checking.written(parameters, "url") else [Fault("url", "must be given, such as https://…")]
        found += check_credentials(parameters, version) + _check_options(parameters, version)
        found += checking.unused(parameters, "provideSslCertificates", _CERTIFICATES)
        found += checking.unused(parameters, "allowUnauthorizedCerts", _CERTIFICATES)
        path = "method" if version >= 3 else "requestMethod"
        if not checking.is_expression(checking.written(parameters, path)):
            found += checking.one_of(parameters, path, _METHODS, default="GET", instead={})
        return found + (_check_forms(parameters) if version >= 3 else _check_first_forms(parameters))

    async def run_one(self, call: OneCall) -> list[Item]:
        """Return the items of the answer. Raises NodeError, and what `services.http` raises."""
        at, version = call.parameters, call.version
        secrets = secrets_of(call)
        reading = Reading.of(at, version)
        method = at.one_of("method" if version >= 3 else "requestMethod", _METHODS, "GET")
        body = await body_of(call, method)
        headers = body.with_type(_headers(at, version))
        if not any(name.lower() == "accept" for name, _ in headers):
            headers.append(("Accept", "application/json,text/*;q=0.9,*/*;q=0.8"))
        request = HttpRequest(
            method, _url(at), secrets.added(headers), (*_query(at, version), *secrets.query), body.data,
            timeout=timedelta(milliseconds=at.whole("options.timeout", 300_000, 1, _LONGEST)),
            max_redirects=_redirects(at, version, method),
        )  # fmt: skip
        return await items_of(await call.services.http.send(request), reading, secrets, call)


def _url(at: Parameters) -> str:
    url = at.get("url")
    if not isinstance(url, str) or not url.strip():
        raise NodeError(f"parameters.url must be a URL such as https://example.com/a, got {as_text(url)[:80]!r}")
    return url.strip()


def _query(at: Parameters, version: float) -> Pairs:
    if version < 3:
        values = _first_values(at, "query")
        return flattened(values, "repeat" if at.flag("options.useQueryString") else "indices")
    arrays = at.one_of("options.queryParameterArrays", ARRAYS, "brackets")
    return flattened(_values(at, "Query", "queryParameters"), arrays)


def _headers(at: Parameters, version: float) -> Pairs:
    values = _first_values(at, "header") if version < 3 else _values(at, "Headers", "headerParameters")
    return [(name, as_text(value)) for name, value in values.items()]


def _values(at: Parameters, what: str, rows: str) -> dict[str, Any]:
    """Return the values of a part of the request, written row by row or as JSON."""
    if not at.flag(f"send{what}"):
        return {}
    if at.text(f"specify{what}", "keypair") == "json":
        return object_at(at, f"json{what}")
    return named_values(rows_at(at, f"{rows}.parameters"))


def _first_values(at: Parameters, what: str) -> dict[str, Any]:
    """Return the same as versions 1 and 2 write it."""
    if at.flag("jsonParameters"):
        return object_at(at, f"{what}ParametersJson")
    return named_values(rows_at(at, f"{what}ParametersUi.parameter"))


def _redirects(at: Parameters, version: float, method: str) -> int:
    """Return how many are followed; what is followed unless told has changed with the versions."""
    if version < 3:
        usual = at.flag("options.followRedirect", True) and method in ("GET", "HEAD")
        return 21 if usual or at.flag("options.followAllRedirects") else 0
    within = "options.redirect.redirect"
    return at.whole(f"{within}.maxRedirects", 21, 0, 100) if at.flag(f"{within}.followRedirects", version >= 4) else 0


def _check_options(parameters: Mapping[str, Any], version: float) -> list[Fault]:
    options = checking.written(parameters, "options", {})
    if not isinstance(options, Mapping):
        return [Fault("options", "must be an object, its values may be expressions")]
    found, known = [], _OPTIONS if version >= 3 else _FIRST_OPTIONS
    for name, value in options.items():
        off = not value or (name == "pagination" and checking.written(value, "pagination.paginationMode") == "off")
        if name not in known and not off:
            instead = _INSTEAD.get(name, "leave it out; known are " + ", ".join(sorted(known)))
            found.append(Fault(f"options.{name}", f"is not supported: {instead}"))
    return found + checking.whole(parameters, "options.timeout", least=1, most=_LONGEST)


def _check_forms(parameters: Mapping[str, Any]) -> list[Fault]:
    found = []
    for what in ("Query", "Headers"):
        if checking.written(parameters, f"send{what}"):
            found += checking.one_of(parameters, f"specify{what}", ("keypair", "json"), default="keypair", instead={})
    if checking.written(parameters, "sendBody"):
        found += checking.one_of(parameters, "contentType", _BODIES, default="json", instead={})
        kind = checking.written(parameters, "contentType", "json")
        other = {"json": "json", "form-urlencoded": "string"}.get(kind) if isinstance(kind, str) else None
        if other:
            found += checking.one_of(parameters, "specifyBody", ("keypair", other), default="keypair", instead={})
    within = "options.response.response.responseFormat"
    return found + checking.one_of(parameters, within, FORMATS, default="autodetect", instead={})


def _check_first_forms(parameters: Mapping[str, Any]) -> list[Fault]:
    kind = "options.bodyContentType"
    found = checking.one_of(parameters, "responseFormat", ("json", "string", "file"), default="json", instead={})
    found += checking.one_of(parameters, kind, _FIRST_BODIES, default="json", instead={})
    sent = checking.written(parameters, "jsonParameters") and checking.written(parameters, "sendBinaryData")
    if sent and checking.written(parameters, kind) not in ("raw", "multipart-form-data"):
        found.append(Fault(kind, 'must be "raw" or "multipart-form-data" for binary data to be sent'))
    return found


TYPE = HttpRequestType(
    "httpRequest",
    ours("httpRequest", "n8n-nodes-base.httpRequest"),
    (1, 4.4),
    "sends an HTTP request, once for each item",
    Shape.EACH,
)
