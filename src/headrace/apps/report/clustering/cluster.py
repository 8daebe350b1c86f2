"""Failed cases become clusters: exact groups by signature, then families of signatures that are one failure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from headrace.apps.report.clustering.gathering import Family, gather
from headrace.apps.report.clustering.identity import Previous
from headrace.apps.report.clustering.naming import named
from headrace.apps.report.clustering.signature import Signature, signature_of
from headrace.apps.report.data.cases import Case
from headrace.apps.report.data.clusters import Cluster
from headrace.apps.report.data.defects import SEVERITIES, DefectFact


@dataclass(frozen=True, slots=True)
class Known:
    """What else is known of the cases."""

    #: Facts of their defects, by case id.
    facts: Mapping[str, DefectFact] = field(default_factory=dict)
    #: Modules that were assigned, by case id.
    modules: Mapping[str, str] = field(default_factory=dict)
    #: The clusters of the report before, whose ids are taken over; None: there was none.
    previous: Sequence[Cluster] | None = None

    def module_of(self, case: Case) -> str:
        """The module assigned to a case, else the one that its sheet gives; or empty."""
        return self.modules.get(case.case_id) or case.module

    def severity_of(self, case: Case) -> str:
        """The severity of a case's defect, else the one that its sheet gives; or "unknown"."""
        fact = self.facts.get(case.case_id)
        told = fact.severity if fact and fact.severity != "unknown" else case.severity
        return told if told in SEVERITIES else "unknown"


def cluster_cases(
    cases: Iterable[Case], known: Known | None = None, *, lang: Literal["en", "zh"] = "en"
) -> tuple[Cluster, ...]:
    """Return the clusters of the failed and blocked cases, the largest first, named by template.

    Each failing case is in exactly one cluster; others are left out. The order of `cases` makes no difference.
    """
    known = known or Known()
    groups: defaultdict[Signature, list[Case]] = defaultdict(list)
    for case in sorted((case for case in cases if case.fails), key=lambda case: case.case_id):
        groups[signature_of(case, known.facts.get(case.case_id))].append(case)
    previous = Previous(known.previous)
    families = gather(groups, previous.seeds)
    clusters = [_cluster_of(family, groups, known, previous) for family in families]
    return tuple(named(cluster, lang) for cluster in largest_first(clusters))


def largest_first(clusters: Iterable[Cluster]) -> list[Cluster]:
    """Clusters in the order of reports."""
    return sorted(clusters, key=lambda cluster: (-cluster.size, cluster.cluster_id))


def counted(cases: Iterable[Case], known: Known) -> tuple[dict[str, int], dict[str, int]]:
    """How many cases are of each module, the most first, and of each severity, the worst first."""
    cases = list(cases)
    modules = Counter(module for case in cases if (module := known.module_of(case)))
    severities = Counter(known.severity_of(case) for case in cases)
    ordered = dict(sorted(modules.items(), key=lambda entry: (-entry[1], entry[0])))
    return ordered, {severity: severities[severity] for severity in SEVERITIES if severities[severity]}


def _cluster_of(family: Family, groups: Mapping[Signature, list[Case]], known: Known, previous: Previous) -> Cluster:
    seed = family.seed
    # The commonest signature is the most typical; of equal ones the one nearest to the seed.
    typical = max(family.members, key=lambda signature: len(groups[signature]))
    members = sorted(
        (case for signature in family.members for case in groups[signature]), key=lambda case: case.case_id
    )
    modules, severities = counted(members, known)
    return Cluster(
        cluster_id=previous.id_of(seed),
        exception=seed.exception,
        message=seed.message,
        frame=seed.frame,
        case_ids=tuple(case.case_id for case in members),
        representative=groups[typical][0].case_id,
        modules=modules,
        severities=severities,
        seen_before=previous.has_seen(seed),
        name="",
    )
