"""The app of flows: the tasks that their graphs call, and nothing else."""

from __future__ import annotations

from headrace import App
from headrace.apps.flows.compiling import NODE_TASK


def flows_app() -> App:
    """Return an app that knows the tasks of flows, and whose workers take part in runs of those that are stored."""
    from headrace.apps.flows import schedules, tasks

    app = App()
    tasks.register(app)
    schedules.register(app)
    app.works_runs = True
    return app


def runs_flows(app: App) -> bool:
    """Whether an app knows the tasks of flows."""
    return app.registry.get(NODE_TASK) is not None
