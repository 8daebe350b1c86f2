"""What writes the pages of docs/reference: it reads our own files, and stops at what it does not know."""

from __future__ import annotations

import doctest
import importlib

import pytest

from tools.reference import http, json_schema, schema, sql_reading, text

FILE = """-- About the file.

-- Jobs, and what they wait for.
CREATE TABLE {schema}.jobs (
  id uuid NOT NULL,                            -- made by the caller
  state text NOT NULL DEFAULT 'ready',         -- ready | done
  at timestamptz,
  -- Half of each page is left.
  CONSTRAINT jobs_pkey PRIMARY KEY (id) WITH (fillfactor = 50),
  CONSTRAINT jobs_check
    CHECK (state IN ('ready', 'done'))
) WITH (fillfactor = 50,
  autovacuum_vacuum_threshold = 5000);
-- The claim.
CREATE UNIQUE INDEX jobs_claim ON {schema}.jobs (at)
  WHERE state = 'ready';

-- Does nothing; not even this.
CREATE FUNCTION {schema}.nothing(a int)
RETURNS void LANGUAGE sql AS $$
  SELECT 1;
$$;
"""


@pytest.mark.parametrize("module", [json_schema, sql_reading, text])
def test_examples_run(module: object) -> None:
    """Those in the docstrings."""
    outcome = doctest.testmod(importlib.import_module(getattr(module, "__name__", "")))
    assert outcome.attempted and not outcome.failed


def test_a_schema_is_read_with_its_comments() -> None:
    """Statements have the comment above them, columns the one behind them."""
    table, index, function = sql_reading.statements(FILE)
    assert [(one.kind, one.name, one.about) for one in (table, index, function)] == [
        ("TABLE", "jobs", "Jobs, and what they wait for."),
        ("INDEX", "jobs_claim", "The claim."),
        ("FUNCTION", "nothing", "Does nothing; not even this."),
    ]
    assert [row[:3] for row in schema.columns(table)] == [
        ["`id`", "uuid", ""], ["`state`", "text", "default `'ready'`"], ["`at`", "timestamptz", "may be null"],
    ]  # fmt: skip
    assert [one for one, _ in sql_reading.elements(table)][3:] == [
        "CONSTRAINT jobs_pkey PRIMARY KEY (id) WITH (fillfactor = 50)",
        "CONSTRAINT jobs_check CHECK (state IN ('ready', 'done'))",
    ]
    assert table.storage == "fillfactor = 50, autovacuum_vacuum_threshold = 5000"
    assert schema.place(index) == "unique (at) WHERE state = 'ready'"
    assert schema.is_index_of(index, table)


@pytest.mark.parametrize("wrong", ["GRANT ALL;", "CREATE TABLE {schema}.x (\n  a int"])
def test_what_is_not_known_of_a_schema_stops_it(wrong: str) -> None:
    """A page would lack it silently otherwise."""
    with pytest.raises(ValueError, match=r"no statement that|has no end"):
        list(sql_reading.statements(wrong))
    with pytest.raises(ValueError, match="no column"):
        sql_reading.column("what", "")


def test_a_code_without_words_stops_the_page_of_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever adds a refusal is told to say what it means."""
    monkeypatch.setattr(http, "_REFUSALS", {**http._REFUSALS, "unauthorized": ""})
    with pytest.raises(ValueError, match="for unauthorized"):
        http.problems()


def test_the_page_of_http_has_every_route_its_scope_and_body() -> None:
    """And what is told once for all is not told of each."""
    page = http.http()
    for method, path, operation in (one for group in http.by_tag(http.whole_document()).values() for one in group):
        assert f"### `{method} {path}`" in page
        assert operation["operationId"] in page
    section = page.partition("### `POST /api/v1/jobs`")[2].partition("###")[0]
    assert "Scope `submit` · `submit_job`" in section
    assert "Body: [`SubmitJob`](#submitjob)." in section
    assert "`201`" in section
    assert "`401`" not in section
