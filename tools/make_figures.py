"""Write the figures of README.md and of docs/explanation/capacity.md from the last published runs.

usage: python tools/make_figures.py [--check]     (--check writes nothing: exit code 1 when a table is out of date)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from headrace.bench.validity import speed_of_machine

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import capacity_figures  # noqa: E402 - the folder it lies in is not on the path of a script

README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results" / "all.json"
BEGIN = "<!-- Figures: written by `make reference` from benchmarks/results/all.json. -->\n"
END = "<!-- End of figures. -->\n"
WORKLOADS = ("drain", "drain-deep")
BASE = "raw-ours"


def with_figures(text: str, report: Mapping[str, Any]) -> str:
    """Return a text with what stands between the marks made anew. Raises ValueError where a mark is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("README.md has lost the marks around its figures")
    return f"{before}{BEGIN}\n{figures(report)}\n{END}{after}"


def figures(report: Mapping[str, Any]) -> str:
    """Return the table, on what it was measured, and which targets it misses; nothing of a run that is not valid.

    >>> figures({"valid": False, "invalid_because": ["a busy machine"]})
    'The last published run may not be quoted: a busy machine.\\n'
    """
    if not report["valid"]:
        return f"The last published run may not be quoted: {'; '.join(report['invalid_because'])}.\n"
    lines = [
        "| waiting jobs | | recorded done a second (min–max) | of our statements in a bare loop |",
        "|---|---|---|---|",
        *rows(report),
        "",
        f"{report['at'][:10]}, {report['rounds']} rounds in turns on one server; medians, ratios within a round. "
        f"PostgreSQL {report['server']['server_version']} with `fsync` and `synchronous_commit` "
        f"{report['server']['fsync']}, systems on Redis: Valkey with `appendfsync everysec`; "
        f"{report['machine']['cpu']}, {report['machine']['cores']} cores that client, worker and server share. "
        "A fixed loop took "
        f"{speed_of_machine([look['loop_ms'] for look in report['quiet']])}.",
        *missed(report),
    ]
    return "\n".join(lines) + "\n"


def rows(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield a row for each contender of each drain."""
    for workload in WORKLOADS:
        for result in report["results"]:
            rate = result["figures"].get("per_second")
            if result["workload"] == workload and rate is not None:
                ratio = result["ratios"].get("per_second", {}).get(BASE)
                share = f"{ratio['median']:.2f}" if ratio else ""
                span = f"{rate['median']:,.0f} ({rate['min']:,.0f}–{rate['max']:,.0f})"
                yield f"| {result['jobs']:,} | {result['contender']} | {span} | {share} |"


def missed(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the run was to reach and did not."""
    found = [target for target in report["targets"] if target["met"] is False]
    if found:
        told = "; ".join(f"{target['formula']} (measured {target['value']['median']:.2f})" for target in found)
        yield f"Not met of its targets: {told}."


def main() -> int:
    """Write the tables, or compare them; return the exit code."""
    report = json.loads(RESULTS.read_text(encoding="utf-8"))
    pages: dict[Path, Callable[[str], str]] = {
        README: partial(with_figures, report=report),
        capacity_figures.PAGE: capacity_figures.filled,
    }
    stale = 0
    for page, make in pages.items():
        text = page.read_text(encoding="utf-8")
        made = make(text)
        if made == text:
            continue
        if "--check" in sys.argv:
            print(f"the figures in {page.relative_to(ROOT)} are out of date; run `make reference`")
            stale = 1
        else:
            page.write_text(made, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())
