"""Stage 5: group failures by what they say; the model may merge groups and name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import Context
from headrace.apps.report import shelf, stages
from headrace.apps.report.asking import Question, ask, usage_of
from headrace.apps.report.clustering.cluster import Known, cluster_cases
from headrace.apps.report.clustering.merging import apply_merges, cards
from headrace.apps.report.data.clusters import Cluster
from headrace.apps.report.data.document import Lang
from headrace.apps.report.data.kinds import CARDS, CASES, CLUSTERS
from headrace.apps.report.opening import CPU, CPU_TIME, HARD, LLM, Q_CPU, Q_LLM, app
from headrace.apps.report.prompts import clusters as prompts
from headrace.apps.report.stages import StageResult
from headrace.apps.report.stats import Previous
from headrace.apps.report.tasks.joints import entries_of, key_of, total_usage, why_missing


@app.task(queue=Q_CPU, retry=CPU, timeout=CPU_TIME, cpu=True)
async def cluster_defects(
    job_id: str, cases_ref: dict[str, Any], previous_ref: dict[str, Any] | None, lang: Lang
) -> dict[str, Any]:
    """Group the failing cases, and say which groups the model should look at."""
    cases = await shelf.get(cases_ref, CASES)
    before = None if previous_ref is None else _clusters_of(await shelf.get(previous_ref, Previous))
    found = cluster_cases(cases, Known(previous=before), lang=lang)
    key = key_of(job_id, stages.CLUSTERS, cases_ref, previous_ref, lang)
    shown = cards(found, cases, most=prompts.MOST_CARDS)
    return {
        "clusters_ref": await shelf.put(list(found), CLUSTERS, key=key),
        "cards_ref": await shelf.put(shown, CARDS, key=key), "key": key,
    }  # fmt: skip


def _clusters_of(previous: Previous) -> list[Cluster]:
    """Return the clusters of the report before, as far as they are compared."""
    return [
        Cluster(
            cluster_id=one.cluster_id, exception=one.exception, message=one.message, frame=one.frame, case_ids=(),
            representative="", merged=one.merged, name=one.name,
        )
        for one in previous.clusters
    ]  # fmt: skip


@app.task(queue=Q_LLM, retry=LLM, timeout=HARD)
async def merge_clusters(job_id: str, cards_ref: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Ask which of the largest clusters are one; of fewer than two nobody is asked."""
    shown = await shelf.get(cards_ref, CARDS)
    if len(shown) < 2:
        return {"groups": [], "usage": None}
    system, prompt = prompts.merge_system(), prompts.merge_prompt(shown)
    found = await ask(Question(prompts.MergeAnswer, system, prompt, prompts.MERGE_TOKENS), ctx)
    return {"groups": found.value.groups, "usage": usage_of(found)}


@app.task(queue=Q_CPU, retry=CPU, timeout=CPU_TIME)
async def prepare_summaries(
    job_id: str, cases_ref: dict[str, Any], grouped: dict[str, Any], merged: dict[str, Any] | None, lang: Lang
) -> dict[str, Any]:
    """Merge what the model found to be one, as far as that may stand, and return the clusters that it is to name."""
    cases = await shelf.get(cases_ref, CASES)
    clusters: Sequence[Cluster] = await shelf.get(grouped["clusters_ref"], CLUSTERS)
    groups = [] if merged is None else merged["groups"]
    joined = apply_merges(clusters, groups, cases, lang=lang)
    shown = {card["id"]: card for card in cards(joined.clusters, cases, most=prompts.MOST_CARDS)}
    asked = {one.cluster_id: one for one in joined.clusters if one.cluster_id in shown}
    work = prompts.SummaryWork(lang=lang, cards=shown, clusters=asked)
    work_ref = await shelf.put(work, prompts.SummaryWork, key=grouped["key"])
    return {
        "entries": entries_of(job_id, work_ref, shown),
        "stage": {
            "clusters_ref": await shelf.put(list(joined.clusters), CLUSTERS, key=grouped["key"]),
            "compared": merged is None or merged["usage"] is not None, "merge_missing": merged is None,
            "merges_ignored": joined.ignored, "named": list(shown),
            "usage": None if merged is None else merged["usage"],
        },
    }  # fmt: skip


@app.task(queue=Q_LLM, retry=LLM, timeout=HARD)
async def summarize_cluster(job_id: str, payload_ref: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Ask for the name of one cluster and what its cases have in common; one that rests on none of them is none."""
    work, name = await shelf.get(payload_ref["work"], prompts.SummaryWork), payload_ref["name"]
    card, cluster = work.cards[name], work.clusters[name]
    question = Question(
        prompts.SummaryAnswer, prompts.summary_system(work.lang), prompts.summary_prompt(card), prompts.SUMMARY_TOKENS,
        is_founded=lambda answer: prompts.is_founded(answer, cluster, card),
    )  # fmt: skip
    found = await ask(question, ctx)
    return {"summary": found.value.model_dump(mode="json"), "usage": usage_of(found)}


@app.task(queue=Q_CPU, retry=CPU, timeout=CPU_TIME)
async def finalize_cluster_summaries(
    job_id: str, stage: dict[str, Any], answers: list[dict[str, Any] | None], ctx: Context
) -> dict[str, Any]:
    """Join clusters and summaries; a cluster without one keeps its template's."""
    clusters: Sequence[Cluster] = await shelf.get(stage["clusters_ref"], CLUSTERS)
    told = dict(zip(stage["named"], answers, strict=True))
    ended = [_with_summary(cluster, told.get(cluster.cluster_id)) for cluster in clusters]
    missing = answers.count(None) + stage["merge_missing"]
    key = key_of(job_id, stages.CLUSTERS, stage, answers)
    result = StageResult(
        job_id=job_id, stage=stages.CLUSTERS, status="degraded" if missing else "ok",
        artifacts={"clusters_ref": await shelf.put(ended, CLUSTERS, key=key)},
        metrics={
            "clusters": len(ended), "asked": len(answers) + stage["compared"], "missing": missing,
            "named_by_model": sum(one.named_by_model for one in ended), "merges_ignored": stage["merges_ignored"],
        },
        next_inputs={
            "usage": total_usage([stage["usage"], *(one["usage"] for one in answers if one)]),
            "reason": await why_missing(ctx, stages.CLUSTERS, [*answers, None if stage["merge_missing"] else 1]),
        },
    )  # fmt: skip
    return result.model_dump(mode="json")


def _with_summary(cluster: Cluster, answer: dict[str, Any] | None) -> Cluster:
    if answer is None:
        return cluster
    return prompts.summarised(cluster, prompts.SummaryAnswer.model_validate(answer["summary"]))
