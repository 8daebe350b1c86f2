"""The report of a run: one JSON document, and the rows of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from headrace.bench.catalogue import CONTENDERS, WORKLOADS
from headrace.bench.figures import Spread
from headrace.bench.machine import describe_machine
from headrace.bench.results import Result, Results
from headrace.bench.run import Plan, Run, versions
from headrace.bench.targets import TARGETS
from headrace.bench.validity import Reference, objections


def make_report(plan: Plan, run: Run, *, server: Mapping[str, str], notes: list[str]) -> dict[str, Any]:
    """Return everything a run found out, ready for JSON."""
    reference = Reference()
    raw = Spread.of(list(run.results.values("drain", "raw-delete").values()))
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
        "contenders": {name: _about(name, plan) for name in plan.contenders},
        "workloads": {name: WORKLOADS[name].about for name in plan.workloads},
        "results": [{**result.to_json(), "ratios": _ratios(result, run.results)} for result in run.results],
        "targets": [target.to_json(run.results) for target in TARGETS if target.of[0] in plan.workloads],
    }


def _about(name: str, plan: Plan) -> str:
    return plan.contenders.get(name, CONTENDERS.get(name.partition("@")[0], plan.contenders[name])).about


#: What each contender's figure is divided by, where that was measured.
BASES = {"drain": ("raw-delete", "raw-ours"), "drain-deep": ("raw-delete", "raw-ours")}


def _ratios(result: Result, results: Results) -> dict[str, dict[str, float]]:
    found = {
        base: results.ratio((result.workload, result.contender, ""), (result.workload, base, ""))
        for base in BASES.get(result.workload, ())
        if base != result.contender
    }
    return {f"/ {base}": spread.to_json() for base, spread in found.items() if spread is not None}


def result_rows(report: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the columns and rows of the table of results, as text."""
    rows = []
    for result in report["results"]:
        figure = result["figures"].get(result["compared"])
        if figure is None:
            rows.append([result["workload"], result["contender"], _one_line(result["status"]), "", ""])
            continue
        ratios = ", ".join(f"{name} {value['median']:.2f}" for name, value in result["ratios"].items())
        rows.append(
            [result["workload"], result["contender"], f"{_number(figure['median'])} {result['unit']}",
             f"{_number(figure['min'])}–{_number(figure['max'])}", ", ".join(filter(None, [ratios, _extra(result)]))]
        )  # fmt: skip
    return ["workload", "contender", "median", "min–max", "ratios and processor time"], rows


def target_rows(report: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the columns and rows of the table of targets, as text."""
    words = {None: "not measured", True: "met", False: "not met"}
    rows = [
        [words[target["met"]], target["level"], target["name"], target["formula"], _range(target["value"])]
        for target in report["targets"]
    ]
    return ["", "level", "target", "formula", "measured (min–max)"], rows


def _range(value: Mapping[str, float] | None) -> str:
    if value is None:
        return ""
    return f"{_number(value['median'])} ({_number(value['min'])}–{_number(value['max'])})"


def _extra(result: Mapping[str, Any]) -> str:
    shown = {"server_us": "server", "worker_us": "worker", "client_us": "client"}
    times = [
        f"{word} {result['figures'][name]['median']:.0f}" for name, word in shown.items() if name in result["figures"]
    ]
    return f"{' + '.join(times)} µs a job" if times else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:120]
