"""The guards of feeds, API tokens and the audit on PostgreSQL and on Redis, and for each an edit that takes it away."""

from __future__ import annotations

from tests.mutants.lua_mutants import at, lua
from tests.mutants.mutated import Edit
from tests.mutants.sql_mutants import STORE, Mutant, sql

MIGRATION = f"{STORE}/migrations/0013_pre_service.sql"
RACES = "tests/integration/test_postgres_feed_races.py"
GAPLESS, KEYS, TERM, TOKENS = "a feed without gaps", "an entry once per key", "leader term", "tokens that ended"
AUDIT = "an action once"
#: The constraint behind the lock, and the one behind the look for a key: each stands in for the other.
NO_PLACES = Edit(
    MIGRATION, "json NOT NULL,\n  CONSTRAINT feed_entries_pkey PRIMARY KEY (feed_id, seq)\n)", "json NOT NULL\n)"
)
NO_KEYS = Edit(MIGRATION, "CREATE UNIQUE INDEX feed_entries_key", "CREATE INDEX feed_entries_key")

SQL_MUTANTS = (
    Mutant(
        TERM, "prune_actions without a term",
        (Edit(f"{STORE}/audit_store.py", 'term, "prune_actions"', 'None, "prune_actions"'),),
        at("audit_store", "test_a_term_that_is_over_removes_nothing"),
    ),
    Mutant(
        AUDIT, "pages of actions of one moment overlap",
        (sql("list_actions_of", "(a.done_at, a.id) <", "(a.done_at, a.id) <="),),
        at("audit_store", "test_pages_follow_one_another"),
    ),
    Mutant(
        GAPLESS, "numbers are given without holding the feed",
        (NO_PLACES, Edit(MIGRATION, "f.name = feed FOR UPDATE;", "f.name = feed;")),
        (*at("feed_store", "test_appends_at_once_leave_no_gap"),
         f"{RACES}::test_a_number_is_given_once_the_one_before_is_committed"),
    ),
    Mutant(
        GAPLESS, "feeds are pruned without holding them", (sql("hold_old_feeds", " FOR UPDATE SKIP LOCKED", ""),),
        (f"{RACES}::test_a_feed_that_grows_just_now_is_not_forgotten",),
    ),
    Mutant(
        GAPLESS, "old entries behind young ones go",
        (sql("prune_feeds", "bool_and(", "("), sql("prune_feeds", "OVER (ORDER BY x.seq) AS over", "AS over")),
        at("feed_store", "test_what_is_removed_leaves_no_gap"),
    ),
    Mutant(
        GAPLESS, "a feed is forgotten with entries left", (sql("prune_feeds", " AND k.since IS NULL", ""),),
        at("feed_store", "test_old_entries_are_removed"),
    ),
    Mutant(
        KEYS, "an entry is appended though its key is there",
        (NO_KEYS, Edit(MIGRATION, "IF entry.key IS NOT NULL THEN", "IF false THEN")),
        at("feed_store", "test_a_key_is_appended_once"),
    ),
    Mutant(
        TERM, "prune_feeds without a term",
        (Edit(f"{STORE}/feed_store.py", "if term is not None and not await hold_term(tx, term):", "if False:"),),
        at("feed_store", "test_a_term_that_is_over_removes_nothing"),
    ),
    Mutant(
        TOKENS, "a revoked token opens",
        (Edit(f"{STORE}/token_store.py", 'state if row["revoked_at"] is None else TokenState.REVOKED', "state"),),
        at("token_store", "test_a_token_is_revoked_once"),
    ),
    Mutant(
        TOKENS, "a token is revoked again", (sql("revoke_token", " AND t.revoked_at IS NULL", ""),),
        at("token_store", "test_a_token_is_revoked_once"),
    ),
    Mutant(
        TOKENS, "an expired token opens",
        (sql("find_token", "t.expires_at <= coalesce(%(now)s::timestamptz, now())", "%(now)s::timestamptz IS NULL"),),
        at("token_store", "test_a_token_expires"),
    ),
)  # fmt: skip

LUA_MUTANTS = (
    Mutant(
        TERM, "prune_actions without a term",
        (lua("prune_actions", "if not leads(ARGV[2], ARGV[3]) then", "if false then"),),
        at("audit_store", "test_a_term_that_is_over_removes_nothing"),
    ),
    Mutant(
        AUDIT, "an action is noted again",
        (lua("note_actions", "call('EXISTS', action_key(id)) == 0", "true"),),
        at("audit_store", "test_an_action_is_noted_once"),
    ),
    Mutant(
        AUDIT, "pages of actions of one moment overlap", (lua("list_actions", "if same >= id then", "if false then"),),
        at("audit_store", "test_pages_follow_one_another"),
    ),
    Mutant(
        GAPLESS, "old entries behind young ones go",
        (lua("prune_feeds", "index > most or tonumber(fields[8]) > before", "index > most"),),
        at("feed_store", "test_what_is_removed_leaves_no_gap"),
    ),
    Mutant(
        GAPLESS, "a pruned feed begins anew",
        (lua("prune_feeds", "  if kept then\n", "  if false then\n"),),
        at("feed_store", "test_old_entries_are_removed"),
    ),
    Mutant(
        KEYS, "an entry is appended though its key is there",
        (lua("append_entries", "local number = key ~= '' and", "local number = false and"),),
        at("feed_store", "test_a_key_is_appended_once"),
    ),
    Mutant(
        KEYS, "keys outlive their entries", (lua("prune_feeds", "if fields[6] ~= '' then", "if false then"),),
        at("feed_store", "test_old_entries_are_removed"),
    ),
    Mutant(
        TERM, "prune_feeds without a term",
        (lua("prune_feeds", "if not leads(ARGV[2], ARGV[3]) then", "if false then"),),
        at("feed_store", "test_a_term_that_is_over_removes_nothing"),
    ),
    Mutant(
        TOKENS, "a revoked token opens", (lua("lib/tokens", "if token.revoked_at then", "if false then"),),
        at("token_store", "test_a_token_is_revoked_once"),
    ),
    Mutant(
        TOKENS, "a token is revoked again", (lua("revoke_token", "'HSETNX'", "'HSET'"),),
        at("token_store", "test_a_token_is_revoked_once"),
    ),
    Mutant(
        TOKENS, "an expired token opens", (lua("lib/tokens", "tonumber(token.expires_at) <= NOW", "false"),),
        at("token_store", "test_a_token_expires"),
    ),
)  # fmt: skip
