"""The labelled failures of `report_failures/`, and how well a grouping agrees with their labels."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from headrace.apps.report.data.cases import Case, Source, Status

FOLDER = Path(__file__).parent / "report_failures"


def labelled(half: str) -> tuple[list[Case], dict[str, str]]:
    """The cases of a file, and the cause of each by its id."""
    cases: list[Case] = []
    causes: dict[str, str] = {}
    cause = ""
    for part in re.split(r"\n@(?=[ea] )", (FOLDER / f"{half}.txt").read_text("utf-8")):
        told, _, following = ("\n" + part).partition("\n# ")
        if cause:
            head, _, text = told.strip("\n").partition("\n")
            cases.append(_case(f"{half}-{len(cases):03}", head, text.strip()))
            causes[cases[-1].case_id] = cause
        cause = following.strip() or cause
    return cases, causes


def _case(case_id: str, head: str, text: str) -> Case:
    module, severity, title = (word.strip() for word in head[1:].split("|", 2))
    field = "error" if head[0] == "e" else "actual"
    told = {"module": module, "severity": severity, "title": title, field: text}
    source = Source(sheet="labelled", row=int(case_id[-3:]) + 2)
    return Case(case_id=case_id, status=Status.FAILED, source=source, **told)


def adjusted_rand_index(labels: Sequence[str], groups: Sequence[str]) -> float:
    """1 for equal groupings, about 0 for one that was thrown by dice (Hubert and Arabie, 1985)."""
    both, first, second = (
        sum(math.comb(count, 2) for count in Counter(kinds).values())
        for kinds in (list(zip(labels, groups, strict=True)), labels, groups)
    )
    expected = first * second / math.comb(len(labels), 2)
    most = (first + second) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)


def homogeneity(labels: Sequence[str], groups: Sequence[str]) -> float:
    """1 where no group holds two labels: one minus H(label | group) / H(label) (Rosenberg and Hirschberg, 2007)."""
    total = len(labels)
    sizes = Counter(groups)
    whole = -sum(count / total * math.log(count / total) for count in Counter(labels).values())
    pairs = Counter(zip(labels, groups, strict=True)).items()
    left = -sum(count / total * math.log(count / sizes[group]) for (_, group), count in pairs)
    return 1.0 if whole == 0 else 1 - left / whole
