"""Plans of the message log and of resume handles: every statement finds its few rows by an index, whatever is kept.

What is read through is bounded by what people set up: topics, partitions, groups.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from tests.integration.postgres_setup import database
from tests.integration.test_postgres_plans import looked_into, plan, used

#: Twenty topics of eight partitions, 500 messages in each, read by three groups.
LOG = (
    """INSERT INTO "{schema}".log_groups (name, live_until) SELECT 'g' || n, now() FROM generate_series(1, 3) AS n""",
    "INSERT INTO \"{schema}\".log_topics (name, partitions) SELECT 't' || n, 8 FROM generate_series(1, 20) AS n",
    """INSERT INTO "{schema}".log_partitions (topic_id, partition, next)
      SELECT t.id, n, 500 FROM "{schema}".log_topics AS t, generate_series(0, 7) AS n""",
    """INSERT INTO "{schema}".log_messages (topic_id, partition, position, stored_at, key, headers)
      SELECT p.topic_id, p.partition, n, now(), 'k', '[]'
      FROM "{schema}".log_partitions AS p, generate_series(0, 499) AS n""",
    """INSERT INTO "{schema}".log_shares (name, topic_id, partition, generation, position)
      SELECT 'g' || n, p.topic_id, p.partition, 1, 250
      FROM "{schema}".log_partitions AS p, generate_series(1, 3) AS n""",
)
#: Handles of every state, each with three events.
HANDLES = (
    """INSERT INTO "{schema}".flow_resume_handles (correlation_id, expect_types, expect_count, arrived, created_at,
        expires_at, ended_at, wake_at, request_types, agents, state, token_hash, target)
      SELECT 'c' || n, '{{A.B.C}}', 4, 3, now() + n * interval '1 second',
        CASE WHEN n % 3 > 0 THEN now() + n * interval '1 second' END, CASE WHEN n % 3 = 2 THEN now() END,
        CASE WHEN n % 300 = 2 THEN now() END, '{{A.B.D}}', '{{}}', (array['early', 'waiting', 'resolved'])[n % 3 + 1],
        CASE WHEN n % 3 > 0 THEN md5(n::text) ELSE '' END, ''
      FROM generate_series(1, 30000) AS n""",
    """INSERT INTO "{schema}".resume_events (noted_at, dead, correlation_id, event_id, agent, type, noted)
      SELECT now(), false, 'c' || n % 30000, 'e' || n, '', 'A.B.C', '1' FROM generate_series(1, 90000) AS n""",
)
TABLES = ("log_messages", "flow_resume_handles", "resume_events")
HANDLES_KEY, EVENTS_KEY, MESSAGES_KEY = "flow_resume_handles_pkey", "resume_events_pkey", "log_messages_pkey"
DEAD, TOKENS = "resume_events_dead", "flow_resume_handles_token"
#: What each statement may use to reach the tables that grow.
WAYS = {
    "read_messages": {MESSAGES_KEY},
    "list_log_shares": {MESSAGES_KEY},
    "take_log_shares": {MESSAGES_KEY},
    "log_backlog": {MESSAGES_KEY},
    "list_log_groups": {MESSAGES_KEY},
    "prune_messages": {MESSAGES_KEY},
    "get_handle": {HANDLES_KEY},
    "lock_handle": {HANDLES_KEY},
    "mark_woken": {HANDLES_KEY},
    "noted_events": {HANDLES_KEY, EVENTS_KEY},
    "lock_token": {TOKENS},
    "due_handles": {"flow_resume_handles_waiting"},
    "due_wakes": {"flow_resume_handles_wakes", HANDLES_KEY},
    "list_handles": {"flow_resume_handles_newest"},
    "hold_old_handles": {"flow_resume_handles_ended", "flow_resume_handles_early"},
    "prune_handles": {HANDLES_KEY, EVENTS_KEY},
}
NOTED = {"event_id": "e", "agent": "", "type": "A.B.C", "cause": None, "noted": "1"}
REGISTERED = {
    "expect_types": ["A.B.C"], "expect_count": 1, "request_types": ["A.B.D"], "agents": [], "token_hash": "new",
    "target": "", "timeout": timedelta(1),
}  # fmt: skip
#: What calls of functions walk: for an id that is new, for early events, for one that ends a handle, and so on.
CALLS: tuple[tuple[str, dict[str, Any], set[str]], ...] = (
    ("note_event", {"correlation_id": "new", "dead": False, **NOTED}, {HANDLES_KEY, EVENTS_KEY}),
    ("note_event", {"correlation_id": "c3", "dead": False, **NOTED}, {HANDLES_KEY, EVENTS_KEY}),
    ("note_event", {"correlation_id": "c4", "dead": False, **NOTED}, {HANDLES_KEY, EVENTS_KEY, DEAD}),
    ("note_event", {"correlation_id": "c4", "dead": True, **NOTED, "type": "A.B.D"}, {HANDLES_KEY, EVENTS_KEY}),
    ("note_event", {"correlation_id": "c5", "dead": False, **NOTED}, {HANDLES_KEY}),
    ("register_handle", {"correlation_id": "new", **REGISTERED}, {HANDLES_KEY, EVENTS_KEY}),
    ("register_handle", {"correlation_id": "c3", **REGISTERED}, {HANDLES_KEY, EVENTS_KEY}),
    ("register_handle", {"correlation_id": "c4", **REGISTERED}, {HANDLES_KEY}),
    ("end_handles", {"correlation_ids": ["c4", "c7"], "state": "expired", "payload": None}, {HANDLES_KEY}),
)


async def test_with_much_kept_each_statement_finds_its_rows_by_an_index() -> None:
    """Eighty thousand messages, thirty thousand handles: nothing scans a table that grows."""
    async with database(fresh=True) as opened:
        connection = await opened.connect()
        for text in (*LOG, *HANDLES):
            await connection.execute(text.format(schema=opened.schema))
        await connection.execute("ANALYZE " + ", ".join(f'"{opened.schema}".{table}' for table in TABLES))
        plans = {name: await plan(opened, name, connection) for name in WAYS}
        await connection.close()
    for name, allowed in WAYS.items():
        reached = {index for index in used(plans[name]) if index.startswith(TABLES)}
        assert reached, plans[name]
        assert reached <= allowed, plans[name]
        assert not re.search(rf"Seq Scan on ({'|'.join(TABLES)})\b", plans[name]), plans[name]


async def test_calls_of_functions_keep_to_keys() -> None:
    """With thirty thousand handles, before the server has looked at them and after: nothing is scanned."""
    async with database(fresh=True) as opened:
        for analysed in (False, True):
            connection = await opened.connect()
            await connection.execute("SET plan_cache_mode = force_generic_plan")
            for text in HANDLES if not analysed else ("ANALYZE",):
                await connection.execute(text.format(schema=opened.schema))
            for name, values, expected in CALLS:
                given = {**values, "head_starts": [timedelta()] * 10, "now": None}
                found = await looked_into(connection, opened.schema, name, given)
                assert {index for index in found if index.startswith(TABLES)} == expected, (name, values, analysed)
            await connection.close()
