"""The parts that workflows are made of, as values: nothing runs by making one. `build` makes a graph of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from typing import Any, Generic, Self, TypeVar

from headrace.canvas.options import check_node_id, parse_options
from headrace.canvas.references import Reference, Source
from headrace.model.errors import InvalidInputError
from headrace.model.graph.conditions import Condition
from headrace.model.graph.nodes import ERROR_PORT, MAIN_PORT, Graph, OnError

_PORT = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Given(Enum):
    """What stands in place of a value."""

    #: what its predecessor gives, or, without one, what the graph was given
    GIVEN = "given"
    #: no value: calls have the arguments that are written
    NOTHING = "nothing"


GIVEN, NOTHING = Given.GIVEN, Given.NOTHING


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Canvas:
    """What a workflow is made of: one node, or several with their order."""

    #: The same for all copies that `options` makes of a part: a reference to one means the other.
    token: object = field(default_factory=object, repr=False)

    @property
    def output(self) -> Reference:
        """What the part will give: a reference, to stand in arguments of other parts."""
        return Reference(Source.OUTPUT, self)

    def __or__(self, behind: Any) -> Chain:
        return Chain(parts=(self, as_canvas(behind)))

    def __ror__(self, before: Any) -> Chain:
        return Chain(parts=(as_canvas(before), self))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Step(Canvas):
    """A part that is one node."""

    name: str | None = None
    #: By the names of `NodeOptions`, those that were given.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: What follows by other ports than the main one.
    branches: tuple[tuple[str, Canvas], ...] = ()

    def options(self, **options: Any) -> Self:
        """Return a copy with options of its node.

        `name`: its id in the graph, unique there; default: made from the task's name. `on_error`: "stop" (nothing
        behind it runs and the run fails in the end), "continue" (goes on with null) or "output" (goes on by the port
        "error"). `retry`: a Backoff, or a mapping of strategy, max_tries, base, cap, jitter, on. `timeout` and
        `estimate`: durations. `priority`: a class name or 0–9. `join`: how many of its predecessors must lead to it,
        "all", "any" or a number. `version`: raise it when the same arguments should give another output. `on_open`:
        "skip", which passes it over while a breaker of its task with on_open="fail" is open. Raises InvalidInputError
        naming a wrong one.

        >>> from headrace.canvas import build, signature
        >>> build(signature("parse").s("a.pdf").options(name="read", timeout="90s")).nodes[0].id
        'read'
        """
        settings = dict(options)
        name = check_node_id(settings.pop("name")) if "name" in settings else self.name
        return replace(self, name=name, settings={**self.settings, **parse_options(settings)})

    def on_failure(self, handler: Any) -> Self:
        """Return a copy behind which `handler` runs when it failed for good, given {"kind", "message"}.

        The run does not fail by it then; what stands behind the part itself is passed over.
        """
        failed: Self = self.port(ERROR_PORT) >> handler
        return failed

    def port(self, name: str) -> Port[Self]:
        """Return the output port of that name, to lead somewhere: `sort.s().port("spam") >> drop.s()`.

        A task leaves by a port with `Done(result, port="spam")`; what follows the part itself is passed over then.
        """
        if not isinstance(name, str) or not _PORT.fullmatch(name) or name == MAIN_PORT:
            rule = 'must match [A-Za-z0-9_-]{1,64} and not be "main", by which the next part follows'
            raise InvalidInputError("port", rule, name)
        return Port(self, name)


S = TypeVar("S", bound="Step")


@dataclass(frozen=True, slots=True)
class Port(Generic[S]):
    """An output port of a part; `>>` says what follows by it and returns the part."""

    step: S
    name: str

    def __rshift__(self, target: Any) -> S:
        settings = dict(self.step.settings)
        if self.name == ERROR_PORT and settings.setdefault("on_error", OnError.OUTPUT) is not OnError.OUTPUT:
            rule = 'must be "output" for a part that something follows by the port "error"'
            raise InvalidInputError("on_error", rule, str(settings["on_error"]))
        branches = (*self.step.branches, (self.name, as_canvas(target)))
        return replace(self.step, settings=settings, branches=branches)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Signature(Step):
    """A call of a task: its name and arguments. Its predecessor's output comes first, unless it is `immutable`."""

    task: str
    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()
    immutable: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Map(Step):
    """Runs its body for each entry of a list; see `map_`."""

    body: Canvas
    over: Any = GIVEN
    max_failed: int | None = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Loop(Step):
    """Runs its body again on its own output; see `loop`."""

    body: Canvas
    again: Condition
    most: int
    start: Any = GIVEN


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sub(Step):
    """Runs a whole workflow as one node; see `sub`."""

    body: Canvas | Graph
    start: Any = GIVEN
    title: str = "sub"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Wait(Step):
    """Waits for a signal, a time, or whichever comes first; see `wait_signal` and `pause`."""

    signal: Any = None
    timeout: timedelta | None = None

    def options(self, **options: Any) -> Self:
        """Return a copy with options of its node; see `Step.options`. Its time is not one of them."""
        if "timeout" in options:
            rule = 'is given where the wait is made: wait_signal(…, timeout="2h"), pause("10m")'
            raise InvalidInputError("timeout", rule, options["timeout"])
        return Step.options(self, **options)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Chain(Canvas):
    """Parts one after another; see `chain`."""

    parts: tuple[Canvas, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Group(Canvas):
    """Parts beside each other; see `group`."""

    members: tuple[Canvas, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Chord(Canvas):
    """Parts beside each other and what follows them; see `chord`."""

    header: Canvas
    callback: Canvas
    join: int | None = None
    on_error: OnError | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Choose(Canvas):
    """The first part whose condition holds; see `choose`."""

    cases: tuple[tuple[Condition, Canvas], ...]
    otherwise: Canvas | None = None


def as_canvas(value: Any) -> Canvas:
    """Return a part: as it is, a task as its call, a list as a group. Raises InvalidInputError."""
    if isinstance(value, Canvas):
        return value
    if isinstance(value, Graph):
        return Sub(body=value)
    if isinstance(value, list | tuple):
        if not value:
            raise InvalidInputError("group", "must have at least one part", value)
        return Group(members=tuple(as_canvas(one) for one in value))
    sign = None if isinstance(value, type | Reference) else getattr(value, "s", None)
    made = sign() if callable(sign) else None
    if isinstance(made, Canvas):
        return made
    raise InvalidInputError("part", "must be a task's call such as parse.s(), a part made of them, or a list", value)
