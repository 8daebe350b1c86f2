"""What the OpenAPI document of the service promises: names, tags, tokens, problems and streams."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from headrace.apps.details import desk
from headrace.apps.papers import job
from headrace.apps.report.worker import app as reports_app
from headrace.service.access import Access
from headrace.service.application import make_service
from headrace.service.document import Problem
from headrace.service.permits import PUBLIC
from headrace.service.stream_shapes import BATCH, DETAILS, MEDIA_TYPE, REPORT, RUN
from tests.unit.service_calls import shop


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The document of a service that has all routes and asks everybody for a token."""
    app = shop()
    desk.register(app)
    job.register(app)
    return with_reports(make_service(app, Access(True)).openapi())


def with_reports(document: dict[str, Any]) -> dict[str, Any]:
    """Add what the app of reports says of them: it is one of its own."""
    other = make_service(reports_app, Access(True)).openapi()
    paths = {path: one for path, one in other["paths"].items() if "/reports" in path}
    assert len(paths) == 6
    schemas = other["components"]["schemas"] | document["components"]["schemas"]
    return document | {
        "paths": document["paths"] | paths, "components": document["components"] | {"schemas": schemas}
    }  # fmt: skip


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return every operation with its path."""
    return [(path, one) for path, methods in document["paths"].items() for one in methods.values()]


def test_operations_have_names_that_say_what_they_do(document: dict[str, Any]) -> None:
    """Each its own, none made of its path; programs that are made of the document have them as functions."""
    names = [one["operationId"] for _, one in operations(document)]
    assert len(names) == len(set(names)) > 50
    assert [name for name in names if not re.fullmatch(r"[a-z]+(_[a-z]+){0,3}", name) or "api_v1" in name] == []
    known = {"submit_job", "cancel_job", "submit_batch", "follow_batch", "start_run", "rerun", "pause_queue",
             "redrive_dead_letters", "make_details", "follow_details", "submit_papers", "resume_handle",
             "build_report", "get_report", "follow_report", "resume_report", "send_report_file",
             "get_report_file"}  # fmt: skip
    assert known <= set(names)


def test_every_operation_has_a_tag_a_text_and_its_scope(document: dict[str, Any]) -> None:
    """But for those that everybody may ask."""
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for path, one in operations(document):
        assert one["tags"] and one["description"], path
        if path in PUBLIC:
            assert "security" not in one
            continue
        [needed] = one["security"]
        assert needed["token"] in (["read"], ["submit"], ["operate"]), path
        assert {"401", "403"} <= one["responses"].keys(), path


def test_every_refusal_is_a_problem_with_a_schema(document: dict[str, Any]) -> None:
    """It is the one that answers have."""
    refusals = [
        (path, answer)
        for path, one in operations(document)
        for status, answer in one["responses"].items()
        if status[0] in "45"
    ]
    assert len(refusals) > 100
    for path, answer in refusals:
        assert answer["content"]["application/problem+json"]["schema"] == {"$ref": "#/components/schemas/Problem"}, path
        assert answer["description"], path
    assert document["components"]["schemas"]["Problem"]["required"] == ["type", "title", "status", "code", "detail"]
    for example in document["components"]["schemas"]["Problem"]["examples"]:
        Problem.model_validate(example)


def test_references_lead_somewhere(document: dict[str, Any]) -> None:
    """Those that were written by hand too."""
    for name in re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)):
        assert name in document["components"]["schemas"]


def test_what_is_only_accepted_says_so_in_words(document: dict[str, Any]) -> None:
    """And where its end is found."""
    accepted = [one["responses"]["202"] for _, one in operations(document) if "202" in one["responses"]]
    assert len(accepted) == 5
    assert [one["description"] for one in accepted if len(one["description"]) < 30] == []
    assert "items" in document["components"]["schemas"]["AcceptedDetails"]["properties"]


@pytest.mark.parametrize(
    ("thing", "shapes"), [("batches", BATCH), ("runs", RUN), ("details", DETAILS), ("reports", REPORT)]
)
def test_streams_are_told_event_by_event(document: dict[str, Any], thing: str, shapes: dict[str, Any]) -> None:
    """With the shape of the data of each, and an example that is such a stream."""
    [path] = [path for path in document["paths"] if path.startswith(f"/api/v1/{thing}/") and path.endswith("/events")]
    content = document["paths"][path]["get"]["responses"]["200"]["content"][MEDIA_TYPE]
    assert content["schema"]["type"] == "string"
    assert content["x-events"].keys() == shapes.keys()
    blocks = [block for block in content["examples"]["stream"]["value"].split("\n\n") if block.startswith("id: ")]
    found = [re.fullmatch(r"id: (\d+)\nevent: (\w+)\ndata: (.+)", block) for block in blocks]
    assert [int(one[1]) for one in found if one] == list(range(1, len(blocks) + 1))
    for one in found:
        assert one is not None
        shapes[one[2]].model_validate_json(one[3])
