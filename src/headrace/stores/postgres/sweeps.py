"""What rescues of lost jobs and the overdue check did, from the rows of their statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.model import crashes
from headrace.model.stats import Rescued
from headrace.stores.postgres.rows import encode_error

WORKER_LOST = encode_error(crashes.WORKER_LOST)
OVERDUE = encode_error(crashes.OVERDUE)


def rescued(rows: Sequence[Any]) -> Rescued:
    """Return what a sweep did; each row says the verdict on one job."""
    released = [row for row in rows if row["verdict"] == "ready"]
    ended = [row for row in rows if row["verdict"] != "ready"]
    return Rescued(
        released=tuple(row["id"] for row in released),
        failed=tuple(row["id"] for row in ended if row["verdict"] == "failed"),
        queues=frozenset(row["queue"] for row in released),
        batches=frozenset(row["batch_id"] for row in ended if row["batch_id"] is not None),
    )
