"""An app that serves details: for `headrace worker`, `serve` and `agent headrace.apps.details.worker:app`."""

from headrace import App
from headrace.apps.details.desk import register

app = App()
details = register(app)
