"""The guards of paused batches on PostgreSQL and on Redis, and for each an edit that takes it away."""

from __future__ import annotations

from tests.mutants.lua_mutants import at, lua
from tests.mutants.mutated import Edit
from tests.mutants.sql_mutants import STORE, Mutant, sql

MIGRATION = f"{STORE}/migrations/0018_pre_batch_pause.sql"
LATE = ("tests/integration/test_postgres_pauses.py::test_the_sweep_finds_what_a_statement_missed_that_began_before",)
HOLDERS = ("tests/integration/test_postgres_pauses.py::test_the_sweep_finds_every_batch_that_holds_anything",)
GUARD = "a paused batch starts nothing"
COMES_LATER = at("batch_store_pause", "test_what_comes_later_is_held_at_once")
CLOSED = at("batch_store_pause", "test_a_pause_lasts_when_the_batch_closes")
WOKEN = at("batch_store_pause", "test_a_woken_job_is_held_and_no_signal_wakes_a_held_one")

SQL_MUTANTS = (
    Mutant(GUARD, "appended items are ready", (sql("append_items", "b.paused_at IS NOT NULL AND", "false AND"),),
           COMES_LATER),
    *(
        Mutant(GUARD, f"{name} makes ready", (sql(name, "b.paused_at IS NOT NULL", "false"),), tests)
        for name, tests in (
            ("return_jobs", COMES_LATER), ("rescue_jobs", COMES_LATER), ("park_jobs", WOKEN),
            ("fail_overdue_jobs", at("batch_store_pause", "test_an_overdue_attempt_of_a_paused_batch_is_held")),
        )
    ),
    *(
        Mutant(GUARD, f"{name} makes ready", (sql(name, "p.paused_at IS NOT NULL", "false"),), tests)
        for name, tests in (("stage_jobs", COMES_LATER), ("insert_retries", CLOSED))
    ),
    Mutant(GUARD, "a signal makes ready", (Edit(MIGRATION, "p.paused_at IS NOT NULL)", "false)"),), WOKEN),
    Mutant(GUARD, "the sweep holds nothing", (sql("find_paused", "p.paused_at IS NOT NULL", "false"),), LATE),
    Mutant(GUARD, "the sweep lets nothing go",
           (sql("find_paused", "UNION SELECT substr(f.parked_on, 2)::uuid FROM holders AS f", ""),), LATE),
    Mutant(GUARD, "the sweep sees one holder", (sql("find_paused", "h.parked_on > f.parked_on AND", "false AND"),),
           HOLDERS),
    Mutant(
        GUARD, "what is let go comes in any order", (sql("let_go_jobs", "h.sort_at, h.id", "h.id DESC"),),
        at("batch_store_pause", "test_holding_and_letting_go_come_in_slices_the_first_first"),
    ),
)  # fmt: skip

LUA_MUTANTS = (
    Mutant(GUARD, "inserted items are ready", (lua("lib/intake", "is_held(spec.batch)", "false"),),
           (*COMES_LATER, *CLOSED)),
    Mutant(GUARD, "what goes back is ready", (lua("lib/ending", "if is_held(job.batch) then", "if false then"),),
           COMES_LATER),
    Mutant(GUARD, "what is woken is ready", (lua("lib/waking", "is_held(job.batch)", "false"),), WOKEN),
    Mutant(
        GUARD, "a held job gives its key away",
        (lua("lib/ending", "delay > 0 or is_held(job.batch)", "delay > 0"),),
        at("batch_store_pause", "test_an_in_order_key_stays_with_a_job_that_began"),
    ),
    Mutant(
        GUARD, "a walk passes over what it has no room for",
        (lua("settle_paused", "return held, false", "break"),),
        at("batch_store_pause", "test_holding_and_letting_go_come_in_slices_the_first_first"),
    ),
    Mutant(
        GUARD, "what is held no more is let go",
        (lua("settle_paused", "job.state == 'parked' and job.parked_on == held_by(batch)", "job.state"),),
        ("tests/integration/test_redis_pauses.py::test_a_resume_lets_no_cancelled_job_go",),
    ),
)  # fmt: skip
