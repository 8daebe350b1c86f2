"""Reports as jobs: their ids and runs, the files they are made of, and what may be asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from headrace import ConflictError, InvalidInputError, NotFoundError, RunFailedError, RunState
from headrace.apps.report import delivering
from headrace.apps.report.errors import OutputError, RulesError
from headrace.apps.report.job import Job, ReportRequest, begin_report, find_report, job_id_of, resume_report
from headrace.apps.report.opening import SLOTS, app
from headrace.apps.report.requests import check_gate, check_rules, previous_of_job
from headrace.apps.report.stages import STATS
from headrace.model.run import NODES_QUEUE
from tests.unit.engine_app import QUICK
from tests.unit.report_files import xlsx


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The app of reports on a memory store of this test's own."""
    monkeypatch.setitem(app.__dict__, "settings", QUICK)
    yield


@asynccontextmanager
async def working() -> AsyncIterator[None]:
    """Work what needs no child process."""
    async with app.worker(queues={**SLOTS, NODES_QUEUE: 4}):
        yield


async def _failed(path: Path) -> Job:
    """A report that failed: its file is no workbook."""
    path.write_bytes(b"nothing")
    job = await begin_report(ReportRequest(str(path)), name="out")
    async with working():
        with pytest.raises(RunFailedError):
            await job.run.result(timeout=20)
    return job


async def test_equal_requests_are_one_job_and_others_are_others(reports: None, tmp_path: Path) -> None:
    """At the same moment, too; options, content and place of the report tell jobs apart."""
    path = xlsx(tmp_path / "cases.xlsx")
    request = ReportRequest(str(path))
    async with app:
        jobs = await asyncio.gather(*(begin_report(request, name="out") for _ in range(5)))
        assert len({(job.id, job.run.id) for job in jobs}) == 1
        assert (await find_report(jobs[0].id)).run.id == jobs[0].run.id
        others = [
            await begin_report(replace(request, lang="zh"), name="out"),
            await begin_report(replace(request, gate={"execution_rate": 50}), name="out"),
            await begin_report(request, name="elsewhere"),
        ]
        xlsx(path, [["Case ID", "Status"], ["TC-1", "Pass"]])
        others.append(await begin_report(request, name="out"))
        assert len({jobs[0].id, *(job.id for job in others)}) == 5


def test_an_id_follows_from_the_request_alone() -> None:
    """The same in every process and version: 32 signs of hex."""
    source = {"ref": "/x/cases.xlsx", "name": "cases.xlsx", "sha256": "ab", "size": 3}
    found = job_id_of("out", source, {"lang": "en", "gate": {}})
    assert found == job_id_of("out", dict(reversed(source.items())), {"gate": {}, "lang": "en"})
    assert (len(found), int(found, 16) > 0) == (32, True)


async def test_reports_that_nobody_began_are_not_found(reports: None) -> None:
    """Nor are ids that are none."""
    async with app:
        for name in ("0" * 32, "../x", "", "a" * 500, "\0"):
            with pytest.raises(NotFoundError):
                await find_report(name)


async def test_resumes_at_the_same_moment_give_one_run(reports: None, tmp_path: Path) -> None:
    """Of a report that failed; each later one has its own number, and the last is what is found."""
    async with app:
        job = await _failed(tmp_path / "cases.xlsx")
        again = await asyncio.gather(*(resume_report(job) for _ in range(5)))
        assert len({one.run.id for one in again}) == 1
        assert again[0].run.id != job.run.id
        found = await find_report(job.id)
        assert (found.run.id, found.number) == (again[0].run.id, 1)
        # One that goes on is followed, not begun again, and not from another stage.
        assert (await resume_report(found)).run.id == found.run.id
        with pytest.raises(InvalidInputError, match="has ended"):
            await resume_report(found, STATS)
        with pytest.raises(InvalidInputError, match="must be one of"):
            await resume_report(found, "nonsense")
        with pytest.raises(ConflictError, match="has not ended"):
            await previous_of_job(job.id)
        async with working():
            with pytest.raises(RunFailedError):
                await found.run.result(timeout=20)
        assert await found.run.status() is RunState.FAILED
        assert (await resume_report(found)).number == 2


def test_gates_and_rules_are_checked_before_anything_is_stored() -> None:
    """The one that is wrong is named, with what it was given."""
    assert check_gate({"execution_rate": 50}) == {"execution_rate": 50}
    with pytest.raises(InvalidInputError, match=r"gate execution_rate is wrong: .*101"):
        check_gate({"execution_rate": 101})
    with pytest.raises(InvalidInputError, match="gate luck is wrong"):
        check_gate({"luck": 1})
    assert check_rules(None) is None
    found = check_rules({"modules": [{"name": "Login", "keywords": ["sign in"]}]})
    assert found is not None
    assert check_rules(found) == found
    with pytest.raises(RulesError, match="modules"):
        check_rules({"modules": 3})


async def test_files_are_written_whole_and_one_that_there_is_no_more_is_taken_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A workbook of an earlier report is none of this one; nothing half-written stays behind."""
    files = {"report.html": b"page", "report.json": b"{}"}

    class FakeRun:
        async def result(self) -> Any:
            return {"artifacts": {}}

    async def file_of(_job: Job, _artifacts: Any, name: str) -> bytes | None:
        return files.get(name)

    monkeypatch.setattr(delivering, "file_of", file_of)
    job = Job("J1", cast(Any, FakeRun()))
    (tmp_path / "report.xlsx").write_bytes(b"old")
    (tmp_path / "mine.txt").write_bytes(b"kept")
    written = await delivering.deliver(job, tmp_path)
    assert written == [tmp_path / "report.html", tmp_path / "report.json"]
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "report.json", "mine.txt"}
    (tmp_path / "report.json").unlink()
    (tmp_path / "report.json").mkdir()
    with pytest.raises(OutputError, match=r"report\.json cannot be written"):
        await delivering.deliver(job, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "report.json", "mine.txt"}
