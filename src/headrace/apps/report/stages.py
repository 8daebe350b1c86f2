"""The six stages: their ids, what each returns, and the keys of their artifacts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from headrace import App
from headrace.apps.report.data.base import Value

INGEST = "ingest_and_normalize"
TAGGING = "module_tagging"
STATS = "compute_stats_and_charts"
DEFECTS = "extract_defects_fail_only"
CLUSTERS = "cluster_and_summarize_defects"
RENDER = "render_report_and_export"
#: In the order in which people think of them; `--from` takes one of these.
STAGES = (INGEST, TAGGING, STATS, DEFECTS, CLUSTERS, RENDER)

#: Raised where a stage's code gives another result for the same input: it is in the keys of artifacts and in the ids of
#: jobs, so that the same command makes a report anew.
VERSIONS = dict.fromkeys(STAGES, 1)


class StageResult(Value):
    """What each stage returns: a few words and references, never the data."""

    job_id: str
    stage: str
    status: Literal["ok", "degraded", "failed"] = "ok"
    #: References by name, such as `normalized_cases_ref`.
    artifacts: dict[str, Any] = Field(default={})
    metrics: dict[str, int | float] = Field(default={})
    warnings: tuple[str, ...] = ()
    #: What the next stage is given.
    next_inputs: dict[str, Any] = Field(default={})


def makes_reports(app: App) -> bool:
    """Whether an app is that of reports."""
    return app.registry.get(INGEST) is not None


def artifact_key(job_id: str, stage: str, input_hash: str) -> str:
    """Return the key of a stage's artifact.

    >>> artifact_key("J1", TAGGING, "ab12")
    'J1/module_tagging/v1/ab12'
    """
    return f"{job_id}/{stage}/v{VERSIONS[stage]}/{input_hash}"
