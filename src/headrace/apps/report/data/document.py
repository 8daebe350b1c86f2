"""The report as one document: what HTML, XLSX and JSON are written from."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from headrace.apps.report.data.base import Value
from headrace.apps.report.data.cases import Case, ParseIssue, ValidationReport
from headrace.apps.report.data.clusters import Cluster
from headrace.apps.report.data.content import Content
from headrace.apps.report.data.defects import DefectFact
from headrace.apps.report.data.modules import Assignment

Lang = Literal["en", "zh"]
SCHEMA: Literal["headrace.report/1"] = "headrace.report/1"


class Degraded(Value):
    """A stage, or a part of it, that ran without the model."""

    stage: str
    #: How many units of the stage lack it, and of how many: cases, rows, clusters, sections.
    missing: int
    total: int
    #: Why, such as "provider_down": the code of the commonest error.
    reason: str = ""


class InputFile(Value):
    """The file that was read."""

    name: str
    sha256: str
    size: int = 0


class RunFacts(Value):
    """How the report was made."""

    job_id: str
    #: ISO 8601 in UTC.
    created_at: str
    tool: str
    model: str = ""
    prompt_version: str = ""
    calls: int = 0
    reused: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    #: None: some price is not known.
    usd: float | None = None
    #: What was asked for, as name and value.
    options: dict[str, str] = Field(default={})


class ReportDocument(Value):
    """Everything. Figures stand in `stats`; nothing that reads the document counts anew."""

    schema_: Literal["headrace.report/1"] = SCHEMA
    lang: Lang = "en"
    title: str
    input: InputFile
    run: RunFacts
    validation: ValidationReport
    #: See `stats/`.
    stats: dict[str, Any]
    #: Chart data, see `charts/`.
    charts: dict[str, Any] = Field(default={})
    content: Content
    degraded: tuple[Degraded, ...] = ()
    cases: tuple[Case, ...]
    assignments: tuple[Assignment, ...]
    defects: tuple[DefectFact, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    issues: tuple[ParseIssue, ...] = ()
