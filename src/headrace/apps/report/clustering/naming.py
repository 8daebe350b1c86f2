"""Names and summaries of clusters by template, for when the model is away. Figures are counted, never told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from headrace.apps.report.data.clusters import Cluster

#: So many cases are cited as evidence.
MOST_EVIDENCE = 5
#: A name is one line of a table.
MOST_NAME = 120

_TEXTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "unknown": "Failures without a text",
        "one": "One case fails so: {case}.",
        "many": "{size} cases fail in the same way: {what}{frame}.",
        "frame": ", in {frame}",
        "what": "the same message",
        "risk_one_module": "All are in module {module}.",
        "risk_modules": "{count} modules are affected, mostly {module} ({most} of {size}): a shared cause is likely.",
        "risk_severe": " {count} are critical.",
        "risk_none": "A single case; no sign of more.",
    },
    "zh": {
        "unknown": "没有文字说明的失败",
        "one": "仅有一个用例如此失败：{case}。",
        "many": "{size} 个用例以相同方式失败：{what}{frame}。",
        "frame": "，位于 {frame}",
        "what": "提示信息相同",
        "risk_one_module": "均属于模块 {module}。",
        "risk_modules": "影响 {count} 个模块，以 {module} 最多（{most}/{size}），很可能有共同原因。",
        "risk_severe": "其中 {count} 个为严重级别。",
        "risk_none": "单个用例，未见扩散迹象。",
    },
}


def named(cluster: Cluster, lang: Literal["en", "zh"] = "en") -> Cluster:
    """Return the cluster with name, commonality, risk and evidence by template.

    >>> found = Cluster(cluster_id="C-1", exception="IOError", message="no <q>", case_ids=("1", "2"),
    ...     representative="1", modules={"Import": 2}, name="")
    >>> named(found).name, named(found).commonality
    ('IOError: no <q> [Import]', '2 cases fail in the same way: IOError: no <q>.')
    """
    texts = _TEXTS[lang]
    return cluster.model_copy(
        update={
            "name": name_of(cluster, lang),
            "commonality": _commonality(cluster, texts),
            "systemic_risk": _risk(cluster, texts),
            "evidence": evidence_of(cluster),
            "named_by_model": False,
        }
    )


def name_of(cluster: Cluster, lang: Literal["en", "zh"] = "en") -> str:
    """`ExceptionType: masked message [module]`; the module with the most cases."""
    what = _what(cluster) or _TEXTS[lang]["unknown"]
    module = next(iter(cluster.modules), "")
    tail = f" [{module}]" if module else ""
    return _shortened(what, MOST_NAME - len(tail)) + tail


def evidence_of(cluster: Cluster) -> tuple[str, ...]:
    """The representative, and others up to five."""
    others = [case for case in cluster.case_ids if case != cluster.representative]
    return (cluster.representative, *others)[:MOST_EVIDENCE]


def _commonality(cluster: Cluster, texts: Mapping[str, str]) -> str:
    if cluster.size == 1:
        return texts["one"].format(case=cluster.representative)
    frame = texts["frame"].format(frame=cluster.frame) if cluster.frame else ""
    what = _shortened(_what(cluster), 200) or texts["what"]
    return texts["many"].format(size=cluster.size, what=what, frame=frame)


def _risk(cluster: Cluster, texts: Mapping[str, str]) -> str:
    critical = cluster.severities.get("critical", 0)
    severe = texts["risk_severe"].format(count=critical) if critical else ""
    if cluster.size == 1 or not cluster.modules:
        return texts["risk_none"] + severe if cluster.size == 1 else severe.strip()
    module, most = next(iter(cluster.modules.items()))
    key = "risk_one_module" if len(cluster.modules) == 1 else "risk_modules"
    return texts[key].format(module=module, count=len(cluster.modules), most=most, size=cluster.size) + severe


def _what(cluster: Cluster) -> str:
    return ": ".join(part for part in (cluster.exception, cluster.message) if part)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
