"""The guards of the outbox and the inbox on PostgreSQL, and for each an edit that takes it away."""

from __future__ import annotations

from tests.mutants.mutated import Edit
from tests.mutants.sql_mutants import STORE, C, Mutant, sql

OUTBOX = "tests/integration/test_postgres_outbox.py"
INBOX = "tests/integration/test_postgres_inbox.py"
CALLS = f"{STORE}/migrations/0014_pre_single_calls.sql"

ROLES = (
    Mutant(
        "leader term", "hold_term without the role",
        (sql("hold_term", "one = %(role)s AND", "%(role)s::text IS NOT NULL AND"),),
        (f"{OUTBOX}::test_a_term_of_another_role_does_not_stand_in_for_the_relays",),
    ),
)  # fmt: skip

HELD = (
    Mutant(
        "held behind a parked row", "who holds does not keep the parked row",
        (sql("hold_events", "  FOR SHARE OF p\n", ""),),
        (f"{OUTBOX}::test_nothing_is_held_behind_a_row_that_is_being_released",),
    ),
    Mutant(
        "held behind a parked row", "who releases keeps no other parked row",
        (sql("lock_parked", "FOR UPDATE OF p", ""),),
        (f"{OUTBOX}::test_two_who_release_two_rows_of_one_key_leave_nothing_held",),
    ),
    Mutant(
        "held behind a parked row", "a release lets go what another parked row holds",
        (sql("free_held", "p.state = 'parked' AND", "false AND"),),
        (f"{C}/test_outbox_parking.py::test_a_held_row_waits_for_the_last_parked_one_of_its_key",),
    ),
    Mutant(
        "held behind a parked row", "a published row goes though it is parked",
        (sql("mark_published", " AND o.state IS DISTINCT FROM 'parked'", ""),),
        (f"{OUTBOX}::test_a_bus_that_has_a_parked_row_does_not_let_go_what_it_holds",),
    ),
)  # fmt: skip

ONCE = (
    Mutant(
        "an event with its change", "a known event leaves again",
        (Edit(CALLS, "(g.id IN (SELECT f.id FROM fresh AS f)) IS TRUE", "g.id IS NOT NULL"),),
        (f"{C}/test_outbox.py::test_a_known_id_changes_nothing",),
    ),
    Mutant(
        "an event with its change", "jobs that were not ended here emit",
        (Edit(f"{STORE}/completion.py", " and c.job_id in ids", ""),),
        (f"{OUTBOX}::test_events_leave_with_the_success_of_their_job_only",),
    ),
    Mutant(
        "an event with its change", "failures emit",
        (Edit(f"{STORE}/completion.py", "c.state is JobState.SUCCEEDED and ", ""),),
        (f"{OUTBOX}::test_events_leave_with_the_success_of_their_job_only",),
    ),
    Mutant(
        "an event with its change", "endings that were there before emit",
        (Edit(f"{STORE}/run_store.py", 'for path in rows[0]["kept"]', "for path in first"),),
        (f"{C}/test_outbox_writers.py::test_events_leave_with_the_endings_that_are_kept",),
    ),
    Mutant(
        "an event with its change", "events that no bus has are pruned",
        (sql("prune_events", "o.event_id = e.id OFFSET 0", "o.event_id = e.id AND false OFFSET 0"),),
        (f"{C}/test_outbox.py::test_the_log_forgets_what_is_old",),
    ),
)  # fmt: skip

HANDLED = (
    Mutant(
        "one effect of a message", "a message is noted again",
        (sql("note_handled", "DO NOTHING", "DO UPDATE SET handled_at = excluded.handled_at"),),
        (f"{C}/test_inbox.py::test_a_message_is_handled_once_by_each_consumer",),
    ),
    Mutant(
        "one effect of a message", "one of several messages is noted again",
        (sql("note_all_handled", "DO NOTHING", "DO UPDATE SET handled_at = excluded.handled_at"),),
        (f"{C}/test_inbox.py::test_one_that_was_handled_before_keeps_all_from_being_stored",),
    ),
    Mutant(
        "one effect of a message", "what a write added before a failure is stored twice",
        (Edit(f"{STORE}/inbox.py", "        added = effect.split(said)\n", "        added = Effect()\n"),),
        (f"{C}/test_inbox.py::test_what_a_write_adds_is_stored_with_it",),
    ),
    Mutant(
        "one effect of a message", "events are stored whether their message was noted or not",
        (sql("accept_events", "FROM noted", "FROM (SELECT count(*) FROM noted) AS n"),),
        (f"{C}/test_inbox.py::test_a_message_is_handled_once_by_each_consumer",),
    ),
    Mutant(
        "one effect of a message", "a write that was aborted looks like success",
        (Edit(f"{STORE}/inbox.py", "        await _check_open(tx, write)\n", ""),),
        (f"{INBOX}::test_a_write_that_breaks_the_transaction_is_no_success",),
    ),
)  # fmt: skip

MUTANTS = (*ROLES, *HELD, *ONCE, *HANDLED)
