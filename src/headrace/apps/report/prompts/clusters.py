"""Asking which clusters are one, and what a cluster has in common."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from headrace.apps.report.data.base import Value
from headrace.apps.report.data.clusters import Cluster
from headrace.apps.report.data.document import Lang
from headrace.apps.report.prompts import DATA_RULE, LANGUAGE, clipped, fenced
from headrace.apps.report.prompts.grounds import Grounds

#: Clusters that one question compares, and clusters that are summarised: the largest.
MOST_CARDS = 30
MERGE_TOKENS, SUMMARY_TOKENS = 500, 400
_MERGE = (
    "You are shown cards of failure clusters of one test run. Name groups of cards that have the same root cause. "
    "If in doubt leave them apart: a false merge hides a defect. Cards that stand alone are left out. {rule}"
)
_SUMMARY = (
    "You name one cluster of failed test cases. `name`: at most 80 characters. `commonality`: what the cases have in "
    "common, in short. `systemic_risk`: what this may mean for the product. `evidence`: ids of cases "
    "from the card that show it. State no number that the card does not have, neither in digits nor in words. "
    "{rule} {language}"
)


class MergeAnswer(BaseModel):
    """Groups of cluster ids."""

    groups: list[list[str]] = Field(description="groups of two or more cluster ids with the same root cause")


class SummaryAnswer(BaseModel):
    """What a cluster has in common."""

    name: str = Field(min_length=1, max_length=120, description="name of the cluster")
    commonality: str = Field(min_length=1, max_length=600, description="what its cases have in common")
    systemic_risk: str = Field("", max_length=600, description="what it may mean for the product")
    evidence: list[str] = Field(max_length=10, description="ids of cases that show it")


class SummaryWork(Value):
    """The clusters that are summarised and their cards, by cluster id."""

    lang: Lang = "en"
    cards: dict[str, dict[str, Any]]
    clusters: dict[str, Cluster]


def merge_system() -> str:
    """Return what the question for merges begins with."""
    return _MERGE.format(rule=DATA_RULE)


def merge_prompt(cards: Sequence[dict[str, Any]]) -> str:
    """Return the question for merges."""
    lines = "\n".join(json.dumps(card, ensure_ascii=False, sort_keys=True) for card in cards)
    return f"{fenced(lines)}\nWhich cards have the same root cause?"


def summary_system(lang: Lang) -> str:
    """Return what questions for summaries begin with."""
    return _SUMMARY.format(rule=DATA_RULE, language=LANGUAGE[lang])


def summary_prompt(card: dict[str, Any]) -> str:
    """Return the question about one cluster."""
    return f"{fenced(json.dumps(card, ensure_ascii=False, sort_keys=True))}\nWhat do these failures have in common?"


def is_founded(answer: SummaryAnswer, cluster: Cluster, card: dict[str, Any]) -> bool:
    """Whether a summary may stand: it cites a case of its cluster, and has no number that its card lacks."""
    cites, ids = _evidence(answer, cluster), frozenset(cluster.case_ids)
    grounds = Grounds.of([card, {"module_count": len(cluster.modules)}], may_quote=True)
    texts = (answer.name, answer.commonality, answer.systemic_risk)
    return bool(cites) and all(grounds.allow(text, ids, cites) for text in texts)


def summarised(cluster: Cluster, answer: SummaryAnswer) -> Cluster:
    """Return a cluster with a summary that may stand."""
    told = {
        "name": clipped(answer.name.strip(), 120), "commonality": answer.commonality.strip(),
        "systemic_risk": answer.systemic_risk.strip(), "evidence": _evidence(answer, cluster), "named_by_model": True,
    }  # fmt: skip
    return cluster.model_copy(update=told)


def _evidence(answer: SummaryAnswer, cluster: Cluster) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for one in answer.evidence if one in cluster.case_ids))
