"""Stage 4: a fact for each failed or blocked row, one question each; the row itself where the model gave none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headrace import Context
from headrace.apps.report import shelf, stages
from headrace.apps.report.asking import Question, ask, usage_of
from headrace.apps.report.data.cases import Case
from headrace.apps.report.data.defects import DefectFact
from headrace.apps.report.data.document import Lang
from headrace.apps.report.data.kinds import CASES, FACTS
from headrace.apps.report.opening import CPU, CPU_TIME, HARD, IO, IO_TIME, LLM, Q_CPU, Q_IO, Q_LLM, app
from headrace.apps.report.prompts import defects as prompts
from headrace.apps.report.stages import StageResult
from headrace.apps.report.tasks.joints import entries_of, key_of, total_usage, why_missing

#: More rows than this are several chords, each of this many rows: of one module, or of several small ones.
MOST_IN_ONE, LEAST, MOST = 2_000, 200, 500


@app.task(queue=Q_CPU, retry=CPU, timeout=CPU_TIME)
async def prepare_fail_cases(job_id: str, cases_ref: dict[str, Any], lang: Lang) -> dict[str, Any]:
    """Return the chords: each with its rows on the shelf, and an entry for each of them."""
    failing = [case for case in await shelf.get(cases_ref, CASES) if case.fails]
    key = key_of(job_id, stages.DEFECTS, cases_ref, lang)
    made = []
    for rows in split(failing):
        work = prompts.DefectWork(lang=lang, cases={case.case_id: case for case in rows})
        work_ref = await shelf.put(work, prompts.DefectWork, key=key)
        made.append({"job_id": job_id, "work_ref": work_ref, "entries": entries_of(job_id, work_ref, work.cases)})
    return {"chords": made}


def split(failing: Sequence[Case]) -> Iterator[Sequence[Case]]:
    """Yield the rows of each chord; modules stay together as far as their size lets them."""
    if len(failing) <= MOST_IN_ONE:
        yield failing
        return
    modules = defaultdict(list)
    for case in failing:
        modules[case.module].append(case)
    made = list(_chords([modules[name] for name in sorted(modules)]))
    if len(made[-1]) < LEAST:
        # A chord of a few rows: they go with the one before, in halves where that would be too many.
        rows = [*made[-2], *made[-1]]
        half = len(rows) if len(rows) <= MOST else len(rows) // 2
        made[-2:] = [rows[:half], rows[half:]] if half < len(rows) else [rows]
    yield from made


def _chords(modules: Sequence[Sequence[Case]]) -> Iterator[Sequence[Case]]:
    """Yield chords of a good size, and what is left at last."""
    together: list[Case] = []
    for rows in modules:
        together += rows
        while len(together) >= MOST:
            # What would be left must be no chord of a few rows.
            size = MOST if len(together) >= MOST + LEAST else LEAST
            yield together[:size]
            together = together[size:]
        if len(together) >= LEAST:
            yield together
            together = []
    if together:
        yield together


@app.task(queue=Q_LLM, retry=LLM, timeout=HARD)
async def extract_defect_fact(job_id: str, payload_ref: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Ask for the fact behind one row; it is stored as it comes."""
    work = await shelf.get(payload_ref["work"], prompts.DefectWork)
    case = work.cases[payload_ref["name"]]
    system, prompt = prompts.system_of(work.lang), prompts.prompt_of(case)
    found = await ask(Question(prompts.FactAnswer, system, prompt, prompts.MAX_TOKENS), ctx)
    return {"fact": prompts.fact_of(case, found.value).model_dump(mode="json"), "usage": usage_of(found)}


@app.task(queue=Q_IO, retry=IO, timeout=IO_TIME)
async def collect_defect_facts(
    job_id: str, work_ref: dict[str, Any], answers: list[dict[str, Any] | None]
) -> dict[str, Any]:
    """Store what a chord gave, with the raw row where the model gave nothing."""
    work = await shelf.get(work_ref, prompts.DefectWork)
    told = [DefectFact.model_validate(answer["fact"]) for answer in answers if answer is not None]
    by_case = {fact.case_id: fact for fact in told}
    facts = [by_case.get(name) or prompts.fallback_of(case) for name, case in work.cases.items()]
    return {
        "facts_ref": await shelf.put(facts, FACTS, key=work_ref["key"]),
        "rows": len(facts), "missing": answers.count(None),
        "usage": total_usage(one["usage"] for one in answers if one),
    }  # fmt: skip


@app.task(queue=Q_CPU, retry=CPU, timeout=CPU_TIME)
async def finalize_defect_facts(job_id: str, chords: list[dict[str, Any]], ctx: Context) -> dict[str, Any]:
    """Join the chords, and say how many rows the model told of."""
    facts = [fact for chord in chords for fact in await shelf.get(chord["facts_ref"], FACTS)]
    missing = sum(chord["missing"] for chord in chords)
    result = StageResult(
        job_id=job_id, stage=stages.DEFECTS, status="degraded" if missing else "ok",
        artifacts={"defect_facts_ref": await shelf.put(facts, FACTS, key=key_of(job_id, stages.DEFECTS, chords))},
        metrics={"cases": len(facts), "missing": missing, "chords": len(chords), **_rates(len(facts), missing)},
        next_inputs={"usage": total_usage(chord["usage"] for chord in chords),
                     "reason": await why_missing(ctx, stages.DEFECTS, [None] if missing else [])},
    )  # fmt: skip
    return result.model_dump(mode="json")


def _rates(total: int, missing: int) -> Mapping[str, float]:
    failed = missing / total if total else 0.0
    return {"success_rate": round(1 - failed, 4), "failure_rate": round(failed, 4)}
