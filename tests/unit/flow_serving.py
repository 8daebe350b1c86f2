"""An app of flows on a store in memory, with its triggers, and flows stored in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headrace import App
from headrace.apps.flows import schedules, tasks
from headrace.apps.flows.checks import check_flow
from headrace.apps.flows.form import parse_flow
from headrace.apps.flows.storing import graph_of, store_flow
from headrace.flow_settings import CredentialSettings, FlowSettings
from headrace.settings import Settings

CREDENTIALS = {
    "Token": CredentialSettings("header", name="X-Token", secret="s3cret-token"),
    "Ann": CredentialSettings("basic", user="ann", secret="open sesame"),
}


def flows_app() -> App:
    """Return an app that works flows on a store in memory."""
    flows = FlowSettings(credentials=CREDENTIALS, vars={"greeting": "Hello"})
    app = App("memory://", settings=replace(Settings(), flows=flows))
    tasks.register(app)
    schedules.register(app)
    app.works_runs = True
    return app


async def put(app: App, document: dict[str, Any], alarm: dict[str, Any] | None = None) -> str:
    """Store a flow and return the name of its workflow."""
    checked = check_flow(parse_flow(document))
    assert checked.runs, [str(problem) for problem in checked.problems]
    follows = None if alarm is None else parse_flow(alarm)
    return (await store_flow(app, graph_of(checked, alarm=follows))).name
