"""Memory over HTTP against its own OpenAPI: what it says may be asked is asked, within and beyond its bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from headrace.apps.memory.means import TABLES
from headrace.apps.memory.memory import Memory
from headrace.apps.memory.worker import app
from headrace.service.application import make_service
from tests.integration.test_service_schema import CHECKS, SECONDS, Service
from tests.unit.memory_world import ADA, settings_of, settled

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Do not use the `random` module"),
]
EXAMPLES = 30


class Remembering(Service):
    """The service of memory, with one user who has said something."""

    async def _fill(self) -> dict[str, str]:
        await TABLES.set_up()
        await Memory().insert("ada", ADA)
        return {"user_id": "ada"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remembering]:
    """A service on PostgreSQL; nobody works flushes: they need a model."""
    with settled(settings_of(tmp_path_factory.mktemp("memory"))) as made, Remembering(made, EXAMPLES) as running:
        yield running


DOCUMENT: dict[str, Any] = make_service(app).openapi()
schema = schemathesis.openapi.from_dict(DOCUMENT).include(path_regex="/memory/")


# Without the plugin of the package for pytest, which patches what writes tracebacks.
@pytest.mark.parametrize("operation", [found.ok() for found in schema.get_all_operations()], ids=lambda one: one.label)
def test_answers_are_as_the_document_says(operation: Any, service: Remembering) -> None:
    """No request is answered by an error of the server, or by a status, a type or a shape that is not documented."""

    @hypothesis_settings(
        max_examples=service.examples, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        case.call_and_validate(base_url=service.url, checks=CHECKS, timeout=SECONDS)
        if "user_id" in (case.path_parameters or {}):
            case.path_parameters = {**case.path_parameters, **service.known}
            case.call_and_validate(base_url=service.url, checks=CHECKS, timeout=SECONDS)

    ask()
