"""Stage 6, first step: the words of the report, of which each sentence rests on cases or clusters."""

from __future__ import annotations

from typing import Any

from headrace.apps.report.asking import ask, usage_of
from headrace.apps.report.content.figures import figures_for
from headrace.apps.report.content.template import template_content
from headrace.apps.report.data.document import Lang
from headrace.apps.report.opening import HARD, LLM, Q_LLM, app
from headrace.apps.report.prompts import content as prompts
from headrace.apps.report.tasks.given import read_found


@app.task(queue=Q_LLM, retry=LLM, timeout=HARD)
async def compose_report_content(job_id: str, given: dict[str, Any], lang: Lang) -> dict[str, Any]:
    """Ask for the text, and keep of it what rests on something that exists."""
    found = await read_found(given)
    figures = figures_for(found)
    answer = await ask(
        prompts.ContentAnswer, system=prompts.system_of(lang), prompt=prompts.prompt_of(figures),
        max_tokens=prompts.MAX_TOKENS,
    )  # fmt: skip
    told = prompts.checked(answer.value, figures, found.ids, template_content(found, lang))
    return {"content": told.model_dump(mode="json"), "usage": usage_of(answer)}
