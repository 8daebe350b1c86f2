"""`headrace memory` on a real PostgreSQL: what each command does, and shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from headrace.apps.memory.commands.opening import carry_out
from headrace.apps.memory.means import TABLES
from headrace.apps.memory.memory import Memory
from headrace.apps.memory.stages.sweeping import MOST_ROUNDS
from headrace.model_settings import ModelSettings
from headrace.testing.provider import ProviderProcess
from tests.unit.memory_world import ADA, WEI, Commands, commands, without_rights

ANSWER = "headrace.apps.memory.samples.model:answer"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelSettings]:
    """The scripted model of the samples, in a process of its own: commands have event loops of their own."""
    with ProviderProcess("--answer", ANSWER) as provider:
        values = {name.lower().removeprefix("headrace_llm_"): value for name, value in provider.environment.items()}
        yield ModelSettings(model=values["model"], base_url=values["base_url"], api_key=values["api_key"])


@pytest.fixture
def memory(tmp_path: Path, model: ModelSettings) -> Iterator[Commands]:
    """Commands on schemas of this test's own."""
    with commands(tmp_path, model) as made:
        yield made


def test_messages_become_memory(memory: Commands, tmp_path: Path) -> None:
    """Submitted, shown, searched, packed; the same key again is the same run and asks nothing new."""
    file = tmp_path / "wei.jsonl"
    file.write_text("\n".join(json.dumps(one) for one in [*WEI, *WEI]), encoding="utf-8")
    first = memory.json("submit", "ada", "--message", ADA[0]["content"], "--key", "k")
    again = memory.json("submit", "ada", "--message", ADA[0]["content"], "--key", "k")
    assert (first["success"], first["run"], first["events"]) == (True, again["run"], again["events"])
    assert "lives in Lyon" in first["events"][0]["event_tip"]
    assert memory.json("submit", "wei", "--file", file)["success"]
    shown = memory.text("profile", "ada")
    assert "contact_info/city" in shown and "Lyon" in shown and "baker" in shown
    assert "北京" in memory.text("profile", "wei")
    assert "Lyon" in memory.text("events", "ada", "--limit", 1)
    assert "Lyon" in memory.text("search", "ada", "lives")
    assert memory.text("search", "wei", "Lyon") == "nothing fits\n"
    packed = memory.json("context", "ada", "--budget", 50)
    assert 0 < packed["tokens"] <= 50 and "Lyon" in packed["context"]
    assert [one["state"] for one in memory.json("flushes", "--user", "ada")["flushes"]] == ["done"]


def test_a_submit_tells_people_what_was_learnt(memory: Commands) -> None:
    """Lines of the event, and changes of the profile; or that there was nothing."""
    told = memory.text("submit", "ada", "--message", ADA[0]["content"])
    assert "- The user lives in Lyon" in told
    assert "profile: contact_info/city: Lyon" in told
    assert "nothing in it was worth keeping" in memory.text("submit", "ada", "--message", "Hm.")


def test_messages_wait_until_they_are_flushed(memory: Commands) -> None:
    """An insert with an id is one, whoever repeats it; a flush with --wait does the work here."""
    given = ("insert", "ada", "--file", "-", "--id", "01980000-0000-7000-8000-000000000001")
    said = json.dumps({"messages": ADA})
    assert memory.json(*given, given=said) == memory.json(*given, given=said)
    assert memory.json("check", "ada")["waiting"] == 1
    [flush] = memory.json("flush", "ada", "--wait")["flushes"]
    assert (flush["state"], flush["reason"], len(flush["blob_ids"])) == ("done", "explicit", 1)
    assert memory.text("flush", "ada") == "nothing waits in the buffer of ada\n"
    assert "done" in memory.text("flushes", "--state", "done")
    assert memory.text("flushes", "--state", "failed") == "there are no such flushes\n"


def test_what_failed_is_shown_with_its_error_and_taken_up_again(memory: Commands) -> None:
    """Also what has had all its rounds; nothing is done where nothing failed."""
    memory.text("insert", "ada", "--message", ADA[0]["content"])
    [flush] = memory.json("flush", "ada")["flushes"]

    async def fail(_: Memory) -> None:
        for _round in range(MOST_ROUNDS + 1):
            await TABLES.fail_flush(UUID(flush["id"]), "the model\nis away")
            await TABLES.retry_failed(timedelta(), MOST_ROUNDS, 1)

    carry_out(fail)
    [shown] = memory.json("flushes", "--state", "failed")["flushes"]
    assert (shown["id"], shown["error"], shown["round"]) == (flush["id"], "the model\nis away", MOST_ROUNDS)
    assert "the model is away" in memory.text("flushes", "--state", "failed")
    [done] = memory.json("retry", "ada", "--wait")["flushes"]
    assert (done["id"], done["state"], done["error"], done["round"]) == (flush["id"], "done", None, MOST_ROUNDS + 1)
    assert memory.text("retry", "ada") == "nothing of ada has failed or waits\n"


def test_a_profile_is_changed_by_hand(memory: Commands) -> None:
    """Entries are made, changed and deleted; one that there is not is not found, and nothing is done then."""
    memory.text("insert", "ada", "--message", "hello")
    [made] = memory.json("profile", "ada", "--set", "work/title=baker = best")["profile"]
    assert (made["content"], made["version"]) == ("baker = best", 1)
    [changed] = memory.json("profile", "ada", "--set", "work/title=smith")["profile"]
    assert (changed["content"], changed["version"]) == ("smith", 2)
    refused = memory.refusal("profile", "ada", "--set", "work/company=Forge", "--delete", "work/none")
    assert refused[:2] == (5, "not_found")
    assert memory.json("profile", "ada", "--delete", "work/title")["profile"] == []
    assert memory.text("profile", "ada") == "nothing is known of ada\n"


def test_users_are_noted_and_forgotten(memory: Commands) -> None:
    """What is not given stays; who is forgotten is not found."""
    assert memory.json("user", "ada", "--level", 5)["level"] == 5
    assert memory.json("user", "ada", "--language", "zh")["level"] == 5
    assert "language: zh" in memory.text("user", "ada")
    assert memory.refusal("forget", "ada")[:2] == (2, "usage")
    assert memory.json("forget", "ada", "--yes") == {"user_id": "ada", "forgotten": True}
    assert memory.refusal("user", "ada")[:2] == (5, "not_found")
    assert memory.refusal("forget", "ada", "--yes")[:2] == (5, "not_found")


def test_what_changes_memory_is_noted(memory: Commands) -> None:
    """Who was meant, and nothing of what is known of them; what only looks is not noted."""
    memory.text("insert", "ada", "--message", "hello")
    for looks in (("user", "ada"), ("profile", "ada"), ("restore", "--dry-run")):
        memory(*looks)
    memory.text("profile", "ada", "--set", "work/title=baker")
    memory.text("user", "ada", "--level", 5)
    memory.text("retry", "ada")
    memory.text("restore")
    memory.text("forget", "ada", "--yes")
    assert memory.refusal("forget", "ada", "--yes")[0] == 5

    found = carry_out(lambda opened: opened.app.runtime.stores.audit.list_actions(limit=100))[::-1]
    assert [(one.operation, one.status) for one in found] == [
        ("change_memory_profile", 0), ("put_memory_user", 0), ("retry_memory", 0), ("restore_memory", 0),
        ("forget_memory_user", 0), ("forget_memory_user", 5),
    ]  # fmt: skip
    assert [one.subject for one in found] == [{"user_id": "ada"}] * 3 + [{}] + [{"user_id": "ada"}] * 2
    assert [one.detail for one in found[:2]] == ["{}", '{"level":5}']


def test_tables_are_made_once(memory: Commands) -> None:
    """Reading before says what to do; setting up twice is the same."""
    code, word, told = memory.refusal("profile", "ada")
    assert (code, word) == (1, "store_version") and "headrace memory" in told
    assert memory.json("set-up") == memory.json("set-up")
    assert memory.json("profile", "ada") == {"user_id": "ada", "profile": []}


def test_what_users_wrote_is_shown_plainly(memory: Commands) -> None:
    """A terminal obeys nothing of it."""
    memory.text("insert", "ada", "--message", "hello")
    memory.text("profile", "ada", "--set", "note/x=red \x1b[31m \u202e now")
    for shown in (memory.text("profile", "ada"), memory.text("context", "ada")):
        assert "\x1b" not in shown and "\u202e" not in shown and "red" in shown


def test_what_the_database_refuses_is_told(memory: Commands) -> None:
    """A user of the store who may not use the tables hears so, with the code of what is not allowed."""
    memory.text("set-up")
    with without_rights():
        code, word, told = memory.refusal("profile", "ada")
    assert (code, word) == (4, "not_allowed") and "grant the missing right" in told
