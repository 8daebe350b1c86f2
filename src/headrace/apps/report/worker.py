"""An app that serves reports: for `headrace worker`, `serve` and `celery worker headrace.apps.report.worker:app`."""

from headrace.apps.report.graph import report
from headrace.apps.report.opening import app

__all__ = ["app", "report"]
