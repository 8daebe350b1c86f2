"""`headrace serve`: what it refuses before it listens."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.unit.cli_runner import CommandLine, command_line


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """Return a command line, in a process that has not loaded the app that is served unless another one is named."""
    monkeypatch.delitem(sys.modules, "headrace.apps.flows.worker", raising=False)
    with command_line(monkeypatch) as line:
        yield line


@pytest.mark.parametrize("where", [("--host", "0.0.0.0"), ("--host", "::"), ("--require-token",)])
def test_where_tokens_are_needed_there_must_be_one(headrace: CommandLine, where: tuple[str, ...]) -> None:
    """Else nobody could use it: the error has the command that makes one."""
    headrace("token", "create", "old", "--scope", "read")
    [old] = headrace.json("token", "list")
    headrace("token", "revoke", old["id"])
    code, error = headrace.refusal("serve", *where, "--port", "0")
    assert (code, error["code"]) == (2, "config")
    assert "headrace token create NAME" in error["message"]


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1.evil.example", "", "localhost:80", "*"])
def test_what_is_no_address_is_told(headrace: CommandLine, host: str) -> None:
    """Names are for what it answers to."""
    code, error = headrace.refusal("serve", "--host", host, "--port", "0")
    assert (code, error["code"]) == (2, "config")
    assert "service.host must be an address such as 127.0.0.1" in error["message"]


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("HOST", "jobs.example.org", "service.host must be an address"),
        ("PORT", "65536", "service.port must be from 0 to 65535"),
        ("HOSTS", "https://jobs.example.org", "service.hosts must be names or addresses"),
        ("HOSTS", "*.example.org", "service.hosts must be names or addresses"),
        ("HOSTS", "jobs.example.org", "set service.require_token = true"),
    ],
)
def test_mistakes_in_the_settings_are_told(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch, key: str, value: str, says: str
) -> None:
    """With the key, and before anything listens."""
    monkeypatch.setenv(f"HEADRACE_SERVICE_{key}", value)
    code, error = headrace.refusal("serve", *(() if key == "PORT" else ("--port", "0")))
    assert (code, says in error["message"]) == (2, True), error


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_ports_that_there_are_not(headrace: CommandLine, port: str) -> None:
    """They are usage errors."""
    code, _ = headrace.refusal("serve", f"--port={port}")
    assert code == 2


def test_an_app_that_is_not_there(headrace: CommandLine) -> None:
    """It is told as for a worker."""
    code, error = headrace.refusal("serve", "no_such_module:app", "--port", "0")
    assert (code, error["code"]) == (2, "config")
    assert "no_such_module" in error["message"]


def test_without_the_extra_it_says_which(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is missing is named with the command that installs it."""

    def missing(name: str) -> None:
        raise ModuleNotFoundError("no", name="uvicorn")

    monkeypatch.setattr("headrace.cli.serve.import_module", missing)
    code, error = headrace.refusal("serve")
    assert (code, error["message"]) == (2, "the service needs the package uvicorn: pip install 'headrace[service]'")


@pytest.mark.parametrize(
    "word",
    ["/api/v1/jobs", "/metrics", "/events", "headrace token create", "details", "papers", "webhook", "Last-Event-ID"],
)
def test_its_help_names_what_it_serves(headrace: CommandLine, word: str) -> None:
    """Routes, tokens, events, and what else there is to find."""
    assert word in headrace.text("serve", "--help")
