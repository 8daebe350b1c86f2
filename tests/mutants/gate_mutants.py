"""The guards of the gate on PostgreSQL, and for each an edit that takes it away and the tests that notice."""

from __future__ import annotations

from tests.mutants.mutated import PACKAGE, Edit
from tests.mutants.sql_mutants import LOCKS, STORE, C, Mutant, sql

MIGRATION = f"{STORE}/migrations/0006_pre_admission.sql"
#: Replaces the function that admits.
REPLACED = f"{STORE}/migrations/0010_pre_workflows.sql"
ADMISSION = "tests/integration/test_postgres_admission.py"


def gate(old: str, new: str) -> Edit:
    """Return an edit of the functions of the gate, where the one with that text was written last."""
    replaced = old in (PACKAGE / REPLACED).read_text("utf-8")
    return Edit(REPLACED if replaced else MIGRATION, old, new)


def at(file: str, *names: str) -> tuple[str, ...]:
    """Return tests of a conformance file."""
    return tuple(f"{C}/test_{file}.py::{name}" for name in names)


GATED = (
    Mutant(
        "gate", "claims reach into gated queues",
        (sql("claim_jobs", "(q.paused OR q.gated)", "q.paused"),),
        at("admission_gate", "test_the_first_job_with_a_gate_makes_its_queue_gated"),
    ),
    Mutant(
        "gate", "a lone insert gates no queue",
        (gate("IF job_lane IS NOT NULL THEN", "IF false THEN"),),
        (f"{ADMISSION}::test_a_queue_is_gated_when_its_first_gated_job_is",),
    ),
    Mutant(
        "gate", "inserts of many gate no queue",
        (sql("insert_gated_jobs", "WHERE NOT EXISTS (", "WHERE false AND NOT EXISTS ("),),
        at("admission_caps", "test_a_cap_limits_what_runs_at_once"),
    ),
    Mutant(
        "gate", "batches gate no queue",
        (sql("create_batch", "WHERE NOT EXISTS (SELECT FROM {schema}.queues AS q WHERE q.name = g.queue AND q.gated)",
             "WHERE false"),),
        at("admission_gate", "test_however_a_job_becomes_ready_it_is_admitted"),
    ),
    Mutant(
        "gate", "a limit of a queue does not gate it",
        (Edit(f"{STORE}/admission.py", 'await self._database.fetch("gate_queues", queues=queues)', "pass"),),
        at("admission_gate", "test_a_limit_of_a_queue_makes_it_gated"),
    ),
    Mutant(
        "gate", "a dead session is given jobs",
        (gate("WHERE s.id = claim_session AND s.expires_at > clock", "WHERE s.id = claim_session"),),
        at("admission_gate", "test_a_dead_session_gets_nothing"),
    ),
    Mutant(
        "gate", "a paused queue admits",
        (gate("q.name = claim_queue AND q.paused", "q.name = claim_queue AND false"),),
        at("admission_gate", "test_a_paused_queue_admits_nothing"),
    ),
    Mutant(
        "gate", "items of a batch being cancelled start",
        (gate("ARRAY(SELECT b.id FROM {schema}.batches AS b WHERE b.state = 'cancelling')", "ARRAY[]::uuid[]"),),
        at("admission_gate", "test_items_of_a_batch_being_cancelled_start_no_more"),
    ),
    Mutant(
        "gate", "more is admitted than there are slots",
        (gate("ELSIF cardinality(started) = claim_limit THEN", "ELSIF cardinality(started) = claim_limit + 1 THEN"),),
        at("admission_gate", "test_never_more_than_asked_for"),
    ),
    Mutant(
        "gate", "a held row holds up the admission",
        (gate("j.state = 'ready' FOR UPDATE SKIP LOCKED", "j.state = 'ready' FOR UPDATE"),),
        (f"{ADMISSION}::test_a_job_that_somebody_holds_is_passed_over",),
    ),
    *(
        Mutant(
            "gate", f"{name} loses the lane", (sql(name, old, new),),
            at("admission_gate", "test_however_a_job_becomes_ready_it_is_admitted"),
        )
        for name, old, new in [
            ("finish_jobs", "j.task, j.lane,", "j.task, NULL,"),
            ("append_items", "b.lane, b.cost", "NULL, b.cost"),
            ("close_batches", "s.lane, s.cost", "NULL, s.cost"),
            ("insert_retries", "f.at_most_once, f.lane", "f.at_most_once, NULL"),
        ]
    ),
)  # fmt: skip

LOCKED = (
    Mutant(
        "admission locks, then counts", "the gate is not locked",
        (gate("WHERE g.queue = claim_queue FOR UPDATE;", "WHERE g.queue = claim_queue;"),),
        (*at("admission_keys", "test_racing_workers_keep_the_order_of_a_key"),
         f"{ADMISSION}::test_eight_racing_connections_keep_every_cap_and_key"),
    ),
    Mutant(
        "admission locks, then counts", "caps are not locked",
        (gate('ORDER BY l.key COLLATE "C" FOR UPDATE;', 'ORDER BY l.key COLLATE "C";'),),
        at("admission_caps", "test_eight_racing_workers_never_run_over_a_cap"),
    ),
    Mutant(
        "admission locks, then counts", "buckets are not locked",
        (gate("AND grants IS NULL ORDER BY r.name FOR UPDATE;", "AND grants IS NULL ORDER BY r.name;"),),
        at("admission_rates", "test_racing_workers_take_no_more_than_the_burst"),
    ),
    Mutant(
        "admission locks, then counts", "breakers are not locked",
        (gate("ORDER BY b.key FOR UPDATE;", "ORDER BY b.key;"),),
        (f"{ADMISSION}::test_admissions_that_wait_for_a_breaker_see_the_probe_of_the_one_before",),
    ),
    Mutant(
        "admission locks, then counts", "units are taken without a lock",
        (sql("take_units", "ORDER BY r.name FOR UPDATE OF r", "ORDER BY r.name"),),
        (f"{ADMISSION}::test_callers_that_wait_for_a_bucket_see_what_the_one_before_left",),
    ),
    Mutant(
        "admission locks, then counts", "a breaker is written that others changed",
        (sql("move_breakers", "ON r.key = b.key AND r.version = b.version", "ON r.key = b.key"),),
        (f"{ADMISSION}::test_reports_that_race_are_all_counted",),
    ),
    Mutant(
        "admission locks, then counts", "caps are locked as they come",
        (gate('ORDER BY l.key COLLATE "C" FOR UPDATE;',
              "ORDER BY ascii(substr(l.key, 2)) * CASE claim_queue WHEN 'q1' THEN 1 ELSE -1 END FOR UPDATE;"),),
        (f"{LOCKS}::test_admissions_lock_what_lanes_need_in_one_order",),
    ),
    Mutant(
        "admission locks, then counts", "a queue that is gated is locked by each insert",
        (gate("    WHERE NOT EXISTS (SELECT FROM {schema}.queues AS q WHERE q.name = job_queue AND q.gated)\n", ""),),
        (f"{ADMISSION}::test_enqueueing_waits_for_no_other_once_a_queue_is_gated",),
    ),
)  # fmt: skip

HELD = (
    Mutant(
        "gate", "jobs that are held count as eligible",
        (sql("eligible_jobs", "s.again_at, t.now) > '-infinity'", "s.again_at, t.now) > 'infinity'"),),
        at("admission_eligible", "test_jobs_without_units_are_not_eligible"),
    ),
    Mutant(
        "gate", "jobs of a paused queue count as eligible",
        (sql("eligible_jobs", "WHERE t.gated AND NOT t.paused", "WHERE t.gated"),),
        at("admission_eligible", "test_nothing_of_a_paused_queue"),
    ),
    Mutant(
        "gate", "of a concurrency key all jobs count as eligible",
        (sql("eligible_jobs", "LIMIT least(o.most, ", "LIMIT least(2147483647, "),),
        at("admission_eligible", "test_of_a_concurrency_key_as_many_as_it_has_room_for"),
    ),
    Mutant(
        "caps", "plain jobs that were admitted are not counted",
        (gate("    lane = coalesce(j.lane, '{}')\n", "    lane = j.lane\n"),),
        (f"{ADMISSION}::test_plain_jobs_that_admission_started_count_under_the_cap_of_their_queue",),
    ),
    Mutant(
        "caps", "what runs is counted in one queue",
        (gate("WHERE j.state = 'running' AND j.lane IS NOT NULL GROUP BY j.queue, j.lane) AS r",
              "WHERE j.state = 'running' AND j.lane IS NOT NULL AND 'queue:' || j.queue = ANY(names) "
              "GROUP BY j.queue, j.lane) AS r"),),
        at("admission_caps", "test_a_cap_holds_over_workers_and_queues"),
    ),
    Mutant(
        "caps", "an override is not heeded",
        (gate("SELECT coalesce(c.override, c.cap) AS cap", "SELECT c.cap AS cap"),),
        at("admission_caps", "test_an_operator_overrides_a_cap"),
    ),
    Mutant(
        "caps", "a declaration ends an override",
        (sql("declare_caps", "DO UPDATE SET cap = excluded.cap WHERE l.cap IS DISTINCT FROM excluded.cap",
             "DO UPDATE SET cap = excluded.cap, override = NULL"),),
        at("admission_caps", "test_an_operator_overrides_a_cap"),
    ),
    Mutant(
        "caps", "room that is taken is not taken off",
        (gate("rooms[node] := rooms[node] - units;", "rooms[node] := rooms[node];"),),
        at("admission_caps", "test_a_cap_limits_what_runs_at_once"),
    ),
    Mutant(
        "caps", "what runs under a new cap of its queue is not counted",
        (Edit(f"{STORE}/admission.py", 'while await self._database.fetch("count_in", caps=keys):', "while False:"),),
        (f"{ADMISSION}::test_what_runs_already_counts_under_a_new_cap_of_its_queue",),
    ),
    Mutant(
        "caps", "a new cap waits for no claim that saw no gate",
        (Edit(f"{STORE}/admission.py", "        if not capped:\n", "        if capped:\n"),),
        (f"{ADMISSION}::test_a_claim_that_ends_after_its_queue_got_a_cap_counts_under_it",),
    ),
    Mutant(
        "order of a key", "what runs does not hold its key",
        (gate("WHERE u.key IS NULL OR u.used < u.key_limit) AS n", "WHERE true) AS n"),
         gate("key_used[key_of[lane]] >= key_limits[lane]", "false")),
        at("admission_keys", "test_one_of_a_key_runs_at_a_time_in_order"),
    ),
    Mutant(
        "order of a key", "one admission starts several of a key",
        (gate("key_used[key_of[lane]] >= key_limits[lane]", "false"),),
        at("admission_keys", "test_one_of_a_key_runs_at_a_time_in_order"),
    ),
    Mutant(
        "order of a key", "keys are counted by lane",
        (gate("min(n.number) OVER (PARTITION BY n.key)", "n.number"),),
        (f"{ADMISSION}::test_lanes_of_one_key_start_one_job_together",),
    ),
    Mutant(
        "order of a key", "a job that waits for its next run gives its key away",
        (gate("j.state IN ('scheduled', 'parked') AND j.attempt > 0", "false AND j.attempt > 0"),),
        at("admission_keys", "test_a_job_that_waits_for_its_next_run_keeps_the_key"),
    ),
    Mutant(
        "order of a key", "a job that never ran keeps a key",
        (gate("AND j.state IN ('scheduled', 'parked') AND j.attempt > 0", "AND j.state IN ('scheduled', 'parked')"),),
        at("admission_keys", "test_a_job_that_never_ran_keeps_no_key"),
    ),
    Mutant(
        "order of a key", "a job that goes back queues up again",
        (sql("return_jobs", """v.released OR j.lane ~ '"key_limit":1[,}]' THEN""", "v.released THEN"),),
        at("admission_keys", "test_a_job_that_goes_back_comes_first_again"),
    ),
)  # fmt: skip

SHARED = (
    Mutant(
        "fair shares", "tags are not moved",
        (gate("ON CONFLICT (queue, fair_key) DO UPDATE SET finish = excluded.finish;",
              "ON CONFLICT (queue, fair_key) DO NOTHING;"),),
        at("admission_shares", "test_flows_have_equal_shares"),
    ),
    Mutant(
        "fair shares", "an idle flow saves up",
        (gate("greatest(virtual_time, x.finish) AS tag", "coalesce(x.finish, virtual_time) AS tag"),),
        at("admission_shares", "test_an_idle_flow_saves_nothing_up"),
    ),
    Mutant(
        "fair shares", "virtual time stands still",
        (gate("UPDATE {schema}.gates AS g SET virtual = virtual_time", "UPDATE {schema}.gates AS g SET virtual = 0"),),
        at("admission_shares", "test_an_idle_flow_saves_nothing_up", "test_a_small_flow_gains_its_share_at_once"),
    ),
    Mutant(
        "fair shares", "weights are not heeded",
        (gate("coalesce(x.weight, 1) AS weight, greatest", "1::float8 AS weight, greatest"),),
        at("admission_shares", "test_weights_divide_the_queue"),
    ),
    Mutant(
        "fair shares", "a job's cost is not heeded",
        (gate(":= virtual_time + costs[lane] / weights[share]", ":= virtual_time + 1 / weights[share]"),),
        at("admission_shares", "test_dear_jobs_use_more_of_a_share"),
    ),
    Mutant(
        "fair shares", "tags grow until they are all the same",
        (gate("IF virtual_time >= 1073741824 THEN", "IF false THEN"),),
        at("admission_shares", "test_huge_costs_do_not_blur_small_ones"),
    ),
    Mutant(
        "fair shares", "the place within a share is not heeded",
        (gate("OVER (ORDER BY u.fair_key, u.sort_at, u.id)", "OVER (ORDER BY u.fair_key, u.lane DESC)"),),
        at("admission_shares", "test_within_a_share_the_order_is_that_of_claims"),
    ),
    Mutant(
        "fair shares", "tags that say nothing are kept",
        (sql("prune_shares", "o.weight IS NULL AND o.finish <= g.virtual", "false"),
         sql("list_shares", "s.weight IS NOT NULL OR s.finish > g.virtual", "true")),
        at("admission_shares", "test_a_tag_that_the_virtual_time_has_passed_is_forgotten"),
    ),
    Mutant(
        "fair shares", "tags outlive their busy period",
        (gate("IF more OR EXISTS (SELECT FROM {schema}.waiting_lanes(claim_queue, cancelling)) THEN", "IF true THEN"),),
        at("admission_shares", "test_state_of_the_gate_is_bounded",
           "test_whoever_comes_when_nothing_waits_is_level_with_all"),
    ),
    Mutant(
        "fair shares", "tags are dropped while something waits",
        (gate("IF more OR EXISTS (SELECT FROM {schema}.waiting_lanes(claim_queue, cancelling)) THEN", "IF more THEN"),),
        at("admission_shares", "test_what_was_used_counts_while_anything_waits"),
    ),
)  # fmt: skip

LIMITED = (
    Mutant(
        "rates", "a level is not written",
        (gate("SET level = rooms[n.number], at =", "SET at ="),),
        at("admission_rates", "test_a_full_bucket_gives_its_burst_and_then_its_rate"),
    ),
    Mutant(
        "rates", "a bucket holds more than its burst",
        (gate("least(burst, coalesce(level +", "greatest(0, coalesce(level +"),),
        at("admission_rates", "test_a_bucket_holds_no_more_than_its_burst"),
    ),
    Mutant(
        "rates", "a job dearer than the burst never starts",
        (gate("WHEN (least(units, burst) - room) * 1000000", "WHEN (units - room) * 1000000"),),
        at("admission_rates", "test_a_job_dearer_than_the_burst_leaves_a_debt"),
    ),
    Mutant(
        "rates", "a closed bucket lets pass",
        (gate("THEN CASE WHEN again_at <= clock THEN", "THEN CASE WHEN true THEN"),),
        at("admission_rates", "test_a_closed_bucket_lets_nothing_pass"),
    ),
    Mutant(
        "rates", "a shorter word opens a closed bucket",
        (sql("close_bucket", "greatest(r.closed_until, excluded.closed_until)", "excluded.closed_until"),),
        at("admission_rates", "test_a_closed_bucket_lets_nothing_pass"),
    ),
    Mutant(
        "rates", "units of a limit are not heeded",
        (gate("coalesce(n.units, -1))\n", "1::float8)\n"),),
        at("admission_rates", "test_a_limit_may_take_more_than_one_unit"),
    ),
    Mutant(
        "rates", "units are kept for nobody",
        (gate("reserved[node] := reserved[node] + room;", "reserved[node] := 0;"),),
        at("admission_dear", "test_a_dear_job_waits_no_longer_than_its_units_take",
           "test_grants_are_kept_for_the_dear_job_too"),
    ),
    Mutant(
        "rates", "units are kept that flow in meanwhile",
        (gate("greatest(0, least(units, bursts[node]) - flows[node] * wait)", "units"),),
        at("admission_dear", "test_what_flows_in_meanwhile_is_not_kept"),
    ),
    Mutant(
        "rates", "grants are not heeded",
        (gate("WHEN grants IS NULL THEN l.level\n", "WHEN true THEN l.level\n"),),
        at("admission_rates", "test_what_was_not_granted_gives_nothing"),
    ),
    Mutant(
        "rates", "grants are taken from the buckets too",
        (gate("AND n.taken > 0 AND bursts[n.number] < 'Infinity';", "AND n.taken > 0;"),),
        at("admission_rates", "test_grants_stand_for_the_buckets"),
    ),
    Mutant(
        "rates", "explanations look at buckets that nobody takes from",
        (gate("{schema}.bucket(a.name, clock, levels)", "{schema}.bucket(a.name, clock)"),),
        at("admission_explain", "test_a_bucket_that_another_server_counts"),
    ),
    Mutant(
        "rates", "a new rate fills a bucket",
        (sql("set_rate", "level = least(coalesce(excluded.override_burst, r.burst),\n    {schema}.level_at(",
             "level = coalesce(excluded.override_burst, r.burst,\n    {schema}.level_at("),),
        at("admission_rates", "test_a_new_rate_keeps_the_level"),
    ),
    Mutant(
        "rates", "of two buckets one gives alone",
        (sql("take_units", "s.now) = '-infinity') OVER ()", "s.now) = '-infinity') OVER (PARTITION BY s.name)"),),
        at("limiter", "test_all_or_nothing_is_taken"),
    ),
    Mutant(
        "breakers", "every job is a probe",
        (gate("IF kinds[node] = 'breaker' AND rooms[node] < 'Infinity' THEN", "IF false THEN"),),
        at("admission_breakers", "test_exactly_one_job_is_the_probe", "test_the_success_of_the_probe_closes_it"),
    ),
    Mutant(
        "breakers", "a probe that is gone keeps its place",
        (gate("AND p.attempt = b.probe_attempt\n        AND p.state = 'running') THEN 0",
              "AND p.attempt > 0) THEN 0"),),
        at("admission_breakers", "test_a_dead_probe_is_replaced",
           "test_a_probe_that_ended_without_a_word_is_replaced"),
    ),
    Mutant(
        "breakers", "no time closes the wait",
        (gate("CASE b.state WHEN 'open' THEN coalesce(b.retry_at, '-infinity') ELSE '-infinity' END,",
              "'-infinity',"),),
        at("admission_breakers", "test_failures_in_a_row_open_it"),
    ),
    Mutant(
        "breakers", "refused jobs take units",
        (gate("CONTINUE WHEN refuser > 0 AND kinds[node] <> 'running';", "CONTINUE WHEN false;"),),
        at("admission_breakers", "test_refused_jobs_take_no_units_but_keep_to_their_caps"),
    ),
    Mutant(
        "breakers", "refused jobs pass their caps",
        (gate("held := full_up;", "held := false;"),),
        at("admission_breakers", "test_refused_jobs_take_no_units_but_keep_to_their_caps"),
    ),
)  # fmt: skip

MUTANTS = (*GATED, *LOCKED, *HELD, *SHARED, *LIMITED)
