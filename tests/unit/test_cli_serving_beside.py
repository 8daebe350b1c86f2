"""The dashboard beside a worker: what is told where it cannot be served."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headrace.cli.loading import load_app
from headrace.cli.serving_beside import dashboard_beside


async def test_a_dashboard_that_nobody_could_open_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not when the worker stops, and it is no error of the worker."""
    monkeypatch.setenv("HEADRACE_SERVICE_REQUIRE_TOKEN", "true")
    module = tmp_path / "beside_shop.py"
    module.write_text("from headrace import App\n\napp = App('memory://')\n")
    with dashboard_beside(str(module), 0, as_json=False) as beside:
        assert beside is not None
        app = load_app(str(module))
        async with asyncio.timeout(20), app:
            await beside(app, asyncio.Event())
    assert "no dashboard: the service on 127.0.0.1 asks everybody for a token" in caplog.text
