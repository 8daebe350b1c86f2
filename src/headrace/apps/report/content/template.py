"""The text of a report without a model: what the figures say, sentence by sentence, with the ids it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.apps.report.content.found import Found
from headrace.apps.report.content.wording import WORDS, Words
from headrace.apps.report.data.cases import Case, Status
from headrace.apps.report.data.content import Content, Sentence
from headrace.apps.report.data.document import Lang

#: Clusters and modules that are told of, and ids that a sentence cites.
MOST_CLUSTERS, MOST_MODULES, MOST_CITES = 5, 20, 5


def template_content(found: Found, lang: Lang) -> Content:
    """Return the text. Sentences about all cases cite a few of them."""
    words = WORDS[lang]
    return Content(
        objective_and_scope=tuple(_scope(found, words)),
        conclusions=tuple(_conclusions(found, words)),
        risks=tuple(_risks(found, words)),
        modules=dict(_modules(found, words)),
    )


def _scope(found: Found, words: Words) -> Iterator[Sentence]:
    modules = len(found.stats.modules)
    text = words.scope.format(cases=found.stats.total, modules=modules)
    yield Sentence(text=text, cites=_ids(found.cases))


def _conclusions(found: Found, words: Words) -> Iterator[Sentence]:
    stats = found.stats
    counts = {status.value: stats.by_status.get(status.value, 0) for status in Status}
    failing = [case for case in found.cases if case.fails]
    rate = stats.rates.pass_rate_of_executed.percent
    shown = words.unknown if rate is None else f"{rate:g} %"
    yield Sentence(text=words.counts.format(rate=shown, **counts), cites=_ids(failing or found.cases))
    for cluster in found.clusters[:MOST_CLUSTERS]:
        text = words.cluster.format(name=cluster.name, size=cluster.size)
        yield Sentence(text=text, cites=(cluster.cluster_id, *cluster.evidence[:MOST_CITES]))


def _risks(found: Found, words: Words) -> Iterator[Sentence]:
    for status, text in (
        (Status.BLOCKED, words.blocked),
        (Status.SKIPPED, words.skipped),
        (Status.UNKNOWN, words.unclear),
    ):
        cases = [case for case in found.cases if case.status is status]
        if cases:
            yield Sentence(text=text.format(count=len(cases)), cites=_ids(cases))
    urgent = [case for case in found.cases if case.fails and case.priority in ("P0", "P1")]
    if urgent:
        yield Sentence(text=words.urgent.format(count=len(urgent)), cites=_ids(urgent))


def _modules(found: Found, words: Words) -> Iterator[tuple[str, tuple[Sentence, ...]]]:
    where = {one.case_id: one.module for one in found.assignments}
    failing: dict[str, list[Case]] = {}
    for case in found.cases:
        if case.fails:
            failing.setdefault(where.get(case.case_id, ""), []).append(case)
    for split in [one for one in found.stats.modules if failing.get(one.name)][:MOST_MODULES]:
        cases = failing[split.name]
        text = words.module.format(module=split.name, failing=len(cases), total=split.total)
        yield split.name, (Sentence(text=text, cites=_ids(cases)),)


def _ids(cases: Sequence[Case]) -> tuple[str, ...]:
    return tuple(case.case_id for case in cases[:MOST_CITES])
