"""Each guard of the Redis store, taken away, is missed: a test that passes with it fails without it.

Every mutant runs in a child against a copy of the package. It has to execute: a failure that the server itself raised
would say that the edit broke the script, not that a test noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutants.children import choices, expect_noticed, expect_whole, params
from tests.mutants.held_mutants import LUA_MUTANTS as HELD_MUTANTS
from tests.mutants.lua_ledger_mutants import LEDGER_MUTANTS
from tests.mutants.lua_mutants import MUTANTS as JOB_MUTANTS
from tests.mutants.lua_run_mutants import RUN_MUTANTS
from tests.mutants.service_mutants import LUA_MUTANTS
from tests.mutants.sql_mutants import Mutant

MUTANTS = (*JOB_MUTANTS, *LEDGER_MUTANTS, *RUN_MUTANTS, *LUA_MUTANTS, *HELD_MUTANTS)
#: Errors of the server or of the way to it, and answers that are no answers of a script of ours.
BROKEN = (
    "headrace.stores.redis.faults.RefusedError", "headrace.model.errors.StoreUnavailableError", "builtins.SyntaxError",
    "builtins.NameError", "builtins.TypeError",
)  # fmt: skip
#: Mutants for every run, a few that cost little; all others run with the long tests.
EVERY_RUN = {
    "a dead session claims",
    "a batch closes with work left",
    "a settled call is settled again",
    "a signal wakes what runs",
    "an entry is appended though its key is there",
}


@pytest.mark.parametrize("mutant", params(MUTANTS, EVERY_RUN))
def test_a_missing_guard_is_noticed(mutant: Mutant, tmp_path: Path) -> None:
    """Without the guard one of its tests fails, and not because the server refused the script."""
    expect_noticed(mutant, tmp_path, broken=BROKEN, store="redis")


@pytest.mark.parametrize("mutants", choices(MUTANTS, EVERY_RUN))
def test_the_whole_package_passes(mutants: Sequence[Mutant], tmp_path: Path) -> None:
    """The same tests pass against a copy with every guard in place."""
    expect_whole(mutants, tmp_path, store="redis")
