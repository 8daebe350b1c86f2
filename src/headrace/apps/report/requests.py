"""Parts of a request for a report, checked before anything is stored."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headrace import InvalidInputError, RunState
from headrace.apps.report.delivering import file_of
from headrace.apps.report.errors import NotEndedError
from headrace.apps.report.job import find_report
from headrace.apps.report.opening import app
from headrace.apps.report.output.json_file import read_previous
from headrace.apps.report.sources import FILE, OBJECT
from headrace.apps.report.stats import Thresholds
from headrace.apps.report.tagging import load_rules, parse_rules


def check_reference(file_ref: str) -> None:
    """Raise InvalidInputError for a path: callers of the service name no other file of the machine."""
    if not file_ref.startswith((FILE, OBJECT)):
        raise InvalidInputError("file_ref", f"must begin with {FILE} or {OBJECT}", file_ref)


def check_gate(gate: Mapping[str, Any]) -> dict[str, Any]:
    """Return exit criteria. Raises InvalidInputError naming the one that is wrong."""
    try:
        Thresholds.model_validate(dict(gate))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "gate"
        raise InvalidInputError(f"gate {name}", f"is wrong: {first['msg'].lower()}", first["input"]) from None
    return dict(gate)


def check_rules(rules: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return rules of modules. Raises RulesError."""
    return None if rules is None else parse_rules(rules, "rules").model_dump(mode="json")


def usual_rules() -> dict[str, Any] | None:
    """Return the rules of `[report] rules`, for reports that name none. Raises RulesError."""
    path = app.settings.report.rules
    return None if path is None else load_rules(path).model_dump(mode="json")


async def previous_of_job(job_id: str) -> dict[str, Any]:
    """Return what an earlier report is compared by. Raises NotFoundError, NotEndedError."""
    job = await find_report(job_id)
    if await job.run.status() is not RunState.SUCCEEDED:
        raise NotEndedError(f"report {job_id} has not ended, so that nothing can be compared with it")
    data = await file_of(job, (await job.run.result())["artifacts"], "report.json")
    assert data is not None, "every report has its JSON"
    return await asyncio.to_thread(_previous_in, data)


def _previous_in(data: bytes) -> dict[str, Any]:
    """Return what a report of thousands of cases is compared by, off the event loop."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        path.write_bytes(data)
        return read_previous(path).model_dump(mode="json")
