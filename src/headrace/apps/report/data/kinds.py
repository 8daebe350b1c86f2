"""Types of what lies on the shelf, for `shelf.put` and `shelf.get`."""

from __future__ import annotations

from typing import Any

from headrace.apps.report.data.cases import Case, ParseIssue
from headrace.apps.report.data.clusters import Cluster
from headrace.apps.report.data.defects import DefectFact
from headrace.apps.report.data.modules import Assignment

CASES = list[Case]
ISSUES = list[ParseIssue]
ASSIGNMENTS = list[Assignment]
FACTS = list[DefectFact]
CLUSTERS = list[Cluster]
CARDS = list[dict[str, Any]]
PREVIOUS = CHARTS = dict[str, Any]
