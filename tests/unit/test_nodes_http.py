"""httpRequest: what is sent for the parameters of each version, and what becomes of the answer."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from headrace.model.errors import InvalidInputError
from headrace.model.http import HttpAnswer, HttpError, HttpRequest
from headrace.model.targets import TargetRules
from headrace.nodes.base import Items, NodeError
from headrace.nodes.http_request import TYPE
from headrace.nodes.http_secrets import Secrets
from headrace.nodes.services import Credential
from headrace.outbound.hop import Hop
from tests.unit.node_calls import FakeServices, MemoryFiles, rules, run_type

URL = "https://api.example/v1/things?page=1"
SECRET = 'a long "secret" ü'


@dataclass
class Web:
    """Answers every request with the same, and keeps what was sent."""

    body: bytes = b"{}"
    mime: str = "application/json; charset=utf-8"
    status: int = 200
    reason: str = "OK"
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: list[HttpRequest] = field(default_factory=list)
    error: Exception | None = None

    async def send(self, request: HttpRequest) -> HttpAnswer:
        """Keep the request; give the answer, or fail."""
        self.sent.append(request)
        if self.error:
            raise self.error
        mime = {"content-type": self.mime} if self.mime else {}
        return HttpAnswer(self.status, self.reason, {**mime, **self.headers}, self.body, request.url)


CREDENTIALS = {
    "My header": Credential("header", "X-Api-Key", "", SECRET),
    "My token": Credential("bearer", secret=SECRET),
    "My login": Credential("basic", user="who", secret=SECRET),
    "My query": Credential("query", "key", "", SECRET),
}


async def run(
    parameters: Mapping[str, Any], web: Web | None = None, version: float = 4.2, item: Mapping[str, Any] | None = None
) -> Items:
    """Run the node for one item; return what it became."""
    services = FakeServices(http=web or Web(), files=MemoryFiles(), credentials=CREDENTIALS)
    (out,) = await run_type(TYPE, {"url": URL, **parameters}, [item or {"id": 7}], version=version, services=services)
    return out


async def sent(
    parameters: Mapping[str, Any], version: float = 4.2, item: Mapping[str, Any] | None = None
) -> HttpRequest:
    """Run the node for one item; return the request."""
    web = Web()
    assert rules(TYPE, {"url": URL, **parameters}, version) == []
    await run(parameters, web, version, item)
    return web.sent[0]


def rows(**values: Any) -> dict[str, Any]:
    """Return what versions 3 and 4 write for rows."""
    return {"parameters": [{"name": name, "value": value} for name, value in values.items()]}


def old(**values: Any) -> dict[str, Any]:
    """Return what versions 1 and 2 write for rows."""
    return {"parameter": [{"name": name, "value": value} for name, value in values.items()]}


def header(request: HttpRequest, name: str) -> str | None:
    """Return the only value of a header."""
    found = [value for key, value in request.headers if key.lower() == name]
    assert len(found) <= 1
    return found[0] if found else None


async def test_a_plain_request() -> None:
    """GET, five minutes, and whatever is readable."""
    request = await sent({})
    assert (request.method, request.url, request.query, request.body) == ("GET", URL, (), None)
    assert (request.timeout, request.max_redirects) == (timedelta(minutes=5), 21)
    assert header(request, "accept") == "application/json,text/*;q=0.9,*/*;q=0.8"
    assert header(request, "content-type") is None


async def test_expressions_are_those_of_the_item() -> None:
    """URL, query, headers and body see the item."""
    request = await sent(
        {
            "method": "=POST",
            "url": "=https://api.example/{{ $json.id }} ",
            "sendQuery": True,
            "queryParameters": rows(id="={{ $json.id }}"),
            "sendBody": True,
            "specifyBody": "json",
            "jsonBody": '={"id": {{ $json.id }}}',
        }
    )
    assert (request.method, request.url, request.query) == ("POST", "https://api.example/7", (("id", "7"),))
    assert request.body == b'{"id":7}'


QUERIES = {
    "rows": ({"queryParameters": rows(a="1", b=True, c=None, d=2.0)},
             [("a", "1"), ("b", "true"), ("c", ""), ("d", "2")]),
    "a name twice": ({"queryParameters": {"parameters": [{"name": "a", "value": v} for v in "123"]}},
                     [("a[]", "1"), ("a[]", "2"), ("a[]", "3")]),
    "a list twice": ({"queryParameters": {"parameters": [{"name": "a", "value": [1]}, {"name": "a", "value": 2}]},
                      "options": {"queryParameterArrays": "indices"}}, [("a[0][0]", "1"), ("a[1]", "2")]),
    "without names": ({"queryParameters": {"parameters": [{"name": "", "value": "x"}]}}, []),
    "a list repeated": ({"specifyQuery": "json", "jsonQuery": '{"a": [1, 2]}',
                         "options": {"queryParameterArrays": "repeat"}}, [("a", "1"), ("a", "2")]),
    "a list by numbers": ({"specifyQuery": "json", "jsonQuery": {"a": [1, 2]},
                           "options": {"queryParameterArrays": "indices"}}, [("a[0]", "1"), ("a[1]", "2")]),
    "objects": ({"specifyQuery": "json", "jsonQuery": '{"a": {"b": {"c": 1}}}'}, [("a[b][c]", "1")]),
    "no JSON": ({"specifyQuery": "json", "jsonQuery": ""}, []),
}  # fmt: skip


@pytest.mark.parametrize(("parameters", "query"), QUERIES.values(), ids=list(QUERIES))
async def test_queries(parameters: dict[str, Any], query: list[tuple[str, str]]) -> None:
    """Rows or JSON; lists and objects as the option says; nothing unless it is switched on."""
    assert list((await sent({"sendQuery": True, **parameters})).query) == query
    assert (await sent(parameters)).query == ()


async def test_headers() -> None:
    """Rows or JSON; one that is written replaces what is sent without."""
    request = await sent({"sendHeaders": True, "headerParameters": rows(**{"X-One": 1, "Accept": "text/csv"})})
    assert (header(request, "x-one"), header(request, "accept")) == ("1", "text/csv")
    request = await sent({"sendHeaders": True, "specifyHeaders": "json", "jsonHeaders": '{"X-Two": "b"}'})
    assert header(request, "x-two") == "b"


FORM = "application/x-www-form-urlencoded"
BODIES: dict[str, tuple[dict[str, Any], bytes, str | None]] = {
    "fields": ({"bodyParameters": rows(a=1, b="x")}, b'{"a":1,"b":"x"}', "application/json"),
    "fields within fields": ({"bodyParameters": rows(**{"a.b": 1, "a.c": [2]})}, b'{"a":{"b":1,"c":[2]}}',
                             "application/json"),
    "JSON as text": ({"specifyBody": "json", "jsonBody": '{ "a": "ü" }'}, '{"a":"ü"}'.encode(), "application/json"),
    "JSON as a value": ({"specifyBody": "json", "jsonBody": [1, None]}, b"[1,null]", "application/json"),
    "a form": ({"contentType": "form-urlencoded", "bodyParameters": rows(a="1 2", b=[3])}, b"a=1+2&b%5B0%5D=3", FORM),
    "a form as text": ({"contentType": "form-urlencoded", "specifyBody": "string", "body": "a=1%202&b="}, b"a=1+2&b=",
                       FORM),
    "raw": ({"contentType": "raw", "rawContentType": "text/xml", "body": "<a/>"}, b"<a/>", "text/xml"),
    "raw without a type": ({"contentType": "raw", "body": "ü"}, "ü".encode(), None),
}  # fmt: skip


@pytest.mark.parametrize(("parameters", "body", "mime"), BODIES.values(), ids=list(BODIES))
@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_bodies(parameters: dict[str, Any], body: bytes, mime: str | None, method: str) -> None:
    """Each kind of body with its type; nothing unless it is switched on."""
    request = await sent({"method": method, "sendBody": True, **parameters})
    assert (request.body, header(request, "content-type")) == (body, mime)
    assert (await sent({"method": method, **parameters})).body is None


async def test_names_with_dots_before_version_4() -> None:
    """Version 3 takes names as they are."""
    request = await sent({"method": "POST", "sendBody": True, "bodyParameters": rows(**{"a.b": 1})}, version=3)
    assert request.body == b'{"a.b":1}'


async def test_a_type_that_is_written_wins() -> None:
    """As for JSON that has a type of its own; forms of several parts have theirs."""
    written = {"sendHeaders": True, "headerParameters": rows(**{"content-type": "application/vnd.api+json"})}
    request = await sent({"method": "POST", "sendBody": True, "bodyParameters": rows(a=1), **written})
    assert header(request, "content-type") == "application/vnd.api+json"
    parts = {"contentType": "multipart-form-data", "bodyParameters": rows(a=1)}
    request = await sent({"method": "POST", "sendBody": True, **parts, **written})
    assert (header(request, "content-type") or "").startswith("multipart/form-data; boundary=")


async def uploading(
    parameters: Mapping[str, Any], version: float = 4.2, binary: Mapping[str, Any] | None = None
) -> HttpRequest:
    """Send a request for an item that has a file; return the request."""
    files = MemoryFiles()
    facts = {"name": 'my "report".csv', "mime": "text/csv"}
    kept = {**await files.put(b"a,b\r\n", **facts), **(binary or {})}
    services = FakeServices(http=(web := Web()), files=files)
    item = {"json": {}, "binary": {"data": kept}}
    assert rules(TYPE, {"url": URL, **parameters}, version) == []
    await run_type(TYPE, {"url": URL, **parameters}, [item], version=version, services=services)
    return web.sent[0]


PARTS = {
    "contentType": "multipart-form-data",
    "bodyParameters": {
        "parameters": [
            {"name": "no\r\nte", "value": "hi"},
            {"parameterType": "formBinaryData", "name": "file", "inputDataFieldName": "data"},
        ]
    },
}


async def test_a_form_with_a_file() -> None:
    """Several parts; names cannot break out of their line, and a second try sends the very same."""
    request = await uploading({"method": "POST", "sendBody": True, **PARTS})
    mime = header(request, "content-type") or ""
    between = mime.removeprefix("multipart/form-data; boundary=")
    assert (
        request.body
        == (
            f'--{between}\r\nContent-Disposition: form-data; name="no%0D%0Ate"\r\n\r\nhi\r\n'
            f'--{between}\r\nContent-Disposition: form-data; name="file"; filename="my %22report%22.csv"\r\n'
            f"Content-Type: text/csv\r\n\r\na,b\r\n\r\n--{between}--\r\n"
        ).encode()
    )
    assert await uploading({"method": "POST", "sendBody": True, **PARTS}) == request


async def test_the_type_of_a_file_cannot_break_out() -> None:
    """A type with a line break is not written."""
    request = await uploading({"method": "POST", "sendBody": True, **PARTS}, binary={"mimeType": "a\r\nX: 1"})
    assert b"X: 1" not in (request.body or b"")


async def test_a_file_as_the_body() -> None:
    """The file as it is, with its type."""
    request = await uploading(
        {"method": "PUT", "sendBody": True, "contentType": "binaryData", "inputDataFieldName": "data"}
    )
    assert (request.body, header(request, "content-type")) == (b"a,b\r\n", "text/csv")


FIRST: dict[str, tuple[dict[str, Any], bytes | None, str | None]] = {
    "rows": ({"bodyParametersUi": old(a=1)}, b'{"a":1}', "application/json"),
    "nothing": ({}, None, None),
    "rows as a form": ({"bodyParametersUi": old(a=1), "options": {"bodyContentType": "form-urlencoded"}}, b"a=1", FORM),
    "JSON": ({"jsonParameters": True, "bodyParametersJson": '{"a": [1]}'}, b'{"a":[1]}', "application/json"),
    "no JSON": ({"jsonParameters": True, "bodyParametersJson": ""}, None, None),
    "JSON of a type": ({"jsonParameters": True, "bodyParametersJson": "[1]",
                        "options": {"bodyContentCustomMimeType": "application/x"}}, b"[1]", "application/x"),
    "JSON as a form": ({"jsonParameters": True, "bodyParametersJson": '{"a": [1]}',
                        "options": {"bodyContentType": "form-urlencoded"}}, b"a%5B0%5D=1", FORM),
    "raw": ({"jsonParameters": True, "bodyParametersJson": "<a/>",
             "options": {"bodyContentType": "raw", "bodyContentCustomMimeType": "text/xml"}}, b"<a/>", "text/xml"),
}  # fmt: skip


@pytest.mark.parametrize(("parameters", "body", "mime"), FIRST.values(), ids=list(FIRST))
@pytest.mark.parametrize("version", [1, 2])
async def test_bodies_of_the_first_versions(
    parameters: dict[str, Any], body: bytes | None, mime: str | None, version: float
) -> None:
    """Versions 1 and 2 write the same in other places, and send no body with GET."""
    request = await sent({"requestMethod": "POST", **parameters}, version)
    assert (request.method, request.body, header(request, "content-type")) == ("POST", body, mime)
    assert (await sent(parameters, version)).body is None


async def test_files_of_the_first_versions() -> None:
    """One file as it is, or a form of several."""
    files = {"requestMethod": "POST", "jsonParameters": True, "sendBinaryData": True}
    request = await uploading({**files, "options": {"bodyContentType": "raw"}}, version=1)
    assert (request.body, header(request, "content-type")) == (b"a,b\r\n", "text/csv")
    form = {**files, "options": {"bodyContentType": "multipart-form-data"}}
    request = await uploading({**form, "binaryPropertyName": "one:data, two:data"}, version=2)
    assert [part in (request.body or b"") for part in (b'name="one"', b'name="two"')] == [True, True]
    request = await uploading(form, version=2)
    assert b'name="file"; filename=' in (request.body or b"")
    with pytest.raises(NodeError, match="must name a key for each of several files"):
        await uploading({**form, "binaryPropertyName": "data,data"}, version=2)


async def test_query_and_headers_of_the_first_versions() -> None:
    """Rows or JSON, lists by their numbers unless told."""
    written = {"queryParametersUi": {"parameter": [{"name": "a", "value": v} for v in "12"]}}
    request = await sent({**written, "headerParametersUi": old(**{"X-A": "b"})}, version=2)
    assert (request.query, header(request, "x-a")) == ((("a[0]", "1"), ("a[1]", "2")), "b")
    assert (await sent({**written, "options": {"useQueryString": True}}, 2)).query == (("a", "1"), ("a", "2"))
    as_json = {"jsonParameters": True, "queryParametersJson": '{"q": 1}', "headerParametersJson": '{"X-A": "c"}'}
    request = await sent(as_json, version=1)
    assert (request.query, header(request, "x-a")) == ((("q", "1"),), "c")


def redirecting(**values: Any) -> dict[str, Any]:
    """Return options of redirects."""
    return {"options": {"redirect": {"redirect": values}}}


@pytest.mark.parametrize(
    ("parameters", "version", "followed"),
    [
        ({}, 4, 21), ({}, 3, 0), (redirecting(), 4, 21), (redirecting(followRedirects=False), 4, 0),
        (redirecting(followRedirects=True, maxRedirects=3), 3, 3), (redirecting(maxRedirects=2), 4.2, 2),
        ({}, 1, 21), ({"requestMethod": "POST"}, 2, 0), ({"options": {"followRedirect": False}}, 2, 0),
        ({"requestMethod": "POST", "options": {"followAllRedirects": True}}, 1, 21),
    ],
)  # fmt: skip
async def test_redirects(parameters: dict[str, Any], version: float, followed: int) -> None:
    """What is followed unless told has changed with the versions."""
    assert (await sent(parameters, version)).max_redirects == followed


async def test_the_time_is_in_milliseconds() -> None:
    """As an option of every version."""
    for version in (1, 3, 4.4):
        assert (await sent({"options": {"timeout": 1500}}, version)).timeout == timedelta(seconds=1.5)


def signing(kind: str, name: str) -> dict[str, Any]:
    """Return the parameters of a credential."""
    credentials = {kind: {"id": "1", "name": name}}
    return {"authentication": "genericCredentialType", "genericAuthType": kind, "$credentials": credentials}


PAIR = base64.b64encode(f"who:{SECRET}".encode()).decode()
SIGNED = {
    "httpHeaderAuth": ("My header", "x-api-key", SECRET),
    "httpBearerAuth": ("My token", "authorization", f"Bearer {SECRET}"),
    "httpBasicAuth": ("My login", "authorization", f"Basic {PAIR}"),
}


@pytest.mark.parametrize("kind", SIGNED)
async def test_a_credential_is_sent_in_its_header(kind: str) -> None:
    """It is found by its name, and wins over what is written."""
    name, key, value = SIGNED[kind]
    written = {"sendHeaders": True, "headerParameters": rows(**{key.title(): "mine"})}
    assert header(await sent({**signing(kind, name), **written}), key) == value


async def test_a_credential_in_the_query() -> None:
    """Behind what is written."""
    request = await sent({**signing("httpQueryAuth", "My query"), "sendQuery": True, "queryParameters": rows(a=1)})
    assert request.query == (("a", "1"), ("key", SECRET))


@pytest.mark.parametrize(("way", "kind"), [("headerAuth", "httpHeaderAuth"), ("basicAuth", "httpBasicAuth")])
async def test_credentials_of_the_first_version(way: str, kind: str) -> None:
    """Version 1 has words of its own for them, and older files the bare name."""
    name, key, value = SIGNED[kind]
    request = await sent({"authentication": way, "$credentials": {kind: name}}, version=1)
    assert header(request, key) == value


async def test_a_credential_of_another_kind_is_refused() -> None:
    """The error names both kinds and the place, and no secret."""
    with pytest.raises(NodeError, match=r'kind \'basic\', .* httpHeaderAuth: write kind = "header"') as caught:
        await run(signing("httpHeaderAuth", "My login"))
    assert SECRET not in str(caught.value)
    with pytest.raises(NodeError, match="there is no credential 'none'"):
        await run(signing("httpHeaderAuth", "none"))
    with pytest.raises(NodeError, match="must name the credential"):
        await run({**signing("httpHeaderAuth", "x"), "$credentials": {}})


REPEATED = {
    "JSON": Web(json.dumps({"you": SECRET, "url": "?key=a+long+%22secret%22+%C3%BC"}).encode()),
    "text": Web(f"you sent {SECRET} and {PAIR}".encode(), "text/plain"),
    "an error": Web(f"no: {SECRET}".encode(), "text/plain", 401),
    "no JSON": Web(f"no: {SECRET}".encode()),
}


@pytest.mark.parametrize("web", REPEATED.values(), ids=list(REPEATED))
@pytest.mark.parametrize("kind", SIGNED)
async def test_a_secret_that_an_answer_repeats_is_not_shown(web: Web, kind: str) -> None:
    """Neither items nor errors hold it, in whatever form it comes back."""
    whole = {"options": {"response": {"response": {"fullResponse": True}}}}
    try:
        shown = json.dumps(await run({**signing(kind, SIGNED[kind][0]), **whole}, web), ensure_ascii=False)
    except NodeError as error:
        shown = f"{error} {error.details}"
    assert "***" in shown
    assert "secret" not in shown
    assert kind != "httpBasicAuth" or PAIR not in shown


@pytest.mark.parametrize(
    "form",
    ["own/s3 cret+=", "own%2Fs3+cret%2B%3D", "own/s3%20cret%2B%3D", "own%2Fs3%20cret%2B%3D"],
)
def test_all_forms_of_a_secret_are_hidden(form: str) -> None:
    """As it is, as a value of a query and as a part of a path."""
    assert Secrets(hidden=("own/s3 cret+=",)).without(f"<{form}>") == "<***>"


ANSWERS: dict[str, tuple[Web, dict[str, Any], list[Any]]] = {
    "an object": (Web(b'{"a": 1}'), {}, [{"a": 1}]),
    "a list": (Web(b'[{"a": 1}, {"b": 2}]'), {}, [{"a": 1}, {"b": 2}]),
    "an empty list": (Web(b"[]"), {}, []),
    "values that are no objects": (Web(b'[1, "x", null, [2]]'), {}, [{"data": one} for one in (1, "x", None, [2])]),
    "a number": (Web(b"5"), {}, [{"data": 5}]),
    "nothing": (Web(b" "), {}, [{}]),
    "text": (Web(b"hi", "text/plain"), {}, [{"data": "hi"}]),
    "text without a type": (Web(b"hi", ""), {}, [{"data": "hi"}]),
    "JSON of another type": (Web(b"{}", "application/problem+json"), {}, [{"data": "{}"}]),
    "text in Latin 1": (Web(b"\xfc", "text/plain; charset=ISO-8859-1"), {}, [{"data": "ü"}]),
    "text in a set that there is not": (Web(b"\xc3\xbc", "text/plain; charset=iso-8859-99"), {}, [{"data": "ü"}]),
    "text in a code that is none": (Web(b"a", "text/plain; charset=punycode"), {}, [{"data": "a"}]),
    "text with a mark before it": (Web(b"\xef\xbb\xbfhi", "text/csv"), {}, [{"data": "hi"}]),
    "JSON read as text": (Web(b"{}"), {"responseFormat": "text", "outputPropertyName": "raw"}, [{"raw": "{}"}]),
    "text read as JSON": (Web(b'{"a": 1}', "text/html"), {"responseFormat": "json"}, [{"a": 1}]),
    "all of JSON": (Web(b"[1]", headers={"x": "y"}), {"fullResponse": True}, [
        {"body": [1], "headers": {"content-type": "application/json; charset=utf-8", "x": "y"}, "statusCode": 200,
         "statusMessage": "OK"}]),
    "all of a text": (Web(b"hi", "text/plain", 201, "Made"), {"fullResponse": True}, [
        {"data": "hi", "headers": {"content-type": "text/plain"}, "statusCode": 201, "statusMessage": "Made"}]),
    "an error that is none": (Web(b'{"a": 1}', status=404), {"neverError": True}, [{"a": 1}]),
    "no JSON, and no error": (Web(b"oops", status=500), {"neverError": True}, [{}]),
}  # fmt: skip


@pytest.mark.parametrize(("web", "response", "items"), ANSWERS.values(), ids=list(ANSWERS))
async def test_answers(web: Web, response: dict[str, Any], items: list[Any]) -> None:
    """What each kind of answer becomes, paired with the item it was asked for."""
    parameters = {"options": {"response": {"response": response}}}
    assert rules(TYPE, {"url": URL, **parameters}) == []
    out = await run(parameters, web)
    assert [item["json"] for item in out] == items
    assert all(item["pairedItem"] == {"item": 0} for item in out)


@pytest.mark.parametrize(
    ("web", "parameters", "items"),
    [
        (Web(b"[1]"), {}, [{"data": [1]}]),
        (Web(b'[{"a": 1}]'), {"options": {"splitIntoItems": True}}, [{"a": 1}]),
        (Web(b"hi"), {"responseFormat": "string", "dataPropertyName": "page"}, [{"page": "hi"}]),
        (Web(b"{}", status=500), {"options": {"ignoreResponseCode": True}}, [{}]),
    ],
)
async def test_answers_of_the_first_versions(web: Web, parameters: dict[str, Any], items: list[Any]) -> None:
    """Lists are split when it is asked for, and there is always JSON unless something else is."""
    assert [item["json"] for item in await run(parameters, web, version=2)] == items


def nested(levels: int) -> bytes:
    """Return JSON of lists within each other."""
    return b"[" * levels + b"]" * levels


KEPT: dict[str, tuple[Web, Any]] = {
    "NUL in JSON": (Web(b'{"a\\u0000": ["x\\u0000y"]}'), {"a": ["xy"]}),
    "half a pair in JSON": (Web(b'{"a": "x\\ud83d", "\\udc00": 1}'), {"a": "x\ufffd", "\ufffd": 1}),
    "a whole pair in JSON": (Web(b'{"a": "\\ud83d\\ude00"}'), {"a": "😀"}),
    "NUL in a text": (Web(b"a\0b", "text/plain"), {"data": "ab"}),
    "as deep as it may be": (Web(b'{"a": %b}' % nested(55)), None),
    "large whole numbers": (Web(b'{"a": %b}' % (b"9" * 400)), {"a": int("9" * 400)}),
}


@pytest.mark.parametrize(("web", "value"), KEPT.values(), ids=list(KEPT))
async def test_answers_are_what_a_store_can_keep(web: Web, value: Any) -> None:
    """NUL characters are left out, halves of surrogate pairs replaced."""
    (made,) = await run({}, web)
    json.dumps(made, ensure_ascii=False).encode()
    assert value is None or made["json"] == value


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"a": 1e999}', "1e999 is too large a number"),
        (b"-1e999", "too large a number"),
        (b'{"a": %b}' % nested(56), "nested more than 56 levels deep"),
        (nested(900), "nested more than 56 levels deep"),
        (nested(100_000), "nested too deeply"),
        (b"9" * 5_000, "a number has too many digits"),
    ],
)
async def test_answers_that_no_store_can_keep_fail_their_item(body: bytes, why: str) -> None:
    """The error says what is wrong with them; `neverError` makes them nothing."""
    with pytest.raises(NodeError, match=rf"the answer is no JSON that can be kept .*{why}.*: choose .text."):
        await run({}, Web(body))
    (made,) = await run({"options": {"response": {"response": {"neverError": True}}}}, Web(body))
    assert made["json"] == {}


async def test_errors_and_headers_are_what_a_store_can_keep() -> None:
    """The body of an error and the headers have no NUL either."""
    with pytest.raises(NodeError) as caught:
        await run({}, Web(b"a\0b", "text/plain", 404))
    assert caught.value.details["body"] == "ab"
    (made,) = await run(
        {"options": {"response": {"response": {"fullResponse": True}}}},
        Web(b"{}", headers={"x": "a\0b"}, reason="O\0K"),
    )
    assert (made["json"]["headers"]["x"], made["json"]["statusMessage"]) == ("ab", "OK")


FILES = {
    "an encoded name": (
        Web(b"x", "application/pdf",
            headers={"content-disposition": "attachment; filename=\"cafe.pdf\"; filename*=UTF-8''caf%C3%A9.pdf"}),
        "https://a.example/get", "café.pdf", "application/pdf"),
    "half a pair in a name": (
        Web(b"x", "application/pdf", headers={"content-disposition": 'attachment; filename="a\ud800.pdf"'}),
        "https://a.example/get", "a\ufffd.pdf", "application/pdf"),
    "an image": (Web(b"\x89P", "image/png"), "https://a.example/x/my%20logo.png?s=1", "my logo.png", "image/png"),
    "a name that is said": (
        Web(b"x", "application/pdf", headers={"content-disposition": 'attachment; filename="../../r.pdf"; x=1'}),
        "https://a.example/get", "r.pdf", "application/pdf"),
    "no name": (Web(b"x", "application/zip"), "https://a.example/", "file", "application/zip"),
    "a name of dots": (Web(b"x", "application/zip"), "https://a.example/%2e%2e", "file", "application/zip"),
}  # fmt: skip


@pytest.mark.parametrize(("web", "url", "name", "mime"), FILES.values(), ids=list(FILES))
async def test_files(web: Web, url: str, name: str, mime: str) -> None:
    """A file is stored by reference, beside those that the item has; its name leads nowhere."""
    item = {"json": {"id": 7}, "binary": {"other": {"id": "x"}}}
    (made,) = await run({"url": url}, web, item=item)
    assert made["json"] == {"id": 7}
    assert made["binary"]["other"] == {"id": "x"}
    kept = made["binary"]["data"]
    assert (kept["fileName"], kept["mimeType"], kept["fileSize"]) == (name, mime, len(web.body))


async def test_a_file_with_all_of_its_answer() -> None:
    """Status and headers take the place of the item's data."""
    response = {"responseFormat": "file", "fullResponse": True, "outputPropertyName": "page"}
    (made,) = await run({"options": {"response": {"response": response}}}, Web(b"{}"))
    assert (made["json"]["statusCode"], list(made["binary"])) == (200, ["page"])


@pytest.mark.parametrize(("status", "transient"), [(302, False), (404, False), (429, True), (503, True)])
async def test_a_status_that_is_an_error_fails_the_item(status: int, transient: bool) -> None:
    """Status and the beginning of the body; more of it in the details, and whether trying again can help."""
    web = Web(b" <h1>\n Nothing </h1> " + b"x" * 5000, "text/html", status, "Whatever")
    with pytest.raises(NodeError) as caught:
        await run({}, web)
    assert str(caught.value).startswith(f"{status} - <h1> Nothing </h1> xxx")
    assert len(str(caught.value)) <= 220
    assert caught.value.details["status"] == status
    assert len(caught.value.details["body"]) == 2000
    assert caught.value.transient is transient
    with pytest.raises(NodeError, match=f"^{status} - Whatever$"):
        await run({}, Web(b"", "", status, "Whatever"))


async def test_what_the_client_raises_goes_on() -> None:
    """Its errors name the target already."""
    with pytest.raises(HttpError, match="cannot be reached"):
        await run({}, Web(error=HttpError("https://api.example cannot be reached", transient=True)))


_BODY = {"method": "POST", "sendBody": True, "specifyBody": "json"}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no URL": ({"url": "={{ $json.nothing }}"}, "parameters.url must be a URL such as"),
    "a number for a URL": ({"url": "={{ 5 }}"}, "parameters.url must be a URL such as .* got '5'"),
    "no JSON": ({"method": "POST", "sendBody": True, "specifyBody": "json", "jsonBody": "{a}"},
                "parameters.jsonBody must be JSON .* got '{a}'"),
    "numbers that JSON has not": ({"method": "POST", "sendBody": True, "specifyBody": "json", "jsonBody": "[NaN]"},
                                  "parameters.jsonBody must be JSON .NaN is not JSON"),
    "JSON without end": ({"method": "POST", "sendBody": True, "specifyBody": "json", "jsonBody": "[" * 100_000},
                         "parameters.jsonBody must be JSON .nested too deeply"),
    "no object": ({"sendQuery": True, "specifyQuery": "json", "jsonQuery": "[1]"},
                  "parameters.jsonQuery must be a JSON object"),
    "no file": ({"method": "PUT", "sendBody": True, "contentType": "binaryData", "inputDataFieldName": "data"},
                "no binary data 'data'"),
    "no rows": ({"sendQuery": True, "queryParameters": {"parameters": ["a"]}}, "must be a list of objects"),
    "a method that is none": ({"method": "={{ 'CONNECT' }}"}, "parameters.method must be one of GET"),
    "half a pair in JSON": ({**_BODY, "jsonBody": "={{ {a: $json.half} }}"}, "has a half of a surrogate pair"),
    "half a pair in a form": ({**_BODY, "contentType": "form-urlencoded", "specifyBody": "keypair",
                               "bodyParameters": rows(a="={{ $json.half }}")}, "has a half of a surrogate pair"),
    "half a pair in parts": ({**_BODY, "contentType": "multipart-form-data",
                              "bodyParameters": rows(a="={{ $json.half }}")}, "has a half of a surrogate pair"),
    "half a pair in a text": ({**_BODY, "contentType": "raw", "body": "={{ $json.half }}"},
                              "has a half of a surrogate pair"),
    "too long a time": ({"options": {"timeout": "={{ 10**9 }}"}}, "parameters.options.timeout must be a whole number"),
}  # fmt: skip


@pytest.mark.parametrize(("parameters", "words"), WRONG.values(), ids=list(WRONG))
async def test_parameters_that_are_wrong_for_an_item(parameters: dict[str, Any], words: str) -> None:
    """They fail the item, naming parameter, rule and value, and nothing is sent."""
    web = Web()
    with pytest.raises((NodeError, InvalidInputError), match=words):
        await run(parameters, web, item={"id": 7, "half": "a\ud800"})
    assert web.sent == []


FAULTS: dict[str, tuple[dict[str, Any], float, str]] = {
    "no URL": ({"url": ""}, 4.2, "url: must be given"),
    "a method": ({"method": "TRACE"}, 4.2, "method: must be one of GET"),
    "a method before version 3": ({"requestMethod": "TRACE"}, 2, "requestMethod: must be one of GET"),
    "pages": ({"options": {"pagination": {"pagination": {"nextURL": "x"}}}}, 4.2, "options.pagination: .* use a loop"),
    "batches": ({"options": {"batching": {"batch": {"batchSize": 1}}}}, 4.2, "options.batching: .* rate_limit"),
    "batches before version 3": ({"options": {"batchSize": 5}}, 1, "options.batchSize: .* rate_limit"),
    "a proxy": ({"options": {"proxy": "http://p"}}, 4.2, "options.proxy: .* straight"),
    "any certificate": ({"options": {"allowUnauthorizedCerts": True}}, 4.2, "allowUnauthorizedCerts: .* trusts"),
    "any certificate before version 3": ({"allowUnauthorizedCerts": True}, 1, "allowUnauthorizedCerts: .* trusts"),
    "certificates of one's own": ({"provideSslCertificates": True}, 4.2, "provideSslCertificates: "),
    "secrets for others": ({"options": {"sendCredentialsOnCrossOriginRedirect": True}}, 4.4, "CrossOrigin.*leave it"),
    "an option that is none": ({"options": {"retry": 1}}, 4.2, "options.retry: is not supp.* known are .*timeout"),
    "an option of another version": ({"options": {"fullResponse": True}}, 4.2, "options.fullResponse: is not"),
    "options that are none": ({"options": "={{ {} }}"}, 4.2, "options: must be an object"),
    "time": ({"options": {"timeout": 0}}, 4.2, "options.timeout: must be a whole number from 1"),
    "ready-made credentials": ({"authentication": "predefinedCredentialType"}, 4.2, "authentication: .* httpHeader"),
    "OAuth": ({"authentication": "genericCredentialType", "genericAuthType": "oAuth2Api"}, 4.2, "AuthType: .* use"),
    "digest": ({"authentication": "digestAuth"}, 1, "authentication: .* httpHeaderAuth"),
    "no credential": ({"authentication": "genericCredentialType", "genericAuthType": "httpHeaderAuth"}, 4.2,
                      'credentials: must name the credential: "credentials": {"httpHeaderAuth"'),
    "a body of no kind": ({"sendBody": True, "contentType": "xml"}, 4.2, "contentType: must be one of json, form"),
    "a body of a list": ({"sendBody": True, "contentType": ["json"]}, 4.2, "contentType: must be one of json, form"),
    "JSON of a form": ({"sendBody": True, "contentType": "form-urlencoded", "specifyBody": "json"}, 4.2, "specifyBod"),
    "a query of no kind": ({"sendQuery": True, "specifyQuery": "xml"}, 4.2, "specifyQuery: must be one of"),
    "a format": ({"options": {"response": {"response": {"responseFormat": "xml"}}}}, 4.2, "responseFormat: must be"),
    "a format before version 3": ({"responseFormat": "text"}, 2, "responseFormat: must be one of json, string, file"),
    "a body of no kind before version 3": ({"options": {"bodyContentType": "xml"}}, 2, "options.bodyContentType: "),
    "files as JSON": ({"jsonParameters": True, "sendBinaryData": True}, 2, 'options.bodyContentType: must be "raw"'),
}  # fmt: skip


@pytest.mark.parametrize(("parameters", "version", "words"), FAULTS.values(), ids=list(FAULTS))
def test_what_cannot_be_done_is_said_before(parameters: dict[str, Any], version: float, words: str) -> None:
    """One fault, which names the parameter and what to use instead."""
    (found,) = rules(TYPE, {"url": URL, **parameters}, version)
    assert re.search(words, found), found


@pytest.mark.parametrize(
    "options",
    [{"pagination": {"pagination": {"paginationMode": "off"}}}, {"batching": {}}, {"proxy": ""},
     {"lowercaseHeaders": False}, {"allowUnauthorizedCerts": False}, {"timeout": "={{ $json.ms }}"}],
)  # fmt: skip
def test_options_that_ask_for_nothing_are_fine(options: dict[str, Any]) -> None:
    """What is switched off is no reason to refuse a flow."""
    assert rules(TYPE, {"url": URL, "options": options}) == []


def test_secrets_do_not_show_where_objects_are_printed() -> None:
    """What is printed of a request, of its way, its answer and its credential has no header, query or body."""
    told = "s3cret"
    request = HttpRequest("POST", f"{URL}&k={told}", (("X-Key", told),), (("key", told),), told.encode())
    target = TargetRules().parse(f"https://api.example/?key={told}")
    shown = [request, target, Hop.first(request, target), HttpAnswer(200, "OK", {"x": told}, told.encode(), told)]
    shown.append(Secrets((("X-Key", told),), (("key", told),), (told,)))
    assert [repr(one) for one in shown if told in repr(one)] == []
    assert repr(request).startswith("HttpRequest(method='POST'")
