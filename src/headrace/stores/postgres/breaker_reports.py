"""Circuit breakers on PostgreSQL: the rules of the model applied to rows, without holding one from here.

A row is read, judged and written only if nobody changed it meanwhile. Holding its lock between two statements would
let a worker that freezes there stop the admission of everything behind that breaker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.model.breaker import BreakerRecord, BreakerReport, BreakerRule, BreakerState, OnOpen, record_call
from headrace.stores.postgres.database import Database, Row, Transaction


async def report_calls(database: Database, reports: Sequence[BreakerReport]) -> None:
    """Do what `Admission.report_calls` promises. Each turn writes at least one breaker, ours or another caller's."""
    keys = sorted({report.key for report in reports})
    while keys:
        rows = await database.fetch("list_breakers", keys=keys)
        after = {row["key"]: _judge(row, reports) for row in rows}
        written = await database.fetch("move_breakers", **_values(rows, after)) if rows else []
        done = {row["key"] for row in written}
        keys = [row["key"] for row in rows if row["key"] not in done]


def _judge(row: Row, reports: Sequence[BreakerReport]) -> BreakerRecord:
    rule, record, now = breaker_rule(row), breaker_record(row), row["now"]
    for report in reports:
        if report.key == row["key"]:
            record = record_call(rule, record, report, now)
    return record


def _values(rows: Sequence[Row], after: Mapping[str, BreakerRecord]) -> dict[str, Any]:
    records = [after[row["key"]] for row in rows]
    probes = [record.probe or (None, None) for record in records]
    return {
        "keys": [row["key"] for row in rows],
        "versions": [row["version"] for row in rows],
        "states": [record.state for record in records],
        "failures": [record.failures for record in records],
        "calls": [record.calls for record in records],
        "errors": [record.errors for record in records],
        "window_ats": [record.window_at for record in records],
        "retry_ats": [record.retry_at for record in records],
        "probe_jobs": [job for job, _ in probes],
        "probe_attempts": [attempt for _, attempt in probes],
    }


async def declare_breakers(tx: Transaction, rules: Mapping[str, BreakerRule]) -> None:
    """Store rules; where their breakers stand is kept."""
    keys = sorted(rules)
    chosen = [rules[key] for key in keys]
    await tx.fetch(
        "declare_breakers",
        keys=keys,
        max_failures=[rule.failures for rule in chosen],
        error_rates=[rule.error_rate for rule in chosen],
        min_calls=[rule.min_calls for rule in chosen],
        spans=[rule.window for rule in chosen],
        cooldowns=[rule.cooldown for rule in chosen],
        on_opens=[rule.on_open for rule in chosen],
    )


def breaker_rule(row: Row) -> BreakerRule:
    """Return the rule of a breaker's row."""
    return BreakerRule(
        failures=row["max_failures"],
        error_rate=row["error_rate"],
        min_calls=row["min_calls"],
        window=row["span"],
        cooldown=row["cooldown"],
        on_open=OnOpen(row["on_open"]),
    )


def breaker_record(row: Row) -> BreakerRecord:
    """Return where the breaker of a row stands."""
    probe = None if row["probe_job"] is None else (row["probe_job"], row["probe_attempt"])
    return BreakerRecord(
        state=BreakerState(row["state"]),
        failures=row["failures"],
        calls=row["calls"],
        errors=row["errors"],
        window_at=row["window_at"],
        retry_at=row["retry_at"],
        probe=probe,
    )
