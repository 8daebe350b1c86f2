"""From the options of a command to what a report is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace import InvalidInputError
from headrace.apps.report.job import ReportRequest
from headrace.apps.report.opening import app
from headrace.apps.report.output.json_file import read_previous
from headrace.apps.report.requests import check_gate
from headrace.apps.report.stats import Thresholds
from headrace.apps.report.tagging import load_rules


def request_of(given: Mapping[str, Any]) -> ReportRequest:
    """Return the request. Raises ConfigError, InvalidInputError naming the option, the rule and the value."""
    rules = given["rules"] or app.settings.report.rules
    previous = given["previous"]
    return ReportRequest(
        file_ref=given["cases"], sheets=tuple(given["sheets"]), lang=given["lang"], title=given["title"],
        rules=None if rules is None else load_rules(rules).model_dump(mode="json"),
        gate=gate_of(given["gate"]),
        previous=None if previous is None else read_previous(previous).model_dump(mode="json"),
    )  # fmt: skip


def gate_of(words: Sequence[str]) -> dict[str, Any]:
    """Return exit criteria that were given as NAME=VALUE. Raises InvalidInputError.

    >>> gate_of(["pass_rate_of_executed=98", "urgent=P0,P1"])
    {'pass_rate_of_executed': '98', 'urgent': ['P0', 'P1']}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or name not in Thresholds.model_fields:
            known = ", ".join(Thresholds.model_fields)
            raise InvalidInputError("--gate", f"must be NAME=VALUE, with a name of {known}", word)
        found[name] = value.split(",") if name in ("urgent", "most_urgent") else value
    return check_gate(found)
