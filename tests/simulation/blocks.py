"""Seeds in blocks: files of tests are spread over processes, so the 300 seeds of `make test` lie in two files."""

from __future__ import annotations

from headrace.testing.simulation import run_seeds

SEEDS = 300
BLOCK = 50

FIRST_SEEDS = range(1, SEEDS + 1, BLOCK)


def check_block(first: int) -> None:
    """Run a block of seeds; fail with the report of the first that breaks an invariant."""
    for run in run_seeds(range(first, first + BLOCK)):
        assert run.ok, run.report()
