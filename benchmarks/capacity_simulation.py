"""Carry measured costs to 10⁹ jobs a day: which layout needs how many servers, and what fills up first.

    python -m benchmarks.capacity_simulation [COSTS.json] [--json FILE]
    python -m benchmarks.capacity_simulation --jobs 1e8 --layout namespaces --servers 3 --outage 60

Without options it writes what docs/explanation/capacity.md shows: for each number of jobs a day and each layout the
fewest servers at which nothing is used to more than 60 % in the busiest minute, and how that day went, also with a
burst; what one server takes; what an outage does; and how far such predictions were from what was measured. It needs no
server and takes some seconds. Equal input gives equal output.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.capacity_check import check
from benchmarks.capacity_costs import JobCosts
from benchmarks.capacity_day import Day, Fleet, NamespaceDay, Outage, Server, Traffic, simulate, tenant_shares
from benchmarks.capacity_layouts import LAYOUTS, Layout, ceiling, ceilings, fewest, fit

RESULTS = Path(__file__).parent / "results"
MEASURED, SIMULATED = RESULTS / "capacity.json", RESULTS / "capacity_days.json"
DAYS = (1e6, 1e7, 1e8, 1e9)
CORES = (2, 8, 32)
#: Figures of servers, and the resource that each is of.
LIMITS = (
    *((f"{cores} cores", "processor", Server(cores=cores)) for cores in CORES),
    *((f"{fsyncs:,} flushes a second", "disk", Server(fsyncs=fsyncs)) for fsyncs in (500, 5_000, 20_000)),
    *((f"{wal_mb:,} MB/s for the log", "log", Server(wal_mb=wal_mb)) for wal_mb in (50, 200, 1_000)),
    *((f"{numbers / 1e6:,.0f} million numbers a day", "numbers", Server(numbers=numbers)) for numbers in (5e8, 2e9)),
)
#: How jobs come: one by one, as a service with many callers does, and as lists.
WAYS = {"one by one": ((1, 1.0),), "mixed": Traffic(1).calls, "lists": ((1_000, 1.0),)}


def main() -> None:
    """Simulate, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("costs", type=Path, nargs="?", default=MEASURED, help="what capacity.py wrote")
    parser.add_argument("--json", type=Path, help="write everything there")
    parser.add_argument("--jobs", type=float, help="one day of so many jobs, alone")
    parser.add_argument("--layout", choices=LAYOUTS, default="namespaces")
    parser.add_argument("--servers", type=int, default=1, help="with --jobs: how many (default: 1)")
    parser.add_argument("--cores", type=int, default=16, help="with --jobs: cores of each (default: 16)")
    parser.add_argument("--payload", type=float, default=300, help="with --jobs: bytes of arguments and result")
    parser.add_argument("--outage", type=int, default=0, help="with --jobs: minutes for which the first is down at ten")
    options = parser.parse_args()
    for name, least in (("jobs", 1), ("servers", 1), ("cores", 1), ("payload", 0), ("outage", 0)):
        value = getattr(options, name)
        if value is not None and not least <= value < 1e15:
            parser.error(f"--{name} must be at least {least}, got {value:g}")
    if not options.costs.is_file():
        parser.error(f"COSTS must be a file that capacity.py wrote, got {options.costs}")
    measured = json.loads(options.costs.read_text("utf-8"))
    if options.jobs is not None:
        print(json.dumps(one_day(JobCosts.of(measured), options), indent=1))
        return
    report = everything(measured)
    print(json.dumps(report, indent=1))
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


def one_day(costs: JobCosts, options: argparse.Namespace) -> dict[str, Any]:
    """Return the day that the command line describes."""
    layout, traffic = LAYOUTS[options.layout], Traffic(options.jobs, payload=options.payload)
    server = replace(layout.server, cores=options.cores) if layout.server.cores > 1 else layout.server
    fleet = fit(layout, costs, traffic, replace(layout, server=server).fleet(options.servers))
    if options.outage:
        fleet = replace(fleet, outage=Outage(0, 10 * 60, options.outage))
    return row(layout, traffic, fleet, simulate(layout.costs(costs), traffic, fleet))


def everything(measured: dict[str, Any]) -> dict[str, Any]:
    """Return all that the page shows."""
    costs = JobCosts.of(measured)
    return {
        "measured_at": measured["at"],
        "check": check(measured, costs),
        "limits": [limit_row(costs, *one) for one in LIMITS],
        "least": [least_row(costs, cores) for cores in CORES],
        "days": [one_row(costs, layout, jobs) for jobs in DAYS for layout in LAYOUTS.values()],
        "numbers": [numbers_row(costs, numbers, slots) for numbers in (5e8, 1e9, 2e9) for slots in (400, 2_000)],
        "outage": [outage_row(costs, minutes) for minutes in (5, 30)],
        "skew": [skew_row(skew) for skew in (0.0, 0.8, 1.0, 1.2)],
    }


def limit_row(costs: JobCosts, says: str, resource: str, server: Server) -> dict[str, Any]:
    """Return how many jobs a second one resource allows, by how they come."""
    allowed = {way: round(ceilings(costs, calls, server)[resource]) for way, calls in WAYS.items()}
    return {"says": says, "resource": resource, **allowed}


def least_row(costs: JobCosts, cores: int) -> dict[str, Any]:
    """Return how many jobs a second a server of so many cores takes, and what is used up first, by how they come."""
    return {"cores": cores, **{way: _least(costs, calls, Server(cores=cores)) for way, calls in WAYS.items()}}


def _least(costs: JobCosts, calls: tuple[tuple[int, float], ...], server: Server) -> list[Any]:
    rate, name = ceiling(costs, calls, server)
    return [round(rate), name]


def one_row(costs: JobCosts, layout: Layout, jobs: float) -> dict[str, Any]:
    """Return the fewest servers of a layout for a day of jobs, and that day."""
    traffic = Traffic(jobs)
    found = fewest(layout, costs, traffic)
    if found is None:
        return {"layout": layout.name, "jobs": jobs, "servers": None}
    fleet, smooth = found
    burst = simulate(layout.costs(costs), traffic, fleet)
    waits = {"burst_" + name: value for name, value in row(layout, traffic, fleet, burst).items() if "wait" in name}
    return {**row(layout, traffic, fleet, smooth), **waits}


def numbers_row(costs: JobCosts, numbers: float, slots: int) -> dict[str, Any]:
    """Return how many namespaces 10⁹ jobs need under a rule for transaction numbers, with workers of some slots."""
    layout = LAYOUTS["namespaces"]
    other = replace(layout, server=replace(layout.server, numbers=numbers), slots=slots)
    row = {"numbers": numbers, "slots": slots}
    found = fewest(other, costs, Traffic(1e9))
    if found is None:
        return {**row, "servers": None}
    fleet, day = found
    binds, share = binding(day)
    workers = fleet.workers * fleet.namespaces
    return {**row, "servers": fleet.namespaces, "workers": workers, "binds": binds, "used": round(share, 3)}


def binding(day: Day) -> tuple[str, float]:
    """Return what is used most, of what servers have, and its share."""
    worst = {name: share for name, share in day.worst().items() if name != "workers"}
    name = max(worst, key=lambda one: worst[one])
    return name, worst[name]


def outage_row(costs: JobCosts, minutes: int) -> dict[str, Any]:
    """Return what the outage of one of four servers does at the first peak of 10⁸ jobs, with workers for the peak."""
    layout, traffic = LAYOUTS["namespaces"], Traffic(1e8)
    fleet = replace(fit(layout, costs, traffic, layout.fleet(4)), outage=Outage(0, 10 * 60, minutes))
    day = simulate(costs, traffic, fleet)
    hit = day.namespaces[0]
    return {
        "minutes": minutes, "share_hit": round(hit.arrived / day.total("arrived"), 3),
        "waited_longest_minutes": hit.waits.at(1), "p99_minutes_of_all": day.waits().at(0.99),
        "most_waiting": round(hit.most_waiting),
    }  # fmt: skip


def skew_row(skew: float) -> dict[str, Any]:
    """Return how much busier the busiest of sixteen namespaces is than the mean."""
    return {"skew": skew, "busiest_of_16": round(max(tenant_shares(Traffic(1).tenants, skew, 16)) * 16, 2)}


def row(layout: Layout, traffic: Traffic, fleet: Fleet, day: Day) -> dict[str, Any]:
    """Return the figures of a day."""
    worst, waits = day.worst(), day.waits()
    binds, share = binding(day)
    busiest: NamespaceDay = max(day.namespaces, key=lambda one: one.arrived)
    return {
        "layout": layout.name, "jobs": traffic.jobs, "servers": fleet.namespaces, "cores": fleet.server.cores,
        "binds": binds, "used": round(share, 3), "worst": {name: round(value, 3) for name, value in worst.items()},
        "workers": fleet.workers * fleet.namespaces,
        "peak_cores": round(busiest.peak_load.server_us / 60e6, 2),
        "peak_wal_mb": round(busiest.peak_load.wal_bytes / 60e6, 1),
        "peak_commits": round(busiest.peak_load.commits / 60),
        "numbers_millions": round(busiest.used.commits / 1e6, 1),
        "disk_gb": round(busiest.disk_gb, 1), "memory_or_disk_gb_in_all": round(day.total("disk_gb")),
        "wait_p50": waits.at(0.5), "wait_p99": waits.at(0.99), "wait_most": waits.at(1),
        "left": round(day.total("waiting") + day.total("outside")),
    }  # fmt: skip


if __name__ == "__main__":
    main()
