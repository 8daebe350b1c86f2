"""`headrace events handles`: what paused work waits for."""

from __future__ import annotations

import sys
from typing import Any

import click

from headrace.app import App
from headrace.cli.opening import with_app
from headrace.cli.output import json_option, print_facts, print_json, print_table, print_text
from headrace.cli.tables import Give
from headrace.cli.values import JsonType, WholeType
from headrace.engine.events.documents import handle_document, noted_document
from headrace.model.resume_handle import HandleView, NotedEvent

_COLUMNS = ("CORRELATION", "STATE", "CAME", "TYPES", "EXPIRES", "TARGET")
_GIVE = Give(first=("TARGET", "EXPIRES"), lists=("TYPES",))
_CORRELATION = click.argument("correlation_id", metavar="CORRELATION_ID")


@click.group()
def handles() -> None:
    """Resume handles: what paused work waits for, by correlation id.

    The first of result, timeout, cancel and token ends a handle and wakes who waits.
    """


@handles.command("list")
@click.option("--all", "ended", is_flag=True, show_default=False, help="Also those that have ended.")
@click.option("--limit", metavar="N", type=WholeType("limit", 1, 10_000), default=50, help="At most N.")
@json_option
def list_(ended: bool, limit: int, as_json: bool) -> None:
    """List handles that wait, the newest first.

    \b
    Examples:
      headrace events handles list
      headrace events handles list --all --limit 200 --json
    """

    async def read(app: App) -> list[HandleView]:
        return [handle.view for handle in await app.handles.list(waiting=not ended, limit=limit)]

    found = with_app(read)
    if as_json:
        print_json([handle_document(view) for view in found])
    elif not found:
        print_text("There is no handle." if ended else "Nothing waits for events; --all shows handles that have ended.")
    else:
        print_table(_COLUMNS, [_row(view) for view in found], _GIVE)


def _row(view: HandleView) -> tuple[object, ...]:
    came = f"{view.arrived} of {view.expect_count}"
    return view.correlation_id, view.state, came, ", ".join(view.expect_types), view.expires_at, view.target


@handles.command()
@_CORRELATION
@json_option
def show(correlation_id: str, as_json: bool) -> None:
    """Show a handle, and the events that have come for it.

    \b
    Example:
      headrace events handles show c-1
    """

    async def read(app: App) -> tuple[HandleView, list[NotedEvent]]:
        handle = await app.handles.show(correlation_id)
        return handle.view, await handle.events()

    view, noted = with_app(read)
    if as_json:
        print_json(handle_document(view) | {"events": [noted_document(one) for one in noted]})
        return
    document = handle_document(view)
    lists = ("expect_types", "request_types", "agents")
    facts = {name: ", ".join(document[name]) for name in lists} | {"came": f"{view.arrived} of {view.expect_count}"}
    print_facts({"correlation": view.correlation_id, "state": view.state, **facts, "target": view.target,
                 "created": view.created_at, "expires": view.expires_at, "ended": view.ended_at,
                 "payload": view.payload})  # fmt: skip
    if noted:
        print_text("")
        rows = [(one.event.type, one.event.id, "yes" if one.dead else "", one.agent, one.error) for one in noted]
        print_table(("TYPE", "ID", "DEAD", "AGENT", "ERROR"), rows, Give(first=("AGENT",), prose=("ERROR",)))


@handles.command()
@_CORRELATION
@json_option
def cancel(correlation_id: str, as_json: bool) -> None:
    """End a handle that waits: what waits does not go on. One that has ended stays as it is.

    \b
    Example:
      headrace events handles cancel c-1
    """

    async def end(app: App) -> HandleView:
        return (await app.handles.cancel(correlation_id)).view

    _print_end(with_app(end), as_json=as_json)


@handles.command()
@click.argument("token")
@click.argument("payload", metavar="[JSON]", type=JsonType(), default="null")
@json_option
def resolve(token: str, payload: Any, as_json: bool) -> None:
    """End a handle that waits by its TOKEN, with any JSON. The same again changes nothing.

    TOKEN `-` is read from standard input: what stands in a command line others on this machine can see.

    \b
    Examples:
      headrace events handles resolve - '{"approved": true}'
      headrace events handles resolve -
    """
    given = sys.stdin.readline().strip() if token == "-" else token  # noqa: S105 - no secret

    async def end(app: App) -> HandleView:
        return (await app.handles.resolve(given, payload)).view

    _print_end(with_app(end), as_json=as_json)


def _print_end(view: HandleView, *, as_json: bool) -> None:
    if as_json:
        print_json(handle_document(view))
    else:
        print_text(f"{view.correlation_id} is {view.state}")
