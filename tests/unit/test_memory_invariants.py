"""After any sequence of operations, in any order and from anyone, the invariants of the core hold."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from hypothesis import settings

from headrace.model.job import JobSpec, JobState
from headrace.stores.memory import endings
from tests.machine.core import Core

#: Seconds: a failure is made smaller for up to five minutes; a test cut off before that would not tell it.
SHRUNK = 600


class Quick(Core):
    """The machine on the memory store alone."""


class Long(Core):
    """The same, for the long run."""


Quick.TestCase.settings = settings(max_examples=70, stateful_step_count=50, database=None, print_blob=True)
Long.TestCase.settings = settings(max_examples=1_000, stateful_step_count=60, database=None, print_blob=True)


@pytest.mark.timeout(SHRUNK)
class TestInvariants(Quick.TestCase):  # type: ignore[misc,valid-type]
    """Random operations keep the invariants, and the core comes to rest when they stop."""


@pytest.mark.slow
@pytest.mark.timeout(1_200)
class TestInvariantsAtLength(Long.TestCase):  # type: ignore[misc,valid-type]
    """The same over many more operations."""


def test_a_missing_fence_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine can fail: where any session may end an attempt, a stale completion breaks a rule."""
    monkeypatch.setattr(endings, "owned_job", lambda state, job_id, attempt, session: state.running.get(job_id))
    machine = Core()
    machine.open()
    machine.insert(JobSpec("work", "left"), 1, timedelta())
    machine.claim(machine.workers[0], "left", 1)
    _, job = machine.held[0]
    machine.held[0] = (uuid4(), job)

    with pytest.raises(AssertionError):
        machine.complete(0, JobState.SUCCEEDED, timedelta(), None)
    machine.patches.undo()
