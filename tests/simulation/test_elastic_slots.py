"""Elastic slots in simulated worlds: whatever fails while they grow and shrink, slots used are running rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from headrace.engine.claimer import Claimer
from headrace.engine.loops.resizer import ElasticOptions
from headrace.engine.shift import Shift
from headrace.model.elastic import ElasticSlots
from headrace.testing.simulation import run_seeds
from headrace.testing.simulation.handlers import GATED, MAIN
from headrace.testing.simulation.processes import Processes
from headrace.testing.simulation.scenario import Place

#: So small that the few jobs of a world cross them, and so often that sizes change all the time.
MARKS = {"grow_above": 2, "shrink_below": 1}
INTERVAL = timedelta(seconds=0.4)


def _elastic(_processes: Processes, place: Place) -> ElasticOptions:
    rules = {
        MAIN: ElasticSlots(1, max(2 * place.slots, 4), place.slots, **MARKS),
        GATED: ElasticSlots(1, 8, place.gated_slots, **MARKS),
    }
    return ElasticOptions(rules, INTERVAL)


def test_every_invariant_holds_while_slots_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """In sixty worlds of workers that crash, freeze and are cut off."""
    monkeypatch.setattr(Processes, "_elastic", _elastic)
    sizes: list[int] = []
    resize = Shift.resize

    def noted(shift: Shift, queue: str, slots: int) -> None:
        sizes.append(slots - shift.queues[queue])
        resize(shift, queue, slots)

    monkeypatch.setattr(Shift, "resize", noted)
    for run in run_seeds(range(1, 61)):
        assert run.ok, run.report()
    assert sum(change > 0 for change in sizes) > 20
    assert sum(change < 0 for change in sizes) > 200


def test_a_resize_that_miscounts_its_free_slots_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that leaves out what it takes away from them."""
    monkeypatch.setattr(Processes, "_elastic", _elastic)

    def careless(claimer: Claimer, slots: int) -> None:
        claimer._free = max(0, claimer._free + slots - claimer.slots)
        claimer._whole_claim = replace(claimer._whole_claim, limit=slots)

    monkeypatch.setattr(Claimer, "resize", careless)
    assert not all(run.ok for run in run_seeds(range(1, 201)))
