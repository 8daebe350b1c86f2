"""The memory store and each durable one answer alike and read alike, whatever is done to them."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from hypothesis import settings

from headrace.model.errors import ConflictError
from headrace.ports.admission import Admission
from headrace.ports.batch_store import BatchStore
from headrace.ports.control_store import ControlStore
from headrace.ports.inspect import Inspect
from headrace.ports.inspect_batches import InspectBatches
from headrace.ports.job_store import JobStore
from headrace.ports.limiter import Limiter
from headrace.ports.memo_store import MemoStore
from headrace.ports.session_store import SessionStore
from headrace.ports.stores import Stores
from tests.machine.core import Core
from tests.machine.durable import WithPostgres, WithRedis
from tests.machine.twin import PORTS, Both, Names, Twin

ROOT = Path(__file__).parents[2]
#: What the machine does not drive: why, and where it is tested.
ELSEWHERE = {
    "store_info": ("says what the store is, so two differ", "tests/conformance/test_capabilities.py"),
    "schedules": (
        "rows of their own beside the jobs, moved by compare and set",
        "tests/conformance/test_schedule_store.py",
    ),
    "notifier": ("hints may be lost, so nothing may follow from them", "tests/conformance/test_notifier.py"),
    "private_sessions": (
        "the session store on a connection of its own",
        "tests/integration/test_postgres_connections.py",
    ),
    "audit": ("rows that nothing else reads, newest first", "tests/conformance/test_audit_store.py"),
    "own_tables": (
        "connections to the database for tables that are not the store's",
        "tests/integration/test_own_tables.py",
    ),
    "foreign": ("a transaction of the caller's own database", "tests/integration/test_postgres_enqueue.py"),
    "calls": (
        "a ledger of its own beside the jobs, each verb one statement on every store",
        "tests/conformance/test_call_store_races.py",
    ),
    "budgets": ("read and set by people, over the same ledger", "tests/conformance/test_budget_store.py"),
    "runs": (
        "moved by what goes along with the ends of jobs, in one step",
        "tests/conformance/test_run_store_effects.py",
    ),
    "workflows": ("rows of their own, versions of definitions", "tests/conformance/test_workflow_store.py"),
    "signals": ("rows of their own, and jobs that they wake", "tests/conformance/test_job_store_park.py"),
    "names": ("rows of their own, taken in one step", "tests/conformance/test_name_store.py"),
    "feeds": ("rows of their own, no job depends on them", "tests/conformance/test_feed_store.py"),
    "tokens": ("rows of their own, no job depends on them", "tests/conformance/test_token_store.py"),
    "events": (
        "absent on Redis; tables of their own, written with the jobs in one transaction",
        "tests/conformance/test_outbox_writers.py",
    ),
    "close": ("ends the store", "tests/backends/postgres.py"),
}
RULES = "".join(file.read_text() for file in sorted(Path(__file__).parent.glob("[!t]*.py")))


#: Seconds: a failure is made smaller for up to five minutes; a test cut off before that would not tell it.
SHRUNK = 600


class QuickPostgres(WithPostgres):
    """The machine on both stores."""


class QuickRedis(WithRedis):
    """The machine on both stores."""


class LongPostgres(WithPostgres):
    """The same, for the long run."""


class LongRedis(WithRedis):
    """The same, for the long run."""


QUICK = settings(max_examples=20, stateful_step_count=40, database=None, print_blob=True)
LONG = settings(max_examples=200, stateful_step_count=60, database=None, print_blob=True)
QuickPostgres.TestCase.settings = QuickRedis.TestCase.settings = QUICK
LongPostgres.TestCase.settings = LongRedis.TestCase.settings = LONG


@pytest.mark.timeout(SHRUNK)
class TestSideBySide(QuickPostgres.TestCase):  # type: ignore[misc,valid-type]
    """Random operations get the same answers from both stores and leave both reading the same."""


@pytest.mark.timeout(SHRUNK)
class TestSideBySideOnRedis(QuickRedis.TestCase):  # type: ignore[misc,valid-type]
    """Random operations get the same answers from both stores and leave both reading the same."""


@pytest.mark.slow
@pytest.mark.timeout(1_200)
class TestSideBySideAtLength(LongPostgres.TestCase):  # type: ignore[misc,valid-type]
    """The same over many more operations."""


@pytest.mark.slow
@pytest.mark.timeout(1_200)
class TestSideBySideOnRedisAtLength(LongRedis.TestCase):  # type: ignore[misc,valid-type]
    """The same over many more operations."""


def test_every_rule_is_part_of_the_machine() -> None:
    """No rule that is written down is left out of the machine."""
    assert len(Core.setup_state().rules) == RULES.count("    @rule(")


#: Reads of one job by its fence, and of steps by their names, for executors elsewhere: `test_job_store_steps.py`.
FOR_FARMS = ("running_job", "read_steps")
#: Reads of one job or item that nothing else depends on: `test_attempt_logs.py`, `test_item_states.py`.
READS = ("attempt_logs", "item_jobs")
#: A count with freedoms, such as jobs of a batch that is being cancelled: `test_admission_eligible.py`.
ESTIMATES = ("eligible_jobs",)


@pytest.mark.parametrize(
    "port",
    [
        JobStore, BatchStore, SessionStore, ControlStore, Inspect, InspectBatches, MemoStore, Admission, Limiter,
    ],
)  # fmt: skip
def test_the_rules_use_every_verb(port: type) -> None:
    """A verb that a port gains needs a rule, or a reason to have none."""
    verbs = [name for name, member in vars(port).items() if callable(member) and not name.startswith("_")]
    assert [
        verb for verb in verbs if f".{verb}(" not in RULES and verb not in {*ELSEWHERE, *FOR_FARMS, *READS, *ESTIMATES}
    ] == []


def test_every_port_is_in_the_machine_or_proven_elsewhere() -> None:
    """A port that the stores gain needs rules, or a reason and a place where it is tested."""
    fields = {field.name for field in dataclasses.fields(Stores)}
    assert fields == {*PORTS, *ELSEWHERE} - {"store_info"}
    assert all((ROOT / place).exists() for _, place in ELSEWHERE.values())


class Port:
    """A port that gives one answer, or one error."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    async def verb(self, job_id: UUID) -> object:
        """Answer."""
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(("one", "other"), [(1, 2), (None, ConflictError()), (ConflictError(), ValueError())])
def test_different_answers_are_told(one: object, other: object) -> None:
    """The comparison can fail: another value, an error of one store only, and two errors of different kinds."""
    twin = Twin.__new__(Twin)
    twin.names = Names()
    both = Both(Port(one), Port(other), twin)

    with pytest.raises(AssertionError):
        asyncio.run(both.verb(uuid4()))
