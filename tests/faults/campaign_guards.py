"""Guards of the engine that a campaign switches off in its own processes, to see that the checker notices.

The edit is made to the text of a statement when it is read; no file is touched.
"""

from __future__ import annotations

import json

from headrace.stores.postgres import queries

#: The edits of a process: [[path, old, new], …].
EDITS = "FAULTS_EDITS"
FENCE = "WHERE j.id = d.id AND j.attempt = d.attempt AND j.session IS NOT DISTINCT FROM %(session)s::uuid\n"
LEASE = """    AND NOT EXISTS (SELECT FROM {schema}.sessions AS s
      WHERE s.id = j.session AND s.expires_at > coalesce(%(now)s::timestamptz, now()))
"""

#: What is switched off, the edit, and the part of the verdict that must tell.
GUARDS: dict[str, tuple[str, str, str, str]] = {
    "claimers lock what they pick": (
        "queries/claim_jobs.sql", "LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED", "LIMIT %(limit)s::int", "overlaps"
    ),
    "only jobs of dead sessions are rescued": ("queries/rescue_jobs.sql", LEASE, "", "overlaps"),
    "an ending is written under its fence": (
        "queries/finish_jobs.sql", FENCE, "WHERE j.id = d.id\n", "unfounded"
    ),
    "a close inserts its callback once": (
        "queries/close_batches.sql", "AND b.state IN ('sealed', 'cancelling') AND b.changes = a.changes",
        "", "callbacks",
    ),
    "a cap is stored as it is declared": (
        "queries/declare_caps.sql", "SELECT key, cap FROM", "SELECT key, cap + 9 FROM", "crowded"
    ),
}  # fmt: skip


def edits_of(guard: str) -> str:
    """Return the edits that switch a guard off, for the environment of a process."""
    path, old, new, _ = GUARDS[guard]
    return json.dumps([[path, old, new]])


def switch_off(text: str) -> None:
    """Make edits to the statements of this process, for good."""
    edits = json.loads(text)
    read = queries.read_sql

    def edited(path: str, schema: str) -> str:
        sql = read(path, schema)
        for where, old, new in edits:
            if where == path:
                old = old.replace("{schema}", f'"{schema}"')
                assert sql.count(old) == 1, f"{path} does not hold the text of the guard once; follow it there"
                sql = sql.replace(old, new)
        return sql

    queries.read_sql = edited
