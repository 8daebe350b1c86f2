"""Calls of models, budgets and sums as scripts take and give them: numbers as text, days as numbers since 1970."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from uuid import UUID

from headrace.model.budget import Budget, BudgetView
from headrace.model.calls import CallState, CallView, NewCall, Origin, Purpose, Settlement
from headrace.model.quota import Estimate
from headrace.model.spend import SpendGroup, SpendRow
from headrace.model.usage import Usage
from headrace.stores.redis.rows import instant, parse_id, to_json

#: Between the names of scopes in one text: names are printable.
_SEPARATOR = "\x1f"
_EPOCH = date(1970, 1, 1).toordinal()
_ERROR = "error:"
#: Fields of a call's end, by the names of `Usage`.
_FIGURES = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cached_tokens",
    "answered": "calls",
    "cost": "cost_nano",
    "unpriced": "unpriced",
}


def day_number(day: date) -> int:
    """Return a day as its number since 1970.

    >>> day_number(date(1970, 1, 3))
    2
    """
    return day.toordinal() - _EPOCH


def encode_call(call: NewCall) -> str:
    """Return a call as the JSON of `open_calls.lua`: the fields that are recorded, and what it depends on."""
    asked: dict[str, object] = {"id": call.id.hex, "call": _call_fields(call)}
    if call.fresh:
        asked["fresh"] = True
    for name in ("most_in_flight", "most_per_day"):
        limit = getattr(call, name)
        if limit is not None:
            asked[name] = limit
    return to_json(asked)


def _call_fields(call: NewCall) -> dict[str, str]:
    origin, estimate = call.origin, call.estimate
    ids = {"job": origin.job_id, "batch": origin.batch_id, "run": origin.run_id}
    fields = {
        "state": (CallState.SENT if call.send else CallState.PREPARED).value,
        "key": call.key,
        "pool": call.pool,
        "provider": call.provider,
        "model": call.model,
        "purpose": call.purpose.value,
        "scopes": _SEPARATOR.join(call.scopes),
        "prompt": str(estimate.input_tokens),
        "most": str(estimate.max_tokens),
        **{name: value.hex for name, value in ids.items() if value is not None},
    }
    if origin.tenant is not None:
        fields["tenant"] = origin.tenant
    if estimate.cost_nano is not None:
        fields["nano"] = str(estimate.cost_nano)
    return fields


def encode_settlement(settlement: Settlement) -> str:
    """Return how a call ended as the JSON of `settle_calls.lua`; its answer goes beside it."""
    usage = settlement.usage
    counts = {name: getattr(usage, field) for name, field in _FIGURES.items()}
    request_id = settlement.request_id
    facts = {
        "state": settlement.state.value,
        "priced_by": settlement.priced_by,
        "error": settlement.error,
        # A provider may give characters that have no UTF-8.
        "request_id": "" if request_id is None else json.dumps(request_id),
    }
    said: dict[str, object] = {
        "id": settlement.call.id.hex,
        "call": _call_fields(settlement.call),
        "ending": {
            **{name: value for name, value in facts.items() if value},
            **{name: str(count) for name, count in counts.items() if count},
        },
    }
    said |= {name: True for name, on in (("replace", settlement.replace), ("used", usage != Usage())) if on}
    return to_json(said)


def call_view(call_id: str, row: Mapping[str, str]) -> CallView:
    """Return everything known of a call."""
    nano, request_id, ended_at = row.get("nano"), row.get("request_id"), row.get("ended_at")
    return CallView(
        id=parse_id(call_id),
        key=row["key"],
        state=CallState(row["state"]),
        pool=row["pool"],
        provider=row["provider"],
        model=row["model"],
        purpose=Purpose(row["purpose"]),
        origin=Origin(_id(row, "job"), _id(row, "batch"), _id(row, "run"), row.get("tenant")),
        estimate=Estimate(int(row["prompt"]), int(row["most"]), None if nano is None else int(nano)),
        usage=_usage(row),
        priced_by=row.get("priced_by", ""),
        error=row.get("error", ""),
        request_id=None if request_id is None else json.loads(request_id),
        opened_at=instant(row["opened_at"]),
        ended_at=None if ended_at is None else instant(ended_at),
    )


def _id(row: Mapping[str, str], name: str) -> UUID | None:
    text = row.get(name)
    return None if text is None else parse_id(text)


def _usage(row: Mapping[str, str]) -> Usage:
    return Usage(**{field: int(row.get(name, 0)) for name, field in _FIGURES.items()})


def budget_view(row: Sequence[str | int | None]) -> BudgetView:
    """Return a scope of (its name, 1 if a budget is set, its two limits, and five sums)."""
    scope, is_set, cost, tokens, *sums = row
    spent_nano, spent_tokens, unpriced, reserved_nano, reserved_tokens = (int(each or 0) for each in sums)
    limits = [None if limit is None else int(limit) for limit in (cost, tokens)]
    return BudgetView(
        scope=str(scope),
        budget=Budget(*limits) if is_set else None,
        cost_nano=spent_nano,
        tokens=spent_tokens,
        reserved_nano=reserved_nano,
        reserved_tokens=reserved_tokens,
        unpriced=unpriced,
    )


class SpendSums:
    """The sums of a report, gathered part by part; a part that comes twice counts once."""

    def __init__(self, by: SpendGroup) -> None:
        self._by = by
        self._sums: dict[tuple[str, str], Mapping[str, str]] = {}
        self._live: Counter[str] = Counter()

    def add_sum(self, day: str, scope: str, row: Mapping[str, str]) -> None:
        """Take what ended calls of a scope and day used."""
        self._sums[day, scope] = row

    def add_live(self, day_or_scope: str, calls: int) -> None:
        """Take calls in flight; by days they are told under the number of the day."""
        self._live[self._name(day_or_scope, day_or_scope)] += calls

    def rows(self) -> list[SpendRow]:
        """Return a row for each name: dearest first, orphaned calls with what they may have cost, then by name."""
        groups: dict[str, list[Mapping[str, str]]] = {name: [] for name in self._live}
        for (day, scope), row in self._sums.items():
            groups.setdefault(self._name(day, scope), []).append(row)
        rows = [_spend_row(name, sums, self._live[name]) for name, sums in groups.items()]
        return sorted(rows, key=lambda row: (-row.usage.cost_nano - row.orphaned_nano, row.name))

    def _name(self, day: str, scope: str) -> str:
        if self._by is SpendGroup.DAY:
            return date.fromordinal(_EPOCH + int(day)).isoformat()
        return scope.partition(":")[2]


def _spend_row(name: str, sums: Iterable[Mapping[str, str]], in_flight: int) -> SpendRow:
    total: Counter[str] = Counter()
    for row in sums:
        total.update({field: int(count) for field, count in row.items()})
    errors = {field.removeprefix(_ERROR): count for field, count in total.items() if field.startswith(_ERROR)}
    return SpendRow(
        name=name,
        usage=Usage(**{field: total[figure] for figure, field in _FIGURES.items()}),
        in_flight=in_flight,
        orphaned=total["orphaned"],
        orphaned_nano=total["lost_cost"],
        orphaned_unpriced=total["lost_unpriced"],
        errors={code: count for code, count in errors.items() if count > 0},
    )
