"""The guards of the ledger of calls, of budgets and of names on Redis, each with an edit that takes it away."""

from __future__ import annotations

from tests.mutants.lua_mutants import at, lua
from tests.mutants.sql_mutants import Mutant

FLIGHT = (
    Mutant(
        "single flight", "a live call does not hold its key",
        (lua("open_calls", "if alive(row.session) then", "if false then"),),
        at("call_store_open", "test_a_live_call_holds_its_key"),
    ),
    Mutant(
        "single flight", "a dead session holds its key",
        (lua("open_calls", "if alive(row.session) then", "if row then"),),
        at("call_store_open", "test_a_dead_session_does_not_hold_a_key"),
    ),
    Mutant(
        "single flight", "a paid answer is bought again",
        (lua("open_calls", "not asked.fresh and call('GET', ROOT .. 'answer:' .. new.key)", "nil"),),
        at("call_store_open", "test_an_answer_that_is_stored_stands"),
    ),
    Mutant(
        "single flight", "a call that ended is opened again",
        (lua("open_calls", "if not is_live(row.state) then", "if false then"),),
        at("call_store_open", "test_an_id_that_ended_is_not_opened_again"),
    ),
    Mutant(
        "single flight", "a call that was removed is sent",
        (lua("send_calls", "if is_live(state) then", "if true then"),),
        at("call_store_open", "test_a_prepared_call_is_sent_once_it_has_its_quota"),
    ),
    Mutant(
        "single flight", "a call that was given up spools", (lua("spool_items", "row and is_live(row.state)", "row"),),
        at("call_store_spool", "test_only_a_live_call_spools"),
    ),
    Mutant(
        "single flight", "a number is written twice",
        (lua("spool_items", "call('HSETNX', spool_key(row.key), number, ARGV[index + 2]) == 1",
             "call('HSET', spool_key(row.key), number, ARGV[index + 2])"),),
        at("call_store_spool", "test_a_number_is_written_once"),
    ),
    Mutant(
        "single flight", "the reaper takes from the living", (lua("reap_calls", "not alive(session)", "true"),),
        at("call_store_settle", "test_the_reaper_ends_calls_of_dead_sessions"),
    ),
)  # fmt: skip

BUDGETS = (
    Mutant(
        "budget", "budgets are not looked at",
        (lua("open_calls", "return not limit or figure_of", "return true or figure_of"),),
        at("budget_store", "test_each_scope_of_a_call_has_its_budget"),
    ),
    Mutant(
        "budget", "what calls in flight may use is not looked at",
        (lua("open_calls", " + figure_of(key, 'reserved_' .. figure)", ""),),
        at("budget_store", "test_what_was_not_used_is_free_again"),
    ),
    Mutant(
        "budget", "calls of one list do not see one another",
        (lua("lib/sums", " + (changes[key] and changes[key][figure] or 0)", ""),),
        at("budget_store", "test_a_budget_in_one_list_is_filled_to_the_brim"),
    ),
    Mutant(
        "budget", "an orphan does not count before the next is opened",
        (lua("lib/ledger", "count_call(row, 1)\nend", "end"),),
        at("call_store_open", "test_the_orphan_counts_before_the_next_is_opened"),
    ),
    Mutant(
        "budget", "what is reserved is not given back", (lua("lib/ledger", "reserve_call(row, -1)", ""),),
        at("budget_store", "test_what_was_not_used_is_free_again"),
    ),
    Mutant(
        "budget", "the budget of the day never begins anew",
        (lua("lib/sums", "scope == 'day' and 'day:' .. day or scope", "scope"),),
        at("budget_store", "test_the_budget_of_the_day_begins_anew"),
    ),
    Mutant(
        "pool", "calls in flight are not looked at",
        (lua("open_calls", "most_in_flight and call('ZCARD', live) >= most_in_flight", "false"),),
        at("call_store_open", "test_a_pool_has_as_many_calls_in_flight_as_it_may"),
    ),
    Mutant(
        "pool", "calls in flight do not count for the day",
        (lua("open_calls", "if begun + figure_of", "if figure_of"),),
        at("call_store_open", "test_the_calls_of_a_day_are_counted"),
    ),
)  # fmt: skip

SETTLING = (
    Mutant(
        "spent once", "a settled call is settled again",
        (lua("settle_calls", "is_live(row.state) or row.state == 'orphaned' and said.ending.state == 'settled'",
             "true"),),
        at("call_store_settle", "test_a_call_is_settled_once"),
    ),
    Mutant(
        "spent once", "an orphan is orphaned again", (lua("settle_calls", " and said.ending.state == 'settled'", ""),),
        at("call_store_settle", "test_an_orphan_stays_as_it_was_said_first"),
    ),
    Mutant(
        "spent once", "what was feared stays counted", (lua("lib/ledger", "count_call(row, -1)", ""),),
        at("call_store_settle", "test_a_late_answer_settles_an_orphan"),
    ),
    Mutant(
        "spent once", "a prepared call costs",
        (lua("settle_calls", "elseif row.state == 'prepared' then", "elseif false then"),),
        at("call_store_settle", "test_a_prepared_call_that_ends_costs_nothing"),
    ),
    Mutant(
        "spent once", "a settlement puts its answer over another",
        (lua("settle_calls", "answer, 'NX')", "answer)"),),
        at("call_store_settle", "test_the_first_answer_stands_and_costs_of_both_count"),
    ),
    Mutant(
        "spent once", "a repeated settlement replaces an answer",
        (lua("settle_calls", " and not (row and row.state == 'settled')", ""),),
        at("call_store_settle", "test_a_repeated_replacement_replaces_nothing"),
    ),
    Mutant(
        "spent once", "sums that a budget needs are pruned",
        (lua("prune_spend", "call('ZSCORE', ROOT .. 'budgets', scope)", "false"),),
        at("call_store_spool", "test_sums_outlive_their_calls"),
    ),
)  # fmt: skip

KEEPING = (
    Mutant(
        "single flight", "a call dies with the session that opened it first",
        (
            lua("lib/ledger", "if former and former ~= session then", "if false then"),
            lua("reap_calls", "row and row.session == session", "row"),
        ),
        at("call_store_open", "test_opening_again_takes_the_call_into_its_session"),
    ),
    Mutant(
        "ledger retention", "live calls are pruned",
        (lua("prune_calls", "is_live(row[1])", "false"),),
        at("call_store_spool", "test_ended_calls_are_kept_as_long_as_answers"),
    ),
    Mutant(
        "ledger retention", "a job keeps calls that are gone",
        (lua("lib/ledger", "call('ZREM', ROOT .. 'calls_of:' .. job, id)", ""),),
        at("call_store_spool", "test_ended_calls_are_kept_as_long_as_answers"),
    ),
    *(
        Mutant(
            "ledger retention", f"{name} without a look at the term",
            (lua(name, "not leads(ARGV[2], ARGV[3])", "false"),),
            ("tests/integration/test_redis_calls.py::test_a_former_leader_prunes_nothing_of_the_ledger",),
        )
        for name in ("prune_calls", "prune_spend")
    ),
)  # fmt: skip

NAMES = (
    Mutant(
        "names", "a name is taken twice", (lua("claim_names", "if not known then", "if true then"),),
        at("name_store", "test_a_name_is_taken_once"),
    ),
    Mutant(
        "names", "names are taken unseen",
        (lua("claim_names", "if #news > 0 then\n  return", "if false then\n  return"),),
        at("name_store", "test_names_that_were_not_seen_come_first"),
    ),
    Mutant(
        "names", "names of others are given back",
        (lua("release_names", "if string.match(known, '^%d+ (%x+)') == ARGV[3] then", "if known then"),),
        at("name_store", "test_names_are_given_back"),
    ),
)  # fmt: skip

LEDGER_MUTANTS = (*FLIGHT, *BUDGETS, *SETTLING, *KEEPING, *NAMES)
