"""What every group of verbs stands on."""

from __future__ import annotations

from headrace.apps.memory.tables.statements import Statements


class Verbs:
    """Verbs of the tables, run by `_statements`."""

    _statements: Statements
