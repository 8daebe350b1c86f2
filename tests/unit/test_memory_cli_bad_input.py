"""`headrace memory` with what cannot be used: an exit code, a word, a sentence that names it, and no traceback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.settings import QueueSettings
from tests.unit.memory_world import Commands, commands, settings_of, settled

SAID = ("--message", "hello")


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Commands on tables that are there."""
    with commands(tmp_path_factory.mktemp("memory")) as made:
        made.text("set-up")
        yield made


@pytest.mark.parametrize(
    ("arguments", "code", "names"),
    [
        (("insert", "ada"), 2, "--message"),
        (("insert", "ada", *SAID, "--file", "-"), 2, "--file"),
        (("insert", "ada", "--message", " "), 2, "messages[0].content"),
        (("insert", "ada", "--file", "no.json"), 2, "no.json"),
        (("insert", "ada", "--file", "."), 2, "directory"),
        (("insert", " ", *SAID), 2, "user_id"),
        (("insert", "a\x07b", *SAID), 2, "user_id"),
        (("insert", "u" * 201, *SAID), 2, "user_id"),
        (("insert", "ada", *SAID, "--id", "7"), 2, "--id"),
        (("submit", "ada"), 2, "--message"),
        (("profile", "ada", "--set", "work=baker"), 2, "--set"),
        (("profile", "ada", "--set", "work/title="), 2, "--set"),
        (("profile", "ada", "--set", f"{'t' * 101}/x=y"), 2, "topic"),
        (("profile", "ada", "--set", "a/b=c", "--delete", "a/b"), 5, "a/b"),
        (("profile", "ada", "--delete", "a/b=c"), 2, "--delete"),
        (("profile", "ada", "--set", "a/b=c", "--set", "a/b=d"), 2, "once"),
        (("events", "ada", "--tag", "glad"), 2, "--tag"),
        (("events", "ada", "--limit", "0"), 2, "--limit"),
        (("search", "ada", " "), 2, "query"),
        (("context", "ada", "--budget", "0"), 2, "--budget"),
        (("flushes", "--state", "lost"), 2, "--state"),
        (("user", "ada", "--level", "11"), 2, "--level"),
        (("user", "ada", "--language", "fr"), 2, "--language"),
        (("user", "nobody"), 5, "nobody"),
        (("run", "--queue", "a:0"), 2, "--queue"),
        (("run", "--executor", "farm"), 2, "--executor"),
        (("run", "--config", "no.yaml"), 2, "no.yaml"),
        (("jump",), 2, "jump"),
    ],
)
def test_a_wrong_word_is_named(memory: Commands, arguments: tuple[str, ...], code: int, names: str) -> None:
    """With the code of its kind."""
    found, _, told = memory.refusal(*arguments)
    assert (found, names in told) == (code, True), told


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"", "JSON"),
        (b"nothing", "JSON"),
        (b"7", "list of messages"),
        (b"[]", "messages"),
        (b'{"said": []}', "list of messages"),
        (b'[{"role": "user"}]', "messages[0].content"),
        (b'[{"role": "user", "content": "x"}, 7]', "messages[1]"),
        (b'[{"role": "user", "content": "\\u0000"}]', "NUL"),
        (b'[{"role": "user", "content": "\\ud800"}]', "surrogates"),
        (b'[{"role": "user", "content": "x", "role": "user"}]', "twice"),
        (b'{"role": "user", "content": "x"}\n{"role"', "line 2"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"[" * 100_000, "nested"),
        (b"[NaN]", "NaN"),
    ],
)
def test_a_wrong_file_is_named(memory: Commands, content: bytes, names: str) -> None:
    """Whatever is in it."""
    code, _, told = memory.refusal("insert", "ada", "--file", "-", given=content)
    assert (code, names in told) == (2, True), told


def test_other_messages_under_an_id_are_a_conflict(memory: Commands) -> None:
    """And nothing is overwritten."""
    name = ("--id", "01980000-0000-7000-8000-000000000002")
    memory.text("insert", "bea", *SAID, *name)
    assert memory.refusal("insert", "bea", "--message", "other", *name)[:2] == (1, "idempotency_conflict")


@pytest.mark.parametrize("command", [("insert", "ada", *SAID), ("profile", "ada"), ("flushes",), ("set-up",)])
def test_a_store_that_is_away_is_told(tmp_path: Path, command: tuple[str, ...]) -> None:
    """With 3; one that is no PostgreSQL with 2."""
    from dataclasses import replace

    away = settings_of(tmp_path)
    away = replace(away, queue=QueueSettings(url="postgresql://x@127.0.0.1:9/nowhere"))
    other = replace(away, queue=QueueSettings(type="memory"))
    for settings, code in ((away, 3), (other, 2)):
        with settled(settings, migrated=False):
            assert Commands().refusal(*command)[0] == code
