"""`headrace memory`: the commands of the application, and the one that works."""

from __future__ import annotations

from headrace.apps.memory.command import memory
from headrace.cli.memory_run import run

memory.add_command(run)

__all__ = ["memory"]
