"""The pages of reports say what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from headrace.apps.report import model_watch, opening
from headrace.apps.report.delivering import FILES
from headrace.apps.report.progress import WEIGHTS
from headrace.apps.report.prompts.clusters import MOST_CARDS
from headrace.apps.report.prompts.defects import UNPROVEN
from headrace.apps.report.sources import MOST_NAME
from headrace.apps.report.stages import STAGES
from headrace.apps.report.tasks import defects
from headrace.apps.report.worker import app
from headrace.service.guard import MOST_UPLOADS, UPLOAD_BYTES
from headrace.service.report_shapes import BuildReport, FileName
from headrace.settings import load_settings

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
HOWTO = (DOCS / "howto" / "report.md").read_text(encoding="utf-8")
WHY = (DOCS / "explanation" / "report.md").read_text(encoding="utf-8")
TOML = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_settings_of_the_page_are_taken(tmp_path: Path) -> None:
    """Each block is a file that starts the app, and names queues that it has."""
    blocks = TOML.findall(HOWTO)
    assert blocks
    for block in blocks:
        file = tmp_path / "headrace.toml"
        file.write_text(block, encoding="utf-8")
        queues = load_settings(environ={}, file=file).queues
        assert queues.keys() <= opening.SLOTS.keys()
        assert "q_llm" not in queues or queues["q_llm"].rate_limit is not None


def test_every_stage_and_every_step_is_named() -> None:
    """Stages in the order of the code, with all tasks of the app."""
    rows = re.findall(r"^\| `(\w+)` \|", WHY.split("## Stages")[1].split("### What a stage returns")[0], re.MULTILINE)
    assert tuple(rows) == STAGES
    assert {task.name for task in app.registry if task.name not in STAGES} <= set(re.findall(r"`(\w+)`", WHY))
    assert f"{WEIGHTS[STAGES[0]]} parts of a hundred are the ingest, {WEIGHTS[STAGES[1]]} tagging" in " ".join(
        WHY.split()
    )


@pytest.mark.parametrize(
    "figure",
    [
        f"up to {defects.MOST_IN_ONE:,} failing cases are one chord",
        f"several chords of {defects.LEAST} to {defects.MOST} cases",
        f"| reading and storing (`q_io`) | {opening.IO.max_attempts} |",
        f"| computing and drawing (`q_cpu`) | {opening.CPU.max_attempts} |",
        f"| a question (`q_llm`) | {opening.LLM.max_attempts} |",
        f"{opening.SOFT:.0f} s, then it counts as failed; {opening.HARD:.0f} s end it",
        f"over {model_watch.PATIENCE:.0f} s, the model counts as away: one call each {model_watch.PROBE:.0f} s",
        f"for each of the {MOST_CARDS} largest",
        f"the confidence is at most {UNPROVEN}",
    ],
)
def test_figures_of_the_explanation_are_those_of_the_code(figure: str) -> None:
    """Each stands there."""
    assert figure in " ".join(WHY.split())


@pytest.mark.parametrize(
    "figure",
    [
        f"`PUT` is the file itself, at most {UPLOAD_BYTES // 1_000_000} MB",
        f"takes {MOST_UPLOADS} files in at once",
        f"at most {MOST_NAME} bytes",
        *(f"| `{queue}` |" for queue in opening.SLOTS),
        *(f"`{name}`" for name in FILES.values()),
        *(f'"{name}"' for name in BuildReport.model_fields),
    ],
)
def test_figures_and_names_of_the_how_to_are_those_of_the_code(figure: str) -> None:
    """Each stands there."""
    assert figure in " ".join(HOWTO.split())


def test_slots_of_the_how_to_are_those_of_the_code() -> None:
    """Of the command, as far as no option says them."""
    told = dict(re.findall(r"^\| `(q_\w+)` \| .* \| (\d+|`--concurrency`) \|$", HOWTO, re.MULTILINE))
    assert told == {name: str(slots) for name, slots in opening.SLOTS.items()} | {"q_llm": "`--concurrency`"}
    assert set(get_args(FileName)) == set(FILES.values())
