"""Reports over HTTP: whatever is sent is answered with a problem that names it, and nothing of it is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx2
import pytest
import pytest_asyncio

from headrace.apps.report.sources import files_folder
from headrace.apps.report.stages import DEFECTS
from headrace.apps.report.worker import app
from headrace.service.guard import UPLOAD_BYTES
from tests.unit import report_hostile
from tests.unit.report_serving import BYTES, FILES, REPORTS, SHEET, build, reports_served, send
from tests.unit.service_calls import code_of

NOBODY = "0" * 32

#: One service for all of them: nothing here leaves anything in it that another test could meet.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx2.AsyncClient]:
    """Serve reports that nobody works on, with one file."""
    async with reports_served(tmp_path_factory.mktemp("reports")) as client:
        assert (await send(client, "cases.csv")).status_code == 201
        yield client


def kept() -> list[str]:
    """Return what lies in the folder of files."""
    return sorted(path.name for path in files_folder(app).iterdir())


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("a/b.csv", 422, "invalid_input"),
        ("a%2Fb.csv", 422, "invalid_input"),
        ("%2Fetc%2Fcases.csv", 422, "invalid_input"),
        ("a%5Cb.csv", 422, "invalid_input"),
        ("%2E%2E", 422, "invalid_input"),
        ("%2E%2E%2Fcases.csv", 422, "invalid_input"),
        (".hidden.csv", 422, "invalid_input"),
        ("~%24cases.xlsx", 422, "invalid_input"),
        ("", 422, "invalid_input"),
        ("cases%00.csv", 400, "invalid_request"),
        ("cases%0A.csv", 404, "not_found"),
        ("cases%E2%80%AEvsc.csv", 422, "invalid_input"),
        ("x" * 197 + ".csv", 422, "invalid_input"),
        ("%ff.csv", 400, "invalid_request"),
        ("cases", 415, "wrong_file_type"),
        ("cases.exe", 415, "wrong_file_type"),
        ("cases.xlsx", 415, "wrong_file_type"),
    ],
)
async def test_names_that_are_refused(client: httpx2.AsyncClient, name: str, status: int, code: str) -> None:
    """None leads elsewhere, none hides what it is, and nothing is left of what came with it."""
    before = kept()
    answer = await send(client, name)
    assert (answer.status_code, code_of(answer)) == (status, code), answer.text
    assert str(files_folder(app)) not in answer.text
    assert kept() == before


@pytest.mark.parametrize(
    ("name", "data", "status", "code"),
    [
        ("cases.xml", report_hostile.LAUGHS, 422, "unsafe_archive"),
        ("cases.xml", b'<?xml version="1.0"?><!DOCTYPE a SYSTEM "http://127.0.0.1/a"><a/>', 422, "unsafe_archive"),
        ("cases.xml", b"<?xml version='1.0' encoding='none'?><a/>", 422, "unreadable_file"),
        ("cases.xml", b"<!-- nothing -->", 422, "unreadable_file"),
        ("cases.xml", SHEET, 415, "wrong_file_type"),
        ("cases.csv", b"%PDF-1.7\n", 415, "wrong_file_type"),
        ("cases.csv", b"<!doctype html><script>", 415, "wrong_file_type"),
        ("cases.csv", b"", 422, "unreadable_file"),
        ("cases.xml", b"<testsuite><testcase name='a'/></testsuite>", 201, ""),
        ("wide.xml", b"\xff\xfe" + "<?xml version='1.0' encoding='utf-16'?><testsuite/>".encode("utf-16-le"), 201, ""),
    ],
)
async def test_contents(client: httpx2.AsyncClient, name: str, data: bytes, status: int, code: str) -> None:
    """What a worker would refuse is refused when it is sent."""
    answer = await send(client, name, data)
    assert answer.status_code == status, answer.text
    assert code == "" or code_of(answer) == code


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"content-type": "application/json"}, 415, "unsupported_media_type"),
        ({"content-type": "multipart/form-data; boundary=x"}, 415, "unsupported_media_type"),
        ({"content-type": "text/csv"}, 415, "unsupported_media_type"),
        ({"content-length": str(UPLOAD_BYTES + 1)}, 413, "payload_too_large"),
        ({"content-length": "x"}, 400, "invalid_request"),
        ({"origin": "https://evil.example"}, 403, "forbidden_origin"),
        ({"content-type": "application/octet-stream; x=y"}, 200, ""),
    ],
)
async def test_headers(client: httpx2.AsyncClient, headers: dict[str, str], status: int, code: str) -> None:
    """A page of another site sends no file, and none is taken apart."""
    answer = await client.put(f"{FILES}/cases.csv", content=SHEET, headers={**BYTES, **headers})
    assert answer.status_code == status, answer.text
    assert code == "" or code_of(answer) == code


@pytest.mark.parametrize(
    "keys", [("a", "b"), ("a", ""), (None, ""), (None, "k" * 191), (None, "a\tb"), ("k" * 191, None), (7, None)]
)
async def test_keys_that_are_refused(client: httpx2.AsyncClient, keys: tuple[Any, str | None]) -> None:
    """Two that differ, empty ones, long ones, and what is no text."""
    headers = {} if keys[1] is None else {"idempotency-key": keys[1]}
    answer = await build(client, idempotency_key=keys[0], headers=headers)
    assert (answer.status_code, code_of(answer)) == (422, "invalid_input")
    assert "idempotency_key" in answer.json()["detail"]


BAD: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "a path": ({"file_ref": "/etc/passwd"}, 422, "invalid_input", "file_ref must begin with file:"),
    "a path out of the folder": ({"file_ref": "file:../cases.csv"}, 422, "invalid_input", "file_ref"),
    "a scheme of others": ({"file_ref": "http://127.0.0.1/cases.csv"}, 422, "invalid_input", "file_ref"),
    "a file that is not there": ({"file_ref": "file:none.csv"}, 422, "unreadable_file", "none.csv"),
    "no file": ({"file_ref": ""}, 422, "invalid_input", "file_ref"),
    "a number for a file": ({"file_ref": 7}, 422, "invalid_input", "file_ref"),
    "another language": ({"lang": "de"}, 422, "invalid_input", "lang"),
    "a text for a list": ({"sheet_whitelist": "Login"}, 422, "invalid_input", "sheet_whitelist"),
    "numbers for sheets": ({"sheet_whitelist": [7]}, 422, "invalid_input", "sheet_whitelist"),
    "a long title": ({"title": "x" * 201}, 422, "invalid_input", "title"),
    "an unknown member": ({"sheets": []}, 422, "invalid_input", "sheets"),
    "an unknown criterion": ({"gate": {"none": 1}}, 422, "invalid_input", "gate none"),
    "a criterion out of range": ({"gate": {"pass_rate_of_executed": 101}}, 422, "invalid_input", "gate pass_rate"),
    "rules that are none": ({"rules": {"modules": 7}}, 422, "invalid_rules", "modules"),
    "a report that there is not": ({"previous_job_id": NOBODY}, 404, "not_found", NOBODY),
    "no id of a report": ({"previous_job_id": "../x"}, 422, "invalid_input", "previous_job_id"),
}


async def test_what_is_not_taken(client: httpx2.AsyncClient) -> None:
    """Each with a status, a code and words, and nothing is stored."""
    for name, (change, status, code, words) in BAD.items():
        answer = await build(client, **change)
        assert (name, answer.status_code, code_of(answer)) == (name, status, code), answer.text
        assert words in answer.json()["detail"], (name, answer.text)
    assert (await client.get("/api/v1/runs")).json()["runs"] == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", NOBODY, 404), ("GET", f"{NOBODY}/events", 404), ("GET", f"{NOBODY}/files/report.html", 404),
        ("POST", f"{NOBODY}/resume", 404), ("GET", "x", 422), ("GET", str(UUID(int=7)), 422),
        ("GET", f"{NOBODY}/files/report.pdf", 422), ("GET", f"{NOBODY}/files/%2e%2e%2freport.html", 404),
        ("GET", f"{NOBODY}?all=1", 422), ("GET", f"{NOBODY}/files/report.html?download=x", 422),
        ("DELETE", NOBODY, 405), ("GET", "files/cases.csv", 405),
    ],
)  # fmt: skip
async def test_addresses(client: httpx2.AsyncClient, method: str, path: str, status: int) -> None:
    """Ids, names and options that there are not."""
    answer = await client.request(method, f"{REPORTS}/{path}", json={} if method != "GET" else None)
    assert answer.status_code == status, answer.text
    assert code_of(answer)


@pytest.mark.parametrize("body", [{"from": "nothing"}, {"from": 7}, {"first": DEFECTS}, [], "x"])
async def test_resumes_that_are_refused(client: httpx2.AsyncClient, body: Any) -> None:
    """Stages that there are not, and other members."""
    answer = await client.post(f"{REPORTS}/{NOBODY}/resume", json=body)
    assert (answer.status_code, code_of(answer)) == (422, "invalid_input")
