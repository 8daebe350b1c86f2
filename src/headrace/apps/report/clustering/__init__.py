"""Failed cases that are one failure: pure code, without a model; see docs/explanation/report-clustering.md."""

from __future__ import annotations

from headrace.apps.report.clustering.cluster import Known, cluster_cases, largest_first
from headrace.apps.report.clustering.mask import mask
from headrace.apps.report.clustering.merging import MOST_CARDS, Merged, apply_merges, cards
from headrace.apps.report.clustering.naming import named
from headrace.apps.report.clustering.signature import Signature, signature_of

__all__ = [
    "MOST_CARDS",
    "Known",
    "Merged",
    "Signature",
    "apply_merges",
    "cards",
    "cluster_cases",
    "largest_first",
    "mask",
    "named",
    "signature_of",
]
