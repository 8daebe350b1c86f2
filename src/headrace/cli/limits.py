"""`headrace limits`: caps, rates, breakers and shares as they stand, and what operators change of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from headrace import limit_changes
from headrace.cli.opening import with_app
from headrace.cli.output import age, json_option, print_json, print_table, print_text
from headrace.cli.tables import Give
from headrace.cli.values import CommandOfNumbers, NameType, NumberType, WholeType
from headrace.limit_changes import KINDS, free_in, limits_document, read_limits
from headrace.model.admission import BreakerView, CapView, LimitsView, RateView, ShareView
from headrace.model.breaker import BreakerRecord, BreakerState, OnOpen
from headrace.model.durations import format_duration
from headrace.model.limits import Rate

#: Shares shown to people; --json has all.
MOST_SHARES = 50
_NAME = click.argument("name", metavar="NAME")
_force = click.option("--force", is_flag=True, show_default=False, help="Also a name that nothing uses yet.")
_FORCE = "; --force sets it all the same"
_FORGOTTEN = {"cap": "cap", "rate": "rate limit", "breaker": "breaker"}
_AWAY = "The server that counts rates does not answer: no job with a rate limit starts. `headrace doctor` says more."


@click.group()
def limits() -> None:
    """Caps, rate limits, breakers and shares; change them while workers run.

    What is set here holds for all workers at once and outlives them, until `reset` returns to what code and settings
    declare.
    """


@limits.command("list")
@click.option("--kind", type=click.Choice(KINDS), show_default=False, help="Only limits of this kind.")
@click.option("--all", "internal", is_flag=True, show_default=False, help="Also buckets that count calls of models.")
@json_option
def list_(kind: str | None, internal: bool, as_json: bool) -> None:
    """List limits: caps with what runs, rates with what is left, breakers, and weights of fair keys.

    \b
    Examples:
      headrace limits list
      headrace limits list --kind rates --json

    Models have quotas of their own: `headrace llm pools`.
    """
    view, now = with_app(lambda app: read_limits(app, internal=internal))
    if as_json:
        print_json({name: rows for name, rows in limits_document(view, now).items() if kind in (None, name)})
        return
    shown = [_print_kind(view, name, now) for name in KINDS if kind in (None, name)]
    if kind in (None, "rates") and any(rate.level is None for rate in view.rates):
        print_text(_AWAY)
    if not any(shown):
        print_text("Nothing is limited: no worker has declared a limit, and nobody set one.")


def _print_kind(view: LimitsView, kind: str, now: datetime) -> bool:
    """Write one table; return whether there was anything."""
    columns, rows = _TABLES[kind](view, now)
    shown = rows[:MOST_SHARES] if kind == "shares" else rows
    if shown:
        print_table(columns, shown, _GIVE)
        left = len(rows) - len(shown)
        print_text(f"and {left} more; --json has all\n" if left else "")
    return bool(shown)


_GIVE = Give(first=("OPENS AFTER", "JOBS", "FOR", "BURST", "FAILURES", "DECLARED", "SET"))
_Table = tuple[tuple[str, ...], list[tuple[object, ...]]]


def _caps(view: LimitsView, _: datetime) -> _Table:
    def row(cap: CapView) -> tuple[object, ...]:
        return cap.key, cap.running, "none" if cap.cap is None else cap.cap, _set(cap.declared), _set(cap.override)

    return ("CAP", "RUNNING", "OF", "DECLARED", "SET"), [row(cap) for cap in view.caps]


def _rates(view: LimitsView, now: datetime) -> _Table:
    def row(rate: RateView) -> tuple[object, ...]:
        burst = "" if rate.rate is None else f"{rate.rate.burst:g}"
        level = "unknown" if rate.level is None else f"{rate.level:.1f}"
        return (
            rate.name, _rate_text(rate.rate), burst, level, _free(rate, now),
            _rate_text(rate.declared), _rate_text(rate.override),
        )  # fmt: skip

    return ("RATE", "LIMIT", "BURST", "LEVEL", "ONE UNIT", "DECLARED", "SET"), [row(rate) for rate in view.rates]


def _free(view: RateView, now: datetime) -> str:
    free = free_in(view, now)
    if free is None:
        return "unknown"
    return f"in {age(free)}" if free else "now"


def _breakers(view: LimitsView, now: datetime) -> _Table:
    def row(one: BreakerView) -> tuple[object, ...]:
        record, rule = one.record, one.rule
        opens = f"{rule.failures} in a row" + (f", {rule.error_rate:.0%} of calls" if rule.error_rate else "")
        behind = "fail" if rule.on_open is OnOpen.FAIL else "wait"
        return (
            one.key, record.state, record.failures, _tries(record, now), opens, format_duration(rule.cooldown), behind,
        )  # fmt: skip

    columns = ("BREAKER", "STATE", "FAILURES", "TRIES AGAIN", "OPENS AFTER", "FOR", "JOBS")
    return columns, [row(one) for one in view.breakers]


def _tries(record: BreakerRecord, now: datetime) -> object:
    """Return when an open breaker lets its probe pass; nothing where none is awaited."""
    if record.state is not BreakerState.OPEN or record.retry_at is None:
        return ""
    return record.retry_at if record.retry_at > now else "now"


def _shares(view: LimitsView, _: datetime) -> _Table:
    def row(share: ShareView) -> tuple[object, ...]:
        return share.queue, share.fair_key, f"{share.weight:g}"

    return ("QUEUE", "FAIR KEY", "WEIGHT"), [row(share) for share in view.shares]


_TABLES: dict[str, Callable[[LimitsView, datetime], _Table]] = {
    "caps": _caps, "rates": _rates, "breakers": _breakers, "shares": _shares,
}  # fmt: skip


def _set(value: object) -> object:
    return "" if value is None else value


def _rate_text(rate: Rate | None) -> str:
    return "" if rate is None else rate.text


@limits.command("set-cap", cls=CommandOfNumbers)
@_NAME
@click.argument("cap", metavar="N", type=WholeType("cap", 0, 1_000_000))
@_force
@json_option
def set_cap(name: str, cap: int, force: bool, as_json: bool) -> None:
    """Let N jobs run at once under task:NAME, queue:NAME or key:QUEUE:KEY; 0 lets none start.

    KEY is a `concurrency_key`: N then holds in place of the `key_limit` of its jobs.

    \b
    Examples:
      headrace limits set-cap task:render 5
      headrace limits set-cap key:llm:user-7 0
    """

    only = with_app(lambda app: limit_changes.set_cap(app, name, cap, force=force, forcing=_FORCE))
    _say({"cap": name, "set": cap}, f"{name}: at most {cap} at once{only}", as_json=as_json)


@limits.command("set-rate", cls=CommandOfNumbers)
@_NAME
@click.argument("rate", metavar="RATE")
@click.option(
    "--burst", metavar="N", type=NumberType("burst"), show_default=False,
    help="Units at once after a pause.  [default: one second's worth, at least 1]",
)  # fmt: skip
@_force
@json_option
def set_rate(name: str, rate: str, burst: float | None, force: bool, as_json: bool) -> None:
    """Let RATE units pass a rate limit, such as 60/m (per s, m, h or d).

    NAME is that of a `Limit`, or task:NAME or queue:NAME.

    \b
    Example:
      headrace limits set-rate openai 60/m --burst 5
    """
    parsed = Rate.parse(rate, burst=burst)

    only = with_app(lambda app: limit_changes.set_rate(app, name, parsed, force=force, forcing=_FORCE))
    text = f"{name}: {parsed.text}, burst {parsed.burst:g}{only}"
    _say({"rate": name, "set": parsed}, text, as_json=as_json)


@limits.command("set-weight", cls=CommandOfNumbers)
@click.argument("queue", metavar="QUEUE", type=NameType())
@click.argument("fair_key", metavar="FAIR_KEY")
@click.argument("weight", metavar="WEIGHT", type=NumberType("weight"))
@_force
@json_option
def set_weight(queue: str, fair_key: str, weight: float, force: bool, as_json: bool) -> None:
    """Set the weight of a fair key in a queue: twice the weight is twice the share. It is 1 unless set.

    \b
    Example:
      headrace limits set-weight llm tenant-7 2
    """

    with_app(lambda app: limit_changes.set_weight(app, queue, fair_key, weight, force=force))
    document = {"queue": queue, "fair_key": fair_key, "weight": weight}
    _say(document, f"{fair_key} has weight {weight:g} in {queue}", as_json=as_json)


@limits.command("set-breaker")
@_NAME
@click.argument("state", type=click.Choice(["open", "closed"]))
@json_option
def set_breaker(name: str, state: str, as_json: bool) -> None:
    """Open a circuit breaker by hand, for its cooldown, or close it.

    \b
    Example:
      headrace limits set-breaker openai closed
    """

    with_app(lambda app: limit_changes.set_breaker(app, name, BreakerState(state)))
    _say({"breaker": name, "state": state}, f"breaker {name} is {state}", as_json=as_json)


@limits.command()
@_NAME
@json_option
def reset(name: str, as_json: bool) -> None:
    """Return to what is declared for a cap or rate limit of this name; a rate limit that is closed is opened.

    \b
    Example:
      headrace limits reset task:render
    """

    closing = f"`headrace limits set-breaker {name} closed`"
    declared = with_app(lambda app: limit_changes.reset(app, name, closing=closing))
    said = "; ".join(_reset_to(name, kind, value) for kind, value in declared.items())
    _say({"reset": name, "kinds": list(declared), "declared": declared}, f"{name}: {said}", as_json=as_json)


def _reset_to(name: str, kind: str, declared: int | Rate | None) -> str:
    """Return what holds after a reset."""
    what = _FORGOTTEN[kind]
    if name.startswith("key:"):
        return "the key_limit of each job"
    if declared is None:
        return f"no {what} any more, for none is declared"
    return f"{what} {declared.text if isinstance(declared, Rate) else declared}, as declared"


@limits.command()
@_NAME
@json_option
def forget(name: str, as_json: bool) -> None:
    """Remove the cap, rate limit and breaker of this name, with what was set for it.

    Jobs that wait behind it are no longer limited by it; those that run go on. A worker whose code or settings still
    declare it declares it again at its next start, and when it begins anew after a loss of its session.

    \b
    Example:
      headrace limits forget task:removed
    """
    kinds = with_app(lambda app: limit_changes.forget(app, name))
    said = " and ".join(_FORGOTTEN[kind] for kind in kinds)
    _say({"forgotten": name, "kinds": kinds}, f"{name}: {said} forgotten", as_json=as_json)


def _say(document: dict[str, Any], text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        print_text(text)
