"""What every kind of node may have, as JSON; see `form`."""

from __future__ import annotations

from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.model.graph.members import Members, duration, list_of, priority, seconds, text, truth, whole, word_of
from headrace.model.graph.nodes import NodeOptions, OnError, OnOpen, RetryRule


def parse_options(form: Members, *, timeout: bool = True) -> NodeOptions:
    """Return the options of a node's form; without its timeout where that is the node's own."""
    return NodeOptions(
        on_error=form.get("on_error", word_of(OnError), OnError.STOP),
        join=form.get("join", _join, None),
        retry=form.get("retry", _retry, None),
        timeout=form.get("timeout", duration, None) if timeout else None,
        priority=form.get("priority", priority, None),
        version=form.get("version", whole, 1),
        estimate=form.get("estimate", duration, None),
        on_open=form.get("on_open", word_of(OnOpen), None),
    )


def _join(value: Any, field: str) -> int | None:
    if value in ("all", "any"):
        return None if value == "all" else 1
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise InvalidInputError(field, 'must be "all", "any" or how many edges have to lead here', value)


def _retry(value: Any, field: str) -> RetryRule:
    form, usual = Members(value, field), RetryRule()
    rule = RetryRule(
        strategy=form.get("strategy", text, usual.strategy),
        max_tries=form.get("max_tries", whole, usual.max_tries),
        base=form.get("base", duration, usual.base),
        cap=form.get("cap", duration, usual.cap),
        jitter=form.get("jitter", truth, usual.jitter),
        on=form.get("on", list_of(text), usual.on),
    )
    form.close()
    return rule


def options_form(options: NodeOptions) -> dict[str, Any]:
    """Return the JSON form of options, without those that are as usual."""
    form = {
        "on_error": None if options.on_error is OnError.STOP else str(options.on_error),
        "join": "any" if options.join == 1 else options.join,
        "retry": None if options.retry is None else _retry_form(options.retry),
        "timeout": None if options.timeout is None else seconds(options.timeout),
        "priority": options.priority,
        "version": None if options.version == 1 else options.version,
        "estimate": None if options.estimate is None else seconds(options.estimate),
        "on_open": None if options.on_open is None else str(options.on_open),
    }
    return {name: value for name, value in form.items() if value is not None}


def _retry_form(rule: RetryRule) -> dict[str, Any]:
    form, usual = _every_member(rule), _every_member(RetryRule())
    return {name: value for name, value in form.items() if value != usual[name]}


def _every_member(rule: RetryRule) -> dict[str, Any]:
    return {
        "strategy": rule.strategy,
        "max_tries": rule.max_tries,
        "base": seconds(rule.base),
        "cap": seconds(rule.cap),
        "jitter": rule.jitter,
        "on": list(rule.on),
    }
