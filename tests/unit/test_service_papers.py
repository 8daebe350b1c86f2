"""Papers over HTTP: what is taken, how far it is, and what no name reaches."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headrace import App
from headrace.apps.papers import job
from headrace.apps.papers.documents import Document
from headrace.model.batch import Progress
from headrace.papers_settings import PaperSettings
from headrace.settings import QueueSettings, Settings, WorkerSettings
from tests.unit.service_calls import code_of, served, shop
from tests.waiting import wait_until

TEMPLATE = """
name: study
version: 1
fields:
  - {name: size, type: integer, description: How many people took part}
"""
WHOLE = {"project_id": "review-7", "template_id": "study", "document_ids": ["a.txt", "b.txt", "gone.pdf"]}


class Found:
    """What a model made of a document."""

    def __init__(self, document: Document) -> None:
        self._name = document.name

    def to_json(self) -> dict[str, str]:
        """Return it as JSON."""
        return {"name": self._name}


@pytest.fixture
def papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    """An app of papers with two folders, whose model takes the name of each document, and fails at one of them."""
    templates, documents = tmp_path / "templates", tmp_path / "documents"
    templates.mkdir()
    documents.mkdir()
    (templates / "study.yaml").write_text(TEMPLATE, encoding="utf-8")
    (templates / "broken.yaml").write_text("name: [", encoding="utf-8")
    for name in ("a.txt", "b.txt", "fails.txt", "größe.txt"):
        (documents / name).write_text(f"A study called {name}.", encoding="utf-8")
    (documents / "gone.pdf").write_bytes(b"no pdf at all")
    (documents / ".hidden.txt").write_text("x", encoding="utf-8")
    (documents / "inner").mkdir()
    (tmp_path / "secret.txt").write_text("x", encoding="utf-8")
    (documents / "out.txt").symlink_to(tmp_path / "secret.txt")
    (documents / "within.txt").symlink_to(documents / "a.txt")

    async def extract(document: Document, *_: Any, **__: Any) -> Found:
        if document.name == "fails.txt":
            raise ValueError("nothing found")
        return Found(document)

    monkeypatch.setattr(job, "extract_document", extract)
    monkeypatch.setattr(job, "RETRY", job.Backoff.none())
    settings = Settings(
        directory=tmp_path / "kept",
        queue=QueueSettings(type="memory"),
        worker=WorkerSettings(poll_interval=timedelta(milliseconds=20)),
        papers=PaperSettings(templates, documents),
    )
    app = App(settings=settings)
    job.register(app)
    return app


async def closed(client: Any, task: str, status: str = "completed") -> dict[str, Any]:
    """Return the progress of papers once they have a status."""

    async def look() -> dict[str, Any] | None:
        document: dict[str, Any] = (await client.get(f"/api/v1/papers/{task}/status")).json()
        assert document["task_id"] == task
        return document["progress"] if document["status"] == status else None

    found = await wait_until(look)
    assert found is not None
    return found


async def test_papers_are_taken_followed_and_read(papers: App) -> None:
    """One that cannot be read has a result that says so, one that fails is counted; pages name the documents."""
    names = [*WHOLE["document_ids"], "fails.txt", "within.txt", "größe.txt"]
    async with served(papers) as client:
        answer = await client.post("/api/v1/papers", json={**WHOLE, "document_ids": names})
        assert answer.status_code == 202, answer.text
        task = answer.json()["task_id"]
        assert await closed(client, task) == {"total": 6, "success": 5, "failed": 1, "percent": 100}

        found: dict[str, Any] = {}
        cursor, complete = "", False
        while not complete:
            page = await client.get(f"/api/v1/papers/{task}/results", params={"limit": 2, "cursor": cursor})
            document = page.json()
            found |= {item["document_id"]: item for item in document["items"]}
            cursor, complete = document["cursor"], document["complete"]
        assert sorted(found) == sorted(names)
        assert found["größe.txt"]["result"] == {"result": {"name": "größe.txt"}}
        assert found["gone.pdf"]["result"]["unreadable"]["reason"]
        assert found["fails.txt"]["error"]["message"] == "nothing found"


async def test_papers_wait_until_a_worker_comes(papers: App) -> None:
    """Until then they are pending, nothing was read, and each payload is small."""
    long = "x" * 196 + ".txt"
    assert papers.settings.papers.documents is not None
    (papers.settings.papers.documents / long).write_text("x", encoding="utf-8")
    async with served(papers, worker=False) as client:
        answer = await client.post("/api/v1/papers", json={**WHOLE, "document_ids": [long], "project_id": "p" * 64})
        task = answer.json()["task_id"]
        assert await closed(client, task, "pending") == {"total": 1, "success": 0, "failed": 0, "percent": 0}
        [stored] = await papers.runtime.stores.inspect.list_jobs(limit=5)
        assert len(json.dumps(stored.args).encode()) <= job.MAX_PAYLOAD_BYTES
        await papers.batch(task).cancel()
        assert await closed(client, task, "error") == {"total": 1, "success": 0, "failed": 1, "percent": 100}


async def test_a_submit_opens_no_document(papers: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand documents are taken without one of them being opened; how long it takes is printed."""
    folder = papers.settings.papers.documents
    assert folder is not None
    names = [f"{number}.txt" for number in range(1000)]
    for name in names:
        (folder / name).touch()
    opened: list[Path] = []
    usual = Path.open

    def watched(path: Path, *args: Any, **more: Any) -> Any:
        opened.append(path)
        return usual(path, *args, **more)

    monkeypatch.setattr(Path, "open", watched)
    async with served(papers, worker=False) as client:
        began = time.monotonic()
        answer = await client.post("/api/v1/papers", json={**WHOLE, "document_ids": names})
        print(f"a thousand documents were taken in {time.monotonic() - began:.2f} s")
        assert answer.status_code == 202
        assert [path for path in opened if path.is_relative_to(folder)] == []


async def test_the_same_key_gives_the_same_task(papers: App) -> None:
    """As a member or as a header, within a project; with other documents or another template it is a conflict."""
    async with served(papers, worker=False) as client:
        keyed = {**WHOLE, "idempotency_key": "k"}
        first = await client.post("/api/v1/papers", json=keyed)
        again = await client.post("/api/v1/papers", json=WHOLE, headers={"Idempotency-Key": "k"})
        assert (again.status_code, again.json()) == (202, first.json())
        other = await client.post("/api/v1/papers", json={**keyed, "document_ids": ["a.txt"]})
        assert (other.status_code, code_of(other)) == (409, "idempotency_conflict")
        elsewhere = await client.post("/api/v1/papers", json={**keyed, "project_id": "other"})
        assert elsewhere.json() != first.json()
        without = await client.post("/api/v1/papers", json=WHOLE)
        assert without.json() not in (first.json(), elsewhere.json())


BAD: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "nothing": ({"document_ids": []}, 422, "no_documents", "No documents selected"),
    "both": ({"refs": ["a.txt"]}, 422, "invalid_input", "give one of both"),
    "a path": ({"document_ids": ["../secret.txt"]}, 422, "invalid_input", "document_ids[0]"),
    "a folder within": ({"document_ids": ["a.txt", "inner/x"]}, 422, "invalid_input", "document_ids[1]"),
    "a folder": ({"document_ids": ["inner"]}, 422, "invalid_input", "regular file"),
    "dots": ({"document_ids": [".."]}, 422, "invalid_input", "document_ids[0]"),
    "a hidden file": ({"document_ids": [".hidden.txt"]}, 422, "invalid_input", "document_ids[0]"),
    "no name": ({"document_ids": [""]}, 422, "invalid_input", "document_ids[0]"),
    "a file that is not there": ({"document_ids": ["x.txt"]}, 422, "invalid_input", "that is there"),
    "a link that leads out": ({"document_ids": ["out.txt"]}, 422, "invalid_input", "leads out"),
    "one twice": ({"document_ids": ["a.txt", "a.txt"]}, 422, "invalid_input", "document_ids[1]"),
    "a long name": ({"document_ids": ["ö" * 101]}, 422, "invalid_input", "200 bytes"),
    "a line break": ({"document_ids": ["a.txt\n"]}, 422, "invalid_input", "control"),
    "an object of a bucket": ({"document_ids": [], "refs": ["s3://b/k?sig=1"]}, 422, "invalid_input", "s3://…"),
    "a ref that leads out": ({"document_ids": [], "refs": ["file:../secret.txt"]}, 422, "invalid_input", "refs[0]"),
    "no template": ({"template_id": "none"}, 422, "invalid_input", "template_id"),
    "a template elsewhere": ({"template_id": "../templates/study"}, 422, "invalid_input", "template_id"),
    "a template that is broken": ({"template_id": "broken"}, 422, "invalid_template", "broken.yaml"),
    "a project of other signs": ({"project_id": "a/b"}, 422, "invalid_input", "project_id"),
    "an unknown member": ({"documents": []}, 422, "invalid_input", "documents"),
    "a long key": ({"idempotency_key": "k" * 191}, 422, "invalid_input", "190"),
    "too many": ({"document_ids": ["a.txt"] * 10_001}, 413, "payload_too_large", "10,000"),
}


async def test_what_is_not_taken(papers: App) -> None:
    """Each with a status, a code and words, and nothing is stored."""
    async with served(papers, worker=False) as client:
        for name, (change, status, code, words) in BAD.items():
            answer = await client.post("/api/v1/papers", json={**WHOLE, **change})
            assert (name, answer.status_code, code_of(answer)) == (name, status, code), answer.text
            assert words in answer.json()["detail"], name
        assert await papers.runtime.stores.inspect.list_batches(limit=5) == []


async def test_references_are_names_too(papers: App) -> None:
    """A ref that a worker can read is taken, with its scheme or without."""
    async with served(papers) as client:
        body = {**WHOLE, "document_ids": [], "refs": ["file:a.txt", "b.txt"]}
        answer = await client.post("/api/v1/papers", json=body)
        task = answer.json()["task_id"]
        assert (await closed(client, task))["success"] == 2
        items = (await client.get(f"/api/v1/papers/{task}/results")).json()["items"]
        assert {item["document_id"] for item in items} == {"a.txt", "b.txt"}


async def test_a_link_that_is_turned_later_leads_nowhere(papers: App) -> None:
    """The name is looked up once more by the worker, by the same rules."""
    folder = papers.settings.papers.documents
    assert folder is not None
    async with served(papers, worker=False) as client:
        answer = await client.post("/api/v1/papers", json={**WHOLE, "document_ids": ["b.txt"]})
        await asyncio.to_thread((folder / "b.txt").unlink)
        (folder / "b.txt").symlink_to(folder.parent / "secret.txt")
        async with papers.worker():
            assert (await closed(client, answer.json()["task_id"], "error"))["failed"] == 1


async def test_other_batches_are_no_papers(papers: App) -> None:
    """Nor are ids that nobody gave; an app without the task has no such route."""

    @papers.task
    async def other(number: int) -> int:
        return number

    async with served(papers, worker=False) as client:
        batch = await papers.submit(other, [1])
        for task, status in ((batch.id, 404), (uuid4(), 404), ("x", 422)):
            for what in ("status", "results"):
                answer = await client.get(f"/api/v1/papers/{task}/{what}")
                assert (answer.status_code, "batch" in answer.json()["detail"]) == (status, False), answer.text
                assert str(task) in answer.json()["detail"]
    async with served(shop(), worker=False) as client:
        assert (await client.post("/api/v1/papers", json=WHOLE)).status_code == 404


async def test_without_folders_it_says_which_setting_is_missing(papers: App) -> None:
    """That is nothing the caller can mend."""
    papers.settings = replace(papers.settings, papers=PaperSettings())
    async with served(papers, worker=False) as client:
        answer = await client.post("/api/v1/papers", json=WHOLE)
        assert (answer.status_code, code_of(answer)) == (501, "config")
        assert "[papers] templates" in answer.json()["detail"]


@pytest.mark.parametrize(("counts", "percent"), [
    (Progress(0), 100), (Progress(3, 1), 33), (Progress(3, 1, 1), 67), (Progress(None), 0), (Progress(200, 1), 0),
])  # fmt: skip
def test_percent_never_divides_by_zero(counts: Progress, percent: int) -> None:
    """Of nothing all is done; else it is rounded."""
    assert counts.percent == percent
