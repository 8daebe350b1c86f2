"""What `headrace bench` measures in which order, and what it does with contenders that are not there."""

from __future__ import annotations

import subprocess
import sys
from itertools import groupby

import pytest

from headrace.bench.catalogue import CONTENDERS, WORKLOADS, Entry, Kind
from headrace.bench.plan import QUICK, Sizes, chosen_contenders, chosen_workloads, interleave
from headrace.bench.run import Plan, carry_out, with_sources
from headrace.bench.server import BenchServer, weaknesses
from headrace.model.errors import InvalidInputError


def test_contenders_take_turns_in_every_round() -> None:
    """A B C, A B C, A B C: a drift of the machine meets all alike."""
    turns = list(interleave(["drain"], chosen_contenders("pgqueuer"), Sizes(), rounds=3))
    rounds = [[turn.contender for turn in group] for _, group in groupby(turns, key=lambda turn: turn.round)]
    assert len(rounds) == 3
    assert rounds[0] == rounds[1] == rounds[2]
    assert {"raw-delete", "raw-ours", "headrace", "pgqueuer"} <= set(rounds[0])


def test_what_is_compared_within_a_contender_is_measured_at_one_time() -> None:
    """The deep drain of a contender follows its shallow one, in every round."""
    turns = [
        (turn.round, turn.workload)
        for turn in interleave(["drain", "drain-deep"], chosen_contenders("none"), Sizes(), rounds=2)
        if turn.contender == "headrace-400"
    ]
    assert turns == [(1, "drain"), (1, "drain-deep"), (2, "drain"), (2, "drain-deep")]
    everybody = [turn.contender for turn in interleave(["drain", "drain-deep"], CONTENDERS, Sizes(), rounds=1)]
    assert everybody.index("headrace-400") + 1 == len(everybody) - everybody[::-1].index("headrace-400") - 1


def test_the_raw_loop_takes_part_in_every_drain() -> None:
    """Without it a run could not be judged."""
    for workload in ("drain", "drain-deep"):
        assert workload in CONTENDERS["raw-delete"].loops


def test_slow_peers_get_fewer_jobs_and_the_rest_the_same() -> None:
    """The share is applied to drains and bulk enqueues, and to nobody else's."""
    jobs = {turn.contender: turn.jobs for turn in interleave(["drain"], chosen_contenders("all"), Sizes(), rounds=1)}
    assert jobs["headrace"] == jobs["raw-delete"] == jobs["pgqueuer"] == 20_000
    assert jobs["procrastinate"] == 1_000


def test_a_quick_run_leaves_the_slow_ones_out() -> None:
    """--quick has a minute."""
    quick = chosen_workloads(None, quick=True)
    assert "drain" in quick and "kill" not in quick and "memory" not in quick
    assert chosen_workloads(None, quick=False) == tuple(WORKLOADS)
    assert QUICK.drain < Sizes().drain


def test_names_are_checked() -> None:
    """A misspelt workload or peer is refused with those there are."""
    with pytest.raises(InvalidInputError, match="drain-deep"):
        chosen_workloads("drian", quick=False)
    with pytest.raises(InvalidInputError, match="procrastinate"):
        chosen_contenders("headrace-batch")
    with pytest.raises(InvalidInputError, match="pgqueuer"):
        chosen_contenders(",")


def test_no_peers_means_raw_loops_and_headrace() -> None:
    """`none` measures nobody else; `all` everybody."""
    assert {entry.kind for entry in chosen_contenders("none").values()} == {Kind.RAW, Kind.OURS}
    assert set(chosen_contenders("all")) == set(CONTENDERS)


def test_another_checkout_is_one_more_contender() -> None:
    """Its worker takes turns with the one of this process, and the raw loops are not doubled."""
    contenders = with_sources(chosen_contenders("none"), ("/elsewhere/src",))
    added = contenders["headrace@/elsewhere/src"]
    assert added.source == "/elsewhere/src" and added.workloads == CONTENDERS["headrace"].workloads
    assert len(contenders) == len(chosen_contenders("none")) + 1


async def test_a_missing_peer_is_named_as_such() -> None:
    """What is not installed is listed as not installed, and needs no server to be so."""
    nobody = Entry(kind=Kind.PEER, about="", target="x:y", needs=("no-such-distribution",), workloads=("drain",))
    plan = Plan(workloads=("drain",), contenders={"nobody": nobody}, sizes=QUICK, rounds=2)
    run = await carry_out(plan, BenchServer("postgresql://127.0.0.1:9/none"), told=lambda done, total, turn: None)
    [result] = run.results
    assert result.status == "not installed" and len(result.answers) == 2


async def test_a_peer_without_its_server_is_named_as_such() -> None:
    """Where no Redis server is to be had, those that need one say so."""
    needy = Entry(kind=Kind.PEER, about="", target="x:y", needs=("asyncpg",), redis=True, workloads=("drain",))
    plan = Plan(workloads=("drain",), contenders={"needy": needy}, sizes=QUICK, rounds=1)
    run = await carry_out(plan, BenchServer("postgresql://127.0.0.1:9/none"), told=lambda done, total, turn: None)
    assert [result.status for result in run.results] == ["no Redis server"]


def test_weak_settings_are_found() -> None:
    """Each setting by which a commit may be lost is named; weaker ways of waiting for a replica are not our concern."""
    safe = {"fsync": "on", "synchronous_commit": "local", "full_page_writes": "on"}
    assert weaknesses(safe) == []
    assert weaknesses({**safe, "fsync": "off", "full_page_writes": "off"}) == ["fsync = off", "full_page_writes = off"]


def test_the_library_imports_nothing_of_the_benchmark() -> None:
    """Neither `import headrace` nor the module of the command costs anything of it."""
    code = (
        "import sys, headrace, headrace.cli.bench\n"
        "print([name for name in sys.modules if name.startswith(('headrace.bench', 'asyncpg', 'rich.progress'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
