"""Stage 2: the module of each case, by rules, and by the model where they cannot tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from headrace import Context
from headrace.apps.report import shelf, stages
from headrace.apps.report.asking import Question, ask, usage_of
from headrace.apps.report.data.cases import Case
from headrace.apps.report.data.kinds import ASSIGNMENTS, CASES
from headrace.apps.report.data.modules import Assignment, TaggedBy
from headrace.apps.report.opening import CPU, CPU_TIME, HARD, LLM, Q_CPU, Q_LLM, app
from headrace.apps.report.prompts import tagging as prompts
from headrace.apps.report.stages import StageResult
from headrace.apps.report.tagging import DEFAULT_RULES, Rules, tag_cases
from headrace.apps.report.tasks.joints import entries_of, key_of, total_usage, why_missing

#: An answer of the model that is less sure counts as unsure.
LOW = 0.5


@app.task(queue=Q_CPU, retry=CPU, timeout=CPU_TIME)
async def module_tagging_rules(job_id: str, cases_ref: dict[str, Any], rules: dict[str, Any] | None) -> dict[str, Any]:
    """Tag what the sheet or the rules can tell; return the others as entries for the model."""
    cases = await shelf.get(cases_ref, CASES)
    tagged = tag_cases(cases, DEFAULT_RULES if rules is None else Rules.model_validate(rules))
    modules = Counter(one.module for one in tagged if one.is_settled)
    unsettled = {one.case_id: one for one in tagged if not one.is_settled}
    work = prompts.TaggingWork(
        modules=tuple(sorted(modules, key=lambda name: (-modules[name], name))),
        cases={case.case_id: _untagged(case, unsettled[case.case_id]) for case in cases if case.case_id in unsettled},
    )
    key = key_of(job_id, stages.TAGGING, cases_ref, rules)
    work_ref = await shelf.put(work, prompts.TaggingWork, key=key)
    return {
        "entries": entries_of(job_id, work_ref, work.cases),
        "stage": {"ruled_ref": await shelf.put(tagged, ASSIGNMENTS, key=key), "key": key},
    }


def _untagged(case: Case, tagged: Assignment) -> prompts.UntaggedCase:
    return prompts.UntaggedCase(
        case_id=case.case_id, title=case.title, steps=case.steps, expected=case.expected,
        preconditions=case.preconditions, candidates=tagged.candidates,
    )  # fmt: skip


@app.task(queue=Q_LLM, retry=LLM, timeout=HARD)
async def classify_case_module(job_id: str, payload_ref: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Ask for the module of one case."""
    work = await shelf.get(payload_ref["work"], prompts.TaggingWork)
    case = work.cases[payload_ref["name"]]
    shape, system = prompts.answer_shape(work.modules), prompts.system_of(work.modules)
    found = await ask(Question(shape, system, prompts.prompt_of(case), prompts.MAX_TOKENS), ctx)
    told = prompts.assignment_of(case.case_id, found.value)
    return {"assignment": told.model_dump(mode="json"), "usage": usage_of(found)}


@app.task(queue=Q_CPU, retry=CPU, timeout=CPU_TIME)
async def collect_module_results(
    job_id: str, stage: dict[str, Any], answers: list[dict[str, Any] | None], ctx: Context
) -> dict[str, Any]:
    """Join what rules and model said; a case without an answer is uncategorized."""
    ruled = await shelf.get(stage["ruled_ref"], ASSIGNMENTS)
    told = [Assignment.model_validate(answer["assignment"]) for answer in answers if answer is not None]
    by_model = {one.case_id: one for one in told}
    joined = [by_model.get(one.case_id, one) for one in ruled]
    result = StageResult(
        job_id=job_id, stage=stages.TAGGING,
        status="degraded" if None in answers else "ok",
        artifacts={"module_assignments_ref": await shelf.put(joined, ASSIGNMENTS, key=stage["key"])},
        metrics=_metrics(joined, answers),
        next_inputs={"usage": total_usage(one["usage"] for one in answers if one),
                     "reason": await why_missing(ctx, stages.TAGGING, answers)},
    )  # fmt: skip
    return result.model_dump(mode="json")


def _metrics(joined: Sequence[Assignment], answers: Sequence[Any]) -> dict[str, int | float]:
    by = Counter(one.by for one in joined)
    return {
        "cases": len(joined), "given": by[TaggedBy.GIVEN], "by_rule": by[TaggedBy.RULE], "by_model": by[TaggedBy.MODEL],
        "uncategorized": by[TaggedBy.NOBODY], "asked": len(answers), "missing": answers.count(None),
        "low_conf": sum(one.confidence < LOW for one in joined),
    }  # fmt: skip
