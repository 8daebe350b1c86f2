"""Each rule by which a run moves, broken, is missed: a test of the rules fails without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.children import expect_noticed, expect_whole, params
from tests.mutants.graph_mutants import MUTANTS
from tests.mutants.sql_mutants import Mutant

#: Mutants for every run; all others run with the long tests.
EVERY_RUN = {"each join waits for all", "ports are not heeded"}
#: Errors that say that the edit broke the module.
BROKEN = ("builtins.SyntaxError", "builtins.NameError", "builtins.ImportError")


@pytest.mark.parametrize("mutant", params(MUTANTS, EVERY_RUN))
def test_a_broken_rule_is_noticed(mutant: Mutant, tmp_path: Path) -> None:
    """By a test that fails, and not because the module cannot be imported."""
    expect_noticed(mutant, tmp_path, broken=BROKEN, store=None)


def test_the_whole_package_passes(tmp_path: Path) -> None:
    """The same tests pass against a copy with every rule in place."""
    expect_whole(MUTANTS, tmp_path, store=None)
