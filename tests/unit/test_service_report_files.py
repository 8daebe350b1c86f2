"""Files of reports over HTTP: what is taken in, under which names, and what is refused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from headrace.model.api_token import Scope
from headrace.service.guard import MOST_UPLOADS, UPLOAD_BYTES
from tests.unit import report_hostile
from tests.unit.gate_calls import gated, login
from tests.unit.report_files import with_entry, xlsx
from tests.unit.report_serving import BYTES, FILES, SHEET, reports_served, send, settled
from tests.unit.service_calls import code_of, served, shop

BOMB_SECONDS = 2.0


def stored(folder: Path) -> list[str]:
    """Return what lies in the folder of files."""
    return sorted(path.name for path in (folder / "report-files").iterdir())


async def test_a_file_is_stored_once(tmp_path: Path) -> None:
    """The same again is there already; another one of that name is a conflict, and the first stays as it was."""
    async with reports_served(tmp_path) as client:
        first = await send(client, "cases.csv")
        assert (first.status_code, first.json()["file_ref"], first.json()["size"]) == (
            201,
            "file:cases.csv",
            len(SHEET),
        )
        again = await send(client, "cases.csv")
        assert (again.status_code, again.json()) == (200, first.json())
        other = await send(client, "cases.csv", SHEET + b"C13,x,y,Pass,\n")
        assert (other.status_code, code_of(other)) == (409, "name_taken")
        assert (await send(client, "%E6%B5%8B%E8%AF%95.csv")).json()["file_ref"] == "file:测试.csv"
        assert stored(tmp_path) == ["cases.csv", "测试.csv"]
        assert (tmp_path / "report-files" / "cases.csv").read_bytes() == SHEET


async def test_a_file_is_removed(tmp_path: Path) -> None:
    """Its name is free again; one that is not there is told so."""
    async with reports_served(tmp_path) as client:
        await send(client, "cases.csv")
        headers = {"content-type": "application/json"}
        gone = await client.delete("/api/v1/reports/files/cases.csv", headers=headers)
        assert (gone.status_code, gone.content, stored(tmp_path)) == (204, b"", [])
        again = await client.delete("/api/v1/reports/files/cases.csv", headers=headers)
        assert (again.status_code, code_of(again)) == (404, "not_found")
        assert (await send(client, "cases.csv", SHEET + b"C13,x,y,Pass,\n")).status_code == 201


def bomb(path: Path) -> Path:
    """Write a workbook that is a thousand times as large once it is unpacked."""
    return with_entry(xlsx(path), "xl/worksheets/sheet9.xml", b"<a/>" * 50_000_000)


HOSTILE = {
    "a bomb": bomb, "a link that leads out": report_hostile.symlink, "a password": report_hostile.locked,
    "a million entries": report_hostile.listed_millions,
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
async def test_archives_that_could_do_harm_are_refused_soon(tmp_path: Path, what: str) -> None:
    """With the name that was sent, and not with that of a draft."""
    made = HOSTILE[what](tmp_path / "harm.xlsx")
    async with reports_served(tmp_path) as client:
        began = time.monotonic()
        answer = await send(client, "orders.xlsx", made.read_bytes())
        assert (answer.status_code, code_of(answer)) == (422, "unsafe_archive"), answer.text
        assert time.monotonic() - began <= BOMB_SECONDS
        assert answer.json()["detail"].startswith("orders.xlsx: ")
        assert stored(tmp_path) == []


async def test_a_workbook_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    """It would fail the report later."""
    async with reports_served(tmp_path) as client:
        whole = xlsx(tmp_path / "whole.xlsx").read_bytes()
        answer = await send(client, "cases.xlsx", whole[: len(whole) // 2])
        assert (answer.status_code, code_of(answer)) == (422, "unreadable_file")
        assert (await send(client, "cases.xlsx", whole)).status_code == 201


async def blocks(sent: list[int], size: int = 1_000_000) -> AsyncIterator[bytes]:
    """Yield more than is taken, without saying so before."""
    for number in range(100):
        sent.append(number)
        yield b" " * size


async def test_a_file_without_a_length_is_read_no_further_than_the_bound(tmp_path: Path) -> None:
    """At an address that there is not, no further than any body."""
    async with reports_served(tmp_path) as client:
        sent: list[int] = []
        answer = await client.put(f"{FILES}/cases.csv", content=blocks(sent), headers=BYTES)
        assert (answer.status_code, code_of(answer)) == (413, "payload_too_large")
        assert len(sent) <= UPLOAD_BYTES // 1_000_000 + 2
    async with served(shop(), worker=False) as client:
        sent = []
        answer = await client.put(f"{FILES}/cases.csv", content=blocks(sent), headers=BYTES)
        assert (answer.status_code, code_of(answer), len(sent) < 5) == (413, "payload_too_large", True)
        assert (await client.put(f"{FILES}/cases.csv", content=SHEET, headers=BYTES)).status_code == 404


async def test_few_files_are_taken_in_at_once(tmp_path: Path) -> None:
    """One more is told to come again; whoever has sent makes room."""
    go, begun = asyncio.Event(), []

    async def slowly() -> AsyncIterator[bytes]:
        begun.append(1)
        yield SHEET
        await go.wait()

    async def one(client: httpx2.AsyncClient, number: int) -> int:
        return (await client.put(f"{FILES}/{number}.csv", content=slowly(), headers=BYTES)).status_code

    async with reports_served(tmp_path) as client:
        tasks = [asyncio.create_task(one(client, number)) for number in range(MOST_UPLOADS)]
        while len(begun) < MOST_UPLOADS:
            await asyncio.sleep(0.01)
        answer = await send(client, "more.csv")
        assert (answer.status_code, code_of(answer)) == (503, "too_many_uploads")
        assert answer.headers["retry-after"] == "1"
        go.set()
        assert set(await asyncio.gather(*tasks)) == {201}
        assert (await send(client, "more.csv")).status_code == 201


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """It is nothing that the caller can mend, and no path is told."""
    (tmp_path / "taken").write_text("x")
    async with reports_served(tmp_path, files=tmp_path / "taken") as client:
        answer = await send(client, "cases.csv")
        assert (answer.status_code, code_of(answer)) == (503, "not_stored")
        assert str(tmp_path) not in answer.text


async def test_files_are_sent_with_a_token_to_submit(tmp_path: Path) -> None:
    """Nothing is read of what comes without."""
    with settled(tmp_path) as app:
        async with app, gated(app) as (client, _):
            sent: list[int] = []
            answer = await client.put(f"{FILES}/cases.csv", content=blocks(sent), headers=BYTES)
            assert (answer.status_code, code_of(answer), sent) == (401, "unauthorized", [])
            for scope, status in ((Scope.READ, 403), (Scope.OPERATE, 403), (Scope.SUBMIT, 201)):
                headers = {**await login(app, scope), **BYTES}
                assert (await client.put(f"{FILES}/cases.csv", content=SHEET, headers=headers)).status_code == status
