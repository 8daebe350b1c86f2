"""Each case gets its module from the sheet or a rule; what neither settles is left to a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.apps.report.data.cases import Case
from headrace.apps.report.data.modules import Assignment, TaggedBy
from headrace.apps.report.tagging.evidence import Evidence, from_names, from_rules
from headrace.apps.report.tagging.learning import Learned
from headrace.apps.report.tagging.rules import DEFAULT_RULES, Rules
from headrace.apps.report.tagging.spelling import Spellings

MOST_CANDIDATES = 5


def tag_cases(cases: Sequence[Case], rules: Rules = DEFAULT_RULES) -> list[Assignment]:
    """Return the module of each case, in order.

    The sheet comes first. For the rest ids, titles, sheets and words are asked, those that rules name and those that
    cases with a given module teach. The surest evidence decides, unless it is below `settle`, or another module lies
    within `margin`: then the case is not settled, and `candidates` holds the modules in question.
    """
    spellings = Spellings(rules, (case.module for case in cases))
    given = [(case, module) for case in cases if (module := spellings.of(case.module))]
    learned = Learned(given, rules)
    return [_assigned(case, spellings, learned, rules) for case in cases]


def _assigned(case: Case, spellings: Spellings, learned: Learned, rules: Rules) -> Assignment:
    if module := spellings.of(case.module):
        return Assignment(
            case_id=case.case_id, module=module, confidence=1.0, by=TaggedBy.GIVEN, rule=f'module "{case.module}"'
        )
    evidence = [*from_rules(case, rules), *from_names(case, spellings, rules), *learned.of(case)]
    return _judged(case.case_id, _best_of_each(evidence), rules)


def _best_of_each(evidence: Iterable[Evidence]) -> list[Evidence]:
    """The surest evidence for each module, the likeliest first."""
    best: dict[str, Evidence] = {}
    for piece in evidence:
        if piece.module not in best or piece.confidence > best[piece.module].confidence:
            best[piece.module] = piece
    return sorted(best.values(), key=lambda piece: (-piece.confidence, piece.module))


def _judged(case_id: str, ranked: Sequence[Evidence], rules: Rules) -> Assignment:
    candidates = tuple(piece.module for piece in ranked[:MOST_CANDIDATES])
    if not ranked:
        return Assignment(case_id=case_id)
    first = ranked[0]
    second = ranked[1].confidence if len(ranked) > 1 else 0.0
    limits = rules.thresholds
    if first.confidence < limits.settle:
        return Assignment(case_id=case_id, rule=f"too weak: {first.rule}", candidates=candidates)
    if len(ranked) > 1 and first.confidence - second < limits.margin - 1e-9:
        return Assignment(case_id=case_id, rule=f"conflict: {first.rule}; {ranked[1].rule}", candidates=candidates)
    confidence = round(first.confidence, 4)
    return Assignment(
        case_id=case_id,
        module=first.module,
        confidence=confidence,
        by=TaggedBy.RULE,
        rule=first.rule,
        candidates=candidates,
    )
