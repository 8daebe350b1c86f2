"""The dashboard beside a worker: what is told where it cannot be served."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from headrace.cli.loading import load_app
from headrace.cli.serving_beside import _told, dashboard_beside
from tests.waiting import wait_until


@pytest.fixture
def module(tmp_path: Path) -> str:
    """Return a module with an app, by a name of its own: modules are kept."""
    file = tmp_path / f"{tmp_path.name}.py"
    file.write_text("from headrace import App\n\napp = App('memory://')\n")
    return str(file)


async def test_a_dashboard_that_nobody_could_open_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, module: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not when the worker stops, and it is no error of the worker."""
    monkeypatch.setenv("HEADRACE_SERVICE_REQUIRE_TOKEN", "true")
    with dashboard_beside(module, 0, as_json=False) as beside:
        assert beside is not None
        app = load_app(module)
        async with asyncio.timeout(20), app:
            await beside(app, asyncio.Event())
    assert "no dashboard: the service on 127.0.0.1 asks everybody for a token" in caplog.text


@pytest.mark.parametrize(("name", "value"), [("HOSTS", "jobs.example.org"), ("URL", "https://example.org/jobs")])
async def test_settings_of_a_service_that_others_reach_keep_no_dashboard_away(
    monkeypatch: pytest.MonkeyPatch, module: str, caplog: pytest.LogCaptureFixture, name: str, value: str
) -> None:
    """How others reach that one is nothing to this one, which is for this machine alone."""
    monkeypatch.setenv(f"HEADRACE_SERVICE_{name}", value)
    caplog.set_level("INFO", "headrace.worker")
    with dashboard_beside(module, 0, as_json=False) as beside:
        assert beside is not None
        app, stopping = load_app(module), asyncio.Event()
        async with asyncio.timeout(20), app:
            task = asyncio.create_task(beside(app, stopping))
            await wait_until(lambda: "dashboard: http" in caplog.text or task.done())
            url = caplog.records[-1].getMessage().removeprefix("dashboard: ")
            async with httpx2.AsyncClient(trust_env=False) as client:
                assert (await client.get(f"{url}/", headers={"accept": "text/html"})).status_code == 200
            stopping.set()
            await task


async def test_a_mistake_of_ours_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """With where it was made; the worker works on."""

    async def fails() -> None:
        raise ValueError("a mistake of ours")

    await _told(fails())
    [record] = caplog.records
    assert record.getMessage() == "no dashboard"
    assert record.exc_info is not None
