"""Estimates of real runs: after a pilot, with files that give no text, and with documents that were done before."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace import App, ConfigError, Task
from headrace.apps.papers.command import EXTRACT_HELP, estimate_folder, extract_folder, papers
from headrace.apps.papers.errors import GoldError, OutputError
from headrace.apps.papers.estimate import Estimate
from headrace.apps.papers.foresight import Meter, estimate_run
from headrace.apps.papers.job import register
from headrace.apps.papers.review.reading_back import read_back
from headrace.apps.papers.run import RunOptions, follow, open_run
from headrace.testing.provider import ChatRequest, ScriptedProvider

CLOSED_FOR = timedelta(milliseconds=500)
ROOT = Path(__file__).resolve().parent.parent.parent
TEMPLATE = "name: t\nversion: 1\nfields: [{name: note, type: text, description: What it says}]"
# A wordy model: what it says is several times as long as expected.
SAID = json.dumps({"note": {"status": "unclear", "sentences": [], "value": None, "note": "because of rain " * 40}})


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunOptions:
    """Ten papers of different lengths and a broken one."""
    monkeypatch.setenv("HEADRACE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    papers = tmp_path / "papers"
    papers.mkdir()
    for number in range(10):
        text = "".join(f"On day {day} it rained on field {number}. " for day in range(1 + 20 * number))
        (papers / f"{number}.txt").write_text(text, encoding="utf-8")
    (papers / "broken.pdf").write_bytes(b"%PDF-1.7 not really")
    (tmp_path / "t.yaml").write_text(TEMPLATE, encoding="utf-8")
    return RunOptions(papers, tmp_path / "t.yaml", tmp_path / "out")


async def extracted(app: App, task: Task[..., Any], options: RunOptions) -> Estimate:
    """Extract, and return what the meter of the run says at the end."""
    run = await open_run(app, task, options)
    async for _ in follow(app, run, concurrency=4):
        pass
    return await Meter(app, run).look()


async def test_after_a_pilot_the_estimate_is_corrected_and_the_run_tells_all_of_it(
    options: RunOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left is foreseen within a fifth; the run then counts the pilot in, and a broken file hides no plan."""
    async with ScriptedProvider(answer=lambda request: SAID) as model:
        for name, value in model.environment.items():
            monkeypatch.setenv(name, value)
        app = App("memory://")
        task = register(app)
        async with app:
            plan = await estimate_run(app, task, options)
            assert (len(plan.documents), plan.unreadable, plan.measured) == (10, 1, 0)
            pilot = await extracted(app, task, replace(options, pilot=4))
            left = await estimate_run(app, task, options)
            whole = await extracted(app, task, options)
            done = await estimate_run(app, task, options)
    assert left.measured == pilot.measured > 0
    assert (whole.calls, whole.measured, done.calls, done.measured) == (10, 10 - left.measured, 0, 0)
    for name in ("input_tokens", "output_tokens"):
        rest = getattr(whole, name) - getattr(pilot, name)
        assert abs(getattr(left, name) - rest) <= 0.2 * rest, name


async def test_documents_do_not_start_while_the_quota_of_the_model_is_closed(
    options: RunOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs wait outside: none begins, looks at a closed quota and leaves."""
    asked_at: list[float] = []

    def answer(request: ChatRequest) -> str:
        asked_at.append(time.monotonic())
        return SAID

    async with ScriptedProvider(answer=answer) as model:
        for name, value in model.environment.items():
            monkeypatch.setenv(name, value)
        app = App("memory://")
        task = register(app)
        async with app, app.worker(queues={"papers": 4}):
            closed_at = time.monotonic()
            await app.runtime.limiter.close_bucket(f"jobs:{app.llm.pool}", CLOSED_FOR)
            run = await open_run(app, task, replace(options, pilot=2))
            async for _ in follow(app, run, concurrency=None):
                pass
    assert len(asked_at) == 2
    assert min(asked_at) >= closed_at + CLOSED_FOR.total_seconds()


async def test_a_model_without_a_key_ends_the_run_before_anything_is_stored(
    options: RunOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once per document, with files full of nothing."""
    for name in ("HEADRACE_LLM_API_KEY", "OPENAI_API_KEY", "HEADRACE_LLM_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HEADRACE_LLM_MODEL", "small")
    app = App("memory://")
    task = register(app)
    async with app:
        with pytest.raises(ConfigError, match="API_KEY"):
            await open_run(app, task, options)
        assert await app.runtime.stores.inspect.list_batches() == []
    assert not options.out.exists()


async def test_known_values_of_documents_that_are_not_there_are_counted(
    options: RunOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt name in the sheet of known values is no silence: the summary and accuracy.json tell of it."""
    monkeypatch.setenv("HEADRACE_QUEUE_TYPE", "memory")
    gold = tmp_path / "gold.csv"
    gold.write_text("document,field,value\n1.txt,note,rain\nmispelt.txt,note,rain\n", encoding="utf-8")
    async with ScriptedProvider(answer=lambda request: SAID) as model:
        for name, value in model.environment.items():
            monkeypatch.setenv(name, value)
        summary = await extract_folder(replace(options, gold=gold), quiet=True)
    written = json.loads((options.out / "accuracy.json").read_text(encoding="utf-8"))
    for told in (summary["accuracy"], written):
        assert (told["values"], told["left_out"]) == (1, 1)
    # What lies there is what the help and the reference speak of, and no more.
    again = read_back(options.out / "review.csv", options.out)
    files = {path.name for path in options.out.iterdir()} - {"verified.csv"}
    assert files == {Path(name).name for name in summary["files"]} | {"verified.jsonl"}, again
    reference = (ROOT / "docs" / "reference" / "papers.md").read_text(encoding="utf-8").partition("## Results")[2]
    for name in files:
        assert name in EXTRACT_HELP
        assert f"`{name}`" in reference


async def test_an_estimate_names_what_would_stop_the_extraction(options: RunOptions) -> None:
    """A missing sheet of known values and an output that is a file are told before, not after the estimate."""
    with pytest.raises(GoldError, match=r"nowhere\.csv"):
        await estimate_folder(replace(options, gold=Path("nowhere.csv")))
    with pytest.raises(OutputError, match=r"t\.yaml"):
        await estimate_folder(replace(options, out=options.template))


def test_an_empty_key_is_refused(options: RunOptions) -> None:
    """A shell variable that was not set names no run: it would be one for every output."""
    told = CliRunner().invoke(
        papers, ["extract", str(options.folder), "--template", str(options.template), "--out", "out", "--key", " "]
    )
    assert told.exit_code == 2
    assert "--key" in told.output
    assert "must not be empty" in told.output
