"""The service of reports against its own OpenAPI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from headrace.apps.report.job import ReportRequest, begin_report
from headrace.apps.report.worker import app as reports_app
from headrace.service.application import make_service
from tests.integration.test_service_schema import CHECKS, FEW, SECONDS, Service
from tests.unit.report_serving import SHEET, settled

#: The service runs in a thread beside, and its jitter is taken for a strategy's.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module")
DOCUMENT: dict[str, Any] = make_service(reports_app).openapi()
#: Streams of events end when what they follow does: they have tests of their own.
schema = schemathesis.openapi.from_dict(DOCUMENT).include(path_regex="/reports").exclude(path_regex="/events$")


class Reports(Service):
    """Reports that nobody works on."""

    async def _fill(self) -> dict[str, str]:
        folder = reports_app.settings.directory / "report-files"
        folder.mkdir()
        (folder / "cases.csv").write_bytes(SHEET)
        job = await begin_report(ReportRequest("file:cases.csv"), name="schema")
        return {"job_id": job.id}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service of reports with a file and a report that is begun."""
    with settled(tmp_path_factory.mktemp("reports")) as app, Reports(app, 2 * FEW) as running:
        yield running


@pytest.mark.parametrize("operation", [found.ok() for found in schema.get_all_operations()], ids=lambda one: one.label)
def test_answers_are_as_the_document_says(operation: Any, service: Service) -> None:
    """No request is answered by an error of the server, or by a status, a type or a shape that is not documented."""

    @hypothesis_settings(
        max_examples=service.examples, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        case.call_and_validate(base_url=service.url, checks=CHECKS, timeout=SECONDS)
        if "job_id" in case.path_parameters:
            case.path_parameters = {**case.path_parameters, **service.known}
            case.call_and_validate(base_url=service.url, checks=CHECKS, timeout=SECONDS)

    ask()
