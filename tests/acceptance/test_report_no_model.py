"""A report where nothing is configured: complete at once, without a word of the model, and it says what to do."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from headrace.apps.report.samples.junit import write_junit
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.server import shared_server

pytestmark = pytest.mark.acceptance


async def test_without_a_model_the_report_is_made_of_the_rows_and_names_the_fix(tmp_path: Path) -> None:
    """The built-in model is not asked: it would take minutes, and be wrong."""
    write_junit(tmp_path / "junit.xml")
    async with empty_schema() as schema, stores_on(schema, None):
        environment = {**os.environ, "HEADRACE_URL": shared_server().dsn, "HEADRACE_QUEUE_SCHEMA": schema}

        async def build(*words: str) -> str:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "headrace", "report", "build", "junit.xml", "--out", "out", *words,
                cwd=tmp_path, env=environment, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            out, _ = await asyncio.wait_for(process.communicate(), 120)
            assert process.returncode == 0
            return out.decode()

        summary = json.loads(await build("--json"))
        assert summary["status"] == "degraded"
        assert {one["reason"] for one in summary["degraded"]} == {"no_model"}
        assert summary["usage"]["calls"] == 0
        assert "name a model: HEADRACE_LLM_MODEL" in await build()
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "no model is configured that could answer" in page
