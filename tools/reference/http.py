"""http.md: every route of the service, from its OpenAPI document and the errors in its source."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

from headrace import App, service
from headrace.apps.details import desk
from headrace.apps.flows import reading as flow_errors
from headrace.apps.flows import tasks as flow_tasks
from headrace.apps.memory.worker import app as memory_app
from headrace.apps.papers import job
from headrace.apps.report import errors as report_errors
from headrace.apps.report.worker import app as report_app
from headrace.model import errors, targets
from headrace.model.errors import HeadraceError
from headrace.model.expressions import errors as expression_errors
from headrace.service.access import Access
from headrace.service.application import make_service
from headrace.service.problems import status_of
from tools.reference.json_schema import members, need, type_of
from tools.reference.text import NOTE, table

HTTP = f"""{NOTE}
# HTTP

Every route of [`headrace serve`](../howto/serve.md), from the document that the service itself gives at
`GET /api/v1/openapi.json`. Those of details, papers, reports, memory and flows are there where the app is theirs;
flows listen at [`/webhook/PATH`](../howto/flows.md#triggers) besides. What is said here of no route holds for all:
bodies are strict JSON, who may come in is told in [let others in](../howto/serve.md#let-others-in), and every refusal
is a [problem](#problems). The [streams](events.md#streams) of batches, runs, details and reports have a page of their
own.
"""

PROBLEMS = """## Problems

A refusal is a document of the type `application/problem+json` (RFC 9457), a [`Problem`](#problem), whose `code` is one
of these. 429 and 503 carry `Retry-After`. Applications add codes that their pages
tell.
"""

SHAPES = """## Shapes

Bodies of requests and answers. Members that a request may leave out have their default, or none. Answers may grow
members: read those that you know.
"""

#: Whose errors are told, whatever else is loaded.
_MODULES = {module.__name__ for module in (errors, expression_errors, targets, report_errors, flow_errors)}
#: What the service refuses before anything of ours fails. One that comes without a line here stops the generation.
_REFUSALS = {
    "config": "the webhook names a credential that the configuration has not",
    "disconnected": "the client went away before its body was there",
    "entries_gone": "entries of a stream behind the last id were removed: begin without it for those that are left",
    "forbidden": "the token has not the scope that the route needs",
    "forbidden_csrf": "a page of the dashboard must send the proof that it was given",
    "forbidden_host": "the `Host` is none that the service answers to",
    "forbidden_origin": "a page of another site sent the request",
    "http_error": "anything else that the framework refuses",
    "idempotency_conflict": "the key was used before with another body",
    "internal_error": "a mistake of ours: the log of the service has what it was",
    "invalid_json": "the body is not strict JSON",
    "invalid_request": "a header, the address or the form of the request cannot be read",
    "method_not_allowed": "`Allow` names the methods that there are",
    "not_found": "there is no such address",
    "not_stored": "the file cannot be stored",
    "payload_too_large": "the body, or what it asks for, is too large",
    "read_only": "the service only shows: nothing may be changed by it",
    "request_timeout": "the body did not arrive in time",
    "stopping": "the service stops: connect again in a moment",
    "review_log": "the log of a review cannot be read or written: mend its folder",
    "store_unavailable": "the store does not answer, so no token can be looked up",
    "too_many_attempts": "too many wrong tokens came from this address",
    "too_many_connections": "the process has as many connections as it may have",
    "too_many_requests": "the process, or somebody without a token, has as many requests as they may have at once",
    "too_many_streams": "the process has as many streams as it may have",
    "too_many_uploads": "as many files are being taken in as may be at once",
    "unauthorized": "a token is missing, unknown, expired or revoked",
    "unsupported_media_type": "the type of the body is none that the route takes",
    "version_conflict": "it was changed meanwhile: read it again",
}


def http() -> str:
    """Return the page of all routes."""
    document = whole_document()
    parts = [HTTP, PROBLEMS, table(["status", "code", "meaning"], problems()), ""]
    for tag, operations in by_tag(document).items():
        parts.append(f"## {tag[0].upper()}{tag[1:]}\n")
        parts += [operation_section(*one) for one in operations]
    parts.append(SHAPES)
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts += [f"### `{name}`", "", *([schema["description"], ""] if "description" in schema else [])]
        parts.append(members(schema))
    return "\n".join(parts)


@functools.cache
def whole_document() -> dict[str, Any]:
    """Return the documents of services of all kinds of apps in one."""
    app = App("memory://")
    desk.register(app)
    job.register(app)
    flow_tasks.register(app)
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for one in (app, report_app, memory_app):
        document = make_service(one, Access(True)).openapi()
        paths = document["paths"] | paths
        schemas = document["components"]["schemas"] | schemas
    return {"paths": paths, "components": {"schemas": schemas}}


def by_tag(document: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """Return method, path and operation of every route, by its tag, as the service has them."""
    found: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    return dict(sorted(found.items()))


def operation_section(method: str, path: str, operation: dict[str, Any]) -> str:
    """Return the section of one route."""
    parts = [f"### `{method} {path}`", "", f"{scope(operation)} · `{operation['operationId']}`", ""]
    parts += [operation.get("description", ""), ""]
    if operation.get("parameters"):
        parts += [table(["parameter", "in", "type", "", "meaning"], parameters(operation)), ""]
    if "requestBody" in operation:
        parts += [f"Body: {body(operation['requestBody'])}.", ""]
    parts += [table(["answer", "", ""], answers(operation)), ""]
    return "\n".join(parts)


def scope(operation: dict[str, Any]) -> str:
    """Return the scope of the token that opens a route."""
    scopes = [name for one in operation.get("security", ()) for name in one.get("token", ())]
    return f"Scope {', '.join(f'`{name}`' for name in scopes)}" if scopes else "No token"


def parameters(operation: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the rows of a route's parameters."""
    for one in operation["parameters"]:
        schema = one["schema"]
        about = one.get("description", schema.get("description", ""))
        yield [f"`{one['name']}`", one["in"], type_of(schema), need(one, one.get("required", False)), about]


def body(given: dict[str, Any]) -> str:
    """Return what a body may be."""
    kinds = [
        type_of(content["schema"]) + ("" if media == "application/json" else f" as `{media}`")
        for media, content in given["content"].items()
    ]
    return ", or ".join(kinds)


def answers(operation: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the rows of what a route answers; refusals that every route has are told once, for all."""
    for status, answer in sorted(operation["responses"].items()):
        content = answer.get("content", {})
        if "application/problem+json" in content and status in ("401", "403", "4XX", "503"):
            continue
        usual = HTTPStatus(int(status)).phrase if status.isdigit() else ""
        about = answer["description"]
        shapes = ", ".join(
            f"`{media}`" if media.startswith("text/") else type_of(one.get("schema", {}))
            for media, one in content.items()
        )
        yield [f"`{status}`", shapes, usual if about == "Successful Response" else about]


def problems() -> list[list[str]]:
    """Return the rows of all codes: of our errors, and of refusals before them. Raises ValueError: one is not told."""
    told = {(status, code): sentence(_REFUSALS.get(code, "")) for status, code in refusals()}
    told |= {(status, code): about for status, code, about in own_errors()}
    silent = sorted({code for (_, code), about in told.items() if not about})
    if silent:
        raise ValueError(f"add a line to _REFUSALS of tools/reference/http.py for {', '.join(silent)}")
    return [[str(status), f"`{code}`", about] for (status, code), about in sorted(told.items())]


def sentence(text: str) -> str:
    """Return a text as a sentence; nothing of nothing."""
    return f"{text[0].upper()}{text[1:]}." if text and text[0].isalpha() else f"{text}." if text else ""


def own_errors() -> Iterator[tuple[int, str, str]]:
    """Yield status, code and meaning of each error that has a status of its own."""
    for kind in below(HeadraceError):
        status = status_of(kind.__new__(kind)) if kind.__module__ in _MODULES and "code" in vars(kind) else 500
        if status != 500:
            yield status, kind.code, " ".join((kind.__doc__ or "").split("\n\n")[0].split())


def below(kind: type[HeadraceError]) -> Iterator[type[HeadraceError]]:
    """Yield the classes that come from one."""
    for one in kind.__subclasses__():
        yield one
        yield from below(one)


def refusals() -> Iterator[tuple[int, str]]:
    """Yield status and code of every refusal that is written out in the source of the service."""
    for file in sorted(Path(service.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in ("RequestError", "problem"):
                continue
            values = [one.value for one in node.args[:2] if isinstance(one, ast.Constant)]
            if len(values) == 2 and isinstance(values[0], int):
                yield values[0], str(values[1])
