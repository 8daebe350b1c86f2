"""An app that works runs of flows and keeps their schedules: `headrace worker headrace.apps.flows.worker:app`."""

from headrace.apps.flows.opening import flows_app
from headrace.apps.flows.schedules import schedules_kept

app = flows_app()
app.lifespan = schedules_kept
