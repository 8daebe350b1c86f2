"""One report in one process, and on two workers of a Celery farm of which one is killed: the figures are the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.apps.report.samples.junit import write_junit
from headrace.testing.provider import ProviderProcess
from tests.faults.farm import ROOT, Farm, farm_on
from tests.waiting import wait_until

pytestmark = pytest.mark.faults

APP = "headrace.apps.report.worker:app"
PATIENCE = timedelta(seconds=120)


@dataclass
class Site:
    """A farm, and the model that all processes ask."""

    farm: Farm
    model: ProviderProcess

    def environment(self, *, far: bool) -> dict[str, str]:
        """What a command gets: `far` sends jobs to the farm, and shares no paid answer with the other report."""
        given = {**os.environ, **self.farm.environment, **self.model.environment}
        given["HEADRACE_BLOB_STORAGE_PATH"] = str(self.farm.root / "blobs")
        given["HEADRACE_LLM_MEMO_NAME"] = "far" if far else "near"
        return given if far else given | {"HEADRACE_WORKER_EXECUTOR": "local"}

    def start(self, *words: str, far: bool = True, out: int | None = None) -> subprocess.Popen[str]:
        """Start a command of Headrace in a process group of its own, which the farm ends."""
        with (self.farm.root / f"process-{len(self.farm.processes)}.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "headrace", *words], cwd=ROOT, stdout=out or log, stderr=log, text=True,
                start_new_session=True, env=self.environment(far=far),
            )  # fmt: skip
        self.farm.processes.append(process)  # type: ignore[arg-type]
        return process

    def build(self, out: str, *words: str, far: bool) -> subprocess.Popen[str]:
        """Start a report of the sample."""
        cases, folder = str(self.farm.root / "junit.xml"), str(self.farm.root / out)
        return self.start("report", "build", cases, "--out", folder, "--json", *words, far=far, out=subprocess.PIPE)

    def asked(self) -> int:
        """Return how often the model was asked since its calls were forgotten."""
        return self.model.stats().calls

    def report(self, out: str) -> dict[str, Any]:
        """Return the document of a report, without what is of its run alone."""
        found: dict[str, Any] = json.loads((self.farm.root / out / "report.json").read_text(encoding="utf-8"))
        assert found.pop("run")
        return found


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """Set a farm and a model up; an answer takes half a second."""
    write_junit(tmp_path / "junit.xml")
    async with farm_on(tmp_path, monkeypatch) as farm:
        with ProviderProcess("--latency", "0.5,100000") as model:
            yield Site(farm, model)


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_report_is_the_same_in_process_and_on_a_farm_that_is_killed_in_part(site: Site) -> None:
    """Two workers of the farm, one of them killed while it asks: page for page what one process makes."""
    near = site.build("near", far=False)
    out, _ = near.communicate(timeout=PATIENCE.total_seconds())
    assert near.returncode == 0, site.farm.logs()
    asked = site.asked()
    # What was asked and rested on nothing is in the ledger, and not among the calls for the answers.
    assert asked >= json.loads(out)["usage"]["calls"] > 10
    site.model.forget_calls()

    doomed = site.start("celery", "worker", "--concurrency", "2", APP)
    site.start("celery", "worker", "--concurrency", "2", APP)
    site.start("worker", APP)
    await wait_until(lambda: len(site.farm.alive) == 2, PATIENCE)
    far = site.build("far", "--workers-elsewhere", far=True)
    await wait_until(lambda: site.asked() > 4, PATIENCE)
    os.killpg(doomed.pid, signal.SIGKILL)
    out, _ = far.communicate(timeout=PATIENCE.total_seconds())
    assert far.returncode == 0, site.farm.logs()

    assert site.report("far") == site.report("near")
    # At most what its two processes were asking was asked again.
    assert asked <= site.asked() <= asked + 2
