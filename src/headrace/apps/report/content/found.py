"""All that the stages found, joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from headrace.apps.report import stages
from headrace.apps.report.clustering.cluster import Known, counted
from headrace.apps.report.data.cases import Case, ParseIssue, ValidationReport
from headrace.apps.report.data.clusters import Cluster
from headrace.apps.report.data.defects import DefectFact
from headrace.apps.report.data.document import Degraded
from headrace.apps.report.data.modules import Assignment
from headrace.apps.report.stages import StageResult
from headrace.apps.report.stats import Previous, Stats, add_findings


@dataclass(frozen=True)
class Found:
    """The results of stages 1 to 5 and what lies behind their references."""

    results: Mapping[str, StageResult]
    cases: Sequence[Case]
    issues: Sequence[ParseIssue]
    validation: ValidationReport
    assignments: Sequence[Assignment]
    #: Figures as stage 3 left them.
    counted: Stats
    defects: Sequence[DefectFact]
    #: Clusters as stage 5 left them, which knows no facts and no modules.
    grouped: Sequence[Cluster]
    previous: Previous | None = None

    @cached_property
    def clusters(self) -> tuple[Cluster, ...]:
        """The clusters with counts by module and severity."""
        facts = {fact.case_id: fact for fact in self.defects}
        modules = {one.case_id: one.module for one in self.assignments}
        cases = {case.case_id: case for case in self.cases}
        known = Known(facts, modules)
        made = []
        for cluster in self.grouped:
            by_module, by_severity = counted((cases[one] for one in cluster.case_ids), known)
            made.append(cluster.model_copy(update={"modules": by_module, "severities": by_severity}))
        return tuple(made)

    @cached_property
    def stats(self) -> Stats:
        """The figures with what rests on defects and clusters."""
        return add_findings(self.counted, self.assignments, self.defects, self.clusters, self.previous)

    @cached_property
    def ids(self) -> frozenset[str]:
        """Ids of all cases and clusters."""
        return frozenset(case.case_id for case in self.cases) | {one.cluster_id for one in self.clusters}

    def degraded(self, *, composed_without: str) -> tuple[Degraded, ...]:
        """What ran without the model. `composed_without`: why it did not write the text; empty where it did."""
        found = []
        for name in (stages.TAGGING, stages.DEFECTS, stages.CLUSTERS):
            result = self.results[name]
            if missing := int(result.metrics["missing"]):
                total = int(result.metrics["cases" if name == stages.DEFECTS else "asked"])
                reason = result.next_inputs["reason"]
                found.append(Degraded(stage=name, missing=missing, total=total, reason=reason))
        if composed_without:
            found.append(Degraded(stage=stages.RENDER, missing=1, total=1, reason=composed_without))
        return tuple(found)
