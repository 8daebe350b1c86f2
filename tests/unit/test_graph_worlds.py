"""Random graphs, a seed each: worked by one job, node by node, or moved on between, they come to what a plain
interpreter says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace import App
from headrace.model.graph.checks import check_graph
from headrace.model.graph.form import parse_graph
from headrace.settings import Settings
from headrace.workflow_settings import DistributedSettings, HybridSettings, SchedulerSettings
from tests.unit import graph_tasks
from tests.unit.engine_app import MILLISECONDS, QUICK
from tests.unit.graph_runs import compare, declare, start
from tests.unit.graph_worlds import make_world

SEEDS = range(36)
LEVELS = ("workflow_level", "node_level", "moved")


def settings_of(level: str, seed: int) -> Settings:
    """Return settings by which a run is worked at a level; "moved": from one to the other, wherever it then stands."""
    moved = HybridSettings(workflow_level_threshold=500, node_level_threshold=(1 + seed * 7 % 25) * MILLISECONDS)
    hybrid = moved if level == "moved" else HybridSettings(default_mode=level)
    distributed = DistributedSettings(dependency_check_interval=50 * MILLISECONDS)
    return replace(QUICK, scheduler=SchedulerSettings(hybrid, distributed))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("seed", SEEDS)
async def test_every_node_and_the_run_end_as_they_have_to(seed: int, level: str) -> None:
    """States and outputs of all nodes, and of the run, are those of the interpreter."""
    app = graph_tasks.make(App(settings=settings_of(level, seed)))
    world = make_world(seed)
    declare(app, world)
    async with app.worker():
        assert await compare(app, await start(app, world), world, seconds=20) == []


def test_every_world_is_a_graph_that_may_run() -> None:
    """Worlds keep to the rules of graphs; an error names its seed."""
    for seed in range(200):
        check_graph(parse_graph(make_world(seed).graph), field=f"world {seed}")
