"""What is known of a failed or blocked case."""

from __future__ import annotations

from typing import Literal

from headrace.apps.report.data.base import Value
from headrace.apps.report.data.cases import Source, Status

Severity = Literal["critical", "major", "minor", "trivial", "unknown"]
SEVERITIES: tuple[Severity, ...] = ("critical", "major", "minor", "trivial", "unknown")


class DefectFact(Value):
    """One failed or blocked row as a fact. What the model did not say is filled from the row."""

    case_id: str
    title: str
    status: Status
    severity: Severity = "unknown"
    component: str = ""
    steps: str = ""
    expected: str = ""
    actual: str = ""
    environment: str = ""
    #: A piece of the row, word for word: what the fact rests on.
    quote: str = ""
    #: 0 to 1.
    confidence: float = 0.0
    source: Source
    #: Whether the model told it; False: it was made of the row by code, see `llm_failed`.
    by_model: bool = False
    #: The model was asked and gave nothing usable, or could not be asked.
    llm_failed: bool = False
    #: With llm_failed: the raw snippet of the row.
    snippet: str = ""
