"""The command line: one file per command group, registered by name in `root.py` and imported when it is called."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run `headrace` with the arguments of this process, and exit with its code."""
    from headrace.cli.root import cli

    cli.main()
    raise AssertionError("unreachable")
