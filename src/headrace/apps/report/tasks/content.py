"""Stage 6, first step: the words of the report, of which each sentence rests on cases or clusters."""

from __future__ import annotations

from typing import Any

from headrace import Context
from headrace.apps.report.asking import Question, ask, usage_of
from headrace.apps.report.content.figures import figures_for
from headrace.apps.report.content.template import template_content
from headrace.apps.report.data.content import Content
from headrace.apps.report.data.document import Lang
from headrace.apps.report.opening import HARD, LLM, Q_LLM, app
from headrace.apps.report.prompts import content as prompts
from headrace.apps.report.tasks.given import read_found


@app.task(queue=Q_LLM, retry=LLM, timeout=HARD)
async def compose_report_content(job_id: str, given: dict[str, Any], lang: Lang, ctx: Context) -> dict[str, Any]:
    """Ask for the text, and keep of it what rests on something that exists."""
    found = await read_found(given)
    figures, template = figures_for(found), template_content(found, lang)

    def checked(answer: prompts.ContentAnswer) -> Content:
        return prompts.checked(answer, figures, found.ids, template)

    question = Question(
        prompts.ContentAnswer, prompts.system_of(lang), prompts.prompt_of(figures), prompts.MAX_TOKENS,
        is_founded=lambda answer: checked(answer).by_model,
    )  # fmt: skip
    answer = await ask(question, ctx)
    return {"content": checked(answer.value).model_dump(mode="json"), "usage": usage_of(answer)}
