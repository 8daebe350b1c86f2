"""The canvas: workflows written in Python. It makes graphs, which run no matter who wrote them.

>>> fetch, parse, count, merge = map(signature, ["fetch", "parse", "count", "merge"])
>>> graph = build(chain(fetch.s("https://example.org"), group(parse.s(), count.s()), merge.s()))
>>> [node.id for node in graph.nodes]
['fetch', 'parse', 'count', 'merge']
"""

from headrace.canvas.building import build
from headrace.canvas.conditions import when
from headrace.canvas.making import (
    chain,
    choose,
    chord,
    group,
    loop,
    map_,
    pause,
    ref,
    signature,
    sub,
    wait_signal,
)
from headrace.canvas.parts import Canvas, Signature
from headrace.canvas.references import Reference, index_, input_, run_
from headrace.canvas.workflow import Workflow, define_workflow, workflow_of

__all__ = [
    "Canvas",
    "Reference",
    "Signature",
    "Workflow",
    "build",
    "chain",
    "choose",
    "chord",
    "define_workflow",
    "group",
    "index_",
    "input_",
    "loop",
    "map_",
    "pause",
    "ref",
    "run_",
    "signature",
    "sub",
    "wait_signal",
    "when",
    "workflow_of",
]
