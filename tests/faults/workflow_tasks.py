"""The app of workers that work runs: the tasks of random graphs, slow enough to be killed in, and calls of a model."""

from __future__ import annotations

import os

from headrace import App
from headrace.model.graph.nodes import Graph, TaskNode
from tests.faults import llm_tasks
from tests.unit import graph_tasks

#: Time of each try of a task.
TRY_SECONDS = 0.1

app, _ = llm_tasks.make(graph_tasks.make(App(os.environ.get("HEADRACE_URL")), seconds=TRY_SECONDS))
# Workers take runs where their app has workflows; graphs are read from the store.
app.workflow("any", Graph((TaskNode("only", "mix"),)))
