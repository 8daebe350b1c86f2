"""A document with what every output looks up in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from headrace.apps.report.data.cases import Case
from headrace.apps.report.data.clusters import Cluster
from headrace.apps.report.data.defects import DefectFact
from headrace.apps.report.data.document import ReportDocument
from headrace.apps.report.data.modules import Assignment
from headrace.apps.report.output.wording import Wording, wording
from headrace.apps.report.stats import Stats


@dataclass(frozen=True)
class View:
    """Looks up cases, modules and clusters by id; the figures are those of the document."""

    document: ReportDocument

    @cached_property
    def word(self) -> Wording:
        """The words of the document's language."""
        return wording(self.document.lang)

    @cached_property
    def stats(self) -> Stats:
        """The figures."""
        return Stats.model_validate(self.document.stats)

    @cached_property
    def failing(self) -> tuple[Case, ...]:
        """Failed and blocked cases."""
        return tuple(case for case in self.document.cases if case.fails)

    @cached_property
    def cases(self) -> dict[str, Case]:
        """Cases by id."""
        return {case.case_id: case for case in self.document.cases}

    @cached_property
    def assignments(self) -> dict[str, Assignment]:
        """Modules by case."""
        return {one.case_id: one for one in self.document.assignments}

    @cached_property
    def defects(self) -> dict[str, DefectFact]:
        """Facts by case."""
        return {one.case_id: one for one in self.document.defects}

    @cached_property
    def clusters(self) -> dict[str, Cluster]:
        """Clusters by id."""
        return {one.cluster_id: one for one in self.document.clusters}

    @cached_property
    def cluster_of(self) -> dict[str, Cluster]:
        """Clusters by case."""
        return {case_id: one for one in self.document.clusters for case_id in one.case_ids}

    def module(self, case_id: str) -> str:
        """What the module of a case is called."""
        assignment = self.assignments.get(case_id, Assignment(case_id=case_id))
        return self.word.label("module", assignment.module)

    def labels(self, kind: str, names: Iterable[str]) -> str:
        """What values are called, with commas between them."""
        return ", ".join(self.word.label(kind, name) for name in names)
