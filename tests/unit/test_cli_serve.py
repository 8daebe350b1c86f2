"""`headrace serve`: what it refuses before it listens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.cli_runner import CommandLine, command_line


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """Return a command line."""
    with command_line(monkeypatch) as line:
        yield line


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org", "127.0.0.1.evil.example", ""])
def test_addresses_that_others_reach_are_refused(headrace: CommandLine, host: str) -> None:
    """The error says that tokens are needed for that, and are yet to come."""
    code, error = headrace.refusal("serve", "--host", host, "--port", "0")
    assert (code, error["code"]) == (2, "config")
    assert "127.0.0.1" in error["message"]
    assert "tokens" in error["message"]


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
