"""Every process and server that events pass through dies once under load: no event is lost, no effect is doubled."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from tests.backends.kafka import KafkaBroker
from tests.backends.server import PostgresServer
from tests.backends.valkey import ValkeyServer
from tests.faults.event_kills import VICTIMS, Campaign, Plan, describe
from tests.faults.event_line import Line
from tests.faults.event_suspensions import serving

pytestmark = pytest.mark.faults


@pytest.fixture
def line(request: pytest.FixtureRequest) -> Iterator[Line]:
    """Real servers, PostgreSQL with full durability; a broker where the parameter says "kafka"."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="hrline", dir="/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        postgres = PostgresServer(durable=True)
        stack.callback(postgres.remove)
        redis = ValkeyServer()
        stack.callback(redis.remove)
        broker = KafkaBroker(durable=True) if request.param == "kafka" else None
        if broker is not None:
            stack.callback(broker.remove)
        yield Line(postgres, redis, broker, folder)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("line", ["kafka"], indirect=True)
async def test_each_process_is_killed_once_under_load(line: Line) -> None:
    """Broker, relay, agent, callback service, Redis and PostgreSQL: a short campaign over real servers of all three."""
    report = await Campaign(line, Plan(keys=8, between=3, asks=30, pause=0.1, ahead=100, longest=400.0)).run()
    print(json.dumps(describe(report)))
    assert report.clean, describe(report)
    assert set(report.kills) == set(VICTIMS)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("line", ["kafka", "store"], indirect=True)
@pytest.mark.parametrize("seed", [1, 2])
async def test_each_process_is_killed_once_under_more_load(line: Line, seed: int) -> None:
    """The same in other orders, longer, with suspended flows of Prefect, and on the bus of the store."""
    victims = [name for name in VICTIMS if name != "broker" or line.broker is not None]
    Random(seed).shuffle(victims)
    plan = Plan(20, 60, asks=300, pause=0.04, ahead=2_000, victims=victims, open_seconds=20.0, longest=400.0)
    with serving(line):
        report = await Campaign(line, plan).run()
    print(json.dumps(describe(report)))
    assert report.clean, describe(report)
    assert report.flows == len(victims)
