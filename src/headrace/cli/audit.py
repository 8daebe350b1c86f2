"""`headrace audit`: who did what, and when."""

from __future__ import annotations

import json

import click

from headrace.cli.opening import with_stores
from headrace.cli.output import json_option, print_json, print_table, print_text
from headrace.cli.tables import Give
from headrace.cli.values import WholeType
from headrace.engine.audit import action_document
from headrace.model.audit import Action

_COLUMNS = ("AT", "WHO", "OPERATION", "SUBJECT", "STATUS", "DETAIL", "VIA", "ADDRESS")
_GIVE = Give(first=("ADDRESS", "VIA", "DETAIL"))


@click.group()
def audit() -> None:
    """Who did what to jobs, queues and limits, through the HTTP service and by commands.

    `[service] audit` says which actions are noted, `[recovery] keep_audit` how long they are kept.
    """


@audit.command("list")
@click.option("--who", metavar="NAME", show_default=False, help="Only of this token, or such as local or cli:ann@desk.")
@click.option("--operation", metavar="OP", show_default=False, help="Only of this operation, such as cancel_job.")
@click.option("--limit", metavar="N", type=WholeType("limit", 1, 10_000), default=50, help="How many, newest first.")
@json_option
def list_(who: str | None, operation: str | None, limit: int, as_json: bool) -> None:
    """List actions, newest first: who did what to what, and how it was answered.

    STATUS is the HTTP status of the answer; of a command it is the exit code.

    \b
    Examples:
      headrace audit list --limit 20
      headrace audit list --who dashboard --operation pause_queue --json
    """
    found = with_stores(lambda stores: stores.audit.list_actions(limit=limit, who=who, operation=operation))
    if as_json:
        print_json([action_document(action) for action in found])
    elif not found:
        print_text("There are no such actions." if who or operation else "There are no actions.")
    else:
        print_table(_COLUMNS, [_row(action) for action in found], _GIVE)


def _row(action: Action) -> tuple[object, ...]:
    facts = json.loads(action.detail)
    detail = ", ".join(f"{name}: {value}" for name, value in facts.items())
    return (
        action.at, action.who, action.operation, ", ".join(action.subject.values()), action.status, detail, action.via,
        action.address,
    )  # fmt: skip
