"""Workflows that functions write: the function is called once, when it is defined, and returns the parts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_type_hints

from headrace.canvas.building import build
from headrace.canvas.parts import GIVEN, NOTHING, Sub
from headrace.canvas.references import Reference, Source
from headrace.model.errors import InvalidInputError
from headrace.model.graph.bindings import marker_of
from headrace.model.graph.checks import check_graph
from headrace.model.graph.form import parse_graph
from headrace.model.graph.nodes import Container, Graph
from headrace.model.names import check_name

#: Fields of nodes that are templates.
_TEMPLATES = ("args", "kwargs", "value", "signal", "over", "start")
#: What `App.start` takes for itself: an argument of that name would never reach the workflow.
_TAKEN = ("key", "user_id", "correlation_id", "metadata", "webhook", "priority")
_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a workflow's function: a member of its input."""

    name: str
    #: `inspect.Parameter.empty` where nothing is written, as for `default`.
    annotation: Any
    default: Any


@dataclass(frozen=True, slots=True)
class Workflow:
    """A graph with a name, and what its input has to be."""

    name: str
    graph: Graph
    #: None: its input is any value.
    parameters: tuple[Parameter, ...] | None = None
    signature: inspect.Signature | None = None

    def input_of(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the input of a run for the arguments of the workflow's function, or, without one, the one value.

        Arguments that are left out have their defaults. Raises InvalidInputError for arguments that do not fit.
        """
        if self.signature is None:
            if kwargs or len(args) > 1:
                raise InvalidInputError(f"workflow {self.name}", "takes one value as its input", kwargs or args)
            return args[0] if args else None
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            rule = f"takes {self.signature}: {error}"
            raise InvalidInputError(f"workflow {self.name}", rule, kwargs or args) from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def input_of_json(self, given: Any) -> Any:
        """Return the input of a run for JSON: a function's arguments by name or in their order, or the one value.

        Raises InvalidInputError for arguments that do not fit.
        """
        if self.parameters is None:
            return given
        match given:
            case None:
                return self.input_of()
            case dict():
                return self.input_of(**given)
            case list():
                return self.input_of(*given)
            case _:
                return self.input_of(given)

    def input_of_report(self, report: Mapping[str, Any]) -> Any:
        """Return the input of a run that follows the failure of another.

        The members of the report where the function has arguments of their names, else the report as its one argument.
        Raises InvalidInputError where it has neither.
        """
        if self.signature is None:
            return report
        try:
            self.signature.bind(**report)
        except TypeError:
            return self.input_of(report)
        return self.input_of(**report)

    def s(self, *args: Any, **kwargs: Any) -> Sub:
        """Return the workflow as a part of another, one node: called so, or given what stands before it as it is.

        >>> from headrace.canvas import build, chain, signature
        >>> inner = workflow_of("inner", signature("parse").s())
        >>> build(chain(signature("fetch").s(), inner.s(), signature("store").s())).nodes[1].id
        'inner'
        """
        if any(_reads_run(body) for body in _bodies(self.graph)):
            rule = "cannot be part of another: a map, loop or part within it refers to its input; give it that as entry"
            raise InvalidInputError(f"workflow {self.name}", rule, self.name)
        start = self.input_of(*args, **kwargs) if args or kwargs else GIVEN
        return Sub(body=self.graph, start=start, title=self.name)


def workflow_of(
    name: str, canvas: Any, *, tags: Sequence[str] = (), on_failure: str | None = None, output: Any = GIVEN
) -> Workflow:
    """Return the workflow of parts, or of a graph or its JSON form; its input is any value. See `build`.

    >>> from headrace.canvas import chain, signature
    >>> workflow_of("digest", chain(signature("fetch").s(), signature("summarise").s())).graph.edges[0].source
    'fetch'
    """
    check_name("name", name)
    if isinstance(canvas, Mapping):
        canvas = parse_graph(canvas)
    if not isinstance(canvas, Graph):
        return Workflow(name, build(canvas, tags=tags, on_failure=on_failure, output=output))
    changed = replace(canvas, tags=tuple(tags) or canvas.tags, on_failure=on_failure or canvas.on_failure)
    return Workflow(name, check_graph(changed))


def input_of_any(name: str, *args: Any, **kwargs: Any) -> Any:
    """Return the input of a workflow that only the store knows: one value, or none. Raises InvalidInputError."""
    if kwargs or len(args) > 1:
        rule = "is not declared in this process, and so takes one value as its input; import the module that has it"
        raise InvalidInputError(f"workflow {name}", rule, kwargs or args)
    return args[0] if args else None


def define_workflow(
    function: Callable[..., Any], *, name: str | None = None, tags: Sequence[str] = (), on_failure: str | None = None,
    output: Any = GIVEN,
) -> Workflow:  # fmt: skip
    """Return the workflow that a function writes; it is called once, here, with references in place of arguments.

    A run's input has a member per argument. For the rest see `build`. Raises InvalidInputError.

    >>> from headrace.canvas import chain, signature
    >>> def review(url: str, words: int = 100):
    ...     return chain(signature("fetch").s(url), signature("summarise").s(words=words))
    >>> made = define_workflow(review)
    >>> made.graph.nodes[1].kwargs, made.input_of("https://example.org")
    ((('words', {'$input': ['words']}),), {'url': 'https://example.org', 'words': 100})
    """
    _check_function(function)
    title = check_name("name", name or function.__name__)
    shape = inspect.signature(function)
    hints = _hints(function)
    parameters = []
    for one in shape.parameters.values():
        if one.kind not in _KINDS:
            raise InvalidInputError(f"workflow {title}", "must name all its arguments: no *, ** or /", str(one))
        if one.name in _TAKEN:
            rule = f"must not have arguments named {', '.join(_TAKEN)}: app.start takes these for the run itself"
            raise InvalidInputError(f"workflow {title}", rule, one.name)
        parameters.append(Parameter(one.name, hints.get(one.name, one.annotation), one.default))
    canvas = function(**{one.name: Reference(Source.PARAMETER, one.name) for one in parameters})
    if canvas is None:
        raise InvalidInputError(f"workflow {title}", "must return its parts, such as chain(…) or task.s(…)", None)
    graph = build(canvas, tags=tags, on_failure=on_failure, output=output, start=NOTHING)
    return Workflow(title, graph, tuple(parameters), shape)


def _check_function(function: Any) -> None:
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if not inspect.isfunction(function) or any(kind(function) for kind in kinds):
        rule = "must be a plain function made by `def`: it is called once, to write the workflow, and waits for nothing"
        raise InvalidInputError("workflow", rule, function)


def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return get_type_hints(function)
    except Exception:  # a name that only type checkers know
        return {}


def _bodies(graph: Graph) -> list[Graph]:
    """Return the graphs within a graph, at any depth."""
    found = [graph]
    for one in found:  # which grows
        found += [node.body for node in one.nodes if isinstance(node, Container)]
    return found[1:]


def _reads_run(graph: Graph) -> bool:
    """Whether a template of the graph has the input of the run in it."""
    templates = [getattr(node, name, None) for node in graph.nodes for name in _TEMPLATES]
    todo = [graph.output, *templates]
    for one in todo:  # which grows
        if isinstance(one, dict):
            path = one.get("$run") if marker_of(one) == "$run" else None
            if path and path[0] == "input":
                return True
            todo.extend(one.values())
        elif isinstance(one, list | tuple):
            todo.extend(one)
    return False
