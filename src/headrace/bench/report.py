"""The report of a run: one JSON document, and the rows of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from headrace.bench.catalogue import CONTENDERS, WORKLOADS, Figure
from headrace.bench.figures import Spread
from headrace.bench.machine import describe_machine
from headrace.bench.results import Result, Results
from headrace.bench.run import Plan, Run, versions
from headrace.bench.targets import TARGETS
from headrace.bench.validity import Reference, objections, speed_of_machine


def make_report(plan: Plan, run: Run, *, server: Mapping[str, str], notes: list[str]) -> dict[str, Any]:
    """Return everything a run found out, ready for JSON."""
    reference = Reference()
    raw = _raw_delete(run.results)
    reasons = [*notes, *objections(raw, run.quiet, reference)]
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "valid": not reasons,
        "invalid_because": reasons,
        "reference": reference.to_json(),
        "machine": describe_machine(),
        "versions": versions(plan.contenders),
        "server": dict(server),
        "quiet": [look.to_json() for look in run.quiet],
        "rounds": plan.rounds,
        "took_seconds": round(sum(answer.took for result in run.results for answer in result.answers.values()), 1),
        "contenders": {name: _about(name, plan) for name in plan.contenders},
        "workloads": {name: WORKLOADS[name].about for name in plan.workloads},
        "results": [{**result.to_json(), "ratios": _ratios(result, run.results)} for result in run.results],
        "targets": [target.to_json(run.results) for target in TARGETS if target.of[0] in plan.workloads],
    }


def _raw_delete(results: Results) -> Spread | None:
    """Return the speed of the delete-only loop: of its drains, or else beside our statements."""
    drains = results.values("drain", "raw-delete") or results.values("statements", "raw-ours", "delete")
    return Spread.of(list(drains.values()))


def _about(name: str, plan: Plan) -> str:
    return plan.contenders.get(name, CONTENDERS.get(name.partition("@")[0], plan.contenders[name])).about


#: What each contender's figure is divided by, where that was measured.
BASES = {
    "drain": ("raw-delete", "raw-ours", "pgqueuer"),
    "drain-deep": ("raw-delete", "raw-ours", "pgqueuer"),
    "enqueue": ("raw-insert",),
}
COLUMNS = ["workload", "contender", "median", "min–max", "ratios within a round, and processor time"]


def _ratios(result: Result, results: Results) -> dict[str, dict[str, Any]]:
    """Return by figure the ratio to each base."""
    found: dict[str, dict[str, Any]] = {}
    for figure in WORKLOADS[result.workload].figures:
        for base in BASES.get(result.workload, ()):
            to = (result.workload, base, figure.key)
            spread = results.ratio((result.workload, result.contender, figure.key), to)
            # Raw loops are what others are measured by: among themselves only the plainest is a base.
            if spread is not None and base != result.contender and not _is_floor(base, result.contender):
                found.setdefault(figure.key, {})[base] = spread.to_json()
    return found


def _is_floor(base: str, contender: str) -> bool:
    return contender.startswith("raw-") and base != "raw-delete"


def conditions(report: Mapping[str, Any]) -> list[str]:
    """Return lines that say on what was measured."""
    machine, versions, server = report["machine"], dict(report["versions"]), report["server"]
    ours = f"Headrace {versions.pop('headrace')} of {versions.pop('headrace_source')}"
    others = ", ".join(f"{name} {version}" for name, version in versions.items())
    looks = [f"{look['busy_cores']:.2f}" for look in report["quiet"]]
    return [
        f"{ours}; Python {machine['python']}; {others}",
        f"PostgreSQL {server.get('server_version', '?')}, fsync {server.get('fsync')}, synchronous_commit "
        f"{server.get('synchronous_commit')}, full_page_writes {server.get('full_page_writes')}",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['kernel']}",
        f"cores that other programs used before each round: {', '.join(looks)}",
        f"a fixed loop on this machine took {speed_of_machine([look['loop_ms'] for look in report['quiet']])}",
    ]


def result_rows(report: Mapping[str, Any]) -> list[list[str]]:
    """Return the rows of the table of results, as text; see `COLUMNS`."""
    order = {name: index for index, name in enumerate(report["workloads"])}
    rows = []
    for result in sorted(report["results"], key=lambda result: order[result["workload"]]):
        shown = [figure for figure in WORKLOADS[result["workload"]].figures if figure.key in result["figures"]]
        if result["status"] != "ok" or not shown:
            rows.append([result["workload"], result["contender"], _one_line(result["status"]), "", ""])
        rows += [_row(result, figure) for figure in shown]
    return rows


def _row(result: Mapping[str, Any], figure: Figure) -> list[str]:
    value = result["figures"][figure.key]
    ratios = result["ratios"].get(figure.key, {})
    words = [f"{ratio['median']:.2f} of {base}" for base, ratio in ratios.items()]
    if figure.key == "per_second":
        words.append(_processor_time(result))
    return [
        f"{result['workload']} {figure.name}".strip(),
        result["contender"],
        f"{_number(value['median'])} {figure.unit}",
        f"{_number(value['min'])}–{_number(value['max'])}",
        ", ".join(filter(None, words)),
    ]


TARGET_COLUMNS = ["", "level", "target", "formula", "measured (min–max)"]


def target_rows(report: Mapping[str, Any]) -> list[list[str]]:
    """Return the rows of the table of targets, as text; see `TARGET_COLUMNS`."""
    words = {None: "not measured", True: "met", False: "not met"}
    return [
        [words[target["met"]], target["level"], target["name"], target["formula"], _range(target["value"])]
        for target in report["targets"]
    ]


def _range(value: Mapping[str, float] | None) -> str:
    if value is None:
        return ""
    return f"{_number(value['median'])} ({_number(value['min'])}–{_number(value['max'])})"


def _processor_time(result: Mapping[str, Any]) -> str:
    shown = {"server_us": "server", "worker_us": "worker", "client_us": "client"}
    times = [
        f"{word} {result['figures'][name]['median']:.0f}" for name, word in shown.items() if name in result["figures"]
    ]
    return f"{' + '.join(times)} µs a job" if times else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _one_line(text: str) -> str:
    return " ".join(text.split())[-160:]
