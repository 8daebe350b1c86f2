#!/usr/bin/env python3
"""Measure how many fields a model extracts rightly, on documents whose answers a person wrote down.

Usage: papers_accuracy.py [FOLDER …] [--wrong]
A FOLDER holds one template (*.yaml), answers.json ({document: {field: value or null}}) and the documents. Default: the
demonstration and the two sets of the tests. Without HEADRACE_LLM_MODEL the local model answers. --wrong lists what is
not right. A field is right when it is found, its value agrees with the answer, and so does its quote.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from headrace import App
from headrace.apps.papers.documents import Document, read_document
from headrace.apps.papers.extract import extract_document
from headrace.apps.papers.locate import align, align_text
from headrace.apps.papers.result import Alignment, FieldResult, Status
from headrace.apps.papers.template import Template, TemplateField, load_template

ROOT = Path(__file__).parents[1]
FOLDERS = [
    ROOT / "src/headrace/apps/papers/demo",
    ROOT / "tests/unit/papers_materials",
    ROOT / "tests/unit/papers_rivers",
]


def load(folder: Path) -> tuple[Template, list[tuple[Document, dict[str, Any]]]]:
    """The template of a folder, and its documents with their answers."""
    template = load_template(min(folder.glob("*.yaml")))
    answers = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    documents = []
    for name, expected in answers.items():
        document = read_document(next(path for path in folder.rglob(name)))
        assert isinstance(document, Document), document
        documents.append((document, expected))
    return template, documents


async def measure(app: App, folder: Path, *, show_wrong: bool) -> Counter[str]:
    """Extract every document of a folder and count the verdicts."""
    template, documents = load(folder)
    verdicts: Counter[str] = Counter()
    for document, expected in documents:
        result = await extract_document(document, template, app.llm)
        verdicts["calls"] += result.usage.calls + result.usage.reused
        for field, verdict, found in judged(template, expected, result.fields):
            verdicts[verdict] += 1
            if show_wrong and verdict not in ("right", "rightly not found"):
                said = f"{found.value!r}, not {expected[field.name]!r} {found.note}"
                print(f"  {verdict}: {document.name} {field.name}: {said}")
    return verdicts


def judged(
    template: Template, expected: dict[str, Any], fields: dict[str, FieldResult]
) -> list[tuple[TemplateField, str, FieldResult]]:
    """Each field with its verdict."""
    return [(field, _verdict(field, expected[field.name], fields[field.name]), fields[field.name])
            for field in template.fields]  # fmt: skip


def _verdict(field: TemplateField, answer: Any, found: FieldResult) -> str:
    is_found = found.status is Status.FOUND
    if answer is None:
        return "invented" if is_found else "rightly not found"
    if not is_found:
        return "missed"
    return "right" if _agrees(field, answer, found) else "wrong"


def _agrees(field: TemplateField, answer: Any, found: FieldResult) -> bool:
    value, quote = found.value, found.quote or ""
    if field.type in ("number", "integer", "enum", "boolean"):
        in_quote = field.type in ("enum", "boolean") or align(field, answer, quote).alignment is not Alignment.NONE
        return value == answer and in_quote
    if field.type == "date":
        return str(answer).startswith(str(value))
    both = [(str(answer), str(value)), (str(value), str(answer))]
    return any(align_text(one, other).alignment is not Alignment.NONE for one, other in both)


async def main(folders: list[Path], *, show_wrong: bool) -> None:
    """Print one line per folder and one for all."""
    total: Counter[str] = Counter()
    async with App("memory://") as app:
        print(f"model: {app.llm.model_name}")
        for folder in folders:
            counts = await measure(app, folder, show_wrong=show_wrong)
            total += counts
            print(f"{folder.name}: {_line(counts)}")
    print(f"all: {_line(total)}")


def _line(counts: Counter[str]) -> str:
    asked = counts["right"] + counts["wrong"] + counts["missed"]
    share = 100 * counts["right"] / asked if asked else 0.0
    names = ("right", "wrong", "missed", "invented", "rightly not found", "calls")
    return f"{share:.0f} % of {asked} reported fields; " + ", ".join(f"{name} {counts[name]}" for name in names)


if __name__ == "__main__":
    chosen = [Path(argument).resolve() for argument in sys.argv[1:] if not argument.startswith("--")]
    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)  # the model's server keeps its files in ./.headrace
        asyncio.run(main(chosen or FOLDERS, show_wrong="--wrong" in sys.argv))
