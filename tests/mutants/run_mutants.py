"""The guards of runs of workflows and of parking on PostgreSQL, and for each an edit that takes it away.

Edits are of the `.sql` files; what a signal does is a function of the schema.
"""

from __future__ import annotations

from tests.mutants.gate_mutants import at
from tests.mutants.mutated import Edit
from tests.mutants.sql_mutants import STORE, Mutant, sql

RACES = "tests/integration/test_postgres_runs.py"
KNOWN = "(e.by IN (SELECT number FROM known)) IS TRUE"
#: What an arrival adds to, as the row stands, and as the statement saw it when it began.
ADDED = """    SET remaining = j.remaining - (excluded.total - excluded.remaining), fired = j.fired + excluded.fired,
      decided = CASE WHEN j.decided > 0 THEN 2 ELSE (j.fired + excluded.fired >= j.need
        OR j.remaining <= excluded.total - excluded.remaining)::int END"""
READ = """    SET (remaining, fired, decided) = (
      SELECT coalesce(max(r.remaining), excluded.total) - (excluded.total - excluded.remaining),
        coalesce(max(r.fired), 0) + excluded.fired,
        CASE WHEN max(r.decided) > 0 THEN 2 ELSE (coalesce(max(r.fired), 0) + excluded.fired >= excluded.need
          OR coalesce(max(r.remaining), excluded.total) <= excluded.total - excluded.remaining)::int END
      FROM {schema}.run_joins AS r WHERE r.run_id = excluded.run_id AND r.path = excluded.path)"""
CALLS = f"{STORE}/migrations/0018_pre_batch_pause.sql"
SLEEPERS = """ARRAY(
      SELECT p.id FROM {schema}.jobs AS p WHERE p.state = 'parked' AND p.parked_on = signal
      ORDER BY p.id FOR UPDATE)"""

FENCE = (
    Mutant(
        "fence of a run's job", "finish_nodes without the attempt",
        (sql("finish_nodes", "j.id = d.id AND j.attempt = d.attempt AND", "j.id = d.id AND"),),
        at("run_store_effects", "test_a_refused_end_sets_nothing_going"),
    ),
    Mutant(
        "fence of a run's job", "finish_nodes without the session",
        (sql("finish_nodes", "AND j.session IS NOT DISTINCT FROM %(session)s::uuid", ""),),
        at("run_store_effects", "test_an_end_under_another_session_sets_nothing_going"),
    ),
    Mutant(
        "fence of a run's job", "a refused end keeps its endings",
        (sql("finish_nodes", KNOWN, "true"),),
        at("run_store_effects", "test_a_refused_end_sets_nothing_going"),
    ),
    *(
        Mutant(
            "fence of a run's job", f"save_nodes without the {part}", (sql("save_nodes", old, ""),),
            at("run_store_saving", "test_another_fence_saves_nothing"),
        )
        for part, old in [
            ("attempt", "AND j.attempt = %(attempt)s::int "),
            ("session", "AND j.session IS NOT DISTINCT FROM %(session)s::uuid"),
        ]
    ),
    *(
        Mutant(
            "fence of a run's job", f"park_jobs without the {part}", (sql("park_jobs", old, new),),
            at("job_store_park", "test_parking_is_fenced"),
        )
        for part, old, new in [
            ("attempt", "WHERE j.attempt = d.attempt AND", "WHERE"),
            ("session", "AND j.session IS NOT DISTINCT FROM %(session)s::uuid", ""),
        ]
    ),
)  # fmt: skip

NODES = (
    Mutant(
        "a node ends once", "a later end takes the place of the first",
        (sql("finish_nodes", "(run_id, path) DO NOTHING", "(run_id, path) DO UPDATE SET output = excluded.output"),),
        at("run_store_saving", "test_the_end_keeps_what_was_saved"),
    ),
    Mutant(
        "a node ends once", "a later save takes the place of the first",
        (sql("save_nodes", "(run_id, path) DO NOTHING", "(run_id, path) DO UPDATE SET output = excluded.output"),),
        at("run_store_saving", "test_the_first_ending_stands"),
    ),
    Mutant(
        "a join is decided once", "each arrival after the decision decides again",
        (sql("finish_nodes", "CASE WHEN j.decided > 0 THEN 2 ELSE (j", "CASE WHEN false THEN 2 ELSE (j"),),
        at("run_store_effects", "test_arrivals_after_the_decision_only_count"),
    ),
    Mutant(
        "a join is decided once", "sums are read, then written",
        (sql("finish_nodes", ADDED, READ),),
        at("run_store_effects", "test_ends_at_once_decide_a_join_once"),
    ),
    Mutant(
        "a join is decided once", "ends lock sums in the order of the call",
        (sql("finish_nodes", 'ORDER BY s.run_id, s.path COLLATE "C"',
             "ORDER BY array_position(%(arrival_paths)s::text[], s.path)"),),
        (f"{RACES}::test_completions_lock_sums_in_one_order",),
    ),
)  # fmt: skip

RUNS = (
    *(
        Mutant(
            "a run that does not run", f"{what} reach it", (sql("finish_nodes", old, new),),
            at("run_store_effects", "test_nothing_but_endings_reaches_a_run_that_does_not_run"),
        )
        for what, old, new in [
            ("arrivals", "FROM known WHERE running)) IS TRUE\n    GROUP", "FROM known)) IS TRUE\n    GROUP"),
            ("jobs", "path IS NULL AND (by IN (SELECT number FROM known WHERE running))",
             "path IS NULL AND (by IN (SELECT number FROM known))"),
            ("moves",
             "r.state IS NOT DISTINCT FROM 'running'\n    AND (m.by IN (SELECT number FROM known WHERE running))",
             "(m.by IN (SELECT number FROM known))"),
        ]
    ),
    Mutant(
        "a run that does not run", "a run that ended is cancelled",
        (sql("cancel_run", "AND state IS NOT DISTINCT FROM 'running'", "AND state <> 'cancelling'"),),
        at("run_store_cancel", "test_a_cancel_is_answered_by_what_the_run_does"),
    ),
    Mutant(
        "a run ends last", "a run is cancelled while jobs of it run",
        (sql("end_cancelled_runs", " AND NOT EXISTS (SELECT FROM {schema}.jobs AS j WHERE j.run_id = r.id)", ""),),
        at("run_store_cancel", "test_what_runs_is_asked_to_stop"),
    ),
    Mutant(
        "a run ends last", "a sweep leaves what is parked",
        (sql("cancel_run_jobs", "('scheduled', 'ready', 'parked')", "('scheduled', 'ready')"),),
        at("run_store_cancel", "test_what_waits_is_cancelled"),
    ),
    Mutant(
        "a run ends last", "a sweep cancels runs that run",
        (sql("cancel_run_jobs", "WHERE r.state = 'cancelling'", "WHERE r.state IN ('cancelling', 'running')"),),
        at("run_store_cancel", "test_other_runs_and_jobs_are_left_alone"),
    ),
    Mutant(
        "graphs of runs", "graphs go with the first run that has them",
        (sql("prune_snapshots", "EXISTS (SELECT FROM {schema}.runs AS r WHERE r.snapshot = s.hash OFFSET 0)",
             "false"),),
        at("run_store_prune", "test_a_graph_stays_as_long_as_a_run_has_it"),
    ),
    Mutant(
        "graphs of runs", "a start does not hold the graph it shares",
        (sql("insert_run", " FOR KEY SHARE", ""),),
        (f"{RACES}::test_a_graph_that_a_start_shares_is_not_pruned_before_it_is_seen",),
    ),
)  # fmt: skip

SETTLED = (
    Mutant(
        "settled once", "a job is settled again",
        (sql("settle_jobs", " AND f.settled IS DISTINCT FROM true", ""),),
        at("run_store_settling", "test_settling_at_once_applies_once"),
    ),
    Mutant(
        "settled once", "jobs of no run are settled",
        (sql("settle_jobs", " AND f.run_id IS NOT NULL", ""),),
        at("run_store_settling", "test_only_what_is_unsettled_is_settled"),
    ),
    Mutant(
        "settled once", "what ends with effects is settled by others too",
        (sql("finish_nodes", "CASE WHEN effects_of IS NOT NULL THEN true END", "NULL::boolean"),),
        at("run_store_settling", "test_what_ends_with_effects_is_settled"),
    ),
    Mutant(
        "settled once", "what a sweep cancels is settled by others too",
        (sql("cancel_run_jobs", "lane, cost, args, run_id, node, true", "lane, cost, args, run_id, node, NULL"),),
        at("run_store_cancel", "test_what_waits_is_cancelled"),
    ),
    Mutant(
        "settled once", "a job of a run is retried by itself",
        (sql("lock_retryable", " AND f.run_id IS NULL", ""),),
        at("run_store_retry", "test_retries_of_many_leave_jobs_of_runs_out"),
    ),
)  # fmt: skip

SIGNALS = (
    Mutant(
        "parking and signals", "parking does not look for a signal that came",
        (sql("park_jobs", "(key IN (SELECT key FROM awaited WHERE came)) IS TRUE", "false"),),
        at("job_store_park", "test_an_early_signal_lets_nobody_wait"),
    ),
    Mutant(
        "parking and signals", "a signal looks for sleepers before it holds the key",
        (
            Edit(CALLS, f"ANY({SLEEPERS})", "ANY(sleepers)"),
            Edit(CALLS, "  gained text[];\nBEGIN\n", f"  gained text[];\n  sleepers uuid[] := {SLEEPERS};\nBEGIN\n"),
        ),
        (f"{RACES}::test_a_signal_waits_for_a_job_that_is_being_parked",),
    ),
    Mutant(
        "parking and signals", "what is to be cancelled parks",
        (sql("park_jobs", "CASE WHEN cancel_requested THEN 'cancelled'\n    WHEN", "CASE WHEN"),),
        at("job_store_park", "test_a_job_asked_to_stop_does_not_park"),
    ),
    Mutant(
        "parking and signals", "a signal wakes what runs",
        (
            sql("stage_jobs", "END, chr(31) || p.id,", "END, coalesce(chr(31) || p.id, j.parked_on),"),
            Edit(CALLS, "p.state = 'parked' AND p.parked_on", "p.parked_on"),
        ),
        at("job_store_park", "test_whichever_comes_first_wakes"),
    ),
    Mutant(
        "parking and signals", "a later signal takes its place",
        (Edit(CALLS, " WHERE s.payload IS NULL", ""),),
        at("signal_store", "test_the_first_signal_stands"),
    ),
)  # fmt: skip

MUTANTS = (*FENCE, *NODES, *RUNS, *SETTLED, *SIGNALS)
