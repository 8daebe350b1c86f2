"""Each guard of the PostgreSQL store, taken away, is missed: a test that passes with it fails without it.

Every mutant runs in a child against a copy of the package. It has to execute: a failure that the database itself
raised would say that the edit broke the statement, not that a test noticed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutants import event_mutants, gate_mutants, held_mutants, run_mutants, service_mutants, sql_mutants
from tests.mutants.children import CHECKOUT, choices, expect_noticed, expect_whole, params
from tests.mutants.mutated import Edit, mutated_package
from tests.mutants.sql_mutants import Mutant

MUTANTS = (
    *sql_mutants.MUTANTS, *gate_mutants.MUTANTS, *run_mutants.MUTANTS, *event_mutants.MUTANTS,
    *service_mutants.SQL_MUTANTS, *held_mutants.SQL_MUTANTS,
)  # fmt: skip
#: Errors of the database or of the way to it.
BROKEN = ("asyncpg.", "headrace.model.errors.StoreUnavailableError", "builtins.SyntaxError", "builtins.NameError")
#: Mutants for every run, a few of all kinds; all others run with the long tests.
EVERY_RUN = {
    "finish_jobs without the attempt",
    "a dead session claims",
    "a batch closes with work left",
    "fail_overdue_jobs without the term",
    "names are taken though others came since the caller looked",
    "claims reach into gated queues",
    "finish_nodes without the session",
    "a signal looks for sleepers before it holds the key",
    "a known event leaves again",
    "an entry is appended though its key is there",
    "a settled call is settled again",
}


@pytest.mark.parametrize("mutant", params(MUTANTS, EVERY_RUN))
def test_a_missing_guard_is_noticed(mutant: Mutant, tmp_path: Path) -> None:
    """Without the guard one of its tests fails, and not because the database refused the statement."""
    expect_noticed(mutant, tmp_path, broken=BROKEN)


@pytest.mark.parametrize("mutants", choices(MUTANTS, EVERY_RUN))
def test_the_whole_package_passes(mutants: Sequence[Mutant], tmp_path: Path) -> None:
    """The same tests pass against a copy with every guard in place."""
    expect_whole(mutants, tmp_path)


def test_each_guard_is_documented() -> None:
    """The table of the explanation names every guard, and none that is gone."""
    page = (CHECKOUT / "docs/explanation/stores.md").read_text("utf-8")
    table = page.partition("## Guards taken away")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| (.+?) \|", table, re.MULTILINE)
    assert rows[0] == "guard"
    assert sorted(rows[1:]) == sorted({mutant.guard for mutant in MUTANTS})


def test_an_edit_that_does_not_apply_is_an_error(tmp_path: Path) -> None:
    """A guard whose text has changed is no mutant that survives or dies: the list has to follow the code."""
    for old in ("there is no such text", "FROM"):
        with pytest.raises(AssertionError, match="not once"):
            mutated_package(tmp_path / old[:5], [Edit("stores/postgres/queries/get_job.sql", old, "x")])
