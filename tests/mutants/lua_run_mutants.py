"""The guards of runs of workflows and of parking on Redis, and for each an edit that takes it away."""

from __future__ import annotations

from tests.mutants.lua_mutants import at, lua
from tests.mutants.sql_mutants import Mutant

KEYS = "tests/integration/test_redis_runs_keys.py"

FENCE = (
    *(
        Mutant(
            "fence of a run's job", f"save_nodes without the {part}", (lua("save_nodes", old, ""),),
            at("run_store_saving", test),
        )
        for part, old, test in [
            ("attempt", " or fence[2] ~= ARGV[4]", "test_another_fence_saves_nothing"),
            ("session", " or fence[3] ~= ARGV[5]", "test_another_fence_saves_nothing"),
            ("state", "fence[1] ~= 'running' or ", "test_an_attempt_that_ended_saves_nothing"),
        ]
    ),
    Mutant(
        "a node ends once", "a later end takes the place of the first",
        (lua("lib/runs", "call('HEXISTS', nodes, ending[1]) == 0", "true"),),
        at("run_store_saving", "test_the_first_ending_stands"),
    ),
)  # fmt: skip

RUNS = (
    Mutant(
        "a join is decided once", "each arrival after the decision decides again",
        (lua("lib/effects", "not job or known and (fired_before >= need or remaining_before <= 0)", "not job"),),
        at("run_store_effects", "test_arrivals_after_the_decision_only_count"),
    ),
    Mutant(
        "a join is decided once", "sums outlive the end of their run",
        (lua("lib/runs", "  call('UNLINK', run_key(id, 'joins'))\n", ""),),
        (f"{KEYS}::test_sums_go_with_the_end_of_their_run",),
    ),
    Mutant(
        "a run that does not run", "effects of all kinds reach it",
        (lua("lib/effects", "run_state(run) ~= 'running'", "false"),),
        at("run_store_effects", "test_nothing_but_endings_reaches_a_run_that_does_not_run"),
    ),
    Mutant(
        "a run that does not run", "effects reach a run that is gone",
        (lua("lib/effects", "if not run_state(run) then", "if false then"),),
        (f"{KEYS}::test_effects_in_a_run_that_is_gone_leave_no_key",),
    ),
    Mutant(
        "a run that does not run", "a run that ended is cancelled",
        (lua("cancel_run", "elseif state == 'running' then", "elseif state ~= 'cancelling' then"),),
        at("run_store_cancel", "test_a_cancel_is_answered_by_what_the_run_does"),
    ),
    Mutant(
        "a run ends last", "a run is cancelled while jobs of it run",
        (lua("sweep_run", "call('EXISTS', live) == 1", "false"),),
        at("run_store_cancel", "test_what_runs_is_asked_to_stop"),
    ),
    Mutant(
        "a run ends last", "a sweep leaves what is parked",
        (lua("lib/cancelling", " or job.state == 'parked'", ""),),
        at("run_store_cancel", "test_what_waits_is_cancelled"),
    ),
    Mutant(
        "a run starts once", "a run is started again", (lua("start_run", "run_state(id)", "false"),),
        at("run_store_start", "test_starting_again_after_a_lost_answer_changes_nothing"),
    ),
    Mutant(
        "a run starts once", "a known key starts another run", (lua("start_run", "if stored then", "if false then"),),
        at("run_store_start", "test_a_key_starts_one_run"),
    ),
    Mutant(
        "a run starts once", "bodies are not compared",
        (lua("start_run", "call('HGET', run_key(stored), 'body_hash') == hash", "true"),),
        at("run_store_start", "test_a_key_with_another_body_is_a_conflict"),
    ),
    Mutant(
        "graphs of runs", "graphs go with the first run that has them",
        (lua("lib/runs", "if call('HINCRBY', key, 'uses', -1) <= 0 then", "if call('HINCRBY', key, 'uses', -1) then"),),
        at("run_store_prune", "test_a_graph_stays_as_long_as_a_run_has_it"),
    ),
)  # fmt: skip

SETTLED = (
    Mutant(
        "settled once", "a job is settled again", (lua("settle_jobs", "one[1]) == 1", "one[1]) >= 0"),),
        at("run_store_settling", "test_settling_at_once_applies_once"),
    ),
    Mutant(
        "settled once", "what ends with effects is settled by others too",
        (lua("lib/ending", "if not settled then", "if true then"),),
        at("run_store_settling", "test_what_ends_with_effects_is_settled"),
    ),
    Mutant(
        "settled once", "what ends without effects is settled by nobody",
        (lua("lib/ending", "if not settled then", "if false then"),),
        at("run_store_settling", "test_what_is_unsettled_has_its_error"),
    ),
    Mutant(
        "settled once", "what a sweep cancels is settled by others too",
        (lua("sweep_run", "ask_running(live), true)", "ask_running(live))"),),
        at("run_store_cancel", "test_what_waits_is_cancelled"),
    ),
    Mutant(
        "settled once", "a job of a run is retried by itself", (lua("retry_jobs", "not row.run and ", ""),),
        at("run_store_retry", "test_retries_of_many_leave_jobs_of_runs_out"),
    ),
)  # fmt: skip

SIGNALS = (
    Mutant(
        "parking and signals", "parking does not look for a signal that came",
        (lua("lib/ending", "signal ~= '' and call('EXISTS', signal_key(signal)) == 1", "false"),),
        at("job_store_park", "test_an_early_signal_lets_nobody_wait"),
    ),
    Mutant(
        "parking and signals", "who parks is not noted with its signal",
        (lua("lib/waiting", "elseif key then\n    later('SADD'", "elseif false then\n    later('SADD'"),),
        at("job_store_park", "test_a_signal_wakes"),
    ),
    Mutant(
        "parking and signals", "what is to be cancelled parks",
        (lua("lib/completing", "job.cancel and 'cancelled' or", "job.cancel and not ending.park and 'cancelled' or"),),
        at("job_store_park", "test_a_job_asked_to_stop_does_not_park"),
    ),
    Mutant(
        "parking and signals", "a signal wakes what runs",
        (
            lua("lib/waiting", "      later('SREM', sleepers_key(job.parked_on), id)\n", ""),
            lua("lib/waking", "job.state ~= 'scheduled' and job.state ~= 'parked'", "false"),
        ),
        at("job_store_park", "test_whichever_comes_first_wakes"),
    ),
    Mutant(
        "parking and signals", "a later signal takes its place",
        (lua("send_signal", "call('HSETNX', signal_key(key), 'payload', ARGV[3]) == 0",
             "call('HSET', signal_key(key), 'payload', ARGV[3]) < 0"),),
        at("signal_store", "test_the_first_signal_stands"),
    ),
)  # fmt: skip

RUN_MUTANTS = (*FENCE, *RUNS, *SETTLED, *SIGNALS)
