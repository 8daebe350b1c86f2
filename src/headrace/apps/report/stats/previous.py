"""What of an earlier report the next one is compared with."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from headrace.apps.report.data.base import Value
from headrace.apps.report.data.cases import Status


class Point(Value):
    """The figures of one earlier report, for lines over time."""

    job_id: str
    created_at: str
    total: int
    failing: int
    pass_rate_of_executed: float | None
    pass_rate_of_all: float | None
    execution_rate: float | None


class PreviousCluster(Value):
    """A cluster of the earlier report."""

    cluster_id: str
    name: str = ""
    exception: str = ""
    message: str = ""
    frame: str = ""
    size: int = 0
    #: Ids of clusters that were merged into it: they were seen, too.
    merged: tuple[str, ...] = ()


class Previous(Value):
    """An earlier report."""

    job_id: str
    created_at: str
    title: str = ""
    #: The status of each case, by its id.
    statuses: dict[str, Status]
    by_status: dict[str, int]
    #: Counts by status of each module.
    modules: dict[str, dict[str, int]] = Field(default={})
    clusters: tuple[PreviousCluster, ...] = ()
    #: Reports before it, the oldest first; its own point is the last.
    history: tuple[Point, ...] = ()


def previous_of(given: Previous | Mapping[str, object] | None) -> Previous | None:
    """Return an earlier report that may have been handed on as JSON."""
    return Previous.model_validate(given) if given is not None else None
