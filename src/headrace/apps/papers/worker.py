"""An app that serves papers jobs: `headrace worker headrace.apps.papers.worker:app`."""

from headrace import App
from headrace.apps.papers.job import register

app = App()
papers_extract_single = register(app)
