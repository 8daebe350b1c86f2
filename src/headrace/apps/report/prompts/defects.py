"""Asking for the fact behind a failed or blocked case; without an answer the row itself is the fact."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel, Field

from headrace.apps.report.data.base import Value
from headrace.apps.report.data.cases import Case
from headrace.apps.report.data.defects import SEVERITIES, DefectFact, Severity
from headrace.apps.report.data.document import Lang
from headrace.apps.report.prompts import DATA_RULE, LANGUAGE, clipped, fenced

MAX_TOKENS = 400
#: Characters of a raw snippet, and of one text of a row in a prompt.
SNIPPET, MOST_TEXT = 500, 2_000
#: A fact whose quote is not in its row is worth no more than this.
UNPROVEN = 0.3
_SYSTEM = (
    "You turn one failed or blocked test case into a defect fact. Use only what the case says. "
    "`quote` is a piece of the case, copied word for word, that shows the failure; at most 200 characters. "
    "`severity` says how bad it is for users: critical (crash, loss of data or money, security), major (a function "
    "does not work), minor (it works in part, or there is a way round), trivial (looks or wording). {rule} {language}"
)


class FactAnswer(BaseModel):
    """What the model says of a failure."""

    title: str = Field(min_length=1, max_length=200, description="what is wrong, in one line")
    severity: Severity = Field(description="how bad it is for users")
    component: str = Field("", max_length=100, description="part of the product that fails, or empty")
    expected: str = Field("", max_length=500, description="what should have happened")
    actual: str = Field("", max_length=500, description="what happened instead")
    quote: str = Field("", max_length=300, description="piece of the case that shows it, copied word for word")
    confidence: float = Field(ge=0, le=1, description="how sure, 0 to 1")


class DefectWork(Value):
    """The rows that are asked for, by case id."""

    lang: Lang = "en"
    cases: dict[str, Case]


def system_of(lang: Lang) -> str:
    """Return what all questions of a report begin with."""
    return _SYSTEM.format(rule=DATA_RULE, language=LANGUAGE[lang])


def row_text(case: Case) -> str:
    """Return a case as lines of what it says, for prompts, snippets and quotes."""
    told = {
        "title": case.title, "module": case.module, "status": case.status.value, "severity": case.severity,
        "preconditions": case.preconditions, "steps": case.steps, "expected": case.expected, "actual": case.actual,
        "error": case.error, "remark": case.remark, "environment": case.environment,
    }  # fmt: skip
    return "\n".join(f"{name}: {clipped(value, MOST_TEXT)}" for name, value in told.items() if value)


def prompt_of(case: Case) -> str:
    """Return the question about one case."""
    return f"{fenced(row_text(case))}\nWhat is the defect?"


def fact_of(case: Case, answer: FactAnswer) -> DefectFact:
    """Return the fact that an answer gives. A quote that the row does not have is dropped.

    The severity is the sheet's where that gives one, for a person wrote it; else the model's, if its quote proves that
    it read the row.
    """
    quote, row = located(answer.quote, row_text(case)), _of_row(case)
    severity = row["severity"] if row["severity"] != "unknown" or not quote else answer.severity
    return DefectFact(
        **row | {
            "title": answer.title.strip(), "severity": severity,
            "component": answer.component.strip() or case.module,
            "expected": answer.expected.strip() or case.expected, "actual": answer.actual.strip() or case.actual,
        },
        quote=quote, confidence=answer.confidence if quote else min(answer.confidence, UNPROVEN), by_model=True,
    )  # fmt: skip


def fallback_of(case: Case) -> DefectFact:
    """Return the fact that a row is by itself, for where the model gave none."""
    return DefectFact(**_of_row(case), llm_failed=True, snippet=row_text(case)[:SNIPPET])


def _of_row(case: Case) -> dict[str, Any]:
    first = next((line for line in (case.actual or case.error or case.remark).splitlines() if line.strip()), "")
    given = case.severity if case.severity in SEVERITIES else "unknown"
    return {
        "case_id": case.case_id, "title": case.title or first.strip()[:200] or case.case_id, "status": case.status,
        "severity": given, "component": case.module, "steps": case.steps, "expected": case.expected,
        "actual": case.actual or case.error, "environment": case.environment, "source": case.source,
    }  # fmt: skip


def located(quote: str, text: str) -> str:
    """Return the piece of a text that a quote is, spaces aside; empty where it is none.

    >>> located("page  not found", "error: page not\\nfound today")
    'page not\\nfound'
    """
    words = quote.split()
    if not words:
        return ""
    found = re.search(r"\s+".join(map(re.escape, words)), text, re.IGNORECASE)
    return found.group() if found else ""
