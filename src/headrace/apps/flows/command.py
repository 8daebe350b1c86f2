"""`headrace flows`: JSON flows on the command line; see `commands` for each of them."""

from __future__ import annotations

import click

from headrace.apps.flows.commands.importing import import_
from headrace.apps.flows.commands.nodes import functions, nodes
from headrace.apps.flows.commands.run import run
from headrace.apps.flows.commands.show import show
from headrace.apps.flows.commands.stored import activate, deactivate, export, list_
from headrace.apps.flows.commands.validate import validate


@click.group()
def flows() -> None:
    """JSON flows: run, validate, import, export and draw workflows of nodes."""


for _command in (run, validate, import_, export, list_, show, activate, deactivate, nodes, functions):
    flows.add_command(_command)
