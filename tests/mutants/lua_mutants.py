"""The guards of the Redis store, and for each an edit that takes it away and the tests that notice.

A script runs alone, so no guard here is a lock: what is left is what each script looks at before it writes. Edits are
of the `.lua` files, and of `scripts.py`, which puts the look for the epoch before all of them. Where a second guard
stands behind one, so that nobody could see the first one gone, the edit takes both.
"""

from __future__ import annotations

from tests.mutants.mutated import Edit
from tests.mutants.sql_mutants import C, Mutant

STORE = "stores/redis"
RESET = "tests/integration/test_redis_reset.py"
SCRIPTS = "tests/integration/test_redis_scripts.py"


def lua(name: str, old: str, new: str) -> Edit:
    """Return an edit of a script, or of `lib/…`."""
    return Edit(f"{STORE}/scripts/{name}.lua", old, new)


def at(file: str, *names: str) -> tuple[str, ...]:
    """Return tests of a conformance file; with no name all of them."""
    return tuple(f"{C}/test_{file}.py::{name}" for name in names) or (f"{C}/test_{file}.py",)


FENCE = (
    Mutant(
        "fence", "complete_jobs without the attempt",
        (lua("lib/completing", " or tonumber(job.attempt) ~= done[2]", ""),),
        at("job_store_complete", "test_each_part_of_the_fence_holds_alone"),
    ),
    Mutant(
        "fence", "complete_jobs without the session",
        (lua("lib/completing", " or job.session ~= session", ""),),
        at("job_store_complete", "test_each_part_of_the_fence_holds_alone"),
    ),
    Mutant(
        "fence", "complete_jobs without the state",
        (lua("lib/completing", "job.state ~= 'running' or ", ""),),
        at("job_store_complete", "test_a_final_row_never_changes"),
    ),
    *(
        Mutant(
            "fence", f"save_step without the {part}", (lua("save_step", old, ""),),
            at("job_store_steps", "test_an_attempt_that_lost_its_job_stores_nothing"),
        )
        for part, old in [
            ("attempt", " or fence[2] ~= ARGV[3]"),
            ("session", " or fence[3] ~= ARGV[4]"),
            ("state", "fence[1] ~= 'running' or "),
        ]
    ),
    Mutant(
        "fence", "a step is overwritten", (lua("save_step", "'HSETNX'", "'HSET'"),),
        at("job_store_steps", "test_a_step_is_written_once"),
    ),
    Mutant(
        "fence", "a step of an executor is overwritten in its attempt",
        (lua("save_step", " and tostring(cjson.decode(before).attempt) ~= ARGV[3]", ""),),
        at("job_store_steps", "test_what_an_executor_keeps_is_of_one_attempt"),
    ),
    Mutant(
        # What waits has no session: with one a job has run, and perhaps ended.
        "fence", "sweeps take what has ended", (lua("lib/sweeping", "job and job.state == 'running' and", "job and"),),
        (f"{SCRIPTS}::test_sweeps_leave_alone_what_has_ended",),
    ),
    Mutant(
        "fence", "an insert writes over a job", (lua("lib/intake", "call('EXISTS', key) == 1", "false"),),
        at("job_store_intake", "test_a_late_duplicate_changes_nothing_final"),
    ),
)  # fmt: skip

SESSIONS = (
    Mutant(
        "session expiry", "a dead session claims", (lua("lib/claiming", "not alive(session) or ", ""),),
        at("job_store_claim", "test_a_session_claims_until_its_lease_ends"),
    ),
    Mutant(
        "session expiry", "a dead session is admitted to",
        (lua("admit_jobs", "if not alive(session) or paused", "if paused"),),
        at("admission_gate", "test_a_dead_session_gets_nothing"),
    ),
    Mutant(
        "session expiry", "an ended lease is renewed", (lua("renew_session", "not alive(session)", "false"),),
        at("session_store", "test_a_lease_that_ended_is_never_renewed"),
    ),
    Mutant(
        "session expiry", "an ended session is registered again",
        (lua("register_session", "'sessions', 'NX', ", "'sessions', "),),
        at("session_store", "test_a_dead_session_is_not_revived_by_registering_it"),
    ),
    Mutant(
        "session expiry", "a rescue takes from the living", (lua("rescue_jobs", "not alive(session)", "true"),),
        at("job_store_rescue", "test_only_the_dead_are_rescued"),
    ),
    Mutant(
        "session expiry", "a rescue takes the death of a worker for a crash on its farm",
        (lua("rescue_jobs", "if farmed(id, job) then", "if false then"),),
        at("job_store_rescue", "test_what_a_farm_had_begun_did_not_crash_with_its_worker"),
    ),
    Mutant(
        "session expiry", "a rescue goes by what a farm had begun before",
        (lua("rescue_jobs", " and tostring(cjson.decode(begun).attempt) == job.attempt", ""),),
        at("job_store_rescue", "test_only_the_attempt_that_a_farm_had_begun_counts"),
    ),
    Mutant(
        "session expiry", "a rescue waits for sessions to go missing",
        (lua("rescue_jobs", "not alive(session)", "not call('ZSCORE', ROOT .. 'sessions', session)"),),
        at("job_store_rescue", "test_an_expired_session_returns_its_jobs"),
    ),
)  # fmt: skip

LEADER = (
    *(
        Mutant("leader term", f"terms without {what}", (lua("lib/terms", old, ""),), at("leader_terms"))
        for what, old in [
            ("the session", "row[1] == session and "), ("the number", "row[2] == term and "),
            ("the end", " and tonumber(row[3]) > NOW"),
        ]
    ),
    *(
        Mutant("leader term", f"{name} without a look at the term", (lua(name, old, "false"),), tests)
        for name, old, tests in [
            ("fail_overdue_jobs", "not leads(ARGV[4], ARGV[5])", at("leader_terms")),
            ("sweep_batches", "not leads(ARGV[4], ARGV[5])", at("leader_terms")),
            ("prune_ended", "not leads(ARGV[2], ARGV[3])", at("leader_terms")),
            ("prune_batches", "not leads(ARGV[2], ARGV[3])",
             at("job_store_prune", "test_a_former_leader_prunes_nothing")),
            ("prune_index", "not leads(ARGV[2], ARGV[3])",
             at("job_store_prune", "test_a_former_leader_prunes_nothing")),
            ("fire_schedule", "not leads(ARGV[2], ARGV[3])",
             at("schedule_store", "test_a_term_that_is_over_fires_nothing")),
        ]
    ),
    Mutant(
        "leader term", "anyone becomes the leader", (lua("lead", "current and row[1] ~= ARGV[2]", "false"),),
        at("session_store", "test_the_first_to_ask_leads"),
    ),
    Mutant(
        "leader term", "a new leader goes on with the old term", (lua("lead", "(current and 0 or 1)", "0"),),
        at("session_store", "test_a_lapsed_leader_is_replaced_in_a_new_term"),
    ),
    Mutant(
        "leader term", "a former leader resigns for the new one", (lua("resign", "leads(ARGV[2], ARGV[3])", "true"),),
        at("session_store", "test_resigning_from_an_old_term_changes_nothing"),
    ),
)  # fmt: skip

BATCHES = (
    Mutant(
        "seal", "an open batch closes",
        (lua("lib/closing", "if state ~= 'cancelling' and (state ~= 'sealed' or retrying) then",
             "if state == 'closed' then"),),
        at("batch_store_stream", "test_an_open_batch_is_not_closed"),
    ),
    Mutant(
        "seal", "a sealed batch takes another slice", (lua("append_slice", "not takes_items(row[1])", "false"),),
        at("batch_store_stream", "test_a_sealed_batch_takes_nothing_more"),
    ),
    Mutant(
        "seal", "a total that differs is taken",
        (lua("seal_batch", "if total ~= (former or known) then", "if false then"),),
        at("batch_store_stream", "test_sealing_with_another_total_is_a_conflict"),
    ),
    Mutant(
        "slices", "a slice is appended twice", (lua("append_slice", "if known then", "if false then"),),
        at("batch_store_stream", "test_a_slice_sent_again_is_a_no_op"),
    ),
    Mutant(
        "slices", "slices overlap",
        (lua("append_slice", "if from < first + count and first < from + length then", "if false then"),),
        at("batch_store_stream", "test_overlapping_slices_conflict"),
    ),
    Mutant(
        "closing", "a batch closes with work left",
        (lua("lib/closing", "if count_of(batch, 'live') > 0 then", "if false then"),),
        at("batch_store_close", "test_a_batch_with_work_left_stays_sealed"),
    ),
    Mutant(
        "closing", "a batch closes twice in a round",
        (lua("lib/closing", "if state ~= 'cancelling' and (state ~= 'sealed' or retrying) then",
             "if state == 'open' then"),),
        at("batch_store_close", "test_a_batch_closes_once"),
    ),
    Mutant(
        "closing", "items of a batch being cancelled are claimed",
        (lua("lib/claiming", "return batch and cancelling[batch]", "return false"),),
        at("job_store_claim", "test_a_batch_being_cancelled_is_passed_over"),
    ),
)  # fmt: skip

KEYS = (
    Mutant(
        "unique key", "a known key is not looked for", (lua("insert_jobs", "call('GET', name)", "nil"),),
        at("job_store_idempotency", "test_the_same_key_and_body_give_the_same_id"),
    ),
    Mutant(
        "unique key", "keys of one call are not compared",
        (lua("insert_jobs", "if known[name] then", "if false then"),),
        at("job_store_idempotency", "test_equal_keys_in_one_call_make_one_job"),
    ),
    Mutant(
        "unique key", "another body is not looked at",
        (lua("insert_jobs", "if id and hash ~= group.hashes[index] and (hash", "if false and (hash"),),
        at("job_store_idempotency", "test_the_same_key_with_another_body_is_a_conflict"),
    ),
    Mutant(
        "unique key", "a key holds for ever",
        (lua("insert_jobs", "if tonumber(expires_at) <= NOW then", "if false then"),),
        at("job_store_idempotency", "test_a_key_is_free_after_seven_days"),
    ),
    Mutant(
        "unique key", "a known key makes another batch",
        (lua("create_batch", "call('GET', name) or stored", "stored"),),
        at("batch_store_create", "test_the_same_key_and_body_give_the_same_batch"),
    ),
    Mutant(
        "unique key", "a paid answer is overwritten", (lua("store_answer", "ARGV[3], 'NX'", "ARGV[3]"),),
        at("memo_store", "test_the_first_answer_stands"),
    ),
    Mutant(
        "unique key", "a retry makes two copies",
        (lua("retry_job", "elseif row.retried_by then", "elseif false then"),),
        at("control_store", "test_a_job_is_retried_once"),
    ),
)  # fmt: skip

GATED = (
    Mutant(
        "gate", "claims reach into gated queues",
        (lua("lib/claiming", " or call('SISMEMBER', ROOT .. 'gated', queue) == 1", ""),),
        at("admission_gate", "test_the_first_job_with_a_gate_makes_its_queue_gated"),
    ),
    Mutant(
        "gate", "more is admitted than there are slots", (lua("admit_jobs", "#rows >= limit", "#rows > limit"),),
        at("admission_gate", "test_never_more_than_asked_for"),
    ),
    Mutant(
        "gate", "items of a batch being cancelled start",
        (lua("lib/claiming", "return batch and cancelling[batch]", "return false"),),
        at("admission_gate", "test_items_of_a_batch_being_cancelled_start_no_more"),
    ),
    Mutant(
        "caps", "caps are not looked at",
        (lua("lib/keeper", "if cap and usage_of(name) >= cap then", "if false then"),),
        at("admission_caps", "test_a_cap_limits_what_runs_at_once"),
    ),
    Mutant(
        "caps", "room that is taken is not taken off",
        (lua("lib/keeper", "usages[name] = usage_of(name) + 1", "usages[name] = usage_of(name)"),),
        at("admission_caps", "test_a_cap_limits_what_runs_at_once"),
    ),
    Mutant(
        "caps", "an override is not heeded",
        (lua("lib/keeper", "call('HGET', ROOT .. 'caps:override', name) or ", ""),),
        at("admission_caps", "test_an_operator_overrides_a_cap"),
    ),
    Mutant(
        "caps", "what ends keeps its room", (lua("lib/running", "later('SREM', ROOT .. 'holds:' .. cap, id)", ""),),
        at("admission_caps", "test_an_ended_job_frees_its_place"),
    ),
    Mutant(
        "order of a key", "what runs does not hold its key",
        (lua("lib/keeper", "if cap and key_usage(job.queue, gate) >= cap then", "if false then"),
         lua("lib/admitting", "return cap and key_usage(queue, gate) >= cap", "return false")),
        at("admission_keys", "test_one_of_a_key_runs_at_a_time_in_order"),
    ),
    Mutant(
        "order of a key", "a job that waits for its next run gives its key away",
        (lua("lib/ending", "leave_running(id, job, keeps and (delay > 0 or is_held(job.batch)))",
             "leave_running(id, job)"),),
        at("admission_keys", "test_a_job_that_waits_for_its_next_run_keeps_the_key"),
    ),
    Mutant(
        "order of a key", "a job that goes back queues up again",
        (lua("lib/ending", "keeps and job.sort_at or", "false or"),),
        at("admission_keys", "test_a_job_that_goes_back_comes_first_again"),
    ),
    Mutant(
        "rates", "buckets are not looked at", (lua("lib/keeper", "if closed or lack > 0 then", "if false then"),),
        at("admission_rates", "test_a_full_bucket_gives_its_burst_and_then_its_rate"),
    ),
    Mutant(
        "rates", "units are kept for nobody",
        (lua("lib/keeper", "reserved[name] = (reserved[name] or 0) +", "reserved[name] = 0 *"),),
        at("admission_dear", "test_a_dear_job_waits_no_longer_than_its_units_take",
           "test_grants_are_kept_for_the_dear_job_too"),
    ),
    Mutant(
        "rates", "units are kept that flow in meanwhile",
        (lua("lib/keeper", "lack == wait and amount or kept", "amount"),),
        at("admission_dear", "test_what_flows_in_meanwhile_is_not_kept"),
    ),
    Mutant(
        "rates", "a level is not written", (lua("lib/buckets", "if bucket and bucket.changed then", "if false then"),),
        at("admission_rates", "test_a_full_bucket_gives_its_burst_and_then_its_rate"),
    ),
    Mutant(
        "rates", "a job dearer than the burst never starts",
        (lua("lib/buckets", "math.min(units, bucket.burst)", "units"),),
        at("admission_rates", "test_a_job_dearer_than_the_burst_leaves_a_debt"),
    ),
    Mutant(
        "gate", "jobs that are held count as eligible",
        (lua("eligible_jobs", "if #obstacles == 0 then", "if true then"),),
        at("admission_eligible", "test_jobs_without_units_are_not_eligible"),
    ),
    Mutant(
        "gate", "jobs of a paused queue count as eligible",
        (lua("eligible_jobs", "if paused(queue) then", "if false then"),),
        at("admission_eligible", "test_nothing_of_a_paused_queue"),
    ),
    Mutant(
        "gate", "of a concurrency key all jobs count as eligible",
        (lua("eligible_jobs", "math.min(call('ZCARD', key), most_of(gate))", "call('ZCARD', key)"),),
        at("admission_eligible", "test_of_a_concurrency_key_as_many_as_it_has_room_for"),
    ),
    Mutant(
        "rates", "explanations look at buckets that nobody takes from",
        (lua("explain_job", "if ARGV[3] ~= '' then", "if false then"),),
        at("admission_explain", "test_a_bucket_that_another_server_counts"),
    ),
    Mutant(
        "rates", "of two buckets one gives alone",
        (lua("take", "if some or wait == 0 and #unknown == 0 then", "if true then"),),
        at("limiter", "test_all_or_nothing_is_taken"),
    ),
    Mutant(
        "breakers", "every job is a probe",
        (lua("lib/keeper", "breaker and breaker.state ~= 'closed' then", "false then"),),
        at("admission_breakers", "test_exactly_one_job_is_the_probe"),
    ),
    Mutant(
        "breakers", "a probe that is gone keeps its place",
        (lua("lib/keeper", "return row[1] == 'running' and row[2] == attempt", "return true"),),
        at("admission_breakers", "test_a_probe_that_ended_without_a_word_is_replaced"),
    ),
    Mutant(
        "fair shares", "tags are not moved",
        (lua("lib/admitting", "call('ZADD', ROOT .. 'tags:' .. queue, exactly(tag + job.cost / weight), fair)", ""),),
        at("admission_shares", "test_flows_have_equal_shares"),
    ),
    Mutant(
        "fair shares", "tags grow until they are all the same",
        (lua("lib/admitting", "if time >= HIGH_TIME then", "if false then"),),
        at("admission_shares", "test_huge_costs_do_not_blur_small_ones"),
    ),
    Mutant(
        "fair shares", "virtual time stands still",
        (lua("lib/admitting", "if time <= virtual_of(queue) then", "if true then"),),
        at("admission_shares", "test_an_idle_flow_saves_nothing_up", "test_a_small_flow_gains_its_share_at_once"),
    ),
    Mutant(
        "fair shares", "a share that moved is lost to those who go on",
        (lua("lib/walking", "if key == walk.key and call('ZRANK', key, member) <= walk.read then", "if false then"),),
        at("admission_shares", "test_one_admission_is_fair_within_itself"),
    ),
    Mutant(
        "fair shares", "weights are not heeded", (lua("lib/admitting", "job.cost / weight", "job.cost"),),
        at("admission_shares", "test_weights_divide_the_queue"),
    ),
    Mutant(
        "fair shares", "a job's cost is not heeded", (lua("lib/admitting", "job.cost / weight", "1 / weight"),),
        at("admission_shares", "test_dear_jobs_use_more_of_a_share"),
    ),
    Mutant(
        "fair shares", "tags outlive their busy period", (lua("admit_jobs", "rest(queue, classes)", ""),),
        at("admission_shares", "test_state_of_the_gate_is_bounded",
           "test_whoever_comes_when_nothing_waits_is_level_with_all"),
    ),
    Mutant(
        "fair shares", "tags are dropped while something waits",
        (lua("lib/admitting", "last[2] and not anything_waits(queue)", "last[2]"),),
        at("admission_shares", "test_what_was_used_counts_while_anything_waits"),
    ),
    Mutant(
        "fair shares", "what is never to run counts as waiting",
        (lua("lib/admitting", "if not is_ghost(call('HGET', job_key(id), 'batch')) or ghosts", "if true or ghosts"),),
        at("admission_shares", "test_jobs_that_are_never_to_run_do_not_wait"),
    ),
)  # fmt: skip

ROUNDS = (
    Mutant(
        "rounds", "a round is closed before it is whole",
        (lua("lib/closing", "(state ~= 'sealed' or retrying)", "state ~= 'sealed'"),),
        ("tests/integration/test_redis_retries.py::test_a_round_is_not_over_before_it_is_whole",),
    ),
    Mutant(
        "rounds", "who dies holds a round open for ever",
        (lua("lib/closing", "row[4] and tonumber(row[4]) > NOW", "row[4]"),),
        ("tests/integration/test_redis_retries.py::test_who_dies_between_parts_leaves_a_batch_that_closes",),
    ),
    Mutant(
        "rounds", "a cancelled batch gets more items",
        (lua("retry_failed", "fits = row[1] == 'sealed' and row[2]", "fits = row[2]"),),
        ("tests/integration/test_redis_retries.py::test_a_cancel_between_parts_ends_the_copying",),
    ),
)  # fmt: skip

SCHEDULES = (
    Mutant(
        "fire time", "a schedule that another one moved is moved",
        (lua("fire_schedule", " or row[2] ~= seen_at", ""),),
        at("schedule_store", "test_a_schedule_that_another_one_moved_is_not_moved_back"),
    ),
    Mutant(
        "fire time", "a time that was fired is fired again",
        (lua("fire_schedule", "if call('SISMEMBER', ROOT .. 'fired:' .. name, fire_at) == 0 then", "if true then"),),
        at("schedule_store", "test_a_time_that_was_fired_makes_no_second_job_though_the_clock_went_back"),
    ),
    Mutant(
        "fire time", "fire times ahead are fired", (lua("fire_schedule", "tonumber(fire[5]) > NOW", "false"),),
        at("schedule_store", "test_nothing_fires_before_its_time"),
    ),
    Mutant(
        "fire time", "a paused schedule fires", (lua("fire_schedule", " or row[3] then", " then"),),
        at("schedule_store", "test_a_paused_schedule_fires_nothing_and_goes_on_from_now"),
    ),
)  # fmt: skip

EPOCH = (
    Mutant(
        "epoch", "scripts do not look for the epoch",
        (Edit(f"{STORE}/scripts.py", "if KEYS[2] and redis.call('EXISTS', KEYS[2]) == 0 then", "if false then"),),
        (f"{RESET}::test_no_verb_does_anything_after_a_reset",),
    ),
    Mutant(
        "epoch", "a namespace is made beside keys of another",
        (lua("create_namespace", "if traces > 0 and not adopting then", "if false then"),),
        (f"{RESET}::test_a_loss_of_the_epoch_alone_is_a_loss",),
    ),
)  # fmt: skip

MUTANTS = (*FENCE, *SESSIONS, *LEADER, *BATCHES, *ROUNDS, *KEYS, *GATED, *SCHEDULES, *EPOCH)
