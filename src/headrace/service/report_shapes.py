"""What routes of reports are sent, and what they answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictStr

from headrace.service.documents import Document
from headrace.service.submitting import MOST_OWN_KEY

Stage = Literal[
    "ingest_and_normalize", "module_tagging", "compute_stats_and_charts", "extract_defects_fail_only",
    "cluster_and_summarize_defects", "render_report_and_export",
]  # fmt: skip
FileName = Literal["report.html", "report.xlsx", "report.json"]
JOB_ID = "^[0-9a-f]{32}$"
#: Bodies that are files, for the document.
BINARY = {"schema": {"type": "string", "format": "binary"}}


class BuildReport(BaseModel):
    """A report to make."""

    model_config = ConfigDict(extra="forbid")

    file_ref: StrictStr = Field(
        min_length=1, max_length=1024, examples=["file:cases.xlsx"],
        description="`file:NAME` in the folder of `[report] files`, or `s3://BUCKET/KEY` in the bucket of the store",
    )  # fmt: skip
    sheet_whitelist: list[Annotated[StrictStr, Field(max_length=200)]] = Field(
        [], max_length=100, description="only these sheets; none: all that are shown"
    )
    lang: Literal["en", "zh"] = "en"
    title: StrictStr = Field("", max_length=200, description="empty: the name of the file")
    rules: dict[str, Any] | None = Field(
        None, description="rules of modules, as in docs/reference/report-rules.md; none: those of `[report] rules`"
    )
    gate: dict[str, Any] = Field({}, description="exit criteria that differ from the usual ones")
    previous_job_id: StrictStr | None = Field(None, pattern=JOB_ID, description="the report to compare with")
    idempotency_key: StrictStr | None = Field(
        None, min_length=1, max_length=MOST_OWN_KEY, description="one report per key; also as the header"
    )


class AcceptedReport(BaseModel):
    """A report that is stored."""

    job_id: str


class Resume(BaseModel):
    """How a report goes on."""

    model_config = ConfigDict(extra="forbid")

    first: Stage | None = Field(None, alias="from", description="run again from this stage on")


class StoredFile(BaseModel):
    """A file that was sent."""

    file_ref: str
    sha256: str
    size: int


class ReportStage(Document):
    """A stage: how far it is, and what is kept of it."""

    stage: Stage
    status: Literal["pending", "running", "ok", "degraded", "failed"]
    percent: int
    message: str
    completed: int | None = Field(None, description="questions to the model that ended; of stages that ask it")
    total: int | None = None
    stage_status: Literal["pending", "ok", "failed"]
    stage_started_at: str | None
    stage_finished_at: str | None
    stage_artifacts: dict[str, Any] | None
    reused: bool = Field(description="what an earlier run stored was taken over")
    metrics: dict[str, Any] | None
    warnings: list[str]


class ReportStatus(Document):
    """How far a report is."""

    job_id: str
    run_id: str = Field(description="of its last run, as `/runs/ID` knows it")
    status: Literal["running", "ok", "degraded", "failed", "cancelled"]
    percent: int
    message: str
    error: str = Field("", description="why it failed")
    updated_at: str | None
    stages: list[ReportStage]
