"""`headrace details` against a service: what is shown, by which exit code it ends, and what is refused."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.apps.details.commands.desks import Told
from headrace.apps.details.commands.showing import LiveBar
from headrace.model.api_token import new_token
from tests.unit.cli_runner import CommandLine, command_line
from tests.unit.details_service import ACCEPTED, BATCH, PREFIX, FakeService, entries, service_thread

MAKE = ("details", "generate", "--type", "item", "--count", 3)
VIEW = {"batch_id": BATCH, "type": "item", "status": "completed", "delivered": 1, "count": 1,
        "items": [{"name": "Anvil", "description": "Heavy.", "attributes": {}}], "links": {},
        "attention": ""}  # fmt: skip


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


@pytest.fixture
def service() -> Iterator[FakeService]:
    """A service that makes one batch of three items, and cuts its stream once."""
    made = FakeService(entries(3), cuts=[2], answers={
        f"POST {PREFIX}": [(202, ACCEPTED)], f"GET {PREFIX}/{BATCH}": [(200, VIEW)],
        f"GET {PREFIX}?limit=20": [(200, {"batches": [VIEW | {"priority": 5, "submitted_at": "2031-01-31T08:00:00"}]})],
        f"GET {PREFIX}/mode": [(200, {"mode": "normal"})],
        f"PUT {PREFIX}/mode": [
            (202, {"mode": "normal", "switching_to": "single-call", "detail": "2 are left"}),
            (200, {"mode": "single-call"}),
        ],
    })  # fmt: skip
    with service_thread(made):
        yield made


def test_items_go_to_standard_output_and_the_rest_beside_it(headrace: CommandLine, service: FakeService) -> None:
    """Each item is a line; the first response and the end are told with their times."""
    result = headrace(*MAKE, "--url", service.url)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [f"Name {number}: A thing." for number in range(3)]
    told = result.stderr.splitlines()
    assert told[0] == f"batch {BATCH}"
    assert [line.rpartition(" after ")[0] for line in told[1:]] == [
        "first response: 2 items",
        "completed: 3 of 3 items",
    ]


def test_each_event_is_a_line_of_json(headrace: CommandLine, service: FakeService) -> None:
    """With its number, and the time since the request."""
    lines = headrace.lines(*MAKE, "--url", service.url, "--json")
    assert [line["event"] for line in lines] == [
        "submitted", "accepted", "item", "item", "first_response", "item", "completed",
    ]  # fmt: skip
    assert [line["seq"] for line in lines] == [None, 1, 2, 3, 4, 5, 6]
    assert lines[0]["data"] == ACCEPTED
    assert lines[2]["data"]["name"] == "Name 0"
    assert 0 < lines[4]["after_seconds"] <= lines[-1]["after_seconds"] < 30


def test_the_request_has_what_the_options_say(headrace: CommandLine, service: FakeService) -> None:
    """Session and key are always sent, so that a request that is sent again is the same."""
    headrace.text(*MAKE, "--style", "grim", "--scope", "saga", "--priority", 9, "--session", "s-1", "--first", 2,
                  "--key", "k-1", "--webhook", "https://example.com/h", "--url", service.url)  # fmt: skip
    [asked] = service.of("POST")
    assert asked.headers["idempotency-key"] == "k-1"
    assert asked.body == {"type": "item", "count": 3, "style": "grim", "priority": 9, "first_response": 2,
                          "session_id": "s-1", "scope": "saga", "webhook": "https://example.com/h"}  # fmt: skip


def test_what_no_option_says_is_left_to_the_service(headrace: CommandLine, service: FakeService) -> None:
    """Its settings have the size of the first response."""
    headrace.text(*MAKE, "--url", service.url)
    [asked] = service.of("POST")
    assert asked.body.keys() == {"type", "count", "style", "priority", "session_id"}


def test_a_key_without_a_session_gives_the_same_request_again(headrace: CommandLine, service: FakeService) -> None:
    """Else the second one would be another request of the same key; without a key each is one of its own."""
    for key in (("--key", "k-1"), ("--key", "k-1"), (), ()):
        service.cuts, service.feed = [], entries(3)
        headrace.text(*MAKE, *key, "--url", service.url)
    first, second, third, fourth = service.of("POST")
    assert first.body == second.body
    assert len({one.body["session_id"] for one in (first, third, fourth)}) == 3
    assert len({one.headers["idempotency-key"] for one in (first, third, fourth)}) == 3


@pytest.mark.parametrize("status", ["partial", "failed"])
def test_a_batch_that_lacks_items_ends_with_1(headrace: CommandLine, service: FakeService, status: str) -> None:
    """What there is was written all the same."""
    service.feed = entries(2, status=status, count=3)
    result = headrace(*MAKE, "--url", service.url)
    assert (result.exit_code, len(result.stdout.splitlines())) == (1, 2)
    assert f"{status}: 2 of 3 items" in result.stderr


def test_what_cannot_be_there_in_time_is_said_at_once(headrace: CommandLine, service: FakeService) -> None:
    """With the limit that binds."""
    late = ACCEPTED | {"promised": False, "detail": "expected 9.4 s: 600 requests per minute of openai:m"}
    service.answers[f"POST {PREFIX}"] = [(202, late)]
    told = headrace(*MAKE, "--url", service.url).stderr.splitlines()
    assert told[1] == "not within the promised time: expected 9.4 s: 600 requests per minute of openai:m"


def test_a_pace_that_nobody_measured_is_no_broken_promise(headrace: CommandLine, service: FakeService) -> None:
    """The first batch of a new system is told what is assumed."""
    late = ACCEPTED | {"promised": False, "measured": False, "detail": "expected 6.1 s: assumed"}
    service.answers[f"POST {PREFIX}"] = [(202, late)]
    told = headrace(*MAKE, "--url", service.url).stderr.splitlines()
    assert told[1] == "nothing can be promised yet: expected 6.1 s: assumed"


def test_a_batch_that_was_there_already_shows_its_own_times(headrace: CommandLine, service: FakeService) -> None:
    """Not those of the command that asked for it again."""
    service.answers[f"POST {PREFIX}"] = [(202, ACCEPTED | {"existing": True, "promised": False})]
    told = headrace(*MAKE, "--url", service.url).stderr.splitlines()
    assert "was there already" in told[0]
    assert told[1:] == ["first response: 2 items after 0.80 s", "completed: 3 of 3 items after 1.50 s; 1 calls"]
    service.cuts, service.feed = [], entries(3)
    lines = headrace.lines(*MAKE, "--url", service.url, "--json")
    assert {line["after_seconds"] for line in lines} == {None}


@pytest.mark.parametrize("as_json", [False, True])
def test_what_a_silent_batch_waits_for_is_told(
    headrace: CommandLine, service: FakeService, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    """Beside the items, or as an event that is no entry."""
    monkeypatch.setattr("headrace.apps.details.commands.following.FIRST_SILENCE", 0.01)
    service.cuts = [0]
    service.answers[f"GET {PREFIX}/{BATCH}"] = [(200, {"attention": "no live worker"})]
    if as_json:
        found = [one for one in headrace.lines(*MAKE, "--url", service.url, "--json") if one["event"] == "attention"]
        assert [(one["seq"], one["data"]) for one in found] == [(None, {"attention": "no live worker"})]
    else:
        assert "the batch waits: no live worker" in headrace(*MAKE, "--url", service.url).stderr.splitlines()


def test_ctrl_c_says_how_to_go_on(headrace: CommandLine, service: FakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch goes on: the commands that follow it are told, with the address that was asked."""

    async def interrupted(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(20)

    monkeypatch.setattr("headrace.apps.details.commands.generate.follow", interrupted)
    # That of a process that has just started, whatever ran here before.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = headrace(*MAKE, "--url", service.url)
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.exit_code == 130
    for command in ("watch", "show"):
        assert f"`headrace details {command} {BATCH} --url {service.url}`" in result.stderr


def test_a_batch_is_shown_watched_and_listed(headrace: CommandLine, service: FakeService) -> None:
    """By people and machines."""
    assert headrace.json("details", "show", BATCH, "--url", service.url) == VIEW
    shown = headrace.text("details", "show", BATCH, "--url", service.url)
    assert "Anvil: Heavy." in shown and "attention" not in shown
    assert len(headrace.text("details", "watch", BATCH, "--url", service.url).splitlines()) == 3
    assert headrace.json("details", "list", "--url", service.url)[0]["batch_id"] == BATCH
    assert "1 of 1" in headrace.text("details", "list", "--url", service.url)
    service.answers[f"GET {PREFIX}?limit=20"] = [(200, {"batches": [VIEW | {"attention": "no live worker"}] * 2})]
    assert headrace("details", "list", "--url", service.url).stderr == "no live worker\n"


def test_the_mode_is_shown_and_changed(headrace: CommandLine, service: FakeService) -> None:
    """A change is asked for until it is done; machines are told the end alone."""
    assert headrace.text("details", "mode", "--url", service.url) == "normal\n"
    result = headrace("details", "mode", "single-call", "--url", service.url)
    assert (result.stdout, result.stderr) == ("single-call\n", "2 are left\n")
    assert headrace.json("details", "mode", "single-call", "--url", service.url) == {"mode": "single-call"}
    assert [asked.body for asked in service.of("PUT")] == [{"mode": "single-call"}] * 3


@pytest.mark.parametrize(
    ("answer", "code", "word"),
    [
        ((422, {"code": "invalid_input", "detail": "count must be 1 to 1000", "field": "count"}), 2, "invalid_input"),
        ((401, {"code": "unauthorized", "detail": "send a token"}), 4, "not_allowed"),
        ((404, {"code": "not_found", "detail": "no such thing"}), 5, "not_found"),
        ((409, {"code": "idempotency_conflict", "detail": "another request"}), 1, "idempotency_conflict"),
        ((500, {"code": "internal_error", "detail": "its log says why"}), 1, "service"),
    ],
)
def test_refusals_end_with_the_codes_of_every_command(
    headrace: CommandLine, service: FakeService, answer: Any, code: int, word: str
) -> None:
    """And with the words of the service."""
    service.answers[f"POST {PREFIX}"] = [answer]
    found, error = headrace.refusal(*MAKE, "--url", service.url)
    assert (found, error["code"]) == (code, word)
    assert answer[1]["detail"] in error["message"]
    assert error.get("field") == answer[1].get("field")


def test_a_service_that_is_not_there_ends_with_3(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address is named."""
    monkeypatch.setattr("headrace.apps.details.commands.remote.AGAIN_SECONDS", (0.0,))
    code, error = headrace.refusal(*MAKE, "--url", "http://127.0.0.1:9")
    assert (code, error["code"]) == (3, "service_unreachable")
    assert "http://127.0.0.1:9" in error["message"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("details", "generate", "--count", 3), "--type"),
        ((*MAKE, "--url", "nowhere"), "--url must be the address"),
        ((*MAKE, "--token-file", "t"), "--url"),
        (("details", "mode", "fast"), "single-call"),
        (("details", "list", "--limit", 0), "--limit"),
        ((*MAKE, "--key", "k" * 300, "--url", "http://h"), "--key"),
    ],
)
def test_wrong_usage_ends_with_2(headrace: CommandLine, arguments: tuple[object, ...], words: str) -> None:
    """Before anybody is asked."""
    code, error = headrace.refusal(*arguments)
    assert code == 2
    assert words in error["message"]


def test_a_terminal_shows_items_above_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    """What a terminal would obey is shown instead."""
    bar = LiveBar(3)
    bar.accepted(BATCH, ACCEPTED)
    bar.entry(Told(1, "accepted", {"count": 3}), 0.1)
    bar.entry(Told(2, "item", {"name": "An\x1b[31mvil", "description": "[red]", "attributes": {}}), 0.2)
    bar.entry(Told(3, "completed", {"status": "partial", "delivered": 1, "count": 3}), 0.3)
    bar.close()
    shown = capsys.readouterr().out
    assert "An\\x1b[31mvil: [red]" in shown
    assert "partial: 1 of 3 items after 0.30 s" in shown


def test_the_token_of_a_file_is_sent(headrace: CommandLine, service: FakeService, tmp_path: Path) -> None:
    """And stands in no output."""
    token = new_token()
    (tmp_path / "t").write_text(token)
    result = headrace(*MAKE, "--url", service.url, "--token-file", tmp_path / "t")
    assert {asked.headers["authorization"] for asked in service.asked} == {f"Bearer {token}"}
    assert token not in result.output


def test_without_an_address_the_configured_store_is_asked(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token in the environment is no setting, and does not stop it."""
    monkeypatch.setenv("HEADRACE_TOKEN", new_token())
    assert "headrace details generate" in headrace.text("details", "list")
    assert headrace.json("details", "mode") == {"mode": "normal"}
    for command in ("show", "watch"):
        assert headrace.refusal("details", command, BATCH)[0] == 5
        assert headrace.refusal("details", command, "nonsense")[0] == 2


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        (("--count", 0), "count", "0"),
        (("--count", 1_001), "count", "1001"),
        (("--priority", 11), "priority", "11"),
        (("--first", 26), "first_response", "26"),
        (("--style", "a\x1bb"), "style", "'a\\x1bb'"),
        (("--type", "Item"), "type", "'Item'"),
        (("--scope", ""), "scope", "''"),
        (("--webhook", "nowhere"), "webhook", "'nowhere'"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_is_stored(
    headrace: CommandLine, options: tuple[object, ...], field: str, value: str
) -> None:
    """By the rules that the service has, too: with the field, its rule and the value."""
    code, error = headrace.refusal(*MAKE, *options)
    assert (code, error["code"], error["field"]) == (2, "invalid_input", field)
    assert error["rule"] in error["message"] and error["message"].endswith(f"got {value}")
    assert headrace.json("details", "list") == []


def test_what_only_this_process_would_see_is_not_looked_at(headrace: CommandLine) -> None:
    """The memory store of this command has nothing of others."""
    for command in (("list",), ("show", BATCH), ("watch", BATCH), ("mode",)):
        code, error = headrace.refusal("--url", "memory://", "details", *command)
        assert (code, "--url" in error["message"]) == (2, True)
