"""The supervisor's decisions, without processes; tests/acceptance/test_cli.py has the processes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.cli.supervisor import LONGEST_DELAY, Restarts, worker_command
from headrace.cli.working import WorkOptions


def test_a_process_that_dies_again_and_again_waits_longer() -> None:
    """The delay doubles up to its bound, and begins anew once a process ran for a while."""
    restarts = Restarts()
    delays = [restarts.delay(1, lived=0.1) for _ in range(12)]
    assert delays[:4] == [0.5, 1.0, 2.0, 4.0]
    assert delays[-1] == LONGEST_DELAY
    assert restarts.delay(-9, lived=60) == 0
    assert restarts.delay(1, lived=0.1) == 0.5


def test_a_lost_lease_is_followed_at_once() -> None:
    """A process that ended because its lease was lost is replaced without delay, however young it was."""
    restarts = Restarts()
    restarts.delay(1, lived=0.1)
    assert [restarts.delay(75, lived=0.1) for _ in range(3)] == [0, 0, 0]


@pytest.mark.parametrize(("code", "hopeless"), [(2, True), (3, True), (4, True), (1, False), (-9, False), (0, False)])
def test_only_what_no_start_can_mend_is_given_up(code: int, hopeless: bool) -> None:
    """Wrong settings and a store that never answered end the supervisor; once a process was healthy nothing does."""
    restarts = Restarts()
    assert restarts.hopeless(code) is hopeless
    restarts.delay(code, lived=60)
    assert restarts.hopeless(code) is False


def test_a_process_is_told_everything() -> None:
    """The command of a process carries every option that was given, and no other."""
    bare = worker_command(WorkOptions("jobs:app", {}), "info")
    assert bare[bare.index("worker") :] == ["worker", "jobs:app", "--processes", "1", "--log-level", "info"]
    options = WorkOptions("jobs:app", {"a": 2, "b": None}, 4, timedelta(seconds=90), as_json=True)
    command = worker_command(options, "debug")
    assert command[command.index("--log-level") :] == [
        "--log-level", "debug", "--queue", "a:2", "--queue", "b", "--concurrency", "4", "--grace", "1m30s", "--json",
    ]  # fmt: skip
