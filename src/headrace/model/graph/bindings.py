"""Templates: JSON data in which small objects stand for values of the run, and what a node without any is given.

| in a template | stands for |
|---|---|
| `{"$node": ID, "path": […]}` | the output of a node of the same graph, or what lies at a path of it |
| `{"$input": […]}` | what lies at a path of what the graph was given; `[]` is all of it |
| `{"$index": true}` | which entry of a map, or round of a loop, the graph runs for, from 0 |
| `{"$run": […]}` | `id`, `workflow`, `user_id`, `correlation_id`, `metadata`, `input` of the run, or a path of one |
| `{"$first": […]}` | the first of several templates whose value is not null |
| `{"$text": […]}` | the values of several templates as one text: texts as they are, null as nothing, others as JSON |
| `{"$literal": …}` | the data within as it is, whatever it looks like |

What is not there is null. Objects that only resemble these are data as any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.model.graph.layout import Layout
from headrace.model.graph.lookup import MISSING, look_up
from headrace.model.graph.nodes import TaskNode

#: Keys that make an object stand for something else.
MARKERS = frozenset({"$node", "$input", "$index", "$run", "$first", "$text", "$literal"})

#: Those of them that are made of several templates.
OF_MANY = ("$first", "$text")


@dataclass(frozen=True, slots=True)
class Scope:
    """Where templates of one graph of a run take their values from."""

    #: What the graph was given.
    input: Any
    #: Which entry of a map, or round of a loop, the graph runs for.
    index: int | None
    #: id, workflow, user_id, correlation_id, metadata and input of the run.
    run: Mapping[str, Any]
    #: Outputs of nodes of the graph, by id; for `given`, of those alone that led to the node.
    outputs: Mapping[str, Any]


def marker_of(template: Mapping[str, Any]) -> str | None:
    """Return what an object of a template stands for, or None when it is data.

    >>> marker_of({"$input": ["url"]}), marker_of({"$ref": "#/$defs/url"})
    ('$input', None)
    """
    names = template.keys() & MARKERS
    if len(names) != 1:
        return None
    (name,) = names
    own = 2 if name == "$node" and "path" in template else 1
    return name if len(template) == own and _is_well_formed(name, template) else None


def _is_well_formed(name: str, template: Mapping[str, Any]) -> bool:
    match name:
        case "$node":
            return isinstance(template["$node"], str) and is_path(template.get("path", []))
        case "$input" | "$run":
            return is_path(template[name])
        case "$index":
            return template["$index"] is True
        case "$first" | "$text":
            return isinstance(template[name], list | tuple)
    return True


def is_path(value: object) -> bool:
    """Whether a value is a list of keys and indices."""
    return isinstance(value, list | tuple) and all(
        isinstance(step, str | int) and not isinstance(step, bool) for step in value
    )


def fill(template: Any, scope: Scope) -> Any:
    """Return a template with its values. Values are not copied.

    >>> fill({"page": {"$input": ["url"]}}, Scope({"url": "x"}, None, {}, {}))
    {'page': 'x'}
    """
    if isinstance(template, list | tuple):
        return [fill(part, scope) for part in template]
    if not isinstance(template, dict):
        return template
    name = marker_of(template)
    if name is None:
        return {key: fill(part, scope) for key, part in template.items()}
    return _value(name, template, scope)


def _value(name: str, template: Mapping[str, Any], scope: Scope) -> Any:
    match name:
        case "$literal":
            return template["$literal"]
        case "$index":
            return scope.index
        case "$first":
            return next((one for part in template["$first"] if (one := fill(part, scope)) is not None), None)
        case "$text":
            return "".join(_text(fill(part, scope)) for part in template["$text"])
        case "$node":
            found = look_up(scope.outputs, [template["$node"], *template.get("path", ())])
        case "$input":
            found = look_up(scope.input, template["$input"])
        case _:
            found = look_up(scope.run, template["$run"])
    return None if found is MISSING else found


def text_parts(template: Any) -> list[Any]:
    """Return the templates that a text is made of; of another template that alone.

    >>> text_parts({"$text": ["approve-", {"$text": [{"$index": True}, "x"]}]})
    ['approve-', {'$index': True}, 'x']
    """
    if isinstance(template, dict) and marker_of(template) == "$text":
        return [one for part in template["$text"] for one in text_parts(part)]
    return [template]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def references(template: Any) -> frozenset[str]:
    """Return the ids of the nodes whose outputs a template has.

    >>> sorted(references([{"$node": "a"}, {"b": {"$node": "b", "path": ["url"]}}]))
    ['a', 'b']
    """
    return frozenset(part["$node"] for part in _marked(template) if "$node" in part)


def marks_in(template: Any) -> frozenset[str]:
    """Return what a template has in it that stands for something else: "$input", "$run", …

    >>> sorted(marks_in([{"$run": ["id"]}, {"a": {"$first": [{"$input": []}]}}]))
    ['$input', '$run']
    """
    return frozenset(name for part in _marked(template) if (name := marker_of(part)) is not None)


def _marked(template: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a template that stand for something."""
    todo = [template]
    for part in todo:  # which grows
        todo.extend(_within(part))
        if isinstance(part, dict) and marker_of(part) not in (None, *OF_MANY):
            yield part


def _within(part: Any) -> Iterable[Any]:
    """Return the templates that a part of a template is made of."""
    if isinstance(part, list | tuple):
        return part
    if not isinstance(part, dict):
        return ()
    name = marker_of(part)
    if name is None:
        return part.values()
    many: Sequence[Any] = part[name] if name in OF_MANY else ()
    return many


def given(layout: Layout, name: str, scope: Scope) -> list[Any]:
    """Return the arguments of a node without any of its own.

    Of a node that nothing leads to: what the graph was given, and none when that is null. Else the output of its
    predecessor; of several, one list with all their outputs in the order of the edges. A predecessor that did not lead
    here, or has no output, stands as None.
    """
    sources: Sequence[str] = list(dict.fromkeys(edge.source for edge in layout.incoming[name]))
    if not sources:
        return [] if scope.input is None else [scope.input]
    outputs = [scope.outputs.get(source) for source in sources]
    return outputs if len(outputs) == 1 else [outputs]


def arguments(layout: Layout, node: TaskNode, scope: Scope) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments of a task's node; see `given` for one without any of its own."""
    if node.args is None and not node.kwargs:
        return given(layout, node.id, scope), {}
    return fill(list(node.args or ()), scope), {name: fill(part, scope) for name, part in node.kwargs}
