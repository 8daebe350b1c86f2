"""Failures that look like one another."""

from __future__ import annotations

from pydantic import Field

from headrace.apps.report.data.base import Value


class Cluster(Value):
    """Failures with one signature, or several that the model merged. Counts are made by code."""

    #: The same in every run in which the same failure is seen: made of its signature.
    cluster_id: str
    #: The signature: exception type, masked message and top frame; any may be empty.
    exception: str = ""
    message: str = ""
    frame: str = ""
    case_ids: tuple[str, ...]
    #: The case that stands for all.
    representative: str
    #: How many of its cases are of each module, severity.
    modules: dict[str, int] = Field(default={})
    severities: dict[str, int] = Field(default={})
    #: Ids of clusters that the model merged into this one.
    merged: tuple[str, ...] = ()
    #: Whether the previous report had it; None: there was none.
    seen_before: bool | None = None
    name: str
    commonality: str = ""
    systemic_risk: str = ""
    #: Cases that the summary cites: each is one of `case_ids`.
    evidence: tuple[str, ...] = ()
    #: False: name and summary are made by a template.
    named_by_model: bool = False

    @property
    def size(self) -> int:
        """How many cases it has."""
        return len(self.case_ids)
