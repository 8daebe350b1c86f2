"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path

import click

url_option = click.option(
    "--url", metavar="URL", show_default=False, help="Ask the service at this address, rather than work here."
)
token_option = click.option(
    "--token-file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), show_default=False,
    help="Holds the API token for the service; without it HEADRACE_TOKEN has the token, if it asks for one.",
)  # fmt: skip
