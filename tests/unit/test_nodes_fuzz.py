"""All node types with parameters and items of all kinds: nothing but our own errors comes out of them."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from headrace.model.errors import HeadraceError
from headrace.nodes.base import Fault, NodeType, Ports, Shape
from headrace.nodes.registry import all_types
from tests.unit.node_calls import FakeServices, MemoryFiles, make_call, run_call
from tests.unit.node_parameters import SEEDS, grown, grown_items

OURS = tuple(one for one in all_types() if type(one).__module__.startswith("headrace.nodes."))
WHOLE = tuple(one for one in OURS if one.shape is Shape.WHOLE)
CHECKS, RUNS = 300, 400


def chance_of(kind: NodeType) -> Random:
    """Return what the parameters of a type grow by: the same in every run."""
    return Random(f"{kind.name}-1")


def version_of(kind: NodeType, chance: Random) -> float:
    """Return a version that the type understands."""
    low, high = kind.versions
    return chance.choice([low, high, *(one / 10 for one in range(round(low * 10), round(high * 10) + 1))])


def test_every_type_has_parameters_to_grow_from() -> None:
    """A type that is added needs some here."""
    assert {one.name for one in OURS} == set(SEEDS)


@pytest.mark.parametrize("kind", OURS, ids=lambda one: one.name)
def test_checks_and_ports_never_raise(kind: NodeType) -> None:
    """Whatever JSON the parameters are, there are faults in words, and ports."""
    chance = chance_of(kind)
    for _ in range(CHECKS):
        parameters, version = grown(kind.name, chance), version_of(kind, chance)
        before = json.dumps(parameters)
        faults, ports = kind.check(parameters, version), kind.ports(parameters, version)
        assert all(isinstance(one, Fault) and one.parameter and one.message for one in faults), before
        assert isinstance(ports, Ports), before
        assert all(isinstance(name, str) for name in ports.outputs), before
        assert json.dumps(parameters) == before, "parameters stay as they were written"


@pytest.mark.parametrize("kind", WHOLE, ids=lambda one: one.name)
async def test_whole_types_give_items_or_our_errors(kind: Any) -> None:
    """The inputs stay as they are; each item that comes out has an object `json`, each failure is one of ours."""
    chance, ended = chance_of(kind), 0
    for _ in range(RUNS):
        parameters, version = grown(kind.name, chance), version_of(kind, chance)
        inputs = [grown_items(chance) for _ in range(chance.choice((1, 2, 2, 3)))]
        files = MemoryFiles({"a": b"x"})
        files.data["file"] = b"a,b\n1,2\n"
        strict, services = chance.random() < 0.5, FakeServices(files=files)
        call = make_call(kind, parameters, *inputs, version=version, strict=strict, services=services)
        before = json.dumps([parameters, call.inputs])
        try:
            out = await run_call(kind, call)
        except HeadraceError as error:
            assert str(error)
        else:
            ended += 1
            assert all(isinstance(item.get("json"), dict) for items in out for item in items), before
            json.dumps(out, allow_nan=False)
        assert json.dumps([parameters, call.inputs]) == before, "what is given stays as it is"
    assert ended > 0 or kind.name == "stopAndError"
