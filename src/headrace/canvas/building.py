"""From parts to the graph that runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headrace.canvas.drafts import Flow
from headrace.canvas.finishing import finish
from headrace.canvas.parts import GIVEN, Given, as_canvas
from headrace.canvas.placing import sketch
from headrace.model.errors import InvalidInputError
from headrace.model.graph.checks import check_graph
from headrace.model.graph.nodes import Graph


def build(
    canvas: Any, *, tags: Sequence[str] = (), on_failure: str | None = None, output: Any = GIVEN, start: Given = GIVEN
) -> Graph:
    """Return the checked graph of parts.

    Parts that are referred to and stand nowhere else are added. `output`: a template of the run's output, references
    in it; default: the output of the last part. `tags` influence how it is scheduled, such as "schedule:node_level".
    `on_failure`: the name of the workflow that is started when a run fails. `start`: with NOTHING, calls at the
    beginning have the arguments that are written and no others. Raises InvalidInputError.

    >>> from headrace.canvas import signature
    >>> fetch, parse, merge = map(signature, ["fetch", "parse", "merge"])
    >>> page = fetch.s("https://example.org")
    >>> graph = build(merge.si(page.output["head"], parse.si(page.output["body"]).output))
    >>> sorted((edge.source, edge.target) for edge in graph.edges)
    [('fetch', 'merge'), ('fetch', 'parse'), ('parse', 'merge')]
    """
    if isinstance(tags, str):
        raise InvalidInputError("tags", 'must be a list of texts, such as ["schedule:node_level"]', tags)
    made = finish(sketch(as_canvas(canvas), Flow(start)), output)
    return check_graph(replace(made, tags=tuple(tags), on_failure=on_failure))
