"""WorkflowStore: definitions in versions, and whether they may be started."""

from __future__ import annotations

import asyncio

import pytest

from headrace.model.errors import NotFoundError
from headrace.model.run import StoredWorkflow, WorkflowEntry
from headrace.ports.workflow_store import WorkflowStore
from tests.conformance.scenario import SECOND, Scenario


@pytest.fixture
def workflows(on: Scenario) -> WorkflowStore:
    """Return the workflow store of the backend."""
    return on.stores.workflows


async def test_a_definition_is_stored(on: Scenario, workflows: WorkflowStore) -> None:
    """The first version is 1 and active, and reads as it was answered."""
    stored = await workflows.save_workflow("w", '{"nodes": [1]}', "s1")

    assert stored == StoredWorkflow("w", 1, "s1", '{"nodes": [1]}', active=True, created_at=on.clock.now())
    assert await workflows.get_workflow("w") == stored
    assert await workflows.get_workflow("w", 1) == stored


async def test_what_is_not_there(workflows: WorkflowStore) -> None:
    """Neither an unknown name nor an unknown version answers."""
    await workflows.save_workflow("w", "{}", "s1")

    assert await workflows.get_workflow("v") is None
    assert await workflows.get_workflow("w", 2) is None
    assert await workflows.get_workflow("w", 0) is None


async def test_another_definition_is_a_new_version(on: Scenario, workflows: WorkflowStore) -> None:
    """The one before it stays to be read."""
    first = await workflows.save_workflow("w", '{"nodes": [1]}', "s1")
    on.clock.advance(SECOND)
    second = await workflows.save_workflow("w", '{"nodes": [2]}', "s2")

    assert second == StoredWorkflow("w", 2, "s2", '{"nodes": [2]}', active=True, created_at=on.clock.now())
    assert await workflows.get_workflow("w") == second
    assert await workflows.get_workflow("w", 1) == first


async def test_an_equal_definition_is_no_new_version(on: Scenario, workflows: WorkflowStore) -> None:
    """As long as it is the latest: one that equals an earlier version is new."""
    first = await workflows.save_workflow("w", '{"nodes": [1]}', "s1")
    on.clock.advance(SECOND)
    assert await workflows.save_workflow("w", '{"nodes": [1]}', "s1") == first
    await workflows.save_workflow("w", '{"nodes": [2]}', "s2")

    assert (await workflows.save_workflow("w", '{"nodes": [1]}', "s1")).version == 3


async def test_versions_are_those_of_their_workflow(workflows: WorkflowStore) -> None:
    """Each name counts from 1."""
    await workflows.save_workflow("w", "{}", "s1")

    assert (await workflows.save_workflow("v", "{}", "s1")).version == 1


async def test_the_latest_versions_are_listed(workflows: WorkflowStore) -> None:
    """One of each workflow, by name."""
    assert await workflows.list_workflows() == []
    for name, snapshot in (("b", "s1"), ("a", "s2"), ("c", "s3"), ("b", "s4")):
        await workflows.save_workflow(name, "{}", snapshot)

    listed = await workflows.list_workflows()
    assert [(stored.name, stored.version, stored.snapshot) for stored in listed] == [
        ("a", 1, "s2"),
        ("b", 2, "s4"),
        ("c", 1, "s3"),
    ]
    assert listed[1] == await workflows.get_workflow("b")


async def test_pages_of_workflows_have_no_graphs(workflows: WorkflowStore) -> None:
    """The latest versions behind a name, by name as bytes have it, on every store alike; a limit ends a page."""
    names = ["a", "a-b", "a.b", "a_b", "ab", "b", "0"]
    assert await workflows.page_workflows(after="", limit=5) == []
    for name in names:
        await workflows.save_workflow(name, "{}", "s1")
    await workflows.save_workflow("a_b", "{}", "s2")
    await workflows.set_workflow_active("b", active=False)

    found, after = list[WorkflowEntry](), ""
    while page := await workflows.page_workflows(after=after, limit=3):
        assert len(page) <= 3
        found, after = found + page, page[-1].name
    assert [one.name for one in found] == sorted(names)
    for one in found:
        stored = await workflows.get_workflow(one.name)
        assert stored is not None
        facts = (stored.version, stored.snapshot, stored.active, stored.created_at)
        assert (one.version, one.snapshot, one.active, one.created_at) == facts


async def test_starts_are_switched_off_and_on(workflows: WorkflowStore) -> None:
    """For all versions of a workflow, and for no other."""
    for name, snapshot in (("w", "s1"), ("w", "s2"), ("v", "s1")):
        await workflows.save_workflow(name, "{}", snapshot)

    async def active(name: str, version: int | None = None) -> bool:
        stored = await workflows.get_workflow(name, version)
        assert stored is not None
        return stored.active

    await workflows.set_workflow_active("w", active=False)
    assert [await active("w"), await active("w", 1), await active("w", 2), await active("v")] == [False] * 3 + [True]
    assert [stored.active for stored in await workflows.list_workflows()] == [True, False]
    await workflows.set_workflow_active("w", active=True)
    assert [await active("w"), await active("w", 1)] == [True] * 2


async def test_a_new_version_is_as_active_as_the_one_before(workflows: WorkflowStore) -> None:
    """A workflow that was switched off stays off."""
    await workflows.save_workflow("w", "{}", "s1")
    await workflows.set_workflow_active("w", active=False)

    assert not (await workflows.save_workflow("w", "{}", "s1")).active
    assert not (await workflows.save_workflow("w", "{}", "s2")).active


async def test_an_unknown_workflow_is_not_switched(workflows: WorkflowStore) -> None:
    """NotFoundError is raised."""
    with pytest.raises(NotFoundError):
        await workflows.set_workflow_active("w", active=True)


async def test_definitions_saved_at_once_are_numbered_apart(workflows: WorkflowStore) -> None:
    """No version is given twice, and equal ones make one."""
    different = await asyncio.gather(*(workflows.save_workflow("w", "{}", f"s{number}") for number in range(8)))
    equal = await asyncio.gather(*(workflows.save_workflow("v", "{}", "s") for _ in range(8)))

    assert sorted(stored.version for stored in different) == list(range(1, 9))
    assert {stored.version for stored in equal} == {1}
