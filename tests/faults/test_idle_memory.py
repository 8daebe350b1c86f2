"""What a worker costs while there is nothing to do."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.faults.site import ROOT

LIMIT_KIB = 60_000


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_idle_worker_is_small() -> None:
    """A worker process on PostgreSQL that has run its jobs and idles keeps less than 60 MB resident."""
    command = [sys.executable, str(ROOT / "benchmarks" / "idle_memory.py"), "--seconds", "1", "--jobs", "500", "--json"]
    measured = subprocess.run(command, capture_output=True, check=True, text=True, cwd=ROOT)
    worker = json.loads(measured.stdout)["worker"]
    assert 15_000 < worker["rss"] < LIMIT_KIB
