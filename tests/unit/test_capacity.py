"""The simulation of a day: nothing is lost or made, it scales, it says the same twice, and its page is its result."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from benchmarks.capacity_check import check
from benchmarks.capacity_costs import Curve, JobCosts, Load
from benchmarks.capacity_day import MINUTES, Day, Fleet, Outage, Server, Traffic, simulate, tenant_shares
from benchmarks.capacity_layouts import LAYOUTS, ceiling, fewest
from benchmarks.capacity_simulation import CORES, LIMITS, MEASURED, SIMULATED, least_row, limit_row, one_row, outage_row
from tools import capacity_figures


@cache
def measured() -> dict[str, Any]:
    """Return what was published."""
    report: dict[str, Any] = json.loads(MEASURED.read_text("utf-8"))
    return report


@cache
def costs() -> JobCosts:
    """Return its costs."""
    return JobCosts.of(measured())


EVEN = Traffic(5e7, skew=0.0, burst=0.0)


@pytest.mark.parametrize(
    "fleet",
    [
        Fleet(1),
        Fleet(3, outage=Outage(1, 600, 45)),
        Fleet(2, outage=Outage(0, MINUTES - 10, 60)),
        Fleet(1, Server(cores=1, wal_mb=1), workers=1),
    ],
    ids=["one", "an outage", "an outage beyond midnight", "too small"],
)
def test_what_arrived_has_ended_or_waits(fleet: Fleet) -> None:
    """Arrivals are endings, jobs that wait within and jobs that wait outside; each that ended has a wait."""
    day = simulate(costs(), EVEN, fleet)
    arrived = day.total("arrived")

    assert arrived == pytest.approx(EVEN.jobs, rel=0.01)
    assert day.total("ended") + day.total("waiting") + day.total("outside") == pytest.approx(arrived)
    assert sum(day.waits().counts.values()) == pytest.approx(day.total("ended"))


def test_an_outage_delays_what_is_behind_it_and_nothing_else() -> None:
    """Jobs of the server that is down wait as long as it is; those of the others do not."""
    day = simulate(costs(), EVEN, Fleet(3, workers=20, outage=Outage(1, 600, 45)))

    assert [one.waits.at(1) for one in day.namespaces] == [0, 45, 0]
    assert day.total("waiting") + day.total("outside") == 0


def test_a_server_that_is_too_small_ends_what_it_can_and_the_rest_waits() -> None:
    """It is used whole, never beyond, and the wait grows with the day."""
    day = simulate(costs(), EVEN, Fleet(1, Server(cores=1, wal_mb=1), workers=20))

    assert day.worst()["log"] == pytest.approx(1)
    assert day.total("waiting") + day.total("outside") > EVEN.jobs / 10
    assert day.waits().at(0.99) > 60


def test_twice_the_servers_are_used_half_as_much() -> None:
    """With an even load; what workers with nothing to do cost is left out."""
    quiet = replace(costs(), idle_worker=Load())

    def used(servers: int) -> dict[str, float]:
        # As many workers in all, so that exchanges gather alike.
        day = simulate(quiet, EVEN, Fleet(servers, workers=16 // servers))
        names = ("processor", "log", "storage")
        return {name: sum(one.mean[name] for one in day.namespaces) / servers for name in names}

    two, four = used(2), used(4)
    assert {name: two[name] / four[name] for name in two} == pytest.approx(dict.fromkeys(two, 2), rel=0.02)


def test_equal_input_gives_an_equal_day_and_another_seed_another() -> None:
    """Nothing but the seed decides."""

    def peaks(seed: int) -> list[dict[str, float]]:
        return [one.peak for one in simulate(costs(), replace(EVEN, seed=seed), Fleet(2)).namespaces]

    assert peaks(1) == peaks(1) != peaks(2)


def test_larger_calls_cost_less_a_job() -> None:
    """Between what was measured the costs lie between, and beyond it they stay."""
    curve = Curve(((1, 100.0), (10, 19.0), (100, 11.0)))
    sizes = (0.5, 1, 2, 5, 10, 50, 100, 1_000)

    found = [curve.at(size) for size in sizes]

    assert found == sorted(found, reverse=True)
    assert (found[0], found[-1]) == (100, 11)
    assert costs().work.at(1).server_us > costs().work.at(100).server_us > 0


def test_tenants_fall_to_namespaces_unevenly_but_wholly() -> None:
    """Shares sum up to one; the more the first tenants weigh, the heavier is the heaviest namespace."""
    even, skewed = tenant_shares(5_000, 0.0, 16), tenant_shares(5_000, 1.2, 16)

    assert sum(even) == pytest.approx(1) == sum(skewed)
    assert 1 / 16 < max(even) < max(skewed)


def test_partitions_spare_the_log_and_redis_the_processor() -> None:
    """Layouts change what they say they change."""

    def day(name: str) -> Day:
        layout = LAYOUTS[name]
        return simulate(layout.costs(costs()), EVEN, replace(layout.fleet(2), workers=8))

    plain, partitions, redis = (day(name).worst() for name in ("namespaces", "partitions", "redis for order"))
    assert partitions["log"] < plain["log"]
    assert redis["processor"] < plain["processor"]
    assert plain["redis"] == 0 < redis["redis"]


def test_more_jobs_need_more_servers_and_one_server_has_an_end() -> None:
    """The fewest servers never fall as jobs rise, and where one is all there is, none may be the answer."""
    found = [fewest(LAYOUTS["namespaces"], costs(), Traffic(jobs)) for jobs in (1e6, 1e8, 1e9)]
    servers = [fleet.namespaces for fleet, _ in filter(None, found)]

    assert servers == sorted(servers)
    assert servers[0] == 1 < servers[2]
    assert fewest(LAYOUTS["one server"], costs(), Traffic(1e9)) is None


def test_more_cores_take_more_jobs_until_something_else_binds() -> None:
    """The ceiling of a server rises with its cores and says what it is."""
    rates = [ceiling(costs(), ((10, 1.0),), Server(cores=cores, numbers=1e10)) for cores in (1, 2, 64, 128)]

    assert rates[1][0] == pytest.approx(2 * rates[0][0])
    assert rates[2] == rates[3]
    assert rates[0][1] == "processor" != rates[3][1]


def test_the_published_days_are_those_of_the_published_costs() -> None:
    """results/capacity_days.json is what the simulation says of results/capacity.json; a part of it is made again."""
    published = json.loads(SIMULATED.read_text("utf-8"))

    assert check(measured(), costs()) == published["check"]
    assert [limit_row(costs(), *one) for one in LIMITS] == published["limits"]
    assert [least_row(costs(), cores) for cores in CORES] == published["least"]
    assert one_row(costs(), LAYOUTS["namespaces"], 1e9) in published["days"]
    assert outage_row(costs(), 30) in published["outage"]


def test_the_page_shows_what_was_published() -> None:
    """Its tables are made of the results: `make reference` writes them."""
    text = capacity_figures.PAGE.read_text("utf-8")

    assert capacity_figures.filled(text) == text
    with pytest.raises(ValueError, match="lost the marks"):
        capacity_figures.filled(text.replace(capacity_figures.END, "", 1))
