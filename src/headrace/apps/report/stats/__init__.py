"""Figures, made by code alone: totals, rates, splits, the trend, and whether the exit criteria are met."""

from headrace.apps.report.stats.computing import add_findings, compute_stats
from headrace.apps.report.stats.gate import Thresholds
from headrace.apps.report.stats.model import Stats
from headrace.apps.report.stats.previous import Previous
from headrace.apps.report.stats.reconcile import check_reconciled

__all__ = ["Previous", "Stats", "Thresholds", "add_findings", "check_reconciled", "compute_stats"]
