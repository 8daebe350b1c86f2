"""Ids of clusters that stay the same from run to run.

An id is a hash of a cluster's *seed*, the signature that all its members are one with. A signature holds no time,
number, id or line, and members that share it do not count one by one, so it is found again on another day. The seeds of
the previous report come first: with it an id outlives the loss of the very cases that gave it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

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


class Previous:
    """The clusters of the previous report; None: there was none."""

    def __init__(self, clusters: Sequence[Cluster] | None) -> None:
        self._had_any = clusters is not None
        self._by_seed: dict[Signature, str] = {}
        for old in clusters or ():
            self._by_seed.setdefault(signature_of_cluster(old), old.cluster_id)
        self._merged = {name for old in clusters or () for name in old.merged}

    @property
    def seeds(self) -> Collection[Signature]:
        """The seeds of its clusters."""
        return self._by_seed.keys()

    def id_of(self, seed: Signature) -> str:
        """The id of the cluster with that seed, as the previous report has it."""
        return self._by_seed.get(seed) or id_of(seed)

    def has_seen(self, seed: Signature) -> bool | None:
        """Whether it had a cluster with that seed, be it merged into another; None: there was no report."""
        return (seed in self._by_seed or id_of(seed) in self._merged) if self._had_any else None
