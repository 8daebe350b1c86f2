"""Ids of clusters that stay the same from run to run.

An id is a hash of a cluster's *seed*, the shortest of its signatures. A signature holds no time, number, id or line,
and members that share it do not count one by one, so it is found again on another day. With the clusters of the
previous report an id outlives the loss of the seed, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from headrace.apps.report.clustering.alike import are_one
from headrace.apps.report.clustering.signature import Signature
from headrace.apps.report.data.clusters import Cluster

#: Between the parts of what is hashed: no part holds it.
_BETWEEN = "\x1f"


def id_of(seed: Signature) -> str:
    """The id of the cluster with that seed.

    >>> id_of(Signature("TypeError", "<q> is no list", "cart.py:total"))
    'C-15f6d727d3a3'
    """
    text = _BETWEEN.join([seed.exception, " ".join(seed.tokens), seed.frame])
    return "C-" + hashlib.sha256(text.encode()).hexdigest()[:12]


def signature_of_cluster(cluster: Cluster) -> Signature:
    """The signature that a cluster keeps, which was its seed."""
    return Signature(cluster.exception, cluster.message, cluster.frame)


def with_old_ids(clusters: Sequence[Cluster], previous: Sequence[Cluster] | None) -> tuple[Cluster, ...]:
    """Give clusters that the previous report had their old ids, and set `seen_before`.

    A cluster was seen before if its id is an old one's or was merged into one, or else if it is one failure with the
    signature of an old one that nobody else takes. None: there was no report before.
    """
    if previous is None:
        return tuple(clusters)
    known = {old.cluster_id for old in previous} | {name for old in previous for name in old.merged}
    taken = {cluster.cluster_id for cluster in clusters} | {name for cluster in clusters for name in cluster.merged}
    free = [old for old in previous if old.cluster_id not in taken]
    done: list[Cluster] = []
    for cluster in clusters:
        if cluster.cluster_id in known:
            done.append(cluster.model_copy(update={"seen_before": True}))
        elif old := _first_alike(cluster, free):
            free.remove(old)
            done.append(cluster.model_copy(update={"cluster_id": old.cluster_id, "seen_before": True}))
        else:
            done.append(cluster.model_copy(update={"seen_before": False}))
    return tuple(done)


def _first_alike(cluster: Cluster, olds: Iterable[Cluster]) -> Cluster | None:
    mine = signature_of_cluster(cluster)
    return next((old for old in olds if are_one(mine, signature_of_cluster(old))), None)
