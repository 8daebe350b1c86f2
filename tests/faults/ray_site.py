"""One test's place on a Ray cluster: a schema, the workers that are its drivers, and what their handlers did."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.settings import load_settings
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.ray import RayCluster
from tests.backends.server import die_with_parent, shared_server
from tests.faults.farm import APP, HERE, ROOT, Farm
from tests.faults.farm_tasks import GATES, LOG, app
from tests.faults.site import LIMITS

CONFIG = f"""{HERE}
[ray]
env_vars = ["{LOG}", "{GATES}"]
"""


@dataclass
class RaySite(Farm):
    """What a test has."""

    cluster: RayCluster | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What drivers get beside the environment of the test."""
        assert self.cluster is not None
        return {
            **self.cluster.environment,
            **LIMITS,
            "HEADRACE_URL": shared_server().dsn,
            "HEADRACE_QUEUE_SCHEMA": self.schema,
            "HEADRACE_DIRECTORY": str(self.root / "data"),
            "HEADRACE_CONFIG": str(self.root / "headrace.toml"),
            "HEADRACE_WORKER_EXECUTOR": "ray",
            "HEADRACE_RAY_ADDRESS": self.cluster.address,
            LOG: str(self.root / "effects"),
            GATES: str(self.root),
        }

    def start(self, *words: str, app: str = APP, cwd: Path = ROOT) -> subprocess.Popen[bytes]:
        """Start a command of Headrace on the first node."""
        assert self.cluster is not None
        log = self.root / f"process-{len(self.processes)}.log"
        words = (sys.executable, "-m", "headrace", *words, *([app] if app else []))
        command = self.cluster.command(*words, folder=cwd)
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=output, start_new_session=True,
                env={**os.environ, **self.environment}, preexec_fn=die_with_parent,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def run(self, *words: str, folder: Path = ROOT) -> str:
        """Run a command of Headrace on the first node to its end, and return what it wrote; doctor may exit with 1."""
        assert self.cluster is not None
        command = self.cluster.command(sys.executable, "-m", "headrace", *words, folder=folder)
        environ = {**os.environ, **self.environment}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout + done.stderr


@asynccontextmanager
async def ray_site_on(
    cluster: RayCluster, root: Path, monkeypatch: pytest.MonkeyPatch, config: str = ""
) -> AsyncIterator[RaySite]:
    """Set it up, with the app of the tasks on its store, and end it."""
    (root / "headrace.toml").write_text(CONFIG + config)
    async with empty_schema() as schema, stores_on(schema, None):
        site = RaySite(None, root, schema, cluster=cluster)  # type: ignore[arg-type]
        for name in (LOG, GATES):
            monkeypatch.setenv(name, site.environment[name])
        environ = {name: value for name, value in site.environment.items() if name.startswith("HEADRACE_")}
        monkeypatch.setattr(app, "settings", load_settings(environ=environ), raising=False)
        try:
            yield site
        finally:
            site.stop()
