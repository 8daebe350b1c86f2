"""Reports: those that were made, how far each is, and making one of a workbook that is sent from the page."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from headrace.apps.report.stages import makes_reports
from headrace.dashboard.asking import place, rows_of
from headrace.dashboard.page import Context, Page, View
from headrace.engine.queries import to_json
from headrace.model.run import RunState

ROWS = 30
#: Files of a report that has ended, with what each is.
FILES = ("report.html", "report.xlsx", "report.json")


async def reports(view: View) -> Context:
    """Return the newest runs of reports, with the file that each is of."""
    from headrace.apps.report.graph import WORKFLOW

    runs = view.app.runtime.stores.runs
    found = await runs.list_runs(workflow=WORKFLOW, before=place(view), limit=ROWS + 1)
    rows = rows_of(view, found, ROWS)
    files = [] if view.live else await asyncio.to_thread(_files, view)
    return {"list": rows, "given": [_given(run.input) for run in rows.rows], "files": files}


async def report(view: View) -> Context:
    """Return one report, stage by stage."""
    from headrace.apps.report.job import find_report
    from headrace.apps.report.progress import look_at

    job = await find_report(view.params["job_id"])
    run = await job.run.view()
    progress = await look_at(job)
    files = FILES if run.state is RunState.SUCCEEDED else ()
    return {
        "job": job,
        "progress": progress,
        "given": _given(run.input),
        "files": files,
        "stages": to_json(progress.stages),
    }


def _given(text: str) -> dict[str, Any]:
    """Return what a report was asked for, as far as it stands in the input of its run and not in a file."""
    given = json.loads(text)
    if not isinstance(given, dict) or "job_id" not in given:
        return {"job_id": "", "title": "", "name": "", "lang": ""}
    options, source = given.get("options", {}), given.get("source", {})
    names = {"job_id": given["job_id"], "title": options.get("title", ""), "lang": options.get("lang", "")}
    return names | {"name": source.get("name", source.get("ref", ""))}


def _files(view: View) -> list[str]:
    """Return names of files that reports may be made of."""
    from headrace.apps.report.sources import files_folder

    folder = files_folder(view.app)
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))[:500]


PAGES = (
    Page(
        "reports", "/reports", reports, title="Reports", group="Applications", query=frozenset({"cursor"}), every=2.0,
        belongs=makes_reports,
    ),
    Page("report", "/reports/{job_id}", report, belongs=makes_reports),
)  # fmt: skip
