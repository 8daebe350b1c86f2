"""Half of the seeds of `make test`; `make simulate` runs more."""

from __future__ import annotations

import pytest

from tests.simulation.blocks import FIRST_SEEDS, check_block


@pytest.mark.parametrize("first", FIRST_SEEDS[1::2])
def test_every_invariant_holds(first: int) -> None:
    """Whatever crashes, freezes, drifts or gets lost on the way, the promises of the core hold and it comes to rest."""
    check_block(first)
