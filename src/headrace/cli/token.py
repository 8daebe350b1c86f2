"""`headrace token`: who may use the HTTP service."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import click

from headrace.app import App
from headrace.cli.opening import on_app, refuse_memory, with_stores
from headrace.cli.output import json_option, print_json, print_table, print_text
from headrace.cli.tables import Give
from headrace.cli.values import DurationType, IdType
from headrace.engine import tokens
from headrace.model.api_token import ApiToken, Scope

_COLUMNS = ("ID", "NAME", "TOKEN", "SCOPES", "STATE", "CREATED", "EXPIRES", "USED")
_GIVE = Give(first=("CREATED", "USED", "EXPIRES"), lists=("SCOPES",))


@click.group()
def token() -> None:
    """Tokens of the HTTP service: make them, list them, revoke them.

    A service that others than this machine reach asks everybody for one: `Authorization: Bearer hra_…`.
    """


@token.command()
@click.argument("name")
@click.option(
    "--scope", "scopes", type=click.Choice([str(scope) for scope in Scope]), multiple=True, required=True,
    show_default=False,
    help="What it allows: look, bring work, or interfere. Give it several times for several; none includes another.",
)  # fmt: skip
@click.option(
    "--expires", metavar="DURATION", type=DurationType(), help="From now on, such as 30d. Unless given, never."
)
@json_option
def create(name: str, scopes: tuple[str, ...], expires: timedelta | None, as_json: bool) -> None:
    """Make a token and print it. It is shown this once; the store keeps its digest alone.

    NAME says for whom or what it is. Standard output has the token alone, so that it can go into a file or a secret.

    \b
    Examples:
      headrace token create dashboard --scope read
      headrace token create shop --scope read --scope submit --expires 30d --json
    """
    wanted = [Scope(scope) for scope in scopes]
    app = App()
    refuse_memory(app.settings, "token")
    made, kept = on_app(app, lambda one: tokens.make_token(one.runtime.stores, name, wanted, lifetime=expires))
    if as_json:
        print_json(tokens.token_document(kept) | {"token": made})
        return
    print_text(made)
    ends = (
        "does not expire" if kept.expires_at is None else f"expires at {kept.expires_at.isoformat(timespec='seconds')}"
    )
    click.echo(f"It is shown this once; it {ends}. `headrace token revoke {kept.id}` ends it.", err=True)


@token.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List tokens without themselves, the newest first: what each allows, and when it was used, to the minute.

    \b
    Examples:
      headrace token list
      headrace token list --json
    """
    found = with_stores(tokens.list_tokens)
    if as_json:
        print_json([tokens.token_document(one) for one in found])
    elif not found:
        print_text("There is no token yet. `headrace token create NAME --scope read` makes one.")
    else:
        print_table(_COLUMNS, [_row(one) for one in found], _GIVE)


def _row(one: ApiToken) -> tuple[object, ...]:
    scopes = ", ".join(sorted(one.scopes))
    return (
        str(one.id), one.name, f"{one.shown}…", scopes, str(one.state), one.created_at, one.expires_at, one.used_at,
    )  # fmt: skip


@token.command()
@click.argument("token_id", metavar="ID", type=IdType())
@json_option
def revoke(token_id: UUID, as_json: bool) -> None:
    """Let a token open nothing any more, for ever; services know within 5 s. One that is revoked stays so.

    \b
    Example:
      headrace token revoke 0198c0de-0000-7000-8000-000000000000
    """
    ended = with_stores(lambda stores: tokens.revoke_token(stores, token_id))
    if as_json:
        print_json(tokens.token_document(ended))
    else:
        print_text(f"{ended.name} ({ended.shown}…) is {ended.state}")
