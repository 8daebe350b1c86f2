"""`headrace memory set-up`: the tables of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headrace.apps.flows.commands.telling import json_option, tell, tell_json
from headrace.apps.memory.commands.opening import carry_out

if TYPE_CHECKING:
    from headrace.apps.memory.memory import Memory


@click.command("set-up")
@json_option
def set_up(as_json: bool) -> None:
    """Make what is missing of the tables, in the schema of [memory] schema. What is there stays.

    With [memory] source = "trigger" the buffer table tells of its changes by itself; with "debezium" Kafka does, and
    there is no trigger. `headrace memory run` and commands that write make the tables, too.

    \b
    Example:
      headrace memory set-up
    """

    async def work(memory: Memory) -> dict[str, str]:
        await memory.set_up()
        given = memory.app.settings.memory
        return {"schema": given.schema, "source": given.source}

    found = carry_out(work)
    if as_json:
        tell_json(found)
    else:
        tell(f"the tables of memory are in the schema {found['schema']}; changes come by {found['source']}")
