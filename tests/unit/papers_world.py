"""An app of papers with a folder of documents, and what a model made of each: rows, disagreements, hostile words."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from headrace import App, Backoff
from headrace.apps.papers import job
from headrace.apps.papers.documents import Document
from headrace.apps.papers.result import DocumentResult, FieldResult, Status
from headrace.papers_settings import PaperSettings
from headrace.settings import QueueSettings, Settings, WorkerSettings
from tests.unit.papers_reports import TEMPLATE, disputed, found, result_of
from tests.waiting import wait_until

EVIL = "<script>alert(1)</script>\"'& \u202eevil\u202c"
TEXTS = {
    "a.txt": f"Background. A trial in Norway 🧪 of 1,200 people. {EVIL}\n\fAspirin 100 mg was given. {'More. ' * 60}",
    "b <i>.txt": "Only 40 or 42 people came, =1+1 of them from 秘鲁. " + "Later nothing happened. " * 40,
    "fails.txt": "x",
    "empty.txt": " ",
    "huge.txt": "word " * 20_000,
}
BODY = {"project_id": "review-7", "template_id": "trial", "document_ids": list(TEXTS)}


def write_files(folder: Path) -> PaperSettings:
    """Write template and documents below a folder."""
    templates, documents = folder / "templates", folder / "documents"
    for made in (templates, documents):
        made.mkdir(exist_ok=True)
    content = TEMPLATE.model_dump(mode="json", exclude_defaults=True)
    (templates / "trial.yaml").write_text(json.dumps(content), encoding="utf-8")
    for name, text in TEXTS.items():
        (documents / name).write_text(text, encoding="utf-8")
    return PaperSettings(templates, documents)


def settings_of(folder: Path) -> Settings:
    """Return settings of an app on a store of its own memory."""
    return Settings(
        directory=folder / "kept", queue=QueueSettings(type="memory"), papers=write_files(folder),
        worker=WorkerSettings(poll_interval=timedelta(milliseconds=20)),
    )  # fmt: skip


async def extract(document: Document, *_: Any, **__: Any) -> DocumentResult:
    """Return what a model would have made of a document."""
    match document.name:
        case "a.txt":
            fields = {
                "size": found(document, 1200, "of 1,200 people", agreed=True),
                "country": found(document, "Norway", "Norway 🧪 of"),
                "harms": FieldResult(status=Status.UNCLEAR, note=f"says {EVIL}"),
            }
            arms = [
                {
                    "drug": found(document, EVIL, "<script>alert(1)</script>"),
                    "dose": found(document, 100, "Aspirin 100 mg was given."),
                }
            ]
            return result_of(document, fields, arms)
        case "b <i>.txt":
            size = disputed(document, (40, "Only 40 or"), (42, "40 or 42 people"))
            return result_of(document, {"size": size, "country": found(document, "秘鲁", "from 秘鲁.")}, [])
        case "huge.txt":
            text = document.text
            return result_of(document, {"country": found(document, "long", text)}, [])
        case _:
            raise ValueError(f"cannot read {EVIL}")


def papers_app(folder: Path, patch: pytest.MonkeyPatch) -> App:
    """Return an app of papers that asks nobody."""
    patch.setattr(job, "extract_document", extract)
    patch.setattr(job, "RETRY", Backoff.none())
    app = App(settings=settings_of(folder))
    job.register(app)
    return app


async def extracted(client: httpx2.AsyncClient) -> str:
    """Have all documents extracted, and return the task."""
    task = str((await client.post("/api/v1/papers", json=BODY)).json()["task_id"])

    async def ended() -> bool:
        return (await client.get(f"/api/v1/papers/{task}/status")).json()["status"] == "completed"

    await wait_until(ended)
    return task
