"""A report with everything that outputs must show: rows, disagreements, hostile words, files that gave nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headrace.apps.papers.documents import Document
from headrace.apps.papers.output.model import Problem, Report, Row, RunRecord
from headrace.apps.papers.result import (
    Alignment,
    Asking,
    Candidate,
    DocumentResult,
    FieldResult,
    Status,
    TokenCount,
)
from headrace.apps.papers.template import Value, parse_template

TEMPLATE = parse_template("""
name: trial
version: 2
fields:
  - {name: size, type: integer, unit: people, description: How many}
  - {name: country, type: text, description: Where}
  - {name: blinded, type: boolean, description: Whether}
  - {name: design, type: enum, enum: [parallel, crossover], description: Which design}
  - {name: begun, type: date, description: When}
  - {name: harms, type: list, description: Which harms}
rows:
  - name: arm
    description: An arm
    key: drug
    fields:
      - {name: drug, type: text, description: What was given}
      - {name: dose, type: number, unit: mg, description: How much}
""")

#: Two pages; the gap between them is part of the text, signs beyond the basic plane and hostile words too.
TEXT_A = (
    "A trial in Norway 🧪 of 1,200 people.\nIt was <b>blind</b> & parallel; </script><script>alert(1)</script>.",
    "Aspirin 100 mg was given.\nPlacebo followed since March 2021. Harms were nausea and\nheadache.",
)
TEXT_B = ("Only 40 or 42 people came, =1+1 of them from Peru.",)

ANSWERS = ("first-1", "second-2")


def document_of(name: str, pages: tuple[str, ...]) -> Document:
    """Return a document of these pages; its id depends on its name."""
    return Document.of_pages(name, name.encode(errors="surrogatepass"), pages, reader="test 1")


DOCUMENT_A = document_of("a.pdf", TEXT_A)
DOCUMENT_B = document_of("b <i>.txt", TEXT_B)


def located(document: Document, quote: str) -> dict[str, Any]:
    """Return where a quote stands in its document."""
    start = document.text.index(quote)
    return {"quote": quote, "page": document.page_of(start), "char_start": start, "char_end": start + len(quote)}


def found(document: Document, value: Value, quote: str, **more: Any) -> FieldResult:
    """Return a found value with its place."""
    place = located(document, quote)
    return FieldResult(value=value, status=Status.FOUND, alignment=Alignment.EXACT, **place, **more)


def disputed(document: Document, *said: tuple[Value, str]) -> FieldResult:
    """Return what two extractions say differently, with both quotes."""
    candidates = tuple(
        Candidate(**found(document, value, quote).model_dump(exclude={"agreed", "candidates"}), by=by)
        for (value, quote), by in zip(said, ANSWERS, strict=True)
    )
    note = " or ".join(str(value) for value, _ in said)
    return FieldResult(status=Status.NEEDS_REVIEW, agreed=False, candidates=candidates, note=note)


SILENT = FieldResult(status=Status.NOT_REPORTED)


def result_of(document: Document, fields: dict[str, FieldResult], arms: list[dict[str, FieldResult]]) -> DocumentResult:
    """Return the result of a document; fields that are not given are not reported."""
    return DocumentResult(
        document_id=document.document_id, name=document.name,
        fields={field.name: fields.get(field.name, SILENT) for field in TEMPLATE.fields}, rows={"arm": arms},
        pages=len(document.pages), characters=len(document.text), reader=document.reader, model="m-1",
        prompt_version="papers-1", template=TEMPLATE.name, template_version=TEMPLATE.version,
        template_digest=TEMPLATE.digest, usage=TokenCount(input_tokens=7, calls=1),
        asked=(Asking(model="m-1", provider="p", prompt_version="papers-1", prompt_digest="0" * 64),),
    )  # fmt: skip


def rows() -> tuple[Row, ...]:
    """Return two extracted documents and one that could not be read."""
    a, b = DOCUMENT_A, DOCUMENT_B
    overlapping = "A trial in Norway 🧪 of 1,200 people."
    over_pages = "</script><script>alert(1)</script>.\n\nAspirin 100 mg was given."
    result_a = result_of(
        a,
        {
            "size": found(a, 1200, overlapping),
            "country": found(a, "Norway", "Norway 🧪 of"),
            "blinded": found(a, True, "It was <b>blind</b> & parallel;", section="Methods"),
            "begun": found(a, "2021-03", "Placebo followed since March 2021."),
            "harms": found(a, ["nausea", "headache"], "Harms were nausea and\nheadache.", agreed=True),
        },
        [
            {"drug": found(a, "Aspirin", over_pages), "dose": found(a, 100, "Aspirin 100 mg was given.")},
            {"drug": found(a, "Placebo", "Placebo followed"), "dose": SILENT},
        ],
    )
    result_b = result_of(
        b,
        {
            "size": disputed(b, (40, "Only 40 or"), (42, "40 or 42 people")),
            "country": found(b, "=1+1 of them", "=1+1 of them from Peru."),
            "design": FieldResult(status=Status.UNCLEAR, note="says parallel </script> and crossover"),
        },
        [],
    )
    return (
        Row(a.document_id, a.name, ("copy.pdf",)).extracted(result_a),
        Row(b.document_id, b.name).extracted(result_b),
        Row("c" * 64, "c.pdf").ended("error", "encrypted", "is <encrypted>", unreadable=True),
    )


def report(*some: Row) -> Report:
    """Return a report of these rows, or of all of them."""
    record = RunRecord(
        tool="headrace 1", run_id="0123456789abcdef" * 2, batch_id="batch", models=("m-1",),
        written_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), prompt_versions=("papers-1",), readers=("test 1",),
        input_files=4, duplicates=1, skipped=0, begun_at=datetime(2026, 1, 2, 3, 0, tzinfo=UTC),
        ended_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC), parameters={"dual": "second-2"},
        asked=(Asking(model="m-1", provider="p", prompt_version="papers-1", prompt_digest="0" * 64),),
    )  # fmt: skip
    problems = (Problem("c.pdf", "encrypted", "is <encrypted>"),)
    return Report(TEMPLATE, some or rows(), problems, record)
