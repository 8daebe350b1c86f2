"""The tables of docs/explanation/capacity.md, made of benchmarks/results/capacity.json and capacity_days.json."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explanation" / "capacity.md"
RESULTS = ROOT / "benchmarks" / "results"
BEGIN = "<!-- Table {name}: written by `make reference` from benchmarks/results. -->\n"
END = "<!-- End of table. -->\n"
NAMED = re.compile(r"<!-- Table (\w+): ")
#: What binds, in words.
WORDS = {"numbers": "transaction numbers", "log": "log", "disk": "commits", "redis": "the core of Redis"}

Report = Mapping[str, Any]


def filled(text: str) -> str:
    """Return a page with all its tables made anew. Raises ValueError where a mark is missing."""
    measured, days = (
        json.loads((RESULTS / name).read_text("utf-8")) for name in ("capacity.json", "capacity_days.json")
    )
    if set(NAMED.findall(text)) != set(TABLES):
        raise ValueError(f"{PAGE.name} has lost the marks of a table")
    for name, make in TABLES.items():
        begin = BEGIN.format(name=name)
        before, found, rest = text.partition(begin)
        old, end, after = rest.partition(END)
        if not found or not end or "<!-- Table " in old:
            raise ValueError(f"{PAGE.name} has lost the marks of the table {name}")
        rows = "\n".join(make(measured, days))
        text = f"{before}{begin}\n{rows}\n\n{END}{after}"
    return text


def verbs(measured: Report, _days: Report) -> Iterator[str]:
    """Yield what a job costs by verb and size."""
    yield "| call | jobs in it | commits | log, bytes | dead rows | server, µs | caller, µs |"
    yield "|---|---|---|---|---|---|---|"
    for row in measured["verbs"]:
        payload = f", {row['payload']:,} bytes of arguments" if row["payload"] else ""
        server, client = (_span(row[name], row["spread"][name]) for name in ("server_us", "client_us"))
        counts = f"{row['commits']:.3g} | {row['wal_bytes']:,.0f} | {row['dead_rows']:.2g}"
        yield f"| {row['verb']}{payload} | {row['size']:,} | {counts} | {server} | {client} |"


def _span(middle: float, spread: list[float]) -> str:
    return (
        f"{middle:,.3g} ({spread[0]:,.3g}–{spread[1]:,.3g})"
        if spread[1] < 1000
        else f"{middle:,.0f} ({spread[0]:,.0f}–{spread[1]:,.0f})"
    )


def whole(measured: Report, _days: Report) -> Iterator[str]:
    """Yield what whole jobs cost."""
    yield "| whole jobs | commits | log, bytes | server, µs | worker, µs | jobs a second here |"
    yield "|---|---|---|---|---|---|"
    for name, arm in measured["whole"].items():
        if "worker_us" not in arm:
            continue
        cells = [f"{arm['commits'][0]:.3g}", f"{arm['wal_bytes'][0]:,.0f}"]
        for figure in ("server_us", "worker_us"):
            middle, least, most = arm[figure]
            cells.append(f"{middle:,.0f} ({least:,.0f}–{most:,.0f})")
        rate = f", {arm['rate'][0]:.0f} a second" if "rate" in arm else ""
        cells.append("{:,.0f} ({:,.0f}–{:,.0f})".format(*arm["per_second"]) if "per_second" in arm else "")
        yield f"| {name}{rate} | {' | '.join(cells)} |"


def storage(measured: Report, _days: Report) -> Iterator[str]:
    """Yield the bytes of a job on disk."""
    yield "| bytes of arguments | waiting: table | indexes | ended: table | indexes |"
    yield "|---|---|---|---|---|"
    for row in measured["storage"]:
        parts = ("waiting_heap", "waiting_indexes", "ended_heap", "ended_indexes")
        yield f"| {row['payload']:,} | " + " | ".join(f"{row[part]:,.0f}" for part in parts) + " |"


def machine(measured: Report, _days: Report) -> Iterator[str]:
    """Yield on what it was measured."""
    of, server = measured["machine"], measured["server"]
    busy = [look["load"] for look in measured["quiet"]]
    yield (
        f"{measured['at'][:10]}; PostgreSQL {server['server_version']} with `fsync`, `synchronous_commit` and "
        f"`full_page_writes` {server['fsync']}, other settings default; {of['cpu']}, {of['cores']} cores, virtual "
        f"disk, Python {of['python']}.\nOther programs used the machine too (load {min(busy):.0f} to {max(busy):.0f}): "
        "counts and bytes do not feel it, processor time\ndoes. Medians, least and most of "
        f"{measured['rounds']} rounds, {math.ceil(measured['rounds'] * 0.6)} of whole jobs."
    )


def limits(_measured: Report, days: Report) -> Iterator[str]:
    """Yield what each resource of a server allows, then what the least of them is."""
    ways = [name for name in days["least"][0] if name != "cores"]
    yield f"| what a server has | {' | '.join(f'{way}: jobs a second' for way in ways)} |"
    yield "|---" * (len(ways) + 1) + "|"
    for row in days["limits"]:
        yield f"| {row['says']} | " + " | ".join(f"{row[way]:,}" for way in ways) + " |"
    for row in days["least"]:
        cells = [f"**{row[way][0]:,}**: {WORDS.get(row[way][1], row[way][1])}" for way in ways]
        yield f"| **least, with {row['cores']} cores** | " + " | ".join(cells) + " |"


def fleets(_measured: Report, days: Report) -> Iterator[str]:
    """Yield the fewest servers by layout and jobs a day."""
    yield (
        "| jobs a day | layout | servers | fullest, and how full | busiest server at the peak: cores, log "
        "| its commits a day | its disk or memory | worker processes | with the burst: 99 of 100 wait, longest |"
    )
    yield "|---" * 9 + "|"
    for row in days["days"]:
        if row["layout"] == "namespaces" and row["servers"] == 1:
            continue  # that is one server
        jobs = f"10{'⁰¹²³⁴⁵⁶⁷⁸⁹'[len(str(int(row['jobs']))) - 1]}"
        if row["servers"] is None:
            yield f"| {jobs} | {row['layout']} | not enough | | | | | | |"
            continue
        waits = f"{_minutes(row['burst_wait_p99'])}, {_minutes(row['burst_wait_most'])}"
        binds = f"{WORDS.get(row['binds'], row['binds'])}, {row['used']:.0%}"
        peak = f"{row['peak_cores']:.2g}, {row['peak_wal_mb']:.2g} MB/s"
        cells = (row["layout"], row["servers"], binds, peak, f"{row['numbers_millions']:,.0f} million")
        yield f"| {jobs} | {' | '.join(map(str, cells))} | {row['disk_gb']:,.0f} GB | {row['workers']} | {waits} |"


def _minutes(minutes: int) -> str:
    return f"{minutes} min" if minutes else "under 1 min"


def check(_measured: Report, days: Report) -> Iterator[str]:
    """Yield predictions beside what was measured."""
    yield "| | predicted | measured | error |"
    yield "|---|---|---|---|"
    for row in days["check"]:
        yield f"| {row['what']} | {_figure(row['predicted'])} | {_figure(row['measured'])} | {row['error']:+.0%} |"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def outage(_measured: Report, days: Report) -> Iterator[str]:
    """Yield what an outage does."""
    yield "| one of four servers down for | its share of the jobs | they wait at most | of all jobs 99 of 100 wait |"
    yield "|---|---|---|---|"
    for row in days["outage"]:
        longest, all_ = _minutes(row["waited_longest_minutes"]), _minutes(row["p99_minutes_of_all"])
        yield f"| {row['minutes']} min | {row['share_hit']:.0%} | {longest} | {all_} |"


def numbers(_measured: Report, days: Report) -> Iterator[str]:
    """Yield how many servers another rule for transaction numbers needs."""
    yield "| transaction numbers a day | slots of a worker | servers | workers | fullest, and how full |"
    yield "|---|---|---|---|---|"
    for row in days["numbers"]:
        rule = f"{row['numbers'] / 1e6:,.0f} million | {row['slots']:,}"
        if row["servers"] is None:
            yield f"| {rule} | not enough | | |"
            continue
        binds = f"{WORDS.get(row['binds'], row['binds'])}, {row['used']:.0%}"
        yield f"| {rule} | {row['servers']} | {row['workers']} | {binds} |"


def skew(_measured: Report, days: Report) -> Iterator[str]:
    """Yield how unevenly tenants fall."""
    yield "| the tenant of rank k has of the first one's work | the busiest of 16 namespaces, of the mean |"
    yield "|---|---|"
    for row in days["skew"]:
        yield f"| 1/k^{row['skew']:g} | {row['busiest_of_16']:.2f} |"


TABLES: dict[str, Callable[[Report, Report], Iterator[str]]] = {
    "machine": machine, "verbs": verbs, "whole": whole, "storage": storage, "limits": limits, "fleets": fleets,
    "numbers": numbers, "skew": skew, "outage": outage, "check": check,
}  # fmt: skip
