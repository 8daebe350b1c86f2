"""The pins in requirements/ are those that pyproject.toml asks for, each with its hashes and nobody's index."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from headrace.bench.catalogue import CONTENDERS, Kind
from headrace.bench.machine import NODE

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINS = ROOT / "requirements"
#: Extras that have an environment of their own.
APART = {"litellm"}
FILES = sorted(PINS.glob("*.txt"))
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^ ;\\]+)")


def entries(file: Path) -> list[str]:
    """Return the requirements of a pinned file, each with its hashes on one line."""
    text = re.sub(r"\\\n\s*", " ", file.read_text(encoding="utf-8"))
    return [line for line in text.splitlines() if line and not line.startswith(("#", " "))]


def pins(name: str) -> dict[str, str]:
    """Return the pinned version of each package of a file."""
    found = [PIN.match(entry) for entry in entries(PINS / name)]
    return {canonicalize_name(match[1]): match[2] for match in found if match is not None}


def asked(*, dev: bool) -> list[Requirement]:
    """Return what pyproject.toml asks for at run time, or for development."""
    extras = PROJECT["project"]["optional-dependencies"]
    groups = PROJECT["dependency-groups"]
    lines = [*PROJECT["project"]["dependencies"], *extras["papers"], *groups["build"]]
    if dev:
        lines += [*(line for name, extra in extras.items() if name not in APART for line in extra)]
        lines += [line for line in groups["dev"] if isinstance(line, str)]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize(("name", "dev"), [("runtime.txt", False), ("dev.txt", True)])
def test_every_dependency_is_pinned_within_its_bounds(name: str, dev: bool) -> None:
    """Whoever changes a dependency is reminded to run `make requirements`."""
    pinned = pins(name)
    loose = [
        str(requirement)
        for requirement in asked(dev=dev)
        if not requirement.specifier.contains(pinned.get(canonicalize_name(requirement.name), "0"), prereleases=True)
    ]
    assert loose == []


@pytest.mark.parametrize("name", sorted(APART))
def test_an_extra_that_stands_apart_fits_beside_the_project(name: str) -> None:
    """It is pinned with everything that the project needs at run time, in the same versions, and in no other file."""
    pinned, own = pins(f"{name}.txt"), PROJECT["project"]["optional-dependencies"][name]
    assert all(Requirement(line).specifier.contains(pinned[Requirement(line).name]) for line in own)
    assert {Requirement(line).name for line in own} & (set(pins("dev.txt")) | set(pins("runtime.txt"))) == set()
    runtime = pins("runtime.txt")
    assert {package: pinned[package] for package in runtime.keys() & pinned.keys()} == {
        package: runtime[package] for package in runtime.keys() & pinned.keys()
    }
    needed = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
    assert [line.name for line in needed if canonicalize_name(line.name) not in pinned] == []


@pytest.mark.parametrize("name", ["bench", "bench-oban", "local-model", "site"])
def test_what_stands_beside_the_project_is_pinned_within_its_bounds(name: str) -> None:
    """The job systems that are measured, the local model and the builder of the site are what their lists ask for."""
    lines = [line.partition("#")[0].strip() for line in (PINS / f"{name}.in").read_text("utf-8").splitlines()]
    requirements = [Requirement(line) for line in lines if line]
    pinned = pins(f"{name}.txt")
    assert requirements
    assert [
        str(requirement)
        for requirement in requirements
        if not requirement.specifier.contains(pinned.get(canonicalize_name(requirement.name), "0"), prereleases=True)
    ] == []


#: Celery is measured beside us, and is what a farm runs; its client of Redis comes with it.
FARM = {"celery", "redis"}


def test_other_job_systems_are_nobodys_dependency() -> None:
    """What the benchmark measures is in no extra and no environment but its own, except for what farms run."""
    peers = [entry for entry in CONTENDERS.values() if entry.kind is Kind.PEER]
    systems = {name for entry in peers for name in entry.needs if not name.startswith(NODE)}
    asked_for = {requirement.name for requirement in asked(dev=True)}
    assert len(systems) >= 8
    assert systems & (asked_for | set(pins("dev.txt"))) <= FARM
    assert systems & set(pins("runtime.txt")) == set()
    assert systems <= set(pins("bench.txt")) | set(pins("bench-oban.txt"))


def test_development_runs_on_the_versions_that_users_get() -> None:
    """Both kinds of environment pin the packages they share alike."""
    dev = pins("dev.txt")
    assert {name: dev.get(name) for name in pins("runtime.txt")} == pins("runtime.txt")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_every_pin_has_hashes_and_no_source(file: Path) -> None:
    """What is installed is what was pinned, from whichever index the machine uses."""
    assert entries(file)
    for entry in entries(file):
        assert PIN.match(entry)
        assert "--hash=sha256:" in entry
        assert "://" not in entry
