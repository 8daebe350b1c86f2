"""The guards of the PostgreSQL store, and for each an edit that takes it away and the tests that notice.

Edits are of the `.sql` files; where a guard lies in the Python beside them (an order of locks, the hash of a body), of
that. Two guards have a second one behind them, which the edit takes away too, or nobody could see the first one gone:
the running state is checked beside the session, because a job that goes back loses its session in the same statement;
and a batch that is not sealed has no total, which a constraint of the table asks of a closed one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.mutants.mutated import Edit

STORE = "stores/postgres"
C = "tests/conformance"
LOCKS = "tests/integration/test_postgres_lock_order.py"
OUTAGES = "tests/integration/test_postgres_outages.py"
RACES = "tests/integration/test_postgres_races.py"
LEDGERS = "tests/integration/test_postgres_calls.py"
NOW = "coalesce(%(now)s::timestamptz, now())"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A guard taken away by `edits`; at least one of `tests` has to fail."""

    guard: str
    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.guard}: {self.name}"


def sql(name: str, old: str, new: str) -> Edit:
    """Return an edit of a statement."""
    return Edit(f"{STORE}/queries/{name}.sql", old, new)


FENCE = (
    Mutant(
        "fence", "finish_jobs without the attempt",
        (sql("finish_jobs", "j.id = d.id AND j.attempt = d.attempt AND", "j.id = d.id AND"),),
        (f"{C}/test_job_store_complete.py::test_each_part_of_the_fence_holds_alone",),
    ),
    Mutant(
        "fence", "finish_jobs without the session",
        (sql("finish_jobs", "AND j.session IS NOT DISTINCT FROM %(session)s::uuid", ""),),
        (f"{C}/test_job_store_complete.py::test_each_part_of_the_fence_holds_alone",),
    ),
    Mutant(
        "fence", "finish_jobs without session and state",
        (sql(
            "finish_jobs",
            "AND j.session IS NOT DISTINCT FROM %(session)s::uuid\n    AND j.state IS NOT DISTINCT FROM 'running'", "",
        ),),
        (f"{C}/test_job_store_complete.py::test_a_late_ack_after_rescue_changes_nothing",),
    ),
    Mutant(
        "fence", "finish_logged without the attempt",
        (sql("finish_logged", "j.id = d.id AND j.attempt = d.attempt AND", "j.id = d.id AND"),),
        (f"{C}/test_attempt_logs.py::test_a_refused_ending_keeps_nothing",),
    ),
    Mutant(
        "fence", "finish_logged without the session",
        (sql("finish_logged", "AND j.session IS NOT DISTINCT FROM %(session)s::uuid", ""),),
        (f"{C}/test_attempt_logs.py::test_a_refused_ending_keeps_nothing",),
    ),
    Mutant(
        "fence", "return_jobs without the attempt",
        (sql("return_jobs", "WHERE j.attempt = d.attempt AND", "WHERE"),),
        (f"{C}/test_job_store_complete.py::test_each_part_of_the_fence_holds_alone",),
    ),
    Mutant(
        "fence", "return_jobs without the session",
        (sql("return_jobs", "AND j.session IS NOT DISTINCT FROM %(session)s::uuid", ""),),
        (f"{C}/test_job_store_complete.py::test_each_part_of_the_fence_holds_alone",),
    ),
    Mutant(
        "fence", "return_jobs without session and state",
        (sql(
            "return_jobs",
            "AND j.session IS NOT DISTINCT FROM %(session)s::uuid\n    AND j.state IS NOT DISTINCT FROM 'running'", "",
        ),),
        (f"{C}/test_job_store_complete.py::test_a_job_that_does_not_run_is_refused",),
    ),
    Mutant(
        "fence", "save_step without the attempt",
        (sql("save_step", "AND j.attempt = %(attempt)s::int ", ""),),
        (f"{C}/test_job_store_steps.py::test_an_attempt_that_lost_its_job_stores_nothing",),
    ),
    Mutant(
        "fence", "save_step without the session",
        (sql("save_step", "AND j.session IS NOT DISTINCT FROM %(session)s::uuid", ""),),
        (f"{C}/test_job_store_steps.py::test_an_attempt_that_lost_its_job_stores_nothing",),
    ),
    Mutant(
        "fence", "a rescue takes what does not run",
        (sql("rescue_jobs", "    AND j.state = 'running'\n    AND NOT", "    AND NOT"),),
        (f"{C}/test_job_store_rescue.py::test_a_rescue_leaves_what_does_not_run_alone",),
    ),
    Mutant(
        "fence", "a finished row is written again",
        (sql("finish_jobs", "SELECT * FROM gone\n)", """SELECT * FROM gone
  ON CONFLICT (id) DO UPDATE SET state = excluded.state\n)"""),),
        (f"{C}/test_job_store_intake.py::test_a_late_duplicate_changes_nothing_final",),
    ),
    Mutant(
        "fence", "a step is overwritten",
        (sql("save_step", "ELSE s.value END", "ELSE excluded.value END"),),
        (f"{C}/test_job_store_steps.py::test_a_step_is_written_once",),
    ),
    Mutant(
        "fence", "a step of an executor is overwritten in its attempt",
        (sql("save_step", " AND s.value ->> 'attempt' IS DISTINCT FROM %(attempt)s::int::text", ""),),
        (f"{C}/test_job_store_steps.py::test_what_an_executor_keeps_is_of_one_attempt",),
    ),
)  # fmt: skip

SESSIONS = (
    Mutant(
        "session expiry", "a dead session claims",
        (sql("claim_jobs", f"s.id = %(session)s AND s.expires_at > {NOW}", "s.id = %(session)s"),),
        (f"{C}/test_job_store_claim.py::test_a_session_claims_until_its_lease_ends",),
    ),
    Mutant(
        "session expiry", "an ended lease is renewed",
        (sql("renew_session", f"WHERE id = %(session)s AND expires_at > {NOW}", "WHERE id = %(session)s"),),
        (f"{C}/test_session_store.py::test_a_lease_that_ended_is_never_renewed",),
    ),
    Mutant(
        "session expiry", "an ended session is registered again",
        (sql("register_session", "DO NOTHING", "DO UPDATE SET expires_at = excluded.expires_at"),),
        (f"{C}/test_session_store.py::test_a_dead_session_is_not_revived_by_registering_it",),
    ),
    Mutant(
        "session expiry", "a rescue takes from the living",
        (sql("rescue_jobs", "WHERE s.id = j.session AND s.expires_at >", "WHERE false AND s.expires_at >"),),
        (f"{C}/test_job_store_rescue.py::test_only_the_dead_are_rescued",),
    ),
    Mutant(
        "session expiry", "a rescue takes the death of a worker for a crash on its farm",
        (sql("rescue_jobs", "= j.attempt::text, false)", "IS NULL AND false, false)"),),
        (f"{C}/test_job_store_rescue.py::test_what_a_farm_had_begun_did_not_crash_with_its_worker",),
    ),
    Mutant(
        "session expiry", "a rescue goes by what a farm had begun before",
        (sql("rescue_jobs", "= j.attempt::text, false)", "IS NOT NULL, false)"),),
        (f"{C}/test_job_store_rescue.py::test_only_the_attempt_that_a_farm_had_begun_counts",),
    ),
    Mutant(
        "session expiry", "a rescue goes by any step",
        (sql("rescue_jobs", " AND s.name = %(begun)s::text", " AND %(begun)s::text > ''"),),
        (f"{C}/test_job_store_rescue.py::test_what_a_farm_had_begun_did_not_crash_with_its_worker",),
    ),
    Mutant(
        "session expiry", "a rescue waits for sessions to go missing",
        (sql("rescue_jobs", f"WHERE s.id = j.session AND s.expires_at > {NOW}", "WHERE s.id = j.session"),),
        (f"{C}/test_job_store_rescue.py::test_an_expired_session_returns_its_jobs",),
    ),
)  # fmt: skip

NO_SEAL = (
    sql("close_batches", "WHERE b.state IN ('sealed', 'cancelling')\n)", "WHERE b.state <> 'closed'\n)"),
    sql("close_batches", "NOT a.live AND b.state IN ('sealed', 'cancelling')", "NOT a.live AND b.state <> 'closed'"),
    Edit(
        f"{STORE}/migrations/0001_pre_core.sql",
        "CHECK (state IN ('open', 'abandoned') OR total IS NOT NULL)",
        "CHECK (true)",
    ),
)
BATCHES = (
    Mutant(
        "seal", "an open batch closes", NO_SEAL,
        (f"{C}/test_batch_store_stream.py::test_an_open_batch_is_not_closed",),
    ),
    Mutant(
        "seal", "a sealed batch takes another slice",
        (sql("append_items", "WHERE b.id = %(batch_id)s AND b.state = 'open'", "WHERE b.id = %(batch_id)s"),),
        (f"{C}/test_batch_store_stream.py::test_a_sealed_batch_takes_nothing_more",),
    ),
    Mutant(
        "post-commit close", "a batch closes with work left",
        (sql("close_batches", "AND NOT a.live AND", "AND"),),
        (f"{C}/test_batch_store_close.py::test_a_batch_with_work_left_stays_sealed",),
    ),
    Mutant(
        "post-commit close", "a stale count closes",
        (sql("close_batches", "'cancelling') AND b.changes = a.changes\n  RETURNING b.id, b.outcome",
             "'cancelling')\n  RETURNING b.id, b.outcome"),),
        (f"{RACES}::test_a_close_whose_count_is_stale_is_refused",),
    ),
    Mutant(
        "post-commit close", "a batch closes twice in a round",
        (sql("close_batches", "WHERE b.state IN ('sealed', 'cancelling')\n)", "WHERE b.state <> 'open'\n)"),
         sql("close_batches", "NOT a.live AND b.state IN ('sealed', 'cancelling')", "NOT a.live")),
        (f"{C}/test_batch_store_close.py::test_a_batch_closes_once",),
    ),
    Mutant(
        # What is still open is counted by the statement that ends a job, which cannot see what others end meanwhile.
        "post-commit close", "the completing statement decides whether its batch is done",
        (sql("finish_jobs", "  SELECT * FROM gone\n)", """  SELECT * FROM gone
), counted AS (
  UPDATE {schema}.batches AS b SET changes = -1
  WHERE b.id IN (SELECT g.batch_id FROM gone AS g) AND NOT EXISTS (SELECT FROM {schema}.jobs AS o
    WHERE o.batch_id = b.id AND o.id NOT IN (SELECT g.id FROM gone AS g))
)"""),
         sql("close_batches", "WHERE b.state IN ('sealed', 'cancelling')\n)",
             "WHERE b.state IN ('sealed', 'cancelling') AND b.changes = -1\n)")),
        # The first fails almost always, the second always: there the two endings are held apart.
        (f"{C}/test_batch_store_close.py::test_many_races_of_two_last_items_lose_no_close",
         "tests/integration/test_postgres_closing.py"),
    ),
)  # fmt: skip

KEYS = (
    Mutant(
        "unique key", "a known key is taken over",
        (sql("insert_keys", f"WHERE known.expires_at <= {NOW}", "WHERE true"),),
        (f"{C}/test_job_store_idempotency.py::test_the_same_key_and_body_give_the_same_id",),
    ),
    Mutant(
        "unique key", "keys are read, then written, under no constraint",
        (Edit(f"{STORE}/migrations/0001_pre_core.sql",
              "  expires_at timestamptz,\n  CONSTRAINT idempotency_keys_pkey PRIMARY KEY (scope, key)",
              "  expires_at timestamptz"),
         sql("insert_keys", f"""ORDER BY k.place
ON CONFLICT (scope, key) DO UPDATE
  SET id = excluded.id, body_hash = excluded.body_hash, expires_at = excluded.expires_at
  WHERE known.expires_at <= {NOW}
RETURNING""", """WHERE NOT EXISTS (SELECT FROM {schema}.idempotency_keys AS o WHERE o.scope = k.scope AND o.key = k.key)
RETURNING""")),
        (f"{C}/test_job_store_idempotency.py::test_concurrent_equal_submits_make_one_job",
         f"{RACES}::test_a_second_submitter_waits_for_the_first_and_gets_its_answer"),
    ),
    Mutant(
        "unique key", "another body is not looked at",
        (Edit(f"{STORE}/intake.py", "if job.body_hash != body_hash:", "if not job:"),),
        (f"{C}/test_job_store_idempotency.py::test_the_same_key_with_another_body_is_a_conflict",),
    ),
    Mutant(
        "unique key", "a known key makes another batch",
        (sql("create_batch", "WHERE %(key)s::text IS NULL OR EXISTS (SELECT FROM named)", "WHERE true"),),
        (f"{C}/test_batch_store_create.py::test_the_same_key_and_body_give_the_same_batch",),
    ),
    Mutant(
        "unique key", "a paid answer is overwritten",
        (sql("store_answer", "DO NOTHING", "DO UPDATE SET answer = excluded.answer"),),
        (f"{C}/test_memo_store.py::test_the_first_answer_stands",),
    ),
)  # fmt: skip

_HELD = "l.session = %(session)s AND l.term = %(term)s"
_TERMS = (f"{C}/test_leader_terms.py",)
LEADER = (
    *(
        Mutant("leader term", f"{name} without {what}", (sql(name, old, new),), _TERMS)
        for name in ("fail_overdue_jobs", "find_unclosed", "abandon_batches")
        for what, old, new in [
            ("the term", _HELD, "l.session = %(session)s AND %(term)s::bigint > 0"),
            ("the session", _HELD, "%(session)s::uuid IS NOT NULL AND l.term = %(term)s"),
        ]
    ),
    Mutant(
        "leader term", "hold_term without the term",
        (sql("hold_term", "session = %(session)s AND term = %(term)s", "session = %(session)s"),), _TERMS,
    ),
    Mutant(
        "leader term", "hold_term without its end",
        (sql("hold_term", f" AND expires_at > {NOW}", ""),), _TERMS,
    ),
    Mutant(
        "leader term", "anyone becomes the leader",
        (sql("lead", f"WHERE l.session = excluded.session OR l.expires_at <= {NOW}", "WHERE true"),),
        (f"{C}/test_session_store.py::test_the_first_to_ask_leads",),
    ),
    Mutant(
        "leader term", "a new leader goes on with the old term",
        (sql("lead", "THEN 0 ELSE 1 END", "THEN 0 ELSE 0 END"),),
        (f"{C}/test_session_store.py::test_a_lapsed_leader_is_replaced_in_a_new_term",),
    ),
    Mutant(
        "leader term", "a former leader resigns for the new one",
        (sql("resign", "WHERE session = %(session)s AND term = %(term)s AND", "WHERE"),),
        (f"{C}/test_session_store.py::test_resigning_from_an_old_term_changes_nothing",),
    ),
)  # fmt: skip

RACING = (
    Mutant(
        "ordered locks", "endings lock in the order of the call",
        (Edit(f"{STORE}/completion.py", "sorted(completions, key=_job_id)", "list(completions)"),),
        (f"{LOCKS}::test_endings_lock_jobs_in_one_order",),
    ),
    Mutant(
        "ordered locks", "closers lock in the order of the call",
        (Edit(f"{STORE}/batch_store.py", "ids = sorted(set(batch_ids))", "ids = list(dict.fromkeys(batch_ids))"),),
        (f"{LOCKS}::test_closers_lock_batches_in_one_order",),
    ),
    Mutant(
        "ordered locks", "submitters lock keys in the order of the call",
        (Edit(f"{STORE}/intake.py", "names = sorted(wanted)", "names = list(wanted)"),),
        (f"{LOCKS}::test_submitters_lock_keys_in_one_order",),
    ),
)  # fmt: skip

S = f"{C}/test_schedule_store.py"
SCHEDULES = (
    Mutant(
        "a fire time once", "fires are noted without their unique index",
        (Edit(f"{STORE}/migrations/0007_pre_schedules.sql", "CREATE UNIQUE INDEX", "CREATE INDEX"),
         sql("note_fires", "ON CONFLICT (schedule, fire_at) WHERE NOT manual DO NOTHING\n", "")),
        (f"{S}::test_a_time_that_was_fired_makes_no_second_job_though_the_clock_went_back",),
    ),
    Mutant(
        "a fire time once", "a schedule is moved whatever became of it since",
        (sql("move_schedule", " AND after_at = %(seen_at)s::timestamptz",
             " AND (%(seen_at)s::timestamptz IS NOT NULL OR true)"),),
        (f"{S}::test_a_schedule_that_another_one_moved_is_not_moved_back",),
    ),
    Mutant(
        "a changed rule is planned anew", "a schedule is moved whatever its rule is now",
        (sql("move_schedule", " AND rule = %(rule)s", " AND %(rule)s::text IS NOT NULL"),),
        (f"{S}::test_a_rule_that_changed_in_the_same_moment_is_not_fired",),
    ),
    Mutant(
        "pause", "a paused schedule is moved",
        (sql("move_schedule", " AND NOT paused\n", "\n"),),
        (f"{S}::test_a_paused_schedule_fires_nothing_and_goes_on_from_now",),
    ),
    Mutant(
        "the store's clock", "fire times ahead are fired",
        (sql("move_schedule", "%(last_at)s::timestamptz <= coalesce(%(now)s::timestamptz, now())",
             "coalesce(%(now)s::timestamptz, now()) IS NOT NULL"),),
        (f"{S}::test_nothing_fires_before_its_time",),
    ),
    Mutant(
        "leader term", "a fire without a look at the term",
        (Edit(f"{STORE}/schedule_store.py", "raise _TermOverError", "pass"),),
        (f"{S}::test_a_term_that_is_over_fires_nothing",),
    ),
    Mutant(
        "rest", "a schedule that nobody declares is due",
        (sql("due_schedules", "ON NOT s.paused AND s.declared_at > t.now - %(declared_for)s::interval\n",
             "ON NOT s.paused\n"),),
        (f"{S}::test_a_schedule_that_no_worker_declares_comes_to_rest",),
    ),
)  # fmt: skip

HINTS = (
    Mutant(
        "hint behind the commit", "insert_job notifies inside its transaction",
        (Edit(f"{STORE}/migrations/0006_pre_admission.sql", "    COMMIT;\n", ""),),
        (f"{OUTAGES}::test_a_hint_that_rides_is_no_part_of_its_transaction",),
    ),
)  # fmt: skip

CALLS = f"{STORE}/migrations/0009_pre_calls.sql"
ALIVE = f"AND NOT EXISTS (SELECT FROM {{schema}}.sessions AS s\n    WHERE s.id = c.session AND s.expires_at > {NOW})"
NO_UNIQUE_CALL = Edit(CALLS, "CREATE UNIQUE INDEX calls_held", "CREATE INDEX calls_held")
LEDGER = (
    Mutant(
        "one call of a key", "a live call holds nothing",
        (Edit(CALLS, "    ELSIF held[i] THEN\n", "    ELSIF held[i] AND false THEN\n"), NO_UNIQUE_CALL),
        (f"{C}/test_call_store_open.py::test_a_live_call_holds_its_key",),
    ),
    Mutant(
        "one call of a key", "openers do not wait for their rivals for a key",
        (Edit(CALLS, "SELECT '{schema} call ' || k.key FROM unnest(keys) AS k (key)",
              "SELECT '{schema} call ' || gen_random_uuid()"), NO_UNIQUE_CALL),
        (f"{C}/test_call_store_races.py::test_of_many_openers_of_one_key_one_opens_it",
         f"{LEDGERS}::test_a_rival_for_a_key_waits_for_the_first"),
    ),
    Mutant(
        "one call of a key", "stored answers are not looked for",
        (Edit(CALLS, "    FROM unnest(ids, keys, freshes) WITH ORDINALITY AS w (id, key, fresh, number)\n",
              "    FROM unnest(ids, keys, ARRAY(SELECT true FROM unnest(ids))) WITH ORDINALITY"
              " AS w (id, key, fresh, number)\n"),),
        (f"{C}/test_call_store_open.py::test_an_answer_that_is_stored_stands",),
    ),
    Mutant(
        "one call of a key", "a call that was opened before is not known again",
        (Edit(CALLS, "CASE WHEN states[i] = ANY(live) THEN 'opened' ELSE 'ended' END", "'ended'"),),
        (f"{C}/test_call_store_open.py::test_opening_again_under_the_same_id_is_its_own",),
    ),
    Mutant(
        "session expiry", "the call of a dead session holds its key",
        (Edit(CALLS, "FILTER (WHERE o.id IS NULL AND a.key IS NULL AND h.id IS NOT NULL AND s.id IS NULL)",
              "FILTER (WHERE false)"),),
        (f"{C}/test_call_store_open.py::test_a_dead_session_does_not_hold_a_key",),
    ),
    Mutant(
        "session expiry", "calls of the living are reaped",
        (sql("reap_calls", ALIVE, ""),
         Edit(CALLS, "WHERE s.id = c.session AND s.expires_at > clock)", "WHERE false)")),
        (f"{C}/test_call_store_settle.py::test_the_reaper_ends_calls_of_dead_sessions",),
    ),
    Mutant(
        "budgets and pools", "what is in flight reserves nothing",
        (Edit(CALLS, "b.cost_nano - p.nano - coalesce(r.nano, 0)", "b.cost_nano - p.nano"),),
        (f"{C}/test_budget_store.py::test_a_budget_may_be_used_up_to_its_limit",),
    ),
    Mutant(
        "budgets and pools", "calls of one list do not count against one another",
        (Edit(CALLS, "nano_rooms[b] := nano_rooms[b] - coalesce(most_nanos[i], 0);", ""),),
        (f"{C}/test_call_store_open.py::test_calls_of_one_list_are_taken_in_order",),
    ),
    Mutant(
        "budgets and pools", "openers do not wait for their rivals for a budget",
        (Edit(CALLS, "UNION ALL SELECT '{schema} budget ' || b.scope FROM unnest(budgeted) AS b (scope)", ""),),
        (f"{LEDGERS}::test_what_rivals_for_a_budget_left_is_counted",),
    ),
    Mutant(
        "budgets and pools", "openers do not wait for their rivals for a pool",
        (Edit(CALLS, "UNION ALL SELECT '{schema} pool ' || p.pool FROM unnest(limited) AS p (pool)", ""),),
        (f"{LEDGERS}::test_what_rivals_for_a_pool_left_is_counted",),
    ),
    Mutant(
        "budgets and pools", "calls that ended do not count for their day",
        (Edit(CALLS, "f.opened_today + e.calls", "f.opened_today"),),
        (f"{C}/test_call_store_open.py::test_the_calls_of_a_day_are_counted",),
    ),
    Mutant(
        "paid once", "a settled call is settled again",
        (Edit(CALLS, "(c.state IN ('sent', 'received') OR", "(c.state IN ('sent', 'received', 'settled') OR"),),
        (f"{C}/test_call_store_settle.py::test_a_call_is_settled_once",),
    ),
    Mutant(
        "paid once", "an orphan that is settled stays counted",
        (Edit(CALLS, "    UNION ALL SELECT -1, o.* FROM orphans AS o JOIN ended AS e ON e.id = o.id\n", ""),),
        (f"{C}/test_call_store_settle.py::test_a_late_answer_settles_an_orphan",),
    ),
    Mutant(
        "paid once", "an answer takes the place of the one that stands",
        (Edit(CALLS, "      WHERE excluded.key = ANY(replaced);", "      WHERE true;"),),
        (f"{C}/test_call_store_settle.py::test_the_first_answer_stands_and_costs_of_both_count",),
    ),
    Mutant(
        "paid once", "a prepared call that was removed is sent",
        (sql("send_calls", "SELECT l.id FROM live AS l", "SELECT u.id FROM unnest(%(ids)s::uuid[]) AS u (id)"),),
        (f"{C}/test_call_store_open.py::test_a_prepared_call_of_a_dead_session_is_removed",),
    ),
    Mutant(
        "paid once", "a call that was given up goes on spooling",
        (sql("spool_items", "= ANY(%(calls)s::uuid[]) AND c.state IN ('prepared', 'sent', 'received')",
             "= ANY(%(calls)s::uuid[])"),
         sql("spool_items", "l.state <> 'received'", "l.state = 'sent'")),
        (f"{C}/test_call_store_spool.py::test_only_a_live_call_spools",),
    ),
    Mutant(
        "names once", "names are taken though others came since the caller looked",
        (Edit(CALLS, "  IF FOUND THEN\n    RETURN;\n  END IF;\n  WITH wanted", "  WITH wanted"),),
        (f"{C}/test_name_store.py::test_names_that_were_not_seen_come_first",),
    ),
    Mutant(
        "names once", "numbers are given again",
        (Edit(CALLS, "last + f.place, claimed",
              "(SELECT count(*) FROM {schema}.known_names AS k WHERE k.scope = claimed) + f.place, claimed"),),
        (f"{C}/test_name_store.py::test_names_are_given_back",),
    ),
)  # fmt: skip

MUTANTS = (*FENCE, *SESSIONS, *BATCHES, *KEYS, *LEADER, *RACING, *SCHEDULES, *HINTS, *LEDGER)
