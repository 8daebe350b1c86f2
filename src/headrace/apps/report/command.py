"""`headrace report`: test reports on the command line; see `commands` for each of them."""

from __future__ import annotations

import click

from headrace.apps.report.commands.build import build
from headrace.apps.report.commands.resume import resume
from headrace.apps.report.commands.sample import sample
from headrace.apps.report.commands.status import status


@click.group()
def report() -> None:
    """Test reports from workbooks of test cases: figures by code, words by a model."""


for _command in (build, resume, status, sample):
    report.add_command(_command)
