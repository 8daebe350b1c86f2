"""The integration with Prefect where Prefect is not: the rest is tested against a real one."""

from __future__ import annotations

import sys

import pytest

from headrace import App
from headrace.integrations.prefect import emit_once, suspend_for_events, suspend_for_events_sync
from headrace.model.errors import ConfigError


async def test_without_prefect_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing the module needs no Prefect; using it does, and says so before it asks a store."""
    monkeypatch.setitem(sys.modules, "prefect.context", None)
    app = App("memory://")
    with pytest.raises(ConfigError, match="pip install 'prefect"):
        await suspend_for_events(app, "c-1", "Tests.Part.Made", timeout="1s")
    with pytest.raises(ConfigError, match="pip install 'prefect"):
        suspend_for_events_sync(app, "c-1", "Tests.Part.Made", timeout="1s")
    with pytest.raises(ConfigError, match="pip install 'prefect"):
        await emit_once(app, "part-1", "Tests.Part.Asked", aggregate_id="c-1")
    assert not app.is_open
