"""Stage 6: the document, its three forms, and the end. One form that fails leaves the others."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from pathlib import Path
from typing import Any

from headrace import Context, __version__
from headrace.apps.report import shelf, stages
from headrace.apps.report.charts import build_charts
from headrace.apps.report.content.found import Found
from headrace.apps.report.content.template import template_content
from headrace.apps.report.data.cases import Ingested
from headrace.apps.report.data.content import Content
from headrace.apps.report.data.document import InputFile, ReportDocument, RunFacts
from headrace.apps.report.opening import CPU, CPU_TIME, IO, IO_TIME, ORCH, ORCH_TIME, Q_CPU, Q_IO, Q_ORCH, app
from headrace.apps.report.output.html import render_html as draw_page
from headrace.apps.report.output.json_file import write_json
from headrace.apps.report.output.plain import render_plain
from headrace.apps.report.output.xlsx import write_cases_xlsx, write_xlsx
from headrace.apps.report.prompts import PROMPT_VERSION
from headrace.apps.report.stages import StageResult
from headrace.apps.report.tasks.given import read_found
from headrace.apps.report.tasks.joints import key_of, total_usage, why_missing

LOG = logging.getLogger("headrace.report")
#: Excel is tried once more, then the report does without it.
EXCEL = CPU


@app.task(queue=Q_CPU, retry=CPU, timeout=CPU_TIME)
async def assemble_report(
    job_id: str, given: dict[str, Any], composed: dict[str, Any] | None, facts: dict[str, Any], ctx: Context
) -> dict[str, Any]:
    """Join everything in one document, of which page, workbook and JSON are written."""
    found = await read_found(given)
    content = (
        template_content(found, facts["lang"]) if composed is None else Content.model_validate(composed["content"])
    )
    degraded = found.degraded(composed_without=await why_missing(ctx, stages.RENDER, [composed]))
    usage = total_usage([
        *(result.next_inputs.get("usage") for result in found.results.values()),
        None if composed is None else composed["usage"],
    ])  # fmt: skip
    document = ReportDocument(
        lang=facts["lang"], title=facts["title"], input=_input_file(facts["source"]),
        run=_run_facts(job_id, usage, facts, created_at=await _created_at(ctx)),
        validation=found.validation, stats=found.stats.model_dump(mode="json"),
        charts=build_charts(found.stats, found.clusters, facts["lang"]), content=content, degraded=degraded,
        cases=tuple(found.cases), assignments=tuple(found.assignments), defects=tuple(found.defects),
        clusters=found.clusters, issues=tuple(found.issues),
    )  # fmt: skip
    ref = await shelf.put(document, ReportDocument, key=key_of(job_id, stages.RENDER, given, composed, facts))
    return {
        "document_ref": ref, "degraded": [one.model_dump(mode="json") for one in degraded], "usage": usage,
        "verdict": found.stats.gate.verdict, "metrics": _metrics(found),
        "data_warnings": list(found.validation.warnings),
    }  # fmt: skip


def _metrics(found: Found) -> dict[str, int]:
    return {
        "cases": found.stats.total, "failing": found.stats.failing, "defects": len(found.defects),
        "clusters": len(found.clusters), **found.stats.by_status,
    }  # fmt: skip


def _input_file(source: dict[str, Any]) -> InputFile:
    return InputFile(name=source["name"], sha256=source["sha256"], size=source["size"])


async def _created_at(ctx: Context) -> str:
    assert ctx.run is not None
    view = await app.find_run(ctx.run.id).view()
    return view.created_at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _run_facts(job_id: str, usage: dict[str, int], facts: dict[str, Any], *, created_at: str) -> RunFacts:
    unpriced = usage.get("unpriced", 0)
    return RunFacts(
        job_id=job_id, created_at=created_at, tool=f"headrace {__version__}", model=_model(),
        prompt_version=PROMPT_VERSION, calls=usage["calls"], reused=usage["reused"],
        input_tokens=usage["input_tokens"], output_tokens=usage["output_tokens"],
        usd=None if unpriced else usage.get("cost_nano", 0) / 1e9,
        options={"sheets": ", ".join(facts["sheets"]), "language": facts["lang"]},
    )  # fmt: skip


def _model() -> str:
    return app.settings.llm_settings().model or ""


@app.task(queue=Q_CPU, retry=CPU, timeout=CPU_TIME, cpu=True)
async def render_html(job_id: str, document_ref: dict[str, Any]) -> dict[str, Any]:
    """Write the page."""
    document = await shelf.get(document_ref, ReportDocument)
    text = await asyncio.to_thread(draw_page, document)
    return {"html_ref": await app.files.put(text.encode())}


@app.task(queue=Q_CPU, retry=EXCEL, timeout=CPU_TIME, cpu=True)
async def export_excel(job_id: str, document_ref: dict[str, Any]) -> dict[str, Any]:
    """Write the workbook."""
    document = await shelf.get(document_ref, ReportDocument)
    data = await asyncio.to_thread(_written, "report.xlsx", lambda path: write_xlsx(path, document))
    return {"xlsx_ref": await app.files.put(data)}


def _written(name: str, write: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


def _cases_alone(document: ReportDocument) -> bytes:
    given = Ingested(cases=document.cases, issues=document.issues, validation=document.validation)
    return _written("report.xlsx", lambda path: write_cases_xlsx(path, given, document.assignments, document.lang))


async def _smaller_book(document: ReportDocument) -> tuple[dict[str, Any], str]:
    """Return what stands for a workbook that failed, and how that is told; what broke it may break this one, too."""
    try:
        data = await asyncio.to_thread(_cases_alone, document)
    except Exception:
        LOG.exception("no workbook of the cases alone either")
        return {}, "page and JSON have everything"
    return {"xlsx_ref": await app.files.put(data)}, "one with the cases alone stands for it"


async def _smaller_page(document: ReportDocument) -> tuple[dict[str, Any], str]:
    """Return what stands for a page that failed, and how that is told."""
    try:
        data = render_plain(document).encode()
    except Exception:
        LOG.exception("no plain page either")
        return {}, "workbook and JSON have everything"
    return {"html_ref": await app.files.put(data)}, "a plain one with statistics stands for it"


@app.task(queue=Q_IO, retry=IO, timeout=IO_TIME)
async def store_artifacts(
    job_id: str, assembled: dict[str, Any], page: dict[str, Any] | None, book: dict[str, Any] | None
) -> dict[str, Any]:
    """Store the JSON, and what stands for a page or a workbook that failed; return the references of all."""
    document = await shelf.get(assembled["document_ref"], ReportDocument)
    data = await asyncio.to_thread(_written, "report.json", lambda path: write_json(path, document))
    artifacts: dict[str, Any] = {"json_ref": await app.files.put(data)}
    warnings = []
    if page is None:
        page, told = await _smaller_page(document)
        warnings.append(f"html_failed: the page could not be drawn; {told}")
    if book is None:
        book, told = await _smaller_book(document)
        warnings.append(f"xlsx_failed: the workbook could not be written; {told}")
    artifacts |= page | book
    return {"artifacts": artifacts, "warnings": warnings, "assembled": assembled}


@app.task(queue=Q_ORCH, retry=ORCH, timeout=ORCH_TIME)
async def mark_job_done(stored: dict[str, Any], job_id: str) -> dict[str, Any]:
    """Return what the report came to."""
    assembled = stored["assembled"]
    lacking = [f"{one['stage']}: {one['missing']} of {one['total']} without the model" for one in assembled["degraded"]]
    result = StageResult(
        job_id=job_id, stage=stages.RENDER,
        status="degraded" if lacking or stored["warnings"] else "ok",
        artifacts=stored["artifacts"], metrics=assembled["metrics"], warnings=(*lacking, *stored["warnings"]),
        next_inputs={"degraded": assembled["degraded"], "usage": assembled["usage"], "verdict": assembled["verdict"],
                     "data_warnings": assembled["data_warnings"]},
    )  # fmt: skip
    return result.model_dump(mode="json")
