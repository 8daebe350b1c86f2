"""An app of papers whose documents lie where it is started, and whose model is a script."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from headrace import App, Backoff
from headrace.apps.papers import job

# Where it is served from knows nothing of tests.
sys.path.append(str(Path(__file__).parents[2]))

from tests.unit.papers_world import extract, write_files

job.extract_document = extract  # type: ignore[assignment]
job.RETRY = Backoff.none()
app = App(settings=replace(App().settings, papers=write_files(Path.cwd())))
job.register(app)
