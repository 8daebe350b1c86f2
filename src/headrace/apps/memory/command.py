"""`headrace memory`: memory of users on the command line; see `commands` for each of them.

`run` is added by the command line itself, which knows how workers run.
"""

from __future__ import annotations

import click

from headrace.apps.memory.commands.checkpoints import checkpoint, restore
from headrace.apps.memory.commands.figures import figures
from headrace.apps.memory.commands.flushing import check, flush, flushes, retry
from headrace.apps.memory.commands.inserting import insert, submit
from headrace.apps.memory.commands.profile import profile
from headrace.apps.memory.commands.reading import context, events, search
from headrace.apps.memory.commands.set_up import set_up
from headrace.apps.memory.commands.users import forget, user


@click.group()
def memory() -> None:
    """Memory of users: profiles and events, made of what they say."""


for _command in (
    set_up, insert, submit, flush, retry, check, profile, events, search, context, flushes, user, forget, figures,
    checkpoint, restore,
):  # fmt: skip
    memory.add_command(_command)
