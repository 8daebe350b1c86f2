"""What stores declare beyond the contract, held against the page that tells people."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model.capability import Capability
from headrace.ports.stores import Stores

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "stores.md"
COLUMNS = {"memory": 1, "postgresql": 2, "redis": 3}


def shown() -> dict[Capability, list[str]]:
    """Return the rows of the page by capability."""
    rows = [line.strip("|").split("|") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in row] for row in rows]
    return {
        Capability(row[0].split("`")[1]): row for row in cells if row[0].split("`")[1] in set(Capability)
    }  # fmt: skip


async def test_a_store_can_what_its_page_says(stores: Stores) -> None:
    """Each store declares what the page promises, and nothing that the page denies."""
    info = await stores.inspect.store_info()
    for capability, row in shown().items():
        said = row[COLUMNS[info.kind]]
        if said == "yes":
            assert capability in info.capabilities, capability
        elif said == "no" or said.startswith("no:"):
            assert capability not in info.capabilities, capability
        else:
            assert said.startswith("where "), said
    assert set(info.lacks) == set(Capability) - info.capabilities


async def test_enqueueing_in_a_transaction_is_declared_where_it_is_there(stores: Stores) -> None:
    """The port of transactional enqueue is there exactly where the store declares it."""
    info = await stores.inspect.store_info()
    assert (stores.foreign is not None) == (Capability.TRANSACTIONAL_ENQUEUE in info.capabilities)


@pytest.mark.parametrize("capability", Capability)
def test_the_page_tells_every_capability_in_its_own_words(capability: Capability) -> None:
    """No capability is missing on the page, and each is told as the code tells it."""
    assert shown()[capability][0] == f"`{capability}`: {capability.meaning}"


def test_the_page_names_tests_that_exist() -> None:
    """Each line of the page names the files that test it."""
    root = PAGE.parents[2]
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ") and "tests/" in line]
    named = [cell.strip("` ") for line in lines for cell in line.strip("|").rpartition("|")[2].split(",")]
    assert len(lines) >= 20
    assert [name for name in named if not (root / name).is_file()] == []
