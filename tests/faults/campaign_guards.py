"""Guards of the engine that a campaign switches off in its own processes, to see that the checker notices.

The edit is made to the text of a statement or script when it is read; no file is touched.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files

from headrace.stores.postgres import queries
from headrace.stores.redis import scripts

#: The edits of a process: [[path, old, new], …].
EDITS = "FAULTS_EDITS"
FENCE = "WHERE j.id = d.id AND j.attempt = d.attempt AND j.session IS NOT DISTINCT FROM %(session)s::uuid\n"
LEASE = """    AND NOT EXISTS (SELECT FROM {schema}.sessions AS s
      WHERE s.id = j.session AND s.expires_at > coalesce(%(now)s::timestamptz, now()))
"""
ENDING = "an ending is written under its fence"


@dataclass(frozen=True, slots=True)
class Guard:
    """What is switched off in a store, the edit, and the part of the verdict that must tell."""

    site: str
    name: str
    path: str
    old: str
    new: str
    part: str

    @property
    def edits(self) -> str:
        """The edit, for the environment of a process."""
        return json.dumps([[self.path, self.old, self.new]])

    @property
    def places(self) -> int:
        """How often the text of the guard stands in its file: once, or the edit has to follow it."""
        folder = files(f"headrace.stores.{self.site}") / ("scripts" if self.site == "redis" else "")
        return (folder / self.path).read_text("utf-8").count(self.old)


GUARDS = (
    Guard(
        "postgres", "claimers lock what they pick",
        "queries/claim_jobs.sql", "LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED", "LIMIT %(limit)s::int", "overlaps",
    ),
    Guard("postgres", "only jobs of dead sessions are rescued", "queries/rescue_jobs.sql", LEASE, "", "overlaps"),
    Guard("postgres", ENDING, "queries/finish_jobs.sql", FENCE, "WHERE j.id = d.id\n", "unfounded"),
    Guard(
        "postgres", "a close inserts its callback once", "queries/close_batches.sql",
        "AND b.state IN ('sealed', 'cancelling') AND b.changes = a.changes", "", "callbacks",
    ),
    Guard(
        "postgres", "a cap is stored as it is declared",
        "queries/declare_caps.sql", "SELECT key, cap FROM", "SELECT key, cap + 9 FROM", "crowded",
    ),
    Guard(
        "redis", "only jobs of dead sessions are rescued", "rescue_jobs.lua", "not alive(session)", "true", "overlaps"
    ),
    Guard(
        "redis", ENDING, "lib/completing.lua",
        " or job.session ~= session or tonumber(job.attempt) ~= done[2]", "", "unfounded",
    ),
    Guard(
        "redis", "a close inserts its callback once", "lib/closing.lua",
        "state ~= 'cancelling' and (state ~= 'sealed' or retrying)", "state == 'open'", "callbacks",
    ),
    Guard(
        "redis", "a cap is stored as it is declared",
        "declare_limits.lua", "'caps:declared', name, cap)", "'caps:declared', name, cap + 9)", "crowded",
    ),
)  # fmt: skip


def switch_off(text: str) -> None:
    """Make edits to the statements and scripts of this process, for good."""
    edits = [tuple(edit) for edit in json.loads(text)]
    read_sql, read_lua = queries.read_sql, scripts._read

    def edited_sql(path: str, schema: str) -> str:
        return _edited(read_sql(path, schema), path, edits, lambda old: old.replace("{schema}", f'"{schema}"'))

    def edited_lua(path: str) -> str:
        return _edited(read_lua(path), path, edits, lambda old: old)

    queries.read_sql, scripts._read = edited_sql, edited_lua


def _edited(text: str, path: str, edits: list[tuple[str, str, str]], as_read: Callable[[str], str]) -> str:
    for where, old, new in edits:
        if where == path:
            assert text.count(as_read(old)) == 1, f"{path} does not hold the text of the guard once; follow it there"
            text = text.replace(as_read(old), new)
    return text
