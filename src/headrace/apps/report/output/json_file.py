"""The report as JSON: for programs, and for the report after it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headrace.apps.report.data.cases import FAILING, Status
from headrace.apps.report.data.document import SCHEMA, ReportDocument
from headrace.apps.report.errors import PreviousReportError
from headrace.apps.report.stats.previous import Point, Previous, PreviousCluster
from headrace.apps.sheets.files import written_whole

#: An earlier report gives so many points to lines over time.
MOST_POINTS = 30
#: A longer file is no report: ten times what 10,000 cases need.
MOST_BYTES = 500_000_000
_MOST_SHOWN = 80


def write_json(path: Path, document: ReportDocument) -> None:
    """Write a report; the same document gives the same bytes. The file appears whole or not at all."""
    with written_whole(path) as temporary:
        temporary.write_text(json_of(document), encoding="utf-8", newline="\n")


def json_of(document: ReportDocument) -> str:
    """Return a report as JSON: members by name, so that two reports can be compared line by line."""
    told = document.model_dump(mode="json")
    told["schema"] = told.pop("schema_")
    for case in told["cases"]:
        # JSON has no words for what is no number.
        if case["duration_seconds"] is not None and not math.isfinite(case["duration_seconds"]):
            case["duration_seconds"] = None
    # Half characters, which some files hold, are no UTF-8.
    text = json.dumps(told, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False)
    return text.encode("utf-8", "replace").decode() + "\n"


def read_previous(path: Path) -> Previous:
    """Return what the next report is compared with."""
    told = _loaded(path)
    if not isinstance(told, dict) or told.get("schema") != SCHEMA:
        given = told.get("schema") if isinstance(told, dict) else type(told).__name__
        raise PreviousReportError(f"{path}: schema must be {SCHEMA!r}, got {_shown(given)}. {_ADVICE}")
    try:
        return _previous(_Report.model_validate(told))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise PreviousReportError(f"{path}: {field}: {first['msg']}, got {_shown(first['input'])}. {_ADVICE}") from None


_ADVICE = "Give the report.json that an earlier report wrote"


def _loaded(path: Path) -> Any:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise PreviousReportError(
                f"{path}: must be at most {MOST_BYTES} bytes, got {path.stat().st_size}. {_ADVICE}"
            )
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PreviousReportError(f"{path}: cannot be read: {error.strerror}. {_ADVICE}") from None
    except (ValueError, RecursionError):
        raise PreviousReportError(f"{path}: must be JSON. {_ADVICE}") from None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


class _Part(BaseModel):
    """Only what is needed is looked at, so reports of later versions can be read."""

    model_config = ConfigDict(extra="ignore")


class _Run(_Part):
    job_id: str
    created_at: str


class _Case(_Part):
    case_id: str
    status: Status


class _Assignment(_Part):
    case_id: str
    module: str


class _Cluster(_Part):
    cluster_id: str
    name: str = ""
    exception: str = ""
    message: str = ""
    frame: str = ""
    case_ids: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()


class _Rate(_Part):
    percent: float | None


class _Rates(_Part):
    pass_rate_of_executed: _Rate
    pass_rate_of_all: _Rate
    execution_rate: _Rate


class _Trend(_Part):
    history: tuple[Point, ...] = ()


class _Stats(_Part):
    total: int
    by_status: dict[Status, int]
    rates: _Rates
    trend: _Trend | None = None


class _Report(_Part):
    title: str = ""
    run: _Run
    stats: _Stats
    cases: tuple[_Case, ...]
    assignments: tuple[_Assignment, ...] = Field(())
    clusters: tuple[_Cluster, ...] = Field(())


def _previous(report: _Report) -> Previous:
    statuses = {case.case_id: case.status for case in report.cases}
    modules: dict[str, dict[str, int]] = {}
    for one in report.assignments:
        if one.case_id in statuses:
            counts = modules.setdefault(one.module, {status.value: 0 for status in Status})
            counts[statuses[one.case_id]] += 1
    earlier = report.stats.trend.history if report.stats.trend is not None else ()
    return Previous(
        job_id=report.run.job_id,
        created_at=report.run.created_at,
        title=report.title,
        statuses=statuses,
        by_status={status.value: count for status, count in report.stats.by_status.items()},
        modules=modules,
        clusters=tuple(
            PreviousCluster(size=len(one.case_ids), **one.model_dump(exclude={"case_ids"})) for one in report.clusters
        ),
        history=(*earlier, _point(report))[-MOST_POINTS:],
    )


def _point(report: _Report) -> Point:
    stats, rates = report.stats, report.stats.rates
    return Point(
        job_id=report.run.job_id,
        created_at=report.run.created_at,
        total=stats.total,
        failing=sum(stats.by_status.get(status, 0) for status in FAILING),
        pass_rate_of_executed=rates.pass_rate_of_executed.percent,
        pass_rate_of_all=rates.pass_rate_of_all.percent,
        execution_rate=rates.execution_rate.percent,
    )
