"""Details over separate processes, each killed once under load: nothing is lost and every batch is delivered whole."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path

import pytest

from headrace.testing.provider import ProviderProcess
from tests.backends.kafka import KafkaBroker
from tests.backends.server import PostgresServer
from tests.backends.valkey import ValkeyServer
from tests.faults.details_kills import Campaign, Report, describe
from tests.faults.details_line import APART, DetailsLine
from tests.faults.details_load import Load

pytestmark = pytest.mark.faults
#: One agent does.
FEW = {name: words for name, words in APART.items() if name != "other agent"}
SERVERS = (("redis",), ("broker",), ("postgres",))
#: At once, whatever is being written is cut off.
AGENTS = ("agent", "other agent")
RULES = files("headrace.apps.details.demo") / "rules.json"


@pytest.fixture
def line(request: pytest.FixtureRequest) -> Iterator[DetailsLine]:
    """Every process by itself, over real servers of the three protocols; the parameter: model's pace, processes."""
    latency, processes = request.param
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="hrdetails", dir="/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        postgres = PostgresServer(durable=True)
        stack.callback(postgres.remove)
        redis = ValkeyServer()
        stack.callback(redis.remove)
        broker = KafkaBroker(durable=True)
        stack.callback(broker.remove)
        provider = stack.enter_context(ProviderProcess("--latency", latency, "--answers", str(RULES)))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        yield DetailsLine(postgres, provider, folder, port, redis, broker, processes)


def _check(report: Report) -> None:
    """Every promise was kept, and what was killed was at work."""
    print(json.dumps(describe(report)))
    assert not report.faults, describe(report)
    assert not report.ended, describe(report)
    assert report.killed == report.there, describe(report)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("line", [("0.2,200,4", FEW)], indirect=True)
async def test_each_process_is_killed_once_while_batches_are_made(line: DetailsLine) -> None:
    """Agent, callback service, service, worker, relay and the servers: every batch is whole, no name is doubled."""
    # At once those whose place stays taken for seconds: partitions until the end of a session, the relay's its term.
    victims = [("agent", "callback", "relay"), ("service",), ("worker", "redis"), ("broker",), ("postgres",)]
    _check(await Campaign(line, Load(clients=4, seconds=400, most=15, spread=0.3), victims, each=1).run())


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("line", [("0.4,100,4", APART)], indirect=True)
async def test_each_process_is_killed_under_more_load(line: DetailsLine) -> None:
    """The same with 20 batches at once of up to 50 items, two agents, one by one, and everybody twice."""
    # The relay is the last: who takes over from it waits for the end of its term, and meanwhile nothing flows.
    one_by_one = [("agent",), ("service",), ("callback",), ("worker",), ("other agent",), *SERVERS, ("relay",)]
    both_agents = [AGENTS, ("service",), ("callback",), ("worker",), *SERVERS, ("relay",)]
    report = await Campaign(line, Load(clients=20, seconds=800), [*one_by_one, *both_agents], each=10).run()
    _check(report)
    # Clients went on behind what they had; with few batches none need be in the middle at a kill.
    assert report.figures["resumed"], describe(report)
