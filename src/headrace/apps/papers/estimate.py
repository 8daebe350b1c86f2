"""What an extraction will take, and how that estimate is corrected by what was measured. Pure arithmetic.

Before anything was answered the lengths of answers are guessed from the template. Once 5 % of the documents are done,
each total is what they took, and for the rest what was planned for it times how far the plan was off so far.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

from headrace.apps.papers.result import TokenCount
from headrace.apps.papers.template import Template, TemplateField

#: From this share of the documents on, what was measured counts.
MEASURED_FROM = 0.05
#: Typical tokens of one field of an answer: its status, sentence numbers and note, and a value of that type.
_FRAME_TOKENS = 24
_VALUE_TOKENS = {"text": 14, "list": 26, "date": 7, "number": 4, "integer": 4, "boolean": 2, "enum": 5}
#: Rows of a group are guessed to be this many.
TYPICAL_ROWS = 3
#: Tokens of answers cost about so many times as much as those of prompts.
_OUTPUT_WEIGHT = 4


@dataclass(frozen=True, slots=True)
class DocumentPlan:
    """What one document will take, without what is remembered."""

    document_id: str
    calls: int
    #: Answers that were paid before.
    reused: int
    input_tokens: int
    output_tokens: int

    @property
    def weight(self) -> int:
        """Its part of money and time, in any unit."""
        return self.input_tokens + _OUTPUT_WEIGHT * self.output_tokens


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the documents of a run will take in all, those done since the estimate included."""

    documents: tuple[DocumentPlan, ...]
    calls: int
    reused: int
    input_tokens: int
    output_tokens: int
    #: 1e-9 US dollars; None: the price is not known.
    cost_nano: int | None = None
    #: None: nobody knows how fast the model answers.
    duration: timedelta | None = None
    #: The limit that decides the duration; None: not known, or nothing has to be asked.
    binding: str | None = None
    #: Ids of files that gave no text: nothing is asked about them.
    without_text: tuple[str, ...] = ()
    #: Documents that this run had extracted before.
    done_before: int = 0
    #: Documents whose measured figures count in it; 0: it is the plan.
    measured: int = 0

    @classmethod
    def of_plans(cls, plans: Sequence[DocumentPlan]) -> Estimate:
        """The sum of plans, with money and time unknown."""
        totals = {name: sum(getattr(plan, name) for plan in plans) for name in _COUNTS}
        return cls(tuple(plans), **totals)

    @property
    def unreadable(self) -> int:
        """How many files gave no text."""
        return len(self.without_text)

    @property
    def dollars(self) -> float | None:
        """The money in US dollars; None: not known."""
        return None if self.cost_nano is None else self.cost_nano / 1e9

    def encode(self) -> str:
        """All of it as JSON, to be read by `decode`."""
        plain = asdict(self) | {"duration": None if self.duration is None else self.duration.total_seconds()}
        return json.dumps(plain)

    @classmethod
    def decode(cls, text: str) -> Estimate:
        """The inverse of `encode`.

        >>> estimate = replace(Estimate.of_plans([DocumentPlan("a", 1, 0, 5, 2)]), duration=timedelta(seconds=2))
        >>> Estimate.decode(estimate.encode()) == estimate
        True
        """
        plain = json.loads(text)
        seconds = plain["duration"]
        plain["duration"] = None if seconds is None else timedelta(seconds=seconds)
        plain["documents"] = tuple(DocumentPlan(**plan) for plan in plain["documents"])
        plain["without_text"] = tuple(plain["without_text"])
        return cls(**plain)

    def to_json(self) -> dict[str, Any]:
        """The totals as a JSON-able mapping; what is not known is null."""
        return {
            "documents": len(self.documents),
            "done_before": self.done_before,
            "unreadable": self.unreadable,
            **{name: getattr(self, name) for name in _COUNTS},
            "usd": self.dollars,
            "seconds": None if self.duration is None else round(self.duration.total_seconds(), 1),
            "binding_limit": self.binding,
            "measured_documents": self.measured,
        }


_COUNTS = ("calls", "reused", "input_tokens", "output_tokens")


def project(estimate: Estimate, done: Mapping[str, TokenCount], elapsed: timedelta | None = None) -> Estimate:
    """The estimate corrected by the documents that are done, from 5 % of them on; before, the estimate itself.

    `done`: what each took, by document id; ids that were not planned are ignored. `elapsed`: how long that took.

    >>> plans = [DocumentPlan(str(at), 1, 0, 1000, 100) for at in range(20)]
    >>> better = project(Estimate.of_plans(plans), {"0": TokenCount(calls=1, input_tokens=800, output_tokens=150)})
    >>> better.input_tokens, better.output_tokens, better.measured
    (16000, 3000, 1)
    """
    known = [plan for plan in estimate.documents if plan.document_id in done]
    if not known or len(known) < MEASURED_FROM * len(estimate.documents):
        return estimate
    took = [done[plan.document_id] for plan in known]
    rest = [plan for plan in estimate.documents if plan.document_id not in done]

    def total(measured: Callable[[TokenCount], int], planned: Callable[[DocumentPlan], int]) -> int:
        so_far, foreseen = sum(map(measured, took)), sum(map(planned, known))
        left = sum(map(planned, rest))
        # Where nothing was foreseen for those that are done, they tell nothing of the others.
        return round(so_far + left * (so_far / foreseen if foreseen else 1))

    return replace(
        estimate,
        calls=total(lambda one: one.calls, lambda plan: plan.calls),
        reused=total(lambda one: one.reused, lambda plan: plan.reused),
        input_tokens=total(lambda one: one.input_tokens, lambda plan: plan.input_tokens),
        output_tokens=total(lambda one: one.output_tokens, lambda plan: plan.output_tokens),
        cost_nano=_money(estimate, took, total),
        duration=_time(estimate, known, rest, elapsed),
        measured=len(known),
    )


def corrected(estimate: Estimate, known: Sequence[tuple[DocumentPlan, TokenCount]], *, done: int) -> Estimate:
    """The estimate of what is left, corrected by documents that were extracted before it was made.

    `known`: the plan of each such document and what it took, none of it paid before. `done`: how many were extracted in
    all. Below 5 % of all documents the estimate stands.

    >>> left = Estimate.of_plans([DocumentPlan(str(at), 1, 0, 1000, 100) for at in range(19)])
    >>> known = [(DocumentPlan("x", 1, 0, 500, 100), TokenCount(calls=1, input_tokens=400, output_tokens=150))]
    >>> better = corrected(left, known, done=1)
    >>> better.input_tokens, better.output_tokens, better.measured
    (15200, 2850, 1)
    """
    if not known or done < MEASURED_FROM * (done + len(estimate.documents)):
        return estimate
    plans, took = [plan for plan, _ in known], [measured for _, measured in known]

    def scaled(measured: Callable[[TokenCount], int], planned: Callable[[DocumentPlan], int]) -> int:
        so_far, foreseen = sum(map(measured, took)), sum(map(planned, plans))
        return round(sum(map(planned, estimate.documents)) * (so_far / foreseen if foreseen else 1))

    inputs = scaled(lambda one: one.input_tokens, lambda plan: plan.input_tokens)
    outputs = scaled(lambda one: one.output_tokens, lambda plan: plan.output_tokens)
    money = estimate.cost_nano
    if not any(one.unpriced for one in took):
        money = scaled(lambda one: one.cost_nano, lambda plan: plan.weight)
    planned, duration = estimate.input_tokens + estimate.output_tokens, estimate.duration
    # Limits of tokens decide the time by how many there are; those of requests do not.
    if duration is not None and planned and "tokens per" in (estimate.binding or ""):
        duration *= (inputs + outputs) / planned
    return replace(
        estimate,
        calls=scaled(lambda one: one.calls, lambda plan: plan.calls),
        input_tokens=inputs,
        output_tokens=outputs,
        cost_nano=money,
        duration=duration,
        measured=done,
    )


def _money(estimate: Estimate, took: Sequence[TokenCount], total: Callable[..., int]) -> int | None:
    if any(one.unpriced for one in took):
        return None
    if not any(one.calls for one in took) and len(took) < len(estimate.documents):
        return estimate.cost_nano
    return total(lambda one: one.cost_nano, lambda plan: plan.weight)


def _time(
    estimate: Estimate, known: Sequence[DocumentPlan], rest: Sequence[DocumentPlan], elapsed: timedelta | None
) -> timedelta | None:
    weight = sum(plan.weight for plan in known)
    if elapsed is None or not weight:
        return estimate.duration
    return elapsed * (1 + sum(plan.weight for plan in rest) / weight)


def typical_answer_tokens(template: Template) -> int:
    """How long a capable model's answer to a template will be, in tokens, from the types of its fields.

    >>> from headrace.apps.papers.template import parse_template
    >>> fields = "[{name: n, type: integer, description: How many}]"
    >>> typical_answer_tokens(parse_template(f"name: t\\nversion: 1\\nfields: {fields}"))
    29
    """
    rows = sum(_tokens(group.fields) for group in template.rows)
    return _tokens(template.fields) + TYPICAL_ROWS * rows


def _tokens(fields: Sequence[TemplateField]) -> int:
    return sum(_FRAME_TOKENS + _VALUE_TOKENS[field.type] + 1 + len(field.name) // 4 for field in fields)
