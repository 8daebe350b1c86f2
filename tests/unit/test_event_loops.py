"""The event loop of long-running commands, with uvloop and without it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headrace.event_loops import fastest_loop

#: Runs the scripted provider as `python -m` does, where uvloop is not installed.
WITHOUT = """
import runpy, sys
sys.modules["uvloop"] = None
sys.argv = ["provider"]
runpy.run_module("headrace.testing.provider", run_name="__main__")
"""


def test_where_uvloop_is_missing_the_loop_is_that_of_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes with an extra that not everybody has."""
    assert fastest_loop() is not None
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert fastest_loop() is None


def test_the_scripted_provider_needs_no_uvloop() -> None:
    """Whoever has `headrace[testing]` alone can start it."""
    process = subprocess.Popen([sys.executable, "-c", WITHOUT], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert '"base_url"' in process.stdout.readline()
    finally:
        process.terminate()
        process.communicate(timeout=30)
