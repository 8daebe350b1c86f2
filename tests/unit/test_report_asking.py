"""Useless answers of the model: what stands for them, how that is told, and how a resume buys others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.apps.report.job import Job, ReportRequest, begin_report, find_report, resume_report
from headrace.apps.report.opening import SLOTS
from headrace.apps.report.output.wording import wording
from headrace.apps.report.stages import CLUSTERS, DEFECTS, RENDER, TAGGING
from headrace.model.run import NODES_QUEUE
from headrace.model_settings import ModelSettings
from headrace.testing.provider import Answers, ChatRequest, ScriptedProvider
from tests.unit.report_serving import ANSWERS, SHEET, settled

FACT, MERGE, SUMMARY, TEXT = (
    "You turn one failed", "You are shown cards", "You name one cluster", "You write the analysis",
)  # fmt: skip
BAD = {"nothing": "of use"}
TWO_CLUSTERS = SHEET + b"D1,Log in,Login,Fail,TimeoutError: no answer\n"
NO_MODULE = SHEET + b"D1,zither,,Pass,\n"
NO_TEXT = {"objective_and_scope": [], "risks": [], "modules": [], "conclusions": [{"text": "It fails.", "cites": []}]}
NO_CASE = {"name": "All of them", "commonality": "They fail.", "systemic_risk": "", "evidence": ["C99"]}


@dataclass
class Mind:
    """A model that gives one answer to questions that hold some words, until it is well."""

    words: str
    said: Any
    is_well: bool = False

    def __call__(self, request: ChatRequest) -> Any:
        """None: the answer that the rules give."""
        return None if self.is_well or self.words not in request.text else self.said


@asynccontextmanager
async def working(folder: Path, mind: Mind) -> AsyncIterator[ScriptedProvider]:
    """Work reports, with that model."""
    async with ScriptedProvider(rules=Answers.load(ANSWERS), answer=mind) as provider:
        llm = ModelSettings(model=provider.model, base_url=provider.base_url, api_key=provider.api_key)
        with settled(folder, llm) as app:
            async with app, app.worker(queues={**SLOTS, NODES_QUEUE: 4}):
                yield provider


async def begun(folder: Path, sheet: bytes = SHEET) -> Job:
    """Ask for a report."""
    path = folder / "cases.csv"
    path.write_bytes(sheet)
    return await begin_report(ReportRequest(str(path)), name="out")


async def ended(job: Job) -> dict[str, tuple[int, str]]:
    """Await a report; return how many answers each stage lacks, and why."""
    result = await job.run.result(timeout=60)
    degraded = result["next_inputs"]["degraded"]
    assert result["status"] == ("degraded" if degraded else "ok")
    return {one["stage"]: (one["missing"], one["reason"]) for one in degraded}


@pytest.mark.parametrize(
    ("sheet", "words", "said", "lacking"),
    [
        (SHEET, FACT, BAD, {DEFECTS: (3, "bad_output")}),
        (NO_MODULE, "You sort test cases", BAD, {TAGGING: (1, "bad_output")}),
        (TWO_CLUSTERS, MERGE, BAD, {CLUSTERS: (1, "bad_output")}),
        (TWO_CLUSTERS, SUMMARY, NO_CASE, {CLUSTERS: (2, "unfounded")}),
        (SHEET, TEXT, NO_TEXT, {RENDER: (1, "unfounded")}),
    ],
    ids=["facts", "modules", "merges", "summaries", "text"],
)
async def test_a_resume_buys_another_answer_for_each_useless_one(
    tmp_path: Path, sheet: bytes, words: str, said: Any, lacking: dict[str, tuple[int, str]]
) -> None:
    """Each resume anew, as often as it takes; what was useful is not asked again."""
    mind = Mind(words, said)
    [(missing, reason)] = lacking.values()
    # An answer of a wrong shape is asked for once more within a try, and the try is not repeated.
    each = missing * (2 if reason == "bad_output" else 1)
    async with working(tmp_path, mind) as provider:
        job = await begun(tmp_path, sheet)
        assert await ended(job) == lacking
        assert provider.count(words) == each
        again = await resume_report(job)
        assert await ended(again) == lacking
        assert provider.count(words) == 2 * each
        mind.is_well, asked = True, provider.count()
        last = await resume_report(await find_report(job.id))
        assert await ended(last) == {}
        assert last.number == 2
        # The text is told of other figures where facts changed; nothing else is asked twice.
        assert provider.count(words) == 2 * each + missing
        assert provider.count() - provider.count(words) <= asked - 2 * each + 1
        assert (await resume_report(last)).run.id == last.run.id


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_answers_without_a_ground_have_words(lang: Any) -> None:
    """Those of the first screen."""
    assert "reason.unfounded" in wording(lang).words
