"""`headrace migrate`: bring the database to the schema of this version, or make the namespace of a Redis store."""

from __future__ import annotations

import asyncio

import click

from headrace.cli.output import json_option, print_json, print_text
from headrace.settings import load_settings


@click.command()
@click.option("--dry-run", is_flag=True, show_default=False, help="List what would be applied; change nothing.")
@json_option
def migrate(dry_run: bool, as_json: bool) -> None:
    """Apply the migrations that the configured database lacks, oldest first, each in its own transaction.

    Safe to run twice at once. NNNN_pre_… keeps workers of the previous release working and comes before a new
    release; NNNN_post_… comes once none of them runs any more. On Redis it makes the namespace, once.

    \b
    Examples:
      headrace migrate --dry-run
      headrace --url postgresql://app@db/app migrate
    """
    from headrace import wiring

    settings = load_settings()
    names = asyncio.run(wiring.pending_migrations(settings) if dry_run else wiring.migrate(settings))
    if as_json:
        print_json({"pending" if dry_run else "applied": names})
        return
    for name in names:
        print_text(f"{'pending' if dry_run else 'applied'}: {name}")
    if not names:
        print_text("nothing to apply: the schema is the one this version needs")
