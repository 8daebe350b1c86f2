"""Whether the values of a node keep to their rules."""

from __future__ import annotations

from datetime import timedelta

from headrace.model.errors import InvalidInputError
from headrace.model.graph.form_conditions import check_condition
from headrace.model.graph.nodes import LoopNode, MapNode, Node, NodeOptions, OnOpen, RetryRule, TaskNode, WaitNode
from headrace.model.names import check_name
from headrace.model.numbers import check_whole

MAX_ROUNDS, MAX_TRIES = 10_000, 100
STRATEGIES = ("fixed", "linear", "exponential_backoff")


def check_node(node: Node, field: str, incoming: int) -> None:
    """Raise InvalidInputError with the path of what is wrong with a node that so many edges lead to."""
    match node:
        case TaskNode():
            _check_task(node, field)
        case WaitNode():
            _check_wait(node, field)
        case MapNode() if node.max_failed is not None:
            check_whole(f"{field}.max_failed", node.max_failed, 0)
        case LoopNode():
            _check_loop(node, field)
    _check_options(node.options, field)
    if not isinstance(node, TaskNode):
        _check_is_no_task(node, field)
    _check_join(node, field, incoming)


def _check_task(node: TaskNode, field: str) -> None:
    check_name(f"{field}.task", node.task)
    for name, _ in node.kwargs:
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidInputError(f"{field}.kwargs", "must be named as parameters of Python functions are", name)


def _check_is_no_task(node: Node, field: str) -> None:
    """Refuse options that would do nothing: what is no task makes no call that could be tried again."""
    for name in ("retry", "timeout", "on_open"):
        value = getattr(node.options, name)
        if value is not None:
            rule = "goes with nodes that call a task; give it to those within"
            raise InvalidInputError(f"{field}.{name}", rule, value)


def _check_wait(node: WaitNode, field: str) -> None:
    if node.signal is None and node.timeout is None:
        raise InvalidInputError(f"{field}.signal", "must be given, or timeout: what to wait for", None)
    _check_above_zero(node.timeout, f"{field}.timeout")
    if node.options.timeout is not None:
        rule = "of the options must be left out: a wait has a timeout of its own"
        raise InvalidInputError(f"{field}.timeout", rule, node.options.timeout)


def _check_loop(node: LoopNode, field: str) -> None:
    if node.most is None:
        raise InvalidInputError(f"{field}.max_rounds", "must be given, a loop has to have an end", None)
    check_whole(f"{field}.max_rounds", node.most, most=MAX_ROUNDS)
    check_condition(node.again, f"{field}.while")


def _check_options(options: NodeOptions, field: str) -> None:
    if options.priority is not None:
        check_whole(f"{field}.priority", options.priority, 0, 9)
    check_whole(f"{field}.version", options.version)
    _check_above_zero(options.timeout, f"{field}.timeout")
    if options.estimate is not None and options.estimate < timedelta():
        raise InvalidInputError(f"{field}.estimate", "must not be negative", options.estimate)
    if options.retry is not None:
        _check_retry(options.retry, f"{field}.retry")
    if options.on_open not in (None, OnOpen.SKIP):
        rule = 'must be "skip"; whether jobs wait or fail behind it is for the breaker: Breaker(…, on_open="wait")'
        raise InvalidInputError(f"{field}.on_open", rule, str(options.on_open))


def _check_above_zero(value: timedelta | None, field: str) -> None:
    if value is not None and value <= timedelta():
        raise InvalidInputError(field, "must be more than 0", value)


def _check_retry(rule: RetryRule, field: str) -> None:
    if rule.strategy not in STRATEGIES:
        raise InvalidInputError(f"{field}.strategy", f"must be one of {', '.join(STRATEGIES)}", rule.strategy)
    check_whole(f"{field}.max_tries", rule.max_tries, most=MAX_TRIES)
    if rule.base < timedelta():
        raise InvalidInputError(f"{field}.base", "must not be negative", rule.base)
    if rule.cap < rule.base:
        raise InvalidInputError(f"{field}.cap", "must not be below base", rule.cap)


def _check_join(node: Node, field: str, incoming: int) -> None:
    join = node.options.join
    if join is None:
        return
    if not incoming:
        raise InvalidInputError(f"{field}.join", "must be left out: no edge leads to this node", join)
    check_whole(f"{field}.join", join, most=incoming)
