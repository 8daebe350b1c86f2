"""The demonstration's documents: few, readable, and true to the answers a person wrote down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headrace.apps.papers.demo as demo
from headrace.apps.papers.documents import Document, Reason, Unreadable, read_document, scan_folder
from headrace.apps.papers.locate import locate
from headrace.apps.papers.sentences import split_document
from headrace.apps.papers.template import load_template

DEMO = Path(demo.__path__[0])
SETS = [DEMO, Path(__file__).parent / "papers_materials", Path(__file__).parent / "papers_rivers"]


def test_the_folder_shows_every_kind_of_row() -> None:
    """At most twelve files: text, Markdown and PDF, one duplicate, one picture of a page."""
    selection = scan_folder(DEMO / "documents")
    files = [path for path in (DEMO / "documents").rglob("*") if path.is_file()]
    assert len(files) <= 12
    assert {path.suffix for path in files} == {".txt", ".md", ".pdf"}
    assert all(path.stat().st_size <= 20_000 for path in files)
    assert selection.duplicate_count == 1
    assert selection.problems == ()
    read = [read_document(found.path) for found in selection.documents]
    assert [item.reason for item in read if isinstance(item, Unreadable)] == [Reason.IMAGE_ONLY]


def test_every_document_has_its_answers() -> None:
    """The answers name exactly the readable documents and the fields of the template."""
    answers = json.loads((DEMO / "answers.json").read_text(encoding="utf-8"))
    readable = {
        found.name
        for found in scan_folder(DEMO / "documents").documents
        if isinstance(read_document(found.path), Document)
    }
    assert set(answers) == readable
    fields = [field.name for field in load_template(DEMO / "demo.yaml").fields]
    assert all(list(answer) == fields for answer in answers.values())


@pytest.mark.parametrize("folder", SETS, ids=lambda folder: folder.name)
def test_the_answers_stand_in_the_documents(folder: Path) -> None:
    """What a person wrote down is located in the text by the same rules that check models."""
    template = load_template(min(folder.glob("*.yaml")))
    for name, answer in json.loads((folder / "answers.json").read_text(encoding="utf-8")).items():
        document = read_document(next(folder.rglob(name)))
        assert isinstance(document, Document)
        sentences = split_document(document)
        assert 6 <= len(sentences) <= 20
        for field in template.fields:
            if answer[field.name] is not None and field.type not in ("enum", "boolean"):
                assert locate(field, answer[field.name], sentences) is not None, (name, field.name)
